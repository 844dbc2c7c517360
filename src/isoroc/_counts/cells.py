"""Cells: what is known of each cell and fold, and how rows are gathered in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._core.rows import group_equal
from isoroc._core.types import Codes, Floats
from isoroc._counts.grid import Grid, cells
from isoroc._input import SLICE, CellSample, InputError, Sample, slices
from isoroc._input.kinds import columns_of

#: Largest number of entries of counts, which stay small whatever the number of rows.
MOST_ENTRIES = 2**23
#: `in_cells` makes cells no larger than at these resolutions, by the number of classes: members
#: that read logarithms of forecasts would see too much of the difference between a cell and its
#: mean.
LEAST_RESOLUTION = {2: 1024, 3: 32, 4: 32}
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_STEP = 0x9E3779B97F4A7C15


@dataclass(frozen=True, eq=False)
class Cells:
    """One entry for each cell and fold, in ascending order of fold and coordinates."""

    keys: NDArray[Any]  # coordinates of the cell, (m, J); the forecast itself in an exact grid
    fold: NDArray[np.int64]  # (m,)
    rows: NDArray[np.int64]  # how many rows there were, (m,)
    class_weights: Floats  # weight of each class, (m, K)
    sums: Floats  # sum of the forecasts, each times its weight, (m, C)
    squares: Floats  # sum of the squared weights of each class: rows in effect, (m, K)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def count(
        cls,
        keys: NDArray[Any],
        fold: NDArray[Any] | None,
        codes: NDArray[Any],
        *,
        n_classes: int,
        sums: Floats,
        weights: Floats | None = None,
        squares: Floats | None = None,
        rows: Any = None,
    ) -> Cells:
        """Cells of rows, or of parts of cells with the weight of one class, in any order."""
        first, group = _distinct(keys, fold)
        m = len(first)
        place = group * n_classes + codes
        class_weights, of_squares = (
            np.bincount(place, w, m * n_classes).reshape(m, n_classes).astype(np.float64)
            for w in (weights, squares)
        )
        folds = np.zeros(m) if fold is None else fold[first]
        n_rows = np.bincount(group, rows, m).astype(np.int64)
        added = _add_up(group, sums, m)
        return cls(keys[first], folds.astype(np.int64), n_rows, class_weights, added, of_squares)

    def mean_forecasts(self, grid: Grid) -> Floats:
        """Mean forecast of each entry, shape (m, C), rounded as in `sample`."""
        if grid.exact:
            return np.asarray(self.keys, dtype=np.float64)
        return rounded(self.sums / self.class_weights.sum(axis=1, keepdims=True))

    def coarsen(self, grid: Grid, coarser: Grid, *, ordered: bool = True) -> Cells:
        """The same in a grid whose cells are unions of those of this one."""
        if grid == coarser:
            return self
        keys = grid.join(self.keys, coarser).astype(np.int32)
        return gather([replace(self, keys=keys)], ordered=ordered)

    def sample(self, grid: Grid, classes: Any) -> CellSample:
        """Weighted rows: the mean forecast of each entry, once for each class with weight.

        Numbers are rounded, because their last digits depend on the order in which an engine adds
        up rows, and fits must not.
        """
        entry, codes = np.nonzero(self.class_weights)
        means = self.mean_forecasts(grid)[entry]
        return CellSample(
            forecasts=means[:, 0] if grid.n_columns == 1 else np.ascontiguousarray(means),
            codes=codes.astype(np.min_scalar_type(self.class_weights.shape[1] - 1)),
            weights=rounded(self.class_weights[entry, codes]),
            classes=classes,
            fold=self.fold[entry].astype(np.intp),
            squares=rounded(self.squares[entry, codes]),
        )

    def take(self, entries: NDArray[Any]) -> Cells:
        """Some of the entries."""
        return Cells(*(column[entries] for column in vars(self).values()))

    def in_order(self) -> Cells:
        """The same in ascending order of fold and coordinates."""
        return self.take(np.lexsort((*self.keys.T[::-1], self.fold)))


def rounded(values: Floats, n_bits: int = 32) -> Floats:
    """Numbers with so many significant bits."""
    digits, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(digits, n_bits)), exponents - n_bits))


def check_entries(number: int) -> None:
    """Refuse counts of too many entries."""
    if number > MOST_ENTRIES:
        problem = f"gives more than {MOST_ENTRIES:,} cells, so most of them hold few rows"
        raise InputError("resolution", None, problem, "pass a lower one, such as 8, 4 or 2")


def gather(parts: Sequence[Cells], *, ordered: bool = True) -> Cells:
    """Entries of equal cells and folds of several parts, added up and put in order."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    joined = Cells(*map(np.concatenate, columns))
    first, group = _distinct(joined.keys, joined.fold)
    if (m := len(first)) < len(joined):
        added = joined.class_weights, joined.sums, joined.squares
        rows = np.bincount(group, joined.rows, m).astype(np.int64)
        totals = (_add_up(group, values, m) for values in added)
        joined = Cells(joined.keys[first], joined.fold[first], rows, *totals)
    return joined.in_order() if ordered else joined


