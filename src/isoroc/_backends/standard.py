"""The operations on arrays of any library that follows the array API standard, on their device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from isoroc._backends.ops import OPERATORS, Function, Ops, Value
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints


class ArrayVector(Value):
    """An array of shape (n, width), or its proxy in a trace of torch."""

    def __init__(self, ops: ArrayOps, array: Any, width: int) -> None:
        self._ops = ops
        self.array = array
        self.width = width

    def binary(self, operator: str, a: Any, b: Any) -> ArrayVector:
        return self._ops.each(OPERATORS[operator], a, b)


class ArrayOps(Ops[ArrayVector]):
    """Vectors are arrays of a namespace of the standard, in double precision on a device."""

    def __init__(self, xp: Any, device: Any) -> None:
        self.xp = xp
        self._device = device
        self._asarray = xp.asarray

    def vector(self, array: Any, width: int | None = None) -> ArrayVector:
        """An array as a vector. A proxy in a trace needs the width."""
        return ArrayVector(self, array, int(array.shape[1]) if width is None else width)

    def constant(self, values: Any, dtype: str = "float64") -> Any:
        """Numbers as an array on the device."""
        return self._asarray(values, dtype=getattr(self.xp, dtype), device=self._device)

    def like(self, values: Any, result: Any) -> Any:
        """A result on the device, in the floating-point type of what it was computed from."""
        dtype = values.dtype if "float" in str(values.dtype) else self.xp.float64
        return self._asarray(result, dtype=dtype, device=self._device)

    def _value(self, a: Any) -> Any:
        """The array of a vector, constants as an array, a number unchanged."""
        if isinstance(a, ArrayVector):
            return a.array
        return self.constant(a) if isinstance(a, np.ndarray) else float(a)

    def _rows(self, table: Any, places: Any, axis: int = 0) -> Any:
        """Entries of an array at some places along an axis."""
        return self.xp.take(table, places, axis=axis)

    def each(self, function: Callable[..., Any], *arguments: Any) -> ArrayVector:
        """A function of arrays and numbers that broadcasts."""
        width = max(getattr(a, "width", np.size(a)) for a in arguments)
        return self.vector(function(*map(self._value, arguments)), width)

    def function(self, name: Function, *arguments: Any) -> ArrayVector:
        return self.each(getattr(self.xp, "abs" if name == "absolute" else name), *arguments)

    def where(self, condition: ArrayVector, a: Any, b: Any) -> ArrayVector:
        return self.each(self.xp.where, condition, a, b)

    def width(self, a: ArrayVector) -> int:
        return a.width

    def sum(self, a: ArrayVector) -> ArrayVector:
        return self.vector(self.xp.sum(a.array, axis=1, keepdims=True), 1)

    def largest(self, a: ArrayVector) -> tuple[ArrayVector, ArrayVector]:
        index = self.xp.argmax(a.array, axis=1, keepdims=True)
        return self.vector(self.xp.max(a.array, axis=1, keepdims=True), 1), self.vector(index, 1)

    def smallest(self, a: ArrayVector) -> ArrayVector:
        return self.vector(self.xp.min(a.array, axis=1, keepdims=True), 1)

    def every(self, conditions: ArrayVector) -> ArrayVector:
        return self.vector(self.xp.all(conditions.array, axis=1, keepdims=True), 1)

    def is_at(self, place: ArrayVector, numbers: int | Ints) -> ArrayVector:
        values = np.atleast_1d(numbers)
        return self.vector(place.array == self.constant(values, "int64"), len(values))

    def take(self, a: ArrayVector, columns: Sequence[int] | Ints) -> ArrayVector:
        places = [int(column) for column in columns]
        first, second = (*places, *places[-1:])[:2]
        step = max(second - first, 1)
        if places == list(range(first, first + step * len(places), step)):
            return self.vector(a.array[:, first : places[-1] + 1 : step], len(places))
        return self.vector(self._rows(a.array, self.constant(places, "int64"), 1), len(places))

    def concat(self, parts: Sequence[ArrayVector]) -> ArrayVector:
        joined = self.xp.concat([part.array for part in parts], axis=1)
        return self.vector(joined, sum(part.width for part in parts))

    def linear(self, a: ArrayVector, matrix: Floats, offset: Floats | None = None) -> ArrayVector:
        product = self.vector(self.xp.matmul(a.array, self.constant(matrix.T)), len(matrix))
        return product if offset is None else product + offset

    def segment_sums(self, a: ArrayVector, weights: Floats) -> ArrayVector:
        runs = self.xp.reshape(a.array, (-1, *weights.shape))
        return self.vector(self.xp.sum(runs * self.constant(weights), axis=2), len(weights))

    def locate(self, cuts: Floats, score: ArrayVector) -> ArrayVector:
        return self.vector(self.xp.searchsorted(self.constant(cuts), score.array), 1)

    def route(self, tree: BinTree, a: ArrayVector) -> ArrayVector:
        """All rows descend one level in each turn. Bins lead to themselves."""
        thresholds, children = tree.descent()
        table = self.constant(thresholds)
        below = self.constant(children.ravel(), "int64")
        node = self.xp.zeros_like(a.array[:, 0], dtype=self.xp.int64)
        for _ in range(int(tree.depths.max())):
            region = self.xp.argmax(a.array - self._rows(table, node), axis=1)
            node = self._rows(below, node * a.width + region)
        bins = self._rows(self.constant(tree.bin_of_node, "int64"), node)
        return self.vector(bins[:, None], 1)

    def cross(self, first: ArrayVector, second: ArrayVector, n_second: int) -> ArrayVector:
        return self.vector(first.array * n_second + second.array, 1)

    def look_up(self, table: Floats, place: ArrayVector) -> ArrayVector:
        return self.vector(self._rows(self.constant(table), place.array[:, 0]), table.shape[1])
