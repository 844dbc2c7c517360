"""What a calibrator's map is made of: few operations on columns, to be written in any language.

Every calibrator describes its map once, as a program over a `Writer`. The writer decides what it
becomes: nodes of an ONNX graph, expressions of SQL, operations on tensors. The cells of counts are
described in the same way, over the smaller `Arithmetic`. Operations are those of IEEE doubles in
the order given, so the result compares and adds as NumPy and the compiled loops do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from isoroc._simplex import Floats
from isoroc._tree import BinTree

#: A column of numbers, of truth values or of places, one for each row.
C = TypeVar("C")

#: Columns that NumPy adds in one run, and accumulators that it has for it.
_BLOCK, _LANES = 128, 8


class Arithmetic(ABC, Generic[C]):
    """Writes arithmetic, comparisons and choices: all that cells of forecasts need."""

    @abstractmethod
    def number(self, value: float) -> C:
        """A column of one value; NaN is the mark of a missing one."""

    @abstractmethod
    def add(self, a: C, b: C) -> C:
        """Sum."""

    @abstractmethod
    def subtract(self, a: C, b: C) -> C:
        """Difference."""

    @abstractmethod
    def multiply(self, a: C, b: C) -> C:
        """Product."""

    @abstractmethod
    def divide(self, a: C, b: C) -> C:
        """Quotient."""

    @abstractmethod
    def absolute(self, a: C) -> C:
        """Absolute value."""

    @abstractmethod
    def sqrt(self, a: C) -> C:
        """Square root of numbers >= 0."""

    @abstractmethod
    def floor(self, a: C) -> C:
        """Largest whole number that is not above a number, as a double."""

    @abstractmethod
    def at_most(self, a: C, b: C) -> C:
        """Whether a <= b; untrue for NaN and what is missing."""

    @abstractmethod
    def both(self, a: C, b: C) -> C:
        """Whether two things are true."""

    @abstractmethod
    def where(self, condition: C, a: C, b: C) -> C:
        """The first where a condition is true, the second where it is untrue or unknown."""

    def guarded(self, good: C, a: C, harmless: C) -> C:
        """A number where a row is good; elsewhere one on which no function fails."""
        return self.where(good, a, harmless)

    @abstractmethod
    def largest(self, columns: Sequence[C]) -> tuple[C, C]:
        """Largest of some columns, and which it is: its place, the first on ties."""

    @abstractmethod
    def is_at(self, place: C, number: int) -> C:
        """Whether a place is this one."""

    @abstractmethod
    def keep(self, columns: Iterable[C]) -> list[C]:
        """The same columns, to be used more than once."""

    def smallest(self, columns: Sequence[C]) -> C:
        """Smallest of some columns that are numbers."""
        result = columns[0]
        for column in columns[1:]:
            result = self.where(self.at_most(result, column), result, column)
        return result

    def every(self, conditions: Sequence[C]) -> C:
        """Whether several things are true."""
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.both(result, condition)
        return result

    def negative(self, a: C) -> C:
        """Zero minus a number."""
        return self.subtract(self.number(0.0), a)

    def maximum(self, a: C, b: C) -> C:
        """The larger of two."""
        return self.where(self.at_most(a, b), b, a)

    def minimum(self, a: C, b: C) -> C:
        """The smaller of two."""
        return self.where(self.at_most(a, b), a, b)

    def along(self, a: C, knots: Floats) -> C:
        """How far a number lies along ascending knots, from 0 to 1, as `numpy.interp` has it."""
        # Each stretch between two knots adds the share of it that lies below, 0 to 1.
        zero, one = self.number(0.0), self.number(1.0)
        shares = [
            self.multiply(self.subtract(a, self.number(low)), self.number(1 / (high - low)))
            for low, high in pairwise(knots.tolist())
        ]
        below = [self.maximum(self.minimum(share, one), zero) for share in self.keep(shares)]
        return self.divide(self.sum(below), self.number(len(below)))

    def total(self, columns: Sequence[C]) -> C:
        """Sum of columns in the order in which NumPy adds the entries of a row."""
        n = len(columns)
        if n > _BLOCK:
            half = n // 2 - n // 2 % _LANES
            return self.add(self.total(columns[:half]), self.total(columns[half:]))
        if n < _LANES:
            return self.run(columns)
        full = n - n % _LANES
        lanes = self.lanes(columns[:full], _LANES)
        while len(lanes) > 1:
            lanes = [self.add(a, b) for a, b in zip(lanes[::2], lanes[1::2], strict=True)]
        return self.run([*lanes, *columns[full:]])

    def lanes(self, columns: Sequence[C], n_lanes: int) -> list[C]:
        """Sums of every n-th column from the first, the second, ... to the n-th on."""
        return [self.run(columns[i::n_lanes]) for i in range(n_lanes)]

    def sum(self, columns: Sequence[C]) -> C:
        """Sum of columns in any order."""
        return self.run(columns)

    def run(self, columns: Sequence[C]) -> C:
        """Sum from left to right."""
        result = columns[0]
        for column in columns[1:]:
            result = self.add(result, column)
        return result


class Writer(Arithmetic[C]):
    """Writes all operations that the maps of calibrators are made of."""

    @abstractmethod
    def log(self, a: C) -> C:
        """Natural logarithm of numbers > 0."""

    @abstractmethod
    def exp(self, a: C) -> C:
        """Exponential; it may be 0 where that of doubles is below 1e-300."""

    def linear(self, matrix: Floats, columns: Sequence[C]) -> list[C]:
        """Weighted sums of columns, one for each row of a matrix."""
        columns = self.keep(columns)
        rows = [[self.number(entry) for entry in row] for row in matrix.tolist()]
        return [
            self.run([self.multiply(*t) for t in zip(row, columns, strict=True)]) for row in rows
        ]

    def sum_of_squares(self, columns: Sequence[C]) -> C:
        """Sum of the squares of columns."""
        return self.sum([self.multiply(column, column) for column in columns])

    def softmax(self, columns: Sequence[C]) -> list[C]:
        """Exponentials of columns, divided by their sum."""
        e = self.keep(self.exp(column) for column in self.below_zero(columns))
        [total] = self.keep([self.sum(e)])
        return [self.divide(column, total) for column in e]

    def below_zero(self, columns: Sequence[C]) -> list[C]:
        """Columns less the largest of them, so that no exponential overflows."""
        columns = self.keep(columns)
        largest, _ = self.largest(columns)
        [largest] = self.keep([largest])
        return self.keep(self.subtract(column, largest) for column in columns)

    def bend(self, a: C, knots: Floats, slopes: Floats) -> C:
        """Sum of the larger of a number and each knot, times the slope of the knot."""
        raised = [self.maximum(a, self.number(knot)) for knot in knots.tolist()]
        [result] = self.linear(slopes[None], raised)
        return result

    def bumps(self, centres: Floats, weights: Floats, columns: Sequence[C]) -> list[C]:
        """Weighted sums of bumps, one for each row of weights.

        A bump is 1 / (1 + d^2 / 2) at the distance d from its centre.
        """
        one = self.number(1.0)
        rows, offsets, point = self._to_centres(centres, columns)
        sums = zip(self.linear(rows, point), offsets.tolist(), strict=True)
        # At least one, but for rounding errors.
        below = [self.maximum(self.add(a, self.number(b)), one) for a, b in sums]
        return self.linear(weights, self.keep(self.divide(one, column) for column in below))

    def _to_centres(self, centres: Floats, columns: Sequence[C]) -> tuple[Floats, Floats, list[C]]:
        """Matrix, constants and columns: the product with the constants is 1 + d^2 / 2."""
        kept, half = self.keep(columns), self.number(0.5)
        [square] = self.keep([self.multiply(half, self.sum_of_squares(kept))])
        rows = np.hstack([-centres, np.ones((len(centres), 1))])
        return rows, 1 + (centres**2).sum(axis=1) / 2, [*kept, square]

    @abstractmethod
    def locate(self, cuts: Floats, score: C) -> C:
        """Place among ascending cuts: how many lie below the score."""

    @abstractmethod
    def route(self, tree: BinTree, columns: Sequence[C]) -> C:
        """Place among the bins of a tree of three classes or more."""

    @abstractmethod
    def look_up(self, table: Floats, place: C) -> list[C]:
        """Columns of the table's rows at the places."""
