"""Grid: which forecasts share a cell, and which rows share a fold, over `Ops`.

The cell of a forecast is ``floor(N sqrt(p_k))`` for each class k. The square root maps the simplex
to a sphere on which equal cells are equal in Fisher information, so resolution is finest near the
vertices, where confident models live. Another coordinate, ``floor(N (1 - max p)^(1/4))``, separates
forecasts near certainty. N is a power of two: halving it joins cells and cuts none, so
resolutions nest exactly. All operations are correctly rounded (products, sums, square roots,
floors), so every engine with IEEE doubles finds the same cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY, Ops, V, added
from isoroc._core.rows import FACTOR, LIMB, PRIME, find_cells, find_folds
from isoroc._core.types import Floats, Ints
from isoroc._input import InputError, check_number, slices

Resolution = int | Literal["auto", "exact"]

#: With two classes, counts are exact up to this number of distinct scores.
MOST_EXACT = 2**16


@dataclass(frozen=True)
class Grid:
    """Cells of forecasts."""

    n_columns: int  # of the forecasts, 1 for scores of two classes
    resolution: int | Literal["exact"]  # N, or "exact" if every distinct forecast is its own cell
    top: int | None = None  # number of largest probabilities that have coordinates, None for all

    @classmethod
    def choose(cls, n_columns: int, resolution: Resolution) -> Self:
        """Grid with defaults for the number of classes.

        Up to 12 classes, a cell has a coordinate for each of them. With more, it has coordinates
        for the two largest probabilities.
        """
        K = max(n_columns, 2)
        if resolution == "auto":
            resolution = "exact" if K == 2 else default_resolution(K)
        top = 2 if K > 12 and resolution != "exact" else None
        return cls(n_columns, check_resolution(resolution), top)

    @property
    def names(self) -> list[str]:
        if self.exact:
            return [f"cell_{k}" for k in range(self.n_columns)]
        if self.top is None:
            K = max(self.n_columns, 2)
            return [f"cell_{k}" for k in range(K)] + ["cell_rest"] * (K > 2)
        ranks = range(self.top)
        return [f"class_{m}" for m in ranks] + [f"cell_{m}" for m in ranks] + ["cell_rest"]

    @property
    def added(self) -> list[str]:
        """Names of the columns of a table of counts that add up."""
        return ["rows", "weight", "weight_squared", *(f"sum_{k}" for k in range(self.n_columns))]

    @property
    def exact(self) -> bool:
        return self.resolution == "exact"

    def coarser(self) -> Self:
        """The next coarser grid, with unions of these cells, or this grid if it is the coarsest."""
        if self.exact:
            return self.choose(self.n_columns, default_resolution(max(self.n_columns, 2)))
        return replace(self, resolution=max(int(self.resolution) // 2, 1))

    def cells_of(self, P: Floats) -> NDArray[Any]:
        """Coordinates of forecasts of shape (n, C) as `cells` defines them, by a compiled loop."""
        if self.exact:
            return P + 0.0
        if self.top is None:
            return find_cells(P, float(self.resolution))
        return np.ascontiguousarray(cells(NUMPY, np.asfortranarray(P), self), np.int32)

    def join(self, keys: Any, coarser: Self) -> Ints:
        """Coordinates in a coarser grid, from coordinates in this one."""
        if self.exact:
            return coarser.cells_of(keys)
        joined = keys // (int(self.resolution) // int(coarser.resolution))
        if self.top is not None:
            joined[:, : self.top] = keys[:, : self.top]
        return np.asarray(joined)

    def __str__(self) -> str:
        cells = "exact forecasts" if self.exact else f"cells of resolution {self.resolution}"
        top = "" if self.top is None else f" of the top {self.top}"
        return f"{cells}{top} of {self.n_columns} column" + "s" * (self.n_columns > 1)


def default_resolution(n_classes: int) -> int:
    """N for K classes. It is fixed, so counts of different days can be merged."""
    return {2: 2**16, 3: 256, 4: 64, 5: 32}.get(n_classes, 16)


def least_resolution(n_classes: int) -> int:
    """N of the largest cells. In larger ones, log p would differ too much from log of the mean."""
    return {2: 1024, 3: 32, 4: 32}.get(n_classes, default_resolution(n_classes))


def check_resolution(resolution: Any) -> Any:
    if resolution == "exact":
        return resolution
    whole = isinstance(resolution, int | np.integer) and not isinstance(resolution, bool)
    if not whole or not 1 <= resolution <= 2**24 or resolution & (resolution - 1):
        fix = 'expected "auto", "exact" or a power of two up to 2**24'
        raise InputError("resolution", None, f"is {resolution!r}", fix)
    return int(resolution)


def check_folds(folds: Any) -> None:
    check_number("folds", folds, int, minimum=1)
    if folds > 1000:
        raise InputError("folds", None, f"is {folds}", "expected at most 1000")


def cells(ops: Ops[V], X: V, grid: Grid) -> V:
    """Coordinates of forecasts, one column for each of `Grid.names`."""
    if grid.exact:
        return X + 0.0  # no -0.0

    def root(p: V) -> V:
        return ops.floor(float(grid.resolution) * ops.sqrt(p))

    def rest(kept: V) -> V:
        return root(ops.sqrt(ops.maximum(1.0 - kept, 0.0)))

    if ops.width(X) == 1:
        X = ops.concat([ops.maximum(1.0 - X, 0.0), X])
    if grid.top is None:
        return root(X) if ops.width(X) == 2 else ops.concat([root(X), rest(ops.largest_value(X))])
    values, places, _ = ops.largest_few(X, grid.top)
    return ops.concat([*places, root(ops.concat(values)), rest(added(values))])


def fold(ops: Ops[V], X: V, n_folds: int, key: V | None = None) -> V:
    """Fold of each row, by a hash of its key, a whole number, or else of its forecast."""
    if n_folds == 1:
        return 0.0 * ops.take(X, [0])
    if key is not None:
        high = ops.floor(key / float(LIMB))
        return _hash(ops, [key - high * float(LIMB), _remainder(ops, high, LIMB)], n_folds)
    # With roots, the last digits of forecasts near certainty still count.
    parts = mixing_weights(ops.width(X)) * ops.sqrt(X)
    scaled = added(ops.take(parts, [k]) for k in range(ops.width(X))) * float(LIMB)
    limbs = []
    for _ in range(3):
        limbs.append(ops.floor(scaled))
        scaled = (scaled - limbs[-1]) * float(LIMB)
    return _hash(ops, limbs, n_folds)


def folds_of(P: Floats, n_folds: int, key: Floats | None = None) -> NDArray[np.int16]:
    """Fold of each row of P, shape (n, C), as `fold` defines it. Without keys, a compiled loop."""
    if key is None:
        return find_folds(P, mixing_weights(P.shape[1]), n_folds)
    parts = [fold(NUMPY, P[rows], n_folds, key[rows, None])[:, 0] for rows in slices(len(P))]
    return np.concatenate(parts).astype(np.int16)


def mixing_weights(width: int) -> Floats:
    """Weights of the columns of a forecast in the sum that is hashed."""
    return np.random.default_rng(0).random(width)


def _hash(ops: Ops[V], limbs: Sequence[V], n_folds: int) -> V:
    first, *others = limbs
    state = _remainder(ops, float(FACTOR) + first, PRIME)
    for limb in (*others, 0.0):  # one more turn mixes the last limb
        state = _remainder(ops, state * float(FACTOR) + limb, PRIME)
    return _remainder(ops, state, n_folds)


def _remainder(ops: Ops[V], a: V, divisor: int) -> V:
    return a - ops.floor(a / float(divisor)) * float(divisor)
