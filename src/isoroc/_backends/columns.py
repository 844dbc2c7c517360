"""Vectors as lists of columns, for languages that compute with one column at a time.

A language such as SQL implements `Scalars`, and `ColumnOps` expresses vector operations in them.
Columns are made at their first use, when it is known how often they are used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import chain, islice
from typing import Any, Generic, TypeVar

import numpy as np

from isoroc._backends.ops import Function, Ops, Value, total
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints

#: A column of numbers, of truth values or of places.
C = TypeVar("C")


class Scalars(ABC, Generic[C]):
    """Operations on single columns."""

    @abstractmethod
    def number(self, value: float) -> C:
        """A column of one value, where NaN stands for a missing value."""

    @abstractmethod
    def function(self, name: Function, a: C) -> C:
        """Apply the named function."""

    @abstractmethod
    def binary(self, operator: str, a: C, b: C) -> C:
        """``a operator b``, for one of ``+ - * / <= == &``."""

    @abstractmethod
    def where(self, condition: C, a: C, b: C) -> C:
        """The first where a condition is true, the second where it is false or unknown."""

    @abstractmethod
    def keep(self, column: C) -> C:
        """The same column, to be used more than once."""

    def extreme(self, name: Function, columns: Sequence[C]) -> C:
        return reduce(partial(self.extreme_of_two, name), columns)

    def extreme_of_two(self, name: Function, a: C, b: C) -> C:
        a = self.keep(a)
        b = self.keep(b)
        return self.where(self.binary("<=", a, b), *((b, a) if name == "maximum" else (a, b)))

    def place_of(self, value: C, columns: Sequence[C]) -> C:
        """Place of the first of some columns that equals a value."""
        value = self.keep(value)
        index = self.number(float(len(columns) - 1))
        for k, column in reversed(list(enumerate(columns[:-1]))):
            is_here = self.binary("==", self.keep(column), value)
            index = self.where(is_here, self.number(float(k)), index)
        return index

    def is_at(self, place: C, number: int) -> C:
        return self.binary("==", place, self.number(float(number)))

    def every(self, conditions: Sequence[C]) -> C:
        return reduce(partial(self.binary, "&"), conditions)

    def total(self, columns: Sequence[C]) -> C:
        """Sum of columns in the order in which NumPy adds the entries of a row."""

        def split(given: Sequence[C], widths: Sequence[int]) -> list[Sequence[C]]:
            entries = iter(given)
            return [list(islice(entries, width)) for width in widths]

        def add(a: Sequence[C], b: Sequence[C]) -> Sequence[C]:
            return list(map(partial(self.binary, "+"), a, b))

        def add_pairs(given: Sequence[C]) -> Sequence[C]:
            return add(given[::2], given[1::2])

        return total(columns, len(columns), split, add, add_pairs)[0]

    def weighted(self, weights: Sequence[float], columns: Sequence[C]) -> C:
        terms = [
            column if weight == 1 else self.binary("*", self.number(weight), column)
            for weight, column in zip(weights, columns, strict=True)
            if weight
        ]
        return self.total(terms or [self.number(0.0)])


class Columns(Value, Generic[C]):
    """A vector whose columns a function computes from its inputs' columns, at their first use.

    Each column of an input is used `times` times, by default once, or once for each column that it
    is combined with.
    """

    def __init__(
        self,
        ops: ColumnOps[C],
        width: int,
        inputs: Sequence[Columns[C]],
        make: Callable[..., list[C]],
        *,
        times: int | None = None,
    ) -> None:
        self.ops = ops
        self.width = width
        self.inputs = inputs
        self._make = make
        self.made: list[C] | None = None
        self.uses = 0
        self.depth = 0
        for vector in inputs:
            vector.uses += times or max(1, width // vector.width)

    def binary(self, operator: str, a: Any, b: Any) -> Columns[C]:
        return self.ops.each(partial(self.ops.scalars.binary, operator), a, b)

    def columns(self) -> list[C]:
        """The columns. Call this when the whole formula has been written."""
        waiting: list[Columns[C]] = [self]  # a loop instead of recursion: formulas may be deep
        while waiting:
            missing = [vector for vector in waiting[-1].inputs if vector.made is None]
            if missing:
                waiting += reversed(missing)
            else:
                waiting.pop().compute()
        return self.compute()

    def compute(self) -> list[C]:
        """The columns. All inputs have theirs already."""
        if self.made is None:
            made = self._make(*(vector.compute() for vector in self.inputs))
            self.depth = 1 + max((vector.depth for vector in self.inputs), default=0)
            if self.uses > 1 or self.depth > 30:  # no expression becomes deep
                made = [self.ops.scalars.keep(column) for column in made]
                self.depth = 0
            self.made = made
        return self.made


class ColumnOps(Ops[Columns[C]], Generic[C]):
    """Vector operations, expressed in operations on single columns."""

    def __init__(self, scalars: Scalars[C]) -> None:
        self.scalars = scalars

    def vector(self, columns: Sequence[C]) -> Columns[C]:
        return Columns(self, len(columns), (), lambda: list(columns))

    def each(self, write: Callable[..., C], *parts: Any) -> Columns[C]:
        """A function of each column of vectors or constants. Single columns are repeated."""
        vectors = [self._lift(part) for part in parts]
        width = max(vector.width for vector in vectors)

        def make(*columns: list[C]) -> list[C]:
            spread = (part * width if len(part) == 1 else part for part in columns)
            return [write(*entries) for entries in zip(*spread, strict=True)]

        return Columns(self, width, vectors, make)

    def _lift(self, part: Any) -> Columns[C]:
        if isinstance(part, Columns):
            return part
        numbers = np.atleast_1d(np.asarray(part, dtype=np.float64)).tolist()
        return self.vector([self.scalars.number(value) for value in numbers])

    def _reduced(self, write: Callable[..., C], *vectors: Columns[C]) -> Columns[C]:
        """A vector of one column, computed from all columns of others."""
        return Columns(self, 1, vectors, lambda *columns: [write(*columns)])

    def function(self, name: Function, *arguments: Any) -> Columns[C]:
        write = self.scalars.extreme_of_two if len(arguments) == 2 else self.scalars.function
        return self.each(partial(write, name), *arguments)

    def where(self, condition: Any, a: Any, b: Any) -> Columns[C]:
        return self.each(self.scalars.where, condition, a, b)

    def width(self, a: Columns[C]) -> int:
        return a.width

    def total(self, a: Columns[C]) -> Columns[C]:
        return self._reduced(self.scalars.total, a)

    def largest(self, a: Columns[C]) -> tuple[Columns[C], Columns[C]]:
        value = self._reduced(partial(self.scalars.extreme, "maximum"), a)
        return value, self._reduced(lambda at, a: self.scalars.place_of(at[0], a), value, a)

    def smallest(self, a: Columns[C]) -> Columns[C]:
        return self._reduced(partial(self.scalars.extreme, "minimum"), a)

    def every(self, conditions: Columns[C]) -> Columns[C]:
        return self._reduced(self.scalars.every, conditions)

    def is_at(self, place: Columns[C], numbers: int | Ints) -> Columns[C]:
        at: list[int] = np.atleast_1d(numbers).tolist()
        is_at = self.scalars.is_at
        return Columns(self, len(at), [place], lambda places: [is_at(places[0], n) for n in at])

    def take(self, a: Columns[C], columns: Sequence[int] | Ints) -> Columns[C]:
        taken = [int(k) for k in columns]
        times = max(Counter(taken).values())
        return Columns(self, len(taken), [a], lambda a: [a[k] for k in taken], times=times)

    def concat(self, parts: Sequence[Columns[C]]) -> Columns[C]:
        width = sum(part.width for part in parts)
        return Columns(self, width, parts, lambda *columns: list(chain(*columns)), times=1)

    def linear(self, a: Columns[C], matrix: Floats, offset: Floats | None = None) -> Columns[C]:
        rows = matrix.tolist()

        def make(a: list[C]) -> list[C]:
            return [self.scalars.weighted(row, a) for row in rows]

        product = Columns(self, len(rows), [a], make, times=len(rows))
        return product if offset is None else product + offset

    def segment_sums(self, a: Columns[C], weights: Floats) -> Columns[C]:
        K, L = weights.shape
        rows = weights.tolist()

        def make(a: list[C]) -> list[C]:
            return [self.scalars.weighted(row, a[k * L :][:L]) for k, row in enumerate(rows)]

        return Columns(self, K, [a], make)

    def locate(self, cuts: Floats, score: Columns[C]) -> Columns[C]:
        return self.sum(self.where(score <= cuts, 0.0, 1.0)) if len(cuts) else self._lift(0.0)

    def look_up(self, table: Floats, place: Columns[C]) -> Columns[C]:
        is_row = self.where(self.is_at(place, np.arange(len(table))), 1.0, 0.0)
        return self.linear(is_row, table.T)

    def cross(self, first: Columns[C], second: Columns[C], n_second: int) -> Columns[C]:
        return first * float(n_second) + second

    def route(self, tree: BinTree, a: Columns[C]) -> Columns[C]:
        # Splits come in the order in which they were made, so a node is found before it is split.
        node = self._lift(0.0)
        for split, (parent, below) in enumerate(tree.splits):
            kept = np.flatnonzero(tree.children[split] >= 0)
            region = self.largest(self.take(a, kept) - tree.thresholds[split, kept])[1]
            child = self.look_up(below[:, None].astype(np.float64), region)
            node = self.where(self.is_at(node, parent), child, node)
        return self.look_up(tree.bin_of_node[:, None].astype(np.float64), node)
