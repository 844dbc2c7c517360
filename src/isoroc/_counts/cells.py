"""Cells: what is known of each cell and fold, and how rows are gathered in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._counts.grid import Grid, cells
from isoroc._input import SLICE, CellSample, InputError, Sample, slices
from isoroc._simplex import Codes, Floats

#: Largest number of entries of counts, which stay small whatever the number of rows.
MOST_ENTRIES = 2**23
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Cells:
    """One entry for each cell and fold, in ascending order of fold and coordinates.

    Attributes
    ----------
    keys : ndarray of shape (m, J)
        Coordinates of the cell; the forecast itself in an exact grid.
    fold : ndarray of shape (m,)
    rows : ndarray of shape (m,)
        How many rows there were.
    class_weights : ndarray of shape (m, K)
        Weight of each class.
    sums : ndarray of shape (m, C)
        Sum of the forecasts, each times its weight, one column for each of theirs.
    squares : ndarray of shape (m, K)
        Sum of the squared weights of each class: how many rows there were in effect.
    """

    keys: NDArray[Any]
    fold: NDArray[np.int64]
    rows: NDArray[np.int64]
    class_weights: Floats
    sums: Floats
    squares: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def mean_forecasts(self, grid: Grid) -> Floats:
        """Mean forecast of each entry, shape (m, C)."""
        if grid.exact:
            return np.asarray(self.keys, dtype=np.float64)
        return np.asarray(self.sums / self.class_weights.sum(axis=1, keepdims=True))

    def coarsen(self, grid: Grid, coarser: Grid) -> Cells:
        """The same in a grid whose cells are unions of those of this one."""
        if grid == coarser:
            return self
        if grid.exact:
            keys: NDArray[Any] = cells(NUMPY, self.keys, coarser).astype(np.int32)
        else:
            keys = grid.join(self.keys, coarser)
        return gather([replace(self, keys=keys)])

    def without_folds(self) -> Cells:
        """The same with one entry for each cell."""
        return gather([replace(self, fold=np.zeros_like(self.fold))])

    def sample(self, grid: Grid, classes: Any) -> CellSample:
        """Weighted rows: the mean forecast of each entry, once for each class with weight."""
        entry, codes = np.nonzero(self.class_weights)
        means = self.mean_forecasts(grid)[entry]
        return CellSample(
            forecasts=means[:, 0] if grid.n_columns == 1 else np.ascontiguousarray(means),
            codes=codes.astype(np.min_scalar_type(self.class_weights.shape[1] - 1)),
            weights=self.class_weights[entry, codes],
            classes=classes,
            fold=self.fold[entry].astype(np.intp),
            squares=self.squares[entry, codes],
        )

    def take(self, entries: NDArray[Any]) -> Cells:
        """Some of the entries."""
        return Cells(*(getattr(self, field.name)[entries] for field in fields(self)))


def check_entries(number: int) -> None:
    """Refuse counts of too many entries."""
    if number > MOST_ENTRIES:
        problem = f"gives more than {MOST_ENTRIES:,} cells, so most of them hold few rows"
        raise InputError("resolution", None, problem, "pass a lower one, such as 8, 4 or 2")


def gather(parts: Sequence[Cells], *, ordered: bool = True) -> Cells:
    """Entries of equal cells and folds of several parts, added up and put in order."""
    names = [field.name for field in fields(Cells)]
    joined = Cells(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
    hashed = hash_keys(joined.keys, joined.fold)
    _, first, group = np.unique(hashed, return_index=True, return_inverse=True)
    m = len(first)
    if m < len(joined):
        joined = Cells(
            joined.keys[first],
            joined.fold[first],
            _add_up(group, joined.rows[:, None], m)[:, 0].astype(np.int64),
            _add_up(group, joined.class_weights, m),
            _add_up(group, joined.sums, m),
            _add_up(group, joined.squares, m),
        )
    return in_order(joined) if ordered else joined


def in_order(cells: Cells) -> Cells:
    """Cells in ascending order of fold and coordinates."""
    return cells.take(np.lexsort((*cells.keys.T[::-1], cells.fold)))


def _add_up(group: NDArray[np.intp], values: NDArray[Any], m: int) -> Floats:
    return np.column_stack([np.bincount(group, column, m) for column in values.T])


def hash_keys(keys: NDArray[Any], fold: NDArray[Any] | None) -> NDArray[np.uint64]:
    """A number for each cell and fold; two have the same with a chance of one in 2**64."""
    columns = list(keys.T) if fold is None else [*keys.T, fold]
    total = np.zeros(len(keys), dtype=np.uint64)
    for number, column in enumerate(columns, start=1):
        wide = np.float64 if column.dtype.kind == "f" else np.int64
        x = np.ascontiguousarray(column, dtype=wide).view(np.uint64)
        x = x + np.uint64(number * _STEP % 2**64)
        x = (x ^ (x >> _SHIFTS[0])) * _MIXERS[0]
        x = (x ^ (x >> _SHIFTS[1])) * _MIXERS[1]
        total += x ^ (x >> _SHIFTS[2])
    return total


class Tally:
    """Gathers rows in cells, part by part.

    More than `most` entries are gathered in the next coarser grid, down to the resolution `least`,
    and more than `most_exact` distinct forecasts of an exact grid in cells. As grids nest, the
    result does not depend on the order of the rows.
    """

    def __init__(
        self,
        grid: Grid,
        n_classes: int,
        *,
        most: int | None = None,
        least: int = 1,
        most_exact: int | None = None,
    ) -> None:
        self.grid = grid
        self._n_classes = n_classes
        self._most = most
        self._least = least
        self._most_exact = most_exact
        self._parts: list[Cells] = []
        self._waiting = 0

    def add(
        self,
        forecasts: Floats,
        codes: Codes,
        weights: Floats | None = None,
        fold: NDArray[Any] | None = None,
        squares: Floats | None = None,
    ) -> None:
        """Add rows: forecasts (n, C), columns of labels, weights > 0, folds, squared weights."""
        for rows in slices(len(codes)):
            P = forecasts[rows]
            keys = cells(NUMPY, np.asfortranarray(P), self.grid)
            keys = np.ascontiguousarray(keys if self.grid.exact else keys.astype(np.int32))
            some = None if fold is None else fold[rows]
            w = None if weights is None else weights[rows]
            s = None if w is None else w**2 if squares is None else squares[rows]
            self.add_cells(_count(keys, some, Sample(P, codes[rows], w), s, self._n_classes))

    def add_cells(self, cells: Cells) -> None:
        """Add cells of the same grid."""
        self._parts.append(cells)
        self._waiting += len(cells)
        # Parts are joined when they have doubled what is there: the work stays linear.
        if self._waiting > max(2 * len(self._parts[0]), 4 * (self._most or 2 * SLICE)):
            self._join()

    def cells(self) -> Cells:
        """All that was added, in order."""
        self._join()
        return in_order(self._parts[0])

    def _join(self) -> None:
        joined = gather(self._parts, ordered=False)
        while self._are_many(joined) and (coarser := self.grid.coarser()) != self.grid:
            joined = joined.coarsen(self.grid, coarser)
            self.grid = coarser
        if self._most is None:
            check_entries(len(joined))
        self._parts, self._waiting = [joined], 0

    def _are_many(self, cells: Cells) -> bool:
        if self.grid.exact and self._most_exact is not None and len(cells) > self._most_exact:
            return len(np.unique(hash_keys(cells.keys, None))) > self._most_exact
        at_end = self.grid.resolution == self._least
        return self._most is not None and len(cells) > self._most and not at_end


def _count(
    keys: NDArray[Any],
    fold: NDArray[Any] | None,
    sample: Sample,
    squares: Floats | None,
    n_classes: int,
) -> Cells:
    forecasts, codes, weights = sample.arrays
    _, first, group = np.unique(hash_keys(keys, fold), return_index=True, return_inverse=True)
    m = len(first)
    place = group * n_classes + codes
    class_weights, of_squares = (
        np.bincount(place, w, m * n_classes).reshape(m, n_classes).astype(np.float64)
        for w in (weights, squares)
    )
    scaled = forecasts if weights is None else forecasts * weights[:, None]
    return Cells(
        keys[first],
        np.zeros(m, dtype=np.int64) if fold is None else fold[first].astype(np.int64),
        np.bincount(group, minlength=m),
        class_weights,
        _add_up(group, scaled, m),
        of_squares,
    )
