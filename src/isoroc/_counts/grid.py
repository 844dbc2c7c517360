"""Grid: which forecasts share a cell, and which rows share a fold, in the words of a `Writer`.

The cell of a forecast is ``floor(N sqrt(p_k))`` for each class k. The square root maps the simplex
to a sphere on which equal cells are equal in Fisher information, so resolution is finest near the
vertices, where confident models live. One more coordinate, ``floor(N (1 - max p)^(1/4))``, keeps
forecasts apart that are all but certain. N is a power of two: halving it joins cells and cuts none,
so resolutions nest exactly. Only correctly rounded operations are used (products, sums, square
roots, floors), so every engine that computes with IEEE doubles finds the same cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from isoroc._input import InputError
from isoroc._simplex import Ints
from isoroc._writer import Arithmetic

C = TypeVar("C")
Resolution = int | Literal["auto", "exact"]

#: Up to this many classes a cell has a coordinate for each of them; above, for the largest few.
ALL_CLASSES = 12
#: How many these are.
TOP = 2
#: Resolutions by the number of classes; the last stands for all others.
RESOLUTIONS = {2: 2**16, 3: 256, 4: 64, 5: 32, 6: 16}
#: Two classes: distinct scores up to which they are all kept.
MOST_EXACT = 2**16
#: Hashes are remainders of this prime. Products of two fit the 53 bits of a double.
_PRIME, _FACTOR, _LIMB = 67_108_859, 44_485_709, 2**26


@dataclass(frozen=True)
class Grid:
    """Cells of forecasts.

    Attributes
    ----------
    n_columns : int
        Columns of the forecasts, 1 for scores of two classes.
    resolution : int or "exact"
        N, a power of two; or every distinct forecast is a cell of its own.
    top : int or None
        How many of the largest probabilities have coordinates, together with the classes that they
        belong to; None if all probabilities have.

    Examples
    --------
    >>> Grid(3, 256).names
    ['cell_0', 'cell_1', 'cell_2', 'cell_rest']
    """

    n_columns: int
    resolution: int | Literal["exact"]
    top: int | None = None

    @classmethod
    def choose(cls, n_columns: int, resolution: Resolution, top: Any = "auto") -> Grid:
        """Grid with the defaults that depend on the number of classes."""
        K = max(n_columns, 2)
        if top == "auto":
            top = None if K <= ALL_CLASSES else TOP
        if top is not None and not (isinstance(top, int) and 1 <= top <= K - 2):
            raise InputError("top", None, f"is {top!r}", f'expected "auto" or 1 to {K - 2}')
        if resolution == "auto":
            resolution = "exact" if K == 2 else default_resolution(K)
        return cls(n_columns, check_resolution(resolution), None if resolution == "exact" else top)

    @property
    def names(self) -> list[str]:
        """Names of the columns that tell cells apart."""
        if self.exact:
            return [f"cell_{k}" for k in range(self.n_columns)]
        if self.top is None:
            K = max(self.n_columns, 2)
            return [f"cell_{k}" for k in range(K)] + ["cell_rest"] * (K > 2)
        ranks = range(self.top)
        return [f"class_{m}" for m in ranks] + [f"cell_{m}" for m in ranks] + ["cell_rest"]

    @property
    def exact(self) -> bool:
        """Whether every distinct forecast is a cell of its own."""
        return self.resolution == "exact"

    def coarser(self) -> Grid:
        """The next grid whose cells are unions of these; the same at the end."""
        if self.exact:
            return Grid.choose(self.n_columns, default_resolution(max(self.n_columns, 2)))
        return replace(self, resolution=max(int(self.resolution) // 2, 1))

    def join(self, keys: Any, coarser: Grid) -> Ints:
        """Coordinates in a coarser grid from those in this one, which is not exact."""
        factor = int(self.resolution) // int(coarser.resolution)
        joined = keys // factor
        if self.top is not None:
            joined[:, : self.top] = keys[:, : self.top]
        return np.asarray(joined)

    def __str__(self) -> str:
        cells = "exact forecasts" if self.exact else f"cells of resolution {self.resolution}"
        top = "" if self.top is None else f" of the top {self.top}"
        return f"{cells}{top} of {self.n_columns} column" + "s" * (self.n_columns > 1)


def default_resolution(n_classes: int) -> int:
    """N for K classes, so that counts of different days fit together without being asked to."""
    return RESOLUTIONS.get(n_classes, min(RESOLUTIONS.values()))


def check_resolution(resolution: Any) -> Any:
    """Refuse what is not "exact" or a power of two."""
    if resolution == "exact":
        return resolution
    whole = isinstance(resolution, int | np.integer) and not isinstance(resolution, bool)
    if not whole or not 1 <= resolution <= 2**24 or resolution & (resolution - 1):
        fix = 'expected "auto", "exact" or a power of two up to 2**24'
        raise InputError("resolution", None, f"is {resolution!r}", fix)
    return int(resolution)


def write_cells(w: Arithmetic[C], columns: Sequence[C], grid: Grid) -> list[C]:
    """Coordinates of forecasts, one column for each of `Grid.names`."""
    if grid.exact:
        return [w.add(column, w.number(0.0)) for column in columns]  # no -0.0
    N = w.number(float(grid.resolution))
    one, zero = w.number(1.0), w.number(0.0)

    def root(p: C) -> C:
        return w.floor(w.multiply(N, w.sqrt(p)))

    def rest(kept: C) -> C:
        return root(w.sqrt(w.maximum(w.subtract(one, kept), zero)))

    if len(columns) == 1:
        columns = w.keep([w.maximum(w.subtract(one, columns[0]), zero), columns[0]])
    if grid.top is None:
        if len(columns) == 2:
            return [root(p) for p in columns]
        largest, _ = w.largest(columns)
        return [*(root(p) for p in columns), rest(largest)]
    left, values, places = list(columns), [], []
    for _ in range(grid.top):
        value, place = w.keep(w.largest(left))
        values.append(value)
        places.append(place)
        left = w.keep(w.where(w.is_at(place, k), w.number(-1.0), p) for k, p in enumerate(left))
    return [*places, *(root(value) for value in values), rest(w.run(values))]


def write_fold(w: Arithmetic[C], columns: Sequence[C], n_folds: int) -> C:
    """Fold of each row by a hash of its forecast. Equal forecasts share a fold."""
    # Roots, so that the last digits of forecasts that are all but certain still count.
    numbers = np.random.default_rng(0).random(len(columns)).tolist()
    parts = [w.multiply(w.number(c), w.sqrt(p)) for c, p in zip(numbers, columns, strict=True)]
    [scaled] = w.keep([w.multiply(w.run(parts), w.number(float(_LIMB)))])
    limbs = []
    for _ in range(3):
        limb, scaled = _split(w, scaled)
        limbs.append(limb)
    return _hash(w, limbs, n_folds)


def write_key_fold(w: Arithmetic[C], key: C, n_folds: int) -> C:
    """Fold of each row by a hash of its key, a whole number. Equal keys share a fold."""
    [high] = w.keep([w.floor(w.divide(key, w.number(float(_LIMB))))])
    low = w.subtract(key, w.multiply(high, w.number(float(_LIMB))))
    return _hash(w, w.keep([low, _remainder(w, high, _LIMB)]), n_folds)


def _split(w: Arithmetic[C], scaled: C) -> tuple[C, C]:
    """Whole part of a number, and the rest of it, scaled up."""
    [whole] = w.keep([w.floor(scaled)])
    [rest] = w.keep([w.multiply(w.subtract(scaled, whole), w.number(float(_LIMB)))])
    return whole, rest


def _hash(w: Arithmetic[C], limbs: Sequence[C], n_folds: int) -> C:
    state = w.number(1.0)
    for limb in (*limbs, w.number(0.0)):  # one more turn mixes the last limb
        mixed = w.add(w.multiply(state, w.number(float(_FACTOR))), limb)
        [state] = w.keep([_remainder(w, mixed, _PRIME)])
    return _remainder(w, state, n_folds)


def _remainder(w: Arithmetic[C], a: C, divisor: int) -> C:
    [a] = w.keep([a])
    whole = w.floor(w.divide(a, w.number(float(divisor))))
    return w.subtract(a, w.multiply(whole, w.number(float(divisor))))
