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
from isoroc._input import SLICE, CellSample, InputError, Sample, deal_folds, slices
from isoroc._input.kinds import columns_of

#: Largest number of entries of counts, which stay small whatever the number of rows.
MOST_ENTRIES = 2**23


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
    """SplitMix64 of each cell and fold; two have the same with a chance of one in 2**64."""
    columns = list(keys.T) if fold is None else [*keys.T, fold]
    total = np.zeros(len(keys), dtype=np.uint64)
    for number, column in enumerate(columns, start=1):
        wide = np.float64 if column.dtype.kind == "f" else np.int64
        x = np.ascontiguousarray(column, dtype=wide).view(np.uint64)
        x = x + np.uint64(number * 0x9E3779B97F4A7C15 % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        total += x ^ (x >> np.uint64(31))
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

    Rows are sorted by what they hold, and their places are dealt to the folds at random. So equal
    rows, and rows with the same forecast, spread over the folds. With clusters, these are dealt
    instead. Classes are not stratified: that would make chance departures of their frequencies from
    the forecasts look predictable.
    """
    P = sample.kind.probabilities(NUMPY, columns_of(sample.forecasts))
    # The last digits of logits depend on the order of the columns: they decide at the very end.
    coarse = rounded(P, 24)
    exact, content = (
        np.add.reduce([hash_keys(column[:, None], None) for column in values.T])
        for values in (P, coarse)
    )
    own = coarse[np.arange(len(sample)), sample.codes]
    keys = [] if sample.segments is None else sample.segments.keys()
    order = np.lexsort((exact, sample.row_weights(), sample.codes, *keys, own, content))
    dealt = sample.take(order)
    weights, squares = dealt.row_weights(), dealt.squared_weights()
    fold = deal_folds(len(order), n_folds, random_state, dealt.clusters)
    return CellSample(**vars(dealt) | {"weights": weights, "fold": fold, "squares": squares})


def deal_in_cells(
    sample: Sample, n_folds: int, most: int, random_state: np.random.RandomState
) -> CellSample:
    """A sample of many rows as cells in folds, about `most` in total over all folds.

    The rows of a cell are exchangeable, so their number is dealt to the folds at random.
    """
    cells = in_cells(sample, most // n_folds, 2 * most)
    n_rows = np.rint(cells.row_weights() ** 2 / cells.squares).clip(min=1).astype(np.intp)
    rng = np.random.default_rng(random_state.randint(2**31 - 1))
    dealt = rng.multinomial(n_rows, np.full(n_folds, 1 / n_folds))
    cell, fold = np.nonzero(dealt)
    part, share = cells.take(cell), dealt[cell, fold] / n_rows[cell]
    weights, squares = part.row_weights() * share, part.squares * share
    return replace(part, fold=fold, weights=weights, squares=squares)


def in_cells(sample: Sample, most: int, n_drawn: int | None = None) -> CellSample:
    """A sample of many rows as cells, at most `most` in total over all of its folds.

    Where cells of the least resolution are more than `n_drawn`, by default twice as many, so many
    weighted rows are drawn from them at random: with many classes hardly two rows share a cell.
    """
    columns, K = probabilities(sample), sample.n_classes
    start = Grid.choose(columns.shape[1], "auto")
    # In larger cells, members that read logarithms would see forecasts differ from their mean.
    least = {2: 1024, 3: 32, 4: 32}.get(K, start.resolution)
    tally = Tally(start, K, most=most, least=int(least))
    fold = sample.fold if isinstance(sample, CellSample) else None
    tally.add(columns, sample.codes, sample.weights, fold, sample.squares)
    found = tally.cells().sample(tally.grid, sample.classes).draw(n_drawn or 2 * most)
    forecasts = sample.kind.from_simplex(found.forecasts)
    return replace(found, forecasts=forecasts, unit=sample.unit)
