"""Matrices: the columns of `Formulas` as nodes of a graph, a kind at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from isoroc.export._affine import Affine, fold
from isoroc.export._formulas import CONSTANTS, Column, used
from isoroc.export._nodes import ML
from isoroc.export._placed import Placed

#: Lists of cuts are made equally long if that makes them at most so many times as long.
_MOST_PADDING = 3
#: Matrices up to which products with each are added up; more are joined first.
_MOST_PRODUCTS = 2
#: An operator is applied to the same matrix so often at most; else to several copies at once.
_MOST_ROUNDS = 3

_BOOL, _INT32 = onnx.TensorProto.BOOL, onnx.TensorProto.INT32


class Matrices(Placed):
    """Nodes that compute columns; those of one kind are a matrix, one row per forecast."""

    def __init__(self, prefix: str, opset: int) -> None:
        super().__init__(prefix, opset)
        self._compute: dict[str, Callable[[list[Column]], str]] = {
            "find": self._find,
            "every": self._every,
            "sum": lambda columns: self.reduce("ReduceSum", *self._bundles(columns)),
            "sum of squares": lambda columns: self.reduce(
                "ReduceSumSquare", *self._bundles(columns)
            ),
            "smallest": lambda columns: self.reduce("ReduceMin", *self._bundles(columns)),
            "largest": lambda columns: self.reduce("ReduceMax", *self._bundles(columns)),
            "first of largest": lambda columns: self.first_of_largest(*self._bundles(columns)),
            "weighted sum": self._weighted_sums,
            "softmax": self._softmax,
            "locate": self._locate,
            "entry": self._entries,
            "route": self._route,
        }

    def compute(self, outputs: Sequence[Column], *, exact: bool = True) -> None:
        """Add the nodes for some columns; unless `exact`, rounding errors may differ."""
        folded = {} if exact else fold(outputs)
        starts = {column: formula.terms for column, formula in folded.items()}
        for columns in used(outputs, starts):
            first = columns[0]
            if first.operator == "input":
                self._at |= {column: column.data for column in columns}
            elif first in folded:
                self.place(columns, self._affine([folded[column] for column in columns]))
            elif first.operator in self._compute:
                self.place(columns, self._compute[first.operator](columns))
            elif first.operator not in ("bundle", *CONSTANTS):
                for part in _rounds(columns):
                    self.place(part, self._elementwise(part))

    def _elementwise(self, columns: list[Column]) -> str:
        inputs = list(zip(*(column.inputs for column in columns), strict=True))
        if columns[0].operator == "Add" and (source := self.common_source(inputs)):
            # A product adds zeros to the sum of two numbers, so that it is the same to the last
            # bit, except for rows with infinite numbers, which are refused.
            ones = np.zeros((self._widths[source], len(columns)))
            for of_columns in inputs:
                for k, column in enumerate(of_columns):
                    ones[self._at[column][1], k] += 1
            return self.node("MatMul", source, self.constant(ones))
        repeats = _repeats(inputs)
        if repeats == 1:
            names = [self.matrix(of_columns, broadcast=True) for of_columns in inputs]
            return self.node(columns[0].operator, *names)
        # What is repeated is broadcast along a third axis: copies would cost more.
        shape, names = (len(columns) // repeats, repeats), []
        for of_columns in inputs:
            if of_columns[0].operator in CONSTANTS:
                values = [column.data for column in of_columns]
                names.append(self.constant(np.array(values, dtype=np.float64).reshape(1, *shape)))
            else:
                single = self.matrix(of_columns[::repeats])
                names.append(self.node("Reshape", single, self.integers(0, shape[0], 1)))
        result = self.node(columns[0].operator, *names)
        return self.node("Reshape", result, self.integers(0, len(columns)))

    def _bundles(self, columns: list[Column]) -> tuple[str, int]:
        """Columns in the bundles that others are computed from, and their axis.

        A matrix for one bundle. For several, which have the same length, bundles are the second
        axis.
        """
        bundles = [column.inputs[0].inputs for column in columns]
        joined = self.matrix([column for bundle in bundles for column in bundle])
        if len(bundles) == 1:
            return joined, 1
        shape = self.integers(0, len(bundles), len(bundles[0]))
        return self.node("Reshape", joined, shape), 2

    def _every(self, columns: list[Column]) -> str:
        conditions, axis = self._bundles(columns)
        least = self.reduce("ReduceMin", self.node("Cast", conditions, to=_INT32), axis)
        return self.node("Cast", least, to=_BOOL)

    def _weighted_sums(self, columns: list[Column]) -> str:
        of_bundle: dict[Column, list[Column]] = {}
        for column in columns:
            of_bundle.setdefault(column.inputs[0], []).append(column)
        most = max(map(len, of_bundle.values()))
        if len(of_bundle) <= most:  # several sums of each of few bundles
            groups, part = list(of_bundle.values()), self._product
        else:
            groups = [[own[i] for own in of_bundle.values() if i < len(own)] for i in range(most)]
            part = self._scalar_products
        columns[:] = [column for group in groups for column in group]
        parts = [part(group) for group in groups]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def _product(self, columns: list[Column]) -> str:
        """Weighted sums of one bundle."""
        weights = np.stack([column.data for column in columns], axis=1)
        return self.node("MatMul", self.matrix(columns[0].inputs[0].inputs), self.constant(weights))

    def _scalar_products(self, columns: list[Column]) -> str:
        """Weighted sums of one bundle each."""
        weights = np.stack([column.data for column in columns])
        joined = self.matrix([column for own in columns for column in own.inputs[0].inputs])
        products = self.node("Mul", joined, self.constant(weights.reshape(1, -1)))
        shape = self.integers(0, *weights.shape)
        return self.reduce("ReduceSum", self.node("Reshape", products, shape), 2)

    def _affine(self, formulas: Sequence[Affine]) -> str:
        starts = sorted(
            {start for formula in formulas for start in formula.terms},
            key=lambda start: (start.kind, self._at[start]),
        )
        weights = [[formula.terms.get(start, 0.0) for formula in formulas] for start in starts]
        offsets = np.array([[formula.offset for formula in formulas]])
        result = [self.constant(offsets)] if offsets.any() else []
        parts = self.parts(starts)
        if len(parts) > _MOST_PRODUCTS or any(start.fixed for start in starts):
            parts = [starts]
        first = 0
        for part in parts:
            matrix = np.array(weights[first : first + len(part)])
            result = [self.node("Gemm", self.matrix(part), self.constant(matrix), *result)]
            first += len(part)
        return result[0]

    def _softmax(self, columns: list[Column]) -> str:
        parts = []
        for bundle, own in groupby(columns, key=lambda column: column.inputs[0]):
            whole = self.node("Softmax", self.matrix(bundle.inputs), axis=1)
            places = [column.data for column in own]
            if places != list(range(len(bundle.inputs))):
                whole = self.node("Gather", whole, self.integers(*places), axis=1)
            parts.append(whole)
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def _locate(self, columns: list[Column]) -> str:
        # Binary search in the cuts of all columns, one after the other, each with an end that no
        # score exceeds: a step asks whether the score lies above the cut half the range on.
        n_steps = max(len(column.data) for column in columns).bit_length() or 1
        cuts = [np.append(column.data, np.inf) for column in columns]
        if len(cuts) << n_steps <= _MOST_PADDING * sum(map(len, cuts)):
            # No step leads beyond ends that are as far from the start as all steps together.
            cuts = [np.pad(own, (0, 2**n_steps - len(own)), constant_values=np.inf) for own in cuts]
        last = np.cumsum([len(own) for own in cuts])[None] - 1
        first = last - [len(own) - 1 for own in cuts]
        ends = self.constant(last) if (last - first < 2**n_steps - 1).any() else ""
        scores = self.matrix([column.inputs[0] for column in columns], broadcast=True)
        joined, place = map(self.constant, (np.concatenate(cuts), first))
        zero = self.integers(0)
        for step in reversed(range(n_steps)):
            further = self.node("Add", place, self.integers(2**step - 1)) if step else place
            further = self.node("Min", further, ends) if ends else further
            above = self.node("Greater", scores, self.node("Gather", joined, further))
            jump = self.node("Where", above, self.integers(2**step), zero)
            place = self.node("Add", place, jump)
        return self.node("Sub", place, self.constant(first)) if first.any() else place

    def _entries(self, columns: list[Column]) -> str:
        # Entries of all tables, one after the other.
        tables: dict[int, NDArray[Any]] = {}
        start, size = {}, 0
        for table, _ in (column.data for column in columns):
            if id(table) not in tables:
                tables[id(table)] = table
                start[id(table)] = size
                size += table.size
        widths = np.array([[column.data[0].shape[1] for column in columns]])
        offsets = np.array([[start[id(table)] + k for table, k in (c.data for c in columns)]])
        place = self.matrix([column.inputs[0] for column in columns], broadcast=True)
        if (widths > 1).any():
            place = self.node("Mul", place, self.constant(widths))
        if offsets.any():
            place = self.node("Add", place, self.constant(offsets))
        values = np.concatenate([table.ravel() for table in tables.values()])
        return self.node("Gather", self.constant(values), place)

    def _find(self, columns: list[Column]) -> str:
        [(tensor, names)] = [column.data for column in columns]
        return self.node(
            "LabelEncoder",
            tensor,
            domain=ML,
            keys_strings=names,
            values_int64s=list(range(len(names))),
            default_int64=-1,
        )

    def _route(self, columns: list[Column]) -> str:
        parts = []
        for column in columns:
            points = column.inputs[0].inputs
            one = min(points, key=lambda point: point.fixed)
            parts.append(self.route(column.data, self.matrix(points), self.matrix([one])))
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)


def _rounds(columns: list[Column]) -> list[list[Column]]:
    """Columns in parts with the same inputs, but for numbers, if there are few such parts."""
    inputs = [[c for c in column.inputs if c.operator not in CONSTANTS] for column in columns]
    length = next((i for i in range(1, len(inputs)) if inputs[i] == inputs[0]), len(inputs))
    parts = [columns[i : i + length] for i in range(0, len(columns), length)]
    same = length > 1 and inputs == inputs[:length] * len(parts)
    return parts if same and len(parts) <= _MOST_ROUNDS else [columns]


def _repeats(inputs: Sequence[Sequence[Column]]) -> int:
    """How often each column follows itself in every input but numbers; 1 where that differs."""
    found = set()
    for columns in inputs:
        if columns[0].operator == "number":
            continue
        lengths = {len(list(run)) for _, run in groupby(columns)}
        found.add(lengths.pop() if len(lengths) == 1 else 1)
    repeats = found.pop() if len(found) == 1 else 1
    return 1 if repeats == len(inputs[0]) else repeats
