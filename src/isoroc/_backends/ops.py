"""Ops: the vector operations that formulas use, whatever computes them.

A formula is written once, over `Ops`, and each backend implements the operations: arrays of NumPy,
tensors of torch, nodes of an ONNX graph, expressions of SQL. A *vector* holds some numbers per row.
Its width is the number of its columns. It takes part in arithmetic (``+ - * /``), comparisons
(``<=``) and conjunctions (``&``) with other vectors, with numbers, and with constant arrays of one
number per column. A vector of width one is combined with each column of the other.

Operations work on IEEE doubles. Methods that say so compute in a fixed order, so that maps
with steps return the same bits everywhere.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cache, reduce
from itertools import pairwise
from typing import Any, Generic, Literal, Self, TypeVar

import numpy as np

from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints

#: A condition for each column of each row.
Truth = Any
#: A function of one or two numbers.
Function = Literal["log", "exp", "sqrt", "floor", "absolute", "maximum", "minimum"]

V = TypeVar("V", bound="Value")
S = TypeVar("S", bound="Value")
T = TypeVar("T")

#: The operators of Python values.
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "<=": operator.le,
    "==": operator.eq,
    "&": operator.and_,
}


class Ops(ABC, Generic[V]):
    """Operations on vectors. Arguments may be constants wherever two vectors are combined."""

    # Each column by itself

    @abstractmethod
    def function(self, name: Function, *arguments: Any) -> V:
        """Apply the named elementwise function."""

    def log(self, a: V) -> V:
        """Natural logarithm of numbers > 0."""
        return self.function("log", a)

    def exp(self, a: V) -> V:
        """Exponential. Results below 1e-300 may be 0."""
        return self.function("exp", a)

    def sqrt(self, a: V) -> V:
        """Square root of numbers >= 0, correctly rounded."""
        return self.function("sqrt", a)

    def floor(self, a: V) -> V:
        """Largest whole number not above a number, as a double."""
        return self.function("floor", a)

    def absolute(self, a: V) -> V:
        return self.function("absolute", a)

    def maximum(self, a: Any, b: Any) -> V:
        return self.function("maximum", a, b)

    def minimum(self, a: Any, b: Any) -> V:
        return self.function("minimum", a, b)

    @abstractmethod
    def where(self, condition: Truth, a: Any, b: Any) -> V:
        """The first where a condition is true, the second where it is false or unknown."""

    def guarded(self, good: Truth, a: V, harmless: float) -> V:
        """The vector in good rows, and elsewhere a number on which no function fails."""
        return self.where(good, a, harmless)

    # The columns of a row together

    @abstractmethod
    def width(self, a: V) -> int:
        """Number of columns."""

    def sum(self, a: V) -> V:
        """Sum of the columns in any order, a vector of width one."""
        return self.total(a)

    def total(self, a: V) -> V:
        """Sum of the columns, of width one, in the order in which NumPy adds entries of a row."""
        return total(a, self.width(a), self.split, operator.add, self._sums_of_pairs)

    def _sums_of_pairs(self, a: V) -> V:
        """Sums of the first and second column, of the third and fourth, and so on."""
        n = self.width(a)
        return self.take(a, range(0, n, 2)) + self.take(a, range(1, n, 2))

    @abstractmethod
    def largest(self, a: V) -> tuple[V, V]:
        """Largest column, and its place: the first on ties. Both have width one."""

    def largest_few(self, a: V, m: int) -> tuple[list[V], list[V], V]:
        """The m largest columns of numbers >= 0, their places, and the vector with -1 there."""
        values = []
        places = []
        for _ in range(m):
            value, place = self.largest(a)
            values.append(value)
            places.append(place)
            a = self.put(a, place, -1.0)
        return values, places, a

    def largest_value(self, a: V) -> V:
        """Largest column alone, of width one, which may be quicker."""
        return self.largest(a)[0]

    @abstractmethod
    def smallest(self, a: V) -> V:
        """Smallest column, a vector of width one."""

    @abstractmethod
    def every(self, conditions: Truth) -> Truth:
        """Whether the conditions of all columns are true, a condition of width one."""

    @abstractmethod
    def is_at(self, place: V, numbers: int | Ints) -> Truth:
        """Whether a place equals a number, or each of several numbers."""

    def put(self, a: V, place: V, value: Any) -> V:
        """A vector with a value, one per row, at a place."""
        return self.where(self.is_at(place, np.arange(self.width(a))), value, a)

    # Vectors of other widths

    @abstractmethod
    def take(self, a: V, columns: Sequence[int] | Ints) -> V:
        """Some of the columns, which may be repeated."""

    def split(self, a: V, widths: Sequence[int]) -> list[V]:
        """Consecutive parts of the given widths."""
        ends = [0, *np.cumsum(widths).tolist()]
        return [self.take(a, range(*pair)) for pair in pairwise(ends)]

    @abstractmethod
    def concat(self, parts: Sequence[V]) -> V:
        """The columns of several vectors, one after the other."""

    @abstractmethod
    def linear(self, a: V, matrix: Floats, offset: Floats | None = None) -> V:
        """Weighted sums of the columns, one for each row of a matrix, plus an offset."""

    @abstractmethod
    def segment_sums(self, a: V, weights: Floats) -> V:
        """K weighted sums of L consecutive columns each, for weights of shape (K, L)."""

    # Trees and steps

    @abstractmethod
    def locate(self, cuts: Floats, score: V) -> V:
        """Place of a vector of width one among ascending cuts: how many lie below it."""

    @abstractmethod
    def route(self, tree: BinTree, a: V) -> V:
        """Place among the bins of a tree of three classes or more."""

    @abstractmethod
    def look_up(self, table: Floats, place: V) -> V:
        """Rows of a table at the places."""

    @abstractmethod
    def cross(self, first: V, second: V, n_second: int) -> V:
        """Place of a pair of places in a table of n_second columns, row by row."""

    def steps(self, cuts: Sequence[Floats], values: Sequence[Floats], a: V) -> V:
        """A step function of each column: ``values[i]`` where i of its cuts lie below it."""
        columns = zip(cuts, values, self.split(a, [1] * len(cuts)), strict=True)
        steps = [self.look_up(table[:, None], self.locate(at, x)) for at, table, x in columns]
        return self.concat(steps)

    # Smooth functions, made of the others unless a backend has a faster way

    def softmax(self, a: V) -> V:
        """Exponentials divided by their sum."""
        e = self.exp(a - self.largest_value(a))
        return e / self.sum(e)

    def log_softmax(self, a: V) -> V:
        """Logarithm of the softmax."""
        below = a - self.largest_value(a)
        return below - self.log(self.sum(self.exp(below)))

    def log_sigmoid(self, a: V) -> V:
        """Logarithm of the logistic function, by exponentials that cannot overflow."""
        return self.minimum(a, 0.0) - self.log(1.0 + self.exp(-self.absolute(a)))

    def log_odds(self, logs: V) -> V:
        """Log odds of each class against all others, from logarithms of forecasts.

        The others are added up: one minus a probability close to one would have no digits left.
        """
        P = self.exp(logs)
        K = self.width(logs)
        if K <= 64:
            return logs - self.log(self.linear(P, _others(K)))
        # In linear time: the total less the column. For the largest column the difference could be
        # inexact, so its others are added up.
        place = self.largest(P)[1]
        rest = self.sum(self.put(P, place, 0.0))
        return logs - self.log(self.put(self.sum(P) - P, place, rest))

    def mix_uniform(self, q: V, share: float) -> V:
        """Mixture of forecasts with a share of the uniform forecast."""
        return (1 - share) * q + share / self.width(q) if share else q

    def hinges(self, a: V, knots: Floats, slopes: Floats) -> V:
        """For each column k the sum over knots m of ``slopes[k, m] * max(a_k - knots[m], 0)``."""
        bends: Iterable[tuple[float, Floats]] = zip(knots.tolist(), slopes.T, strict=True)
        offset = np.asarray(slopes @ knots)
        return added(self.maximum(a, knot) * slope for knot, slope in bends) - offset

    def fraction_between(self, a: V, knots: Floats) -> V:
        """Fraction of the ascending ``knots[k]`` that lies below column k, linear in between."""
        # Each stretch between two knots adds its share below the column.
        shares = ((a - low) * (1 / (high - low)) for low, high in pairwise(knots.T))
        below = added(self.maximum(self.minimum(share, 1.0), 0.0) for share in shares)
        return below / float(knots.shape[1] - 1)

    def cauchy_kernel(self, a: V, centres: Floats) -> V:
        """``1 / (1 + d^2 / 2)`` for the distance d from each centre."""
        half_square = 0.5 * self.sum(a * a)
        rows = np.hstack([-centres, np.ones((len(centres), 1))])
        offset = 1 + (centres**2).sum(axis=1) / 2
        # At least one, except for rounding errors.
        return 1.0 / self.maximum(self.linear(self.concat([a, half_square]), rows, offset), 1.0)


def total(  # noqa: PLR0917
    columns: T,
    n: int,
    split: Callable[[T, Sequence[int]], list[T]],
    add: Callable[[T, T], T],
    add_pairs: Callable[[T], T],
    block: int = 128,
    lanes: int = 8,
) -> T:
    """Sum of n columns in NumPy's order, given functions that split, add, and add pairs.

    NumPy adds blocks of columns in several lanes at a time.
    """
    if n > block:
        sizes = [half := n // 2 - n // 2 % lanes, n - half]
        halves = zip(split(columns, sizes), sizes, strict=True)
        return add(*(total(part, size, split, add, add_pairs) for part, size in halves))
    n_chunks, rest = divmod(n, lanes)
    parts = split(columns, [lanes] * n_chunks + [1] * rest)
    singles = parts[n_chunks:]
    if n_chunks:
        singles = [add_pairs(add_pairs(add_pairs(reduce(add, parts[:n_chunks])))), *singles]
    return reduce(add, singles)


def added(parts: Iterable[V]) -> V:
    """Sum of one or more vectors from left to right."""
    return reduce(operator.add, parts)


def _operators(symbol: str) -> tuple[Callable[[S, Any], S], Callable[[S, Any], S]]:
    """Methods for ``self operator other`` and for ``other operator self``."""

    def method(self: S, other: Any) -> S:
        return self.binary(symbol, self, other)

    def reflected(self: S, other: Any) -> S:
        return self.binary(symbol, other, self)

    return method, reflected


class Value(ABC):
    """A vector: operators become calls of `binary`. NumPy arrays are vectors already."""

    __array_ufunc__ = None  # NumPy leaves operators with constant arrays to this class
    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def binary(self, operator: str, a: Any, b: Any) -> Self:
        """``a operator b``, for one of ``+ - * / <= &``, where one of the two is this vector."""

    __add__, __radd__ = _operators("+")
    __sub__, __rsub__ = _operators("-")
    __mul__, __rmul__ = _operators("*")
    __truediv__, __rtruediv__ = _operators("/")
    __le__, __ge__ = _operators("<=")
    __and__, _ = _operators("&")

    def __neg__(self) -> Self:
        return self.binary("-", 0.0, self)


@cache
def _others(n_columns: int) -> Floats:
    """Matrix that adds up all columns but one."""
    return np.ones((n_columns, n_columns)) - np.eye(n_columns)