def _distinct(
    keys: NDArray[Any], fold: NDArray[Any] | None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First row of each distinct cell and fold, and the number of those of each row."""
    hashes = hash_keys(keys, fold)
    first, group = group_equal(hashes)
    order = np.argsort(hashes[first])  # sums over cells do not depend on which row came first
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[group]


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


@dataclass
class Tally:
    """Gathers rows in cells, part by part.

    More than `most` entries are gathered in the next coarser grid, down to the resolution `least`,
    and more than `most_exact` distinct forecasts of an exact grid in cells. As grids nest, the
    result does not depend on the order of the rows.
    """

    grid: Grid
    n_classes: int
    most: int | None = None
    least: int = 1
    most_exact: int | None = None
    parts: list[Cells] = field(default_factory=list)
    waiting: int = 0
    joined: int = 0

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
            sums = P if w is None else P * w[:, None]
            added: Any = {"sums": sums, "weights": w, "squares": s}
            self.add_cells(Cells.count(keys, some, codes[rows], n_classes=self.n_classes, **added))

    def add_cells(self, cells: Cells) -> None:
        """Add cells of the same grid."""
        self.parts.append(cells)
        self.waiting += len(cells)
        # Parts are joined when they have doubled what is there: the work stays linear.
        if self.waiting > max(2 * self.joined, 4 * (self.most or 2 * SLICE)):
            self._join()

    def cells(self) -> Cells:
        """All that was added, in order."""
        self._join()
        return self.parts[0].in_order()

    def _join(self) -> None:
        joined = self.parts[0] if len(self.parts) == 1 else gather(self.parts, ordered=False)
        while self._are_many(joined) and (coarser := self.grid.coarser()) != self.grid:
            joined = joined.coarsen(self.grid, coarser, ordered=False)
            self.grid = coarser
        if self.most is None:
            check_entries(len(joined))
        self.parts, self.waiting, self.joined = [joined], 0, len(joined)

    def _are_many(self, cells: Cells) -> bool:
        if self.grid.exact and self.most_exact is not None and len(cells) > self.most_exact:
            return len(np.unique(hash_keys(cells.keys, None))) > self.most_exact
        at_end = self.grid.resolution == self.least
        return self.most is not None and len(cells) > self.most and not at_end


def probabilities(sample: Sample) -> Floats:
    """Forecasts of a sample as columns of probabilities, one for scores."""
    return np.ascontiguousarray(sample.kind.on_simplex(NUMPY, columns_of(sample.forecasts)))


def deal_by_content(
    sample: Sample, n_folds: int, random_state: np.random.RandomState
) -> CellSample:
    """A sample in folds that neither the order of the rows nor that of the columns changes.

    Equal rows become one, so that weight two is the row twice. Rows with the same forecast share a
    fold, unless they would make up much of it: then they are dealt one by one, as rows of the
    least weight. Classes are not spread evenly over the folds by design: that would make it look as
    if chance departures of their frequencies from the forecasts could be learned.
    """
    # Probabilities of logits may differ in the last digits. The factor only decides the hashes.
    values = 2.0**24 * rounded(sample.kind.probabilities(NUMPY, columns_of(sample.forecasts)), 24)
    content = np.zeros(len(sample), dtype=np.uint64)
    for column in values.T:
        content += hash_keys(column[:, None], None)
    own = values[np.arange(len(sample)), sample.codes]
    marks = [sample.codes.astype(np.float64)]
    if sample.groups is not None:
        marks.append(np.unique(sample.groups, return_inverse=True)[1].astype(np.float64))
    hashed = hash_keys(np.column_stack([columns_of(sample.forecasts) + 0.0, *marks]), None)
    _, first, entry = np.unique(hashed, return_index=True, return_inverse=True)
    order = np.lexsort((*(mark[first] for mark in marks), own[first], content[first]))
    first = first[order]
    weights, squares = (
        np.bincount(entry, w)[order] for w in (sample.row_weights(), sample.squared_weights())
    )
    distinct, place = np.unique(content[first], return_inverse=True)
    fold = random_state.permutation(len(distinct))[place] % n_folds
    unit = _least_row(sample.row_weights())
    heavy = np.bincount(place, weights)
    most = max(weights.sum() / (4 * n_folds), 2 * n_folds * unit)
    seed = random_state.randint(2**31 - 1)
    parts = []
    for e in np.flatnonzero((heavy > most)[place] | (len(distinct) < n_folds)):
        of_content = [seed, int(content[first[e]]), int(own[first[e]].view(np.uint64))]
        n_rows = max(1, round(weights[e] / unit))
        shares = np.random.default_rng(of_content).multinomial(n_rows, [1 / n_folds] * n_folds)
        parts += [(e, f, shares[f] / n_rows) for f in np.flatnonzero(shares)]
    whole = np.setdiff1d(np.arange(len(first)), [e for e, _, _ in parts])
    entries = np.array([*whole, *(e for e, _, _ in parts)], dtype=np.intp)
    share = np.append(np.ones(len(whole)), [share for _, _, share in parts])
    fold = np.append(fold[whole], [f for _, f, _ in parts]).astype(np.intp)
    if len(np.unique(fold)) < 2:
        fold = np.arange(len(fold)) % n_folds
    dealt = sample.take(first[entries])
    weights, squares = weights[entries] * share, squares[entries] * share
    return CellSample(**vars(dealt) | {"weights": weights, "fold": fold, "squares": squares})


def _least_row(weights: Floats) -> float:
    """Least weight of the rows, if all are multiples of it; otherwise that of a row in effect."""
    least = float(weights.min())
    times = weights / least
    whole = np.abs(times - times.round()).max() < 1e-6
    return least if whole else float((weights**2).sum() / weights.sum())


def in_cells(sample: CellSample, most: int) -> CellSample:
    """A sample of many rows as cells, at most `most` in total over all folds.

    Where cells of the least resolution are more, twice as many weighted rows are drawn from them at
    random: with many classes hardly two rows share a cell.
    """
    columns, K = probabilities(sample), sample.n_classes
    start = Grid.choose(columns.shape[1], "auto")
    tally = Tally(start, K, most=most, least=int(LEAST_RESOLUTION.get(K, start.resolution)))
    tally.add(columns, sample.codes, sample.weights, sample.fold, sample.squares)
    found = tally.cells().sample(tally.grid, sample.classes).draw(2 * most)
    forecasts = sample.kind.from_simplex(found.forecasts)
    return replace(found, forecasts=forecasts, scores=sample.scores)
