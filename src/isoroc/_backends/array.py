"""The operations on arrays of NumPy."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from isoroc._backends.ops import Function, Ops
from isoroc._core import rows, smooth
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints


class NumpyOps(Ops[Any]):
    """Vectors are arrays of shape (n, width). Every operation keeps the order of its arguments.

    Arrays in Fortran order are fastest: sums over few columns are then sums of long runs.
    """

    def like(self, values: Any, result: Floats) -> Floats:  # noqa: ARG002
        """The result: calibrated forecasts are doubles, whatever they are computed from."""
        return result

    def function(self, name: Function, *arguments: Any) -> Floats:
        return np.asarray(getattr(np, name)(*arguments))

    def where(self, condition: Any, a: Any, b: Any) -> Floats:
        return np.asarray(np.where(condition, a, b))

    def width(self, a: Floats) -> int:
        return int(a.shape[1])

    def sum(self, a: Floats) -> Floats:
        return np.asarray(a.sum(axis=1, keepdims=True))

    def total(self, a: Floats) -> Floats:
        return np.asarray(np.ascontiguousarray(a).sum(axis=1, keepdims=True))

    def largest(self, a: Floats) -> tuple[Floats, Ints]:
        index = a.argmax(axis=1)[:, None]
        return np.take_along_axis(a, index, axis=1), index

    def largest_value(self, a: Floats) -> Floats:
        return np.asarray(a.max(axis=1, keepdims=True))

    def smallest(self, a: Floats) -> Floats:
        return np.asarray(a.min(axis=1, keepdims=True))

    def every(self, conditions: Any) -> Any:
        return conditions.all(axis=1, keepdims=True)

    def is_at(self, place: Any, numbers: int | Ints) -> Any:
        return place == numbers

    def put(self, a: Floats, place: Ints, value: Any) -> Floats:
        a = a.copy(order="K")
        np.put_along_axis(a, place, value, axis=1)
        return a

    def take(self, a: Any, columns: Sequence[int] | Ints) -> Any:
        if isinstance(columns, range) and columns.step == 1:
            return a[:, columns.start : columns.stop]  # without a copy
        return a[:, columns]

    def split(self, a: Any, widths: Sequence[int]) -> list[Any]:
        ends = [0, *accumulate(widths)]
        return [a[:, start:end] for start, end in pairwise(ends)]

    def concat(self, parts: Sequence[Any]) -> Any:
        return np.concatenate(parts, axis=1)

    def linear(self, a: Floats, matrix: Floats, offset: Floats | None = None) -> Floats:
        product = (matrix @ a.T).T
        return product if offset is None else product + offset

    def segment_sums(self, a: Floats, weights: Floats) -> Floats:
        runs = a.T.reshape(*weights.shape, len(a))
        return np.asarray(np.einsum("kln,kl->kn", runs, weights).T)

    def locate(self, cuts: Floats, score: Floats) -> Ints:
        return rows.locate(cuts, np.ascontiguousarray(score[:, 0]))[:, None]

    def route(self, tree: BinTree, a: Floats) -> Ints:
        return tree.bin_of(np.ascontiguousarray(a))[:, None]

    def look_up(self, table: Floats, place: Ints) -> Floats:
        return table.take(place[:, 0], axis=0)

    def cross(self, first: Ints, second: Ints, n_second: int) -> Ints:
        return np.asarray(first * n_second + second)

    def steps(self, cuts: Sequence[Floats], values: Sequence[Floats], a: Floats) -> Floats:
        triples = zip(cuts, values, np.ascontiguousarray(a.T), strict=True)
        return np.stack([steps[rows.locate(at, column)] for at, steps, column in triples], axis=1)

    def log_softmax(self, a: Floats) -> Floats:
        return smooth.log_softmax(np.ascontiguousarray(a))

    def fraction_between(self, a: Floats, knots: Floats) -> Floats:
        levels = np.linspace(0, 1, knots.shape[1])
        pairs = zip(a.T, knots, strict=True)
        return np.stack([np.interp(column, at, levels) for column, at in pairs]).T


NUMPY = NumpyOps()
