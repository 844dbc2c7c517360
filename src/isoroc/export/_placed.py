"""Where the columns of `Formulas` are in a graph: matrices, parts of them, and joined ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from isoroc.export._formulas import CONSTANTS, Column, runs
from isoroc.export._nodes import Nodes

#: Matrices are split into at most so many parts, and joined from at most so many.
_MOST_PARTS = 32
#: A matrix is small if it has at most so many times the columns that are computed from it.
_SMALL = 4


class Placed(Nodes):
    """Nodes of a graph whose matrices hold columns, one row per forecast."""

    def __init__(self, prefix: str, opset: int) -> None:
        super().__init__(prefix, opset)
        # The matrix that holds each column, and where; how wide matrices are.
        self._at: dict[Column, tuple[str, int]] = {}
        self._widths: dict[str, int] = {}
        self._assembled: dict[tuple[Any, ...], str] = {}
        self._splits: dict[tuple[str, int], list[str]] = {}

    def input(self, tensor: str, width: int) -> None:
        """Declare a matrix that exists already."""
        self._widths[tensor] = width

    def place(self, columns: Sequence[Column], matrix: str) -> None:
        """Remember where columns are."""
        self._at |= {column: (matrix, k) for k, column in enumerate(columns)}
        self._widths[matrix] = len(columns)

    def matrix(self, columns: Sequence[Column], *, broadcast: bool = False) -> str:
        """Name of the matrix of some columns, or with `broadcast` of what is broadcast to it."""
        if broadcast and all(column is columns[0] for column in columns):
            columns = columns[:1]
        key = tuple(columns)
        if key not in self._assembled:
            self._assembled[key] = self._assemble(columns)
        return self._assembled[key]

    def parts(self, columns: Sequence[Column]) -> list[Sequence[Column]]:
        """Columns in few parts, each of one matrix."""
        lengths = {len(joined) for joined in self._assembled}
        joined = max((n for n in lengths if tuple(columns[:n]) in self._assembled), default=0)

        def of_sources(columns: Sequence[Column]) -> list[Sequence[Column]]:
            sources = groupby(columns, key=lambda column: self._at[column][0])
            return [list(part) for _, part in sources]

        return min(of_sources(columns), [columns[:joined], *of_sources(columns[joined:])], key=len)

    def common_source(self, inputs: Sequence[Sequence[Column]]) -> str:
        """The matrix that holds all inputs of some columns, if it is hardly larger."""
        found = {self._at.get(column, ("", 0))[0] for of_columns in inputs for column in of_columns}
        source = found.pop()
        small = self._widths.get(source, np.inf) <= _SMALL * len(inputs[0])
        return source if small and not found else ""

    def _assemble(self, columns: Sequence[Column]) -> str:
        given = [column for column in columns if column.operator in CONSTANTS]
        if len(given) == len(columns):
            dtype = np.float64 if given[0].operator == "number" else np.int64
            return self.constant(np.array([[column.data for column in columns]], dtype=dtype))
        at = self._at
        if given:
            name = self.matrix(given)
            self._widths[name] = len(given)
            at = at | {column: (name, k) for k, column in enumerate(given)}
        moved = self._to_all_rows(columns, at)
        found = runs([(moved.get(at[c][0], at[c][0]), at[c][1]) for c in columns])
        if len(found) <= _MOST_PARTS and all(self._divides(*run) for run in found):
            parts = [self._part(*run) for run in found]
            return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)
        sources = list(dict.fromkeys(source for source, _, _ in found))
        joined = sources[0] if len(sources) == 1 else self.node("Concat", *sources, axis=1)
        starts = np.cumsum([0, *(self._widths[source] for source in sources)])
        start = dict(zip(sources, starts.tolist(), strict=False))
        places = [start[source] + first + i for source, first, n in found for i in range(n)]
        return self.node("Gather", joined, self.integers(*places), axis=1)

    def _to_all_rows(
        self, columns: Sequence[Column], at: dict[Column, tuple[str, int]]
    ) -> dict[str, str]:
        """For matrices of one row what they become beside columns that differ between rows."""
        varying = [column for column in columns if not column.fixed]
        fixed = dict.fromkeys(at[column][0] for column in columns if column.fixed)
        if not varying or not fixed:
            return {}
        rows = self.node("Shape", self.matrix(varying[:1]))
        moved = {matrix: self.node("Expand", matrix, rows) for matrix in fixed}
        self._widths |= {new: self._widths[old] for old, new in moved.items()}
        return moved

    def _divides(self, matrix: str, start: int, width: int) -> bool:
        """Whether columns that follow each other are a part of a matrix divided by their number."""
        whole = self._widths[matrix]
        return not start % width and whole <= _MOST_PARTS * width

    def _part(self, matrix: str, start: int, width: int) -> str:
        """Part of a matrix that is divided by a number of columns."""
        whole = self._widths[matrix]
        if width == whole:
            return matrix
        if (matrix, width) not in self._splits:
            sizes = [width] * (whole // width) + [whole % width] * (whole % width > 0)
            self._splits[matrix, width] = self.nodes(
                "Split", matrix, self.integers(*sizes), axis=1, outputs=[""] * len(sizes)
            )
        return self._splits[matrix, width][start // width]
