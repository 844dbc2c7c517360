"""Cells: the sums for each cell and fold, and how rows are gathered in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._core.rows import add_rows, add_totals, find_groups, hash_words, move_slots
from isoroc._core.types import UNIT_WEIGHTS, Codes, Floats, Ints
from isoroc._counts.grid import Grid, least_resolution
from isoroc._input import SLICE, CellSample, InputError, Sample, slices, take_rows
from isoroc._input.kinds import columns_of

#: Largest number of entries of counts, which stay small whatever the number of rows.
MOST_ENTRIES = 2**23
#: Frequencies that sum to more are dealt to folds at random, not row by row by a hash.
MANY_COPIES = 10**6


@dataclass(frozen=True, eq=False)
class Cells:
    """One entry for each cell and fold, in ascending order of fold and coordinates."""

    keys: NDArray[Any]  # coordinates of the cell, (m, J), in an exact grid the forecast itself
    fold: NDArray[np.int64]  # (m,)
    rows: NDArray[np.int64]  # number of rows, (m,)
    class_weights: Floats  # weight of each class, (m, K)
    sums: Floats  # weighted sum of the forecasts, (m, C)
    squares: Floats  # sum of the squared weights of each class, (m, K)

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
        table = CellTable(n_classes, sums.shape[1])
        table.add(keys, fold, codes, sums=sums, weights=weights, squares=squares, rows=rows)
        return table.cells()

    def mean_forecasts(self, grid: Grid) -> Floats:
        """Mean forecast of each entry, shape (m, C), rounded as in `sample`."""
        if grid.exact:
            return np.asarray(self.keys, dtype=np.float64)
        return rounded(self.sums / self.class_weights.sum(axis=1, keepdims=True))

    def coarsen(self, grid: Grid, coarser: Grid) -> Cells:
        """The same counts in a coarser grid, whose cells are unions of these."""
        if grid == coarser:
            return self
        keys = grid.join(self.keys, coarser).astype(np.int32, copy=False)
        return sum_cells([replace(self, keys=keys)])

    def are_ties(self) -> NDArray[np.bool_]:
        """Whether an entry has all rows of its cell, and many, so that a hash chose their fold."""
        slots = np.zeros((_size_for(len(self)), 2), np.uint64)
        cell, _ = find_groups(hash_keys(self.keys, None), slots, 0)
        return np.asarray((np.bincount(cell)[cell] == 1) & (self.rows >= 20))

    def sample(self, grid: Grid, classes: Any) -> CellSample:
        """Weighted rows: the mean forecast of each entry, once for each class with weight.

        Numbers are rounded, because their last digits depend on the order in which an engine adds.
        """
        entry, codes = np.nonzero(self.class_weights)
        means = take_rows(self.mean_forecasts(grid), entry)
        return CellSample(
            forecasts=means[:, 0] if grid.n_columns == 1 else np.ascontiguousarray(means),
            codes=codes.astype(np.min_scalar_type(self.class_weights.shape[1] - 1)),
            weights=rounded(self.class_weights[entry, codes]),
            classes=classes,
            fold=self.fold[entry].astype(np.intp),
            squares=rounded(self.squares[entry, codes]),
        )

    def take(self, entries: NDArray[Any] | slice) -> Cells:
        return Cells(*(take_rows(column, entries) for column in vars(self).values()))

    def in_order(self) -> Cells:
        """The same entries in ascending order of fold and coordinates."""
        columns = [self.fold, *self.keys.T]
        if self.keys.dtype.kind == "f" or not len(self):
            return self.take(np.lexsort(columns[::-1]))
        bits = [int(column.max()).bit_length() for column in columns]
        if sum(bits) > 63:
            return self.take(np.lexsort(columns[::-1]))
        packed = np.zeros(len(self), np.int64)  # sorting one number is faster than sorting several
        for column, n_bits in zip(columns, bits, strict=True):
            packed = (packed << n_bits) + column
        return self.take(np.argsort(packed))

    def scaled(self, factor: Any) -> Cells:
        """Cells with weights multiplied by one factor, or by one per entry, shape (m, 1)."""
        return replace(
            self,
            class_weights=self.class_weights * factor,
            sums=self.sums * factor,
            squares=self.squares * factor**2,
        )

    def thinned(self, most: int, seed: int) -> Cells:
        """About `most` entries, drawn so that the expected weight of every cell stays the same.

        Entries of large weight stay. Each of the others is kept with a probability proportional to
        its weight. Those kept all get the same weight, which preserves the total.
        """
        weights = self.class_weights.sum(axis=1)
        if len(weights) <= most:
            return self
        descending = np.sort(weights)[::-1]
        rest = np.cumsum(descending[::-1])[::-1]  # weight of an entry and of all lighter ones
        # The heaviest n stay, and the rest compete for the other places.
        n = int(np.argmax(descending[:most] * (most - np.arange(most)) <= rest[:most]))
        level = rest[n] / (most - n)
        kept = np.maximum(weights, level)
        # Hashed twice: a sum of hashes would give the same order for every seed. Systematic draws
        # in random order keep the number of entries, and so their total weight.
        hashes = hash_keys(self.keys, np.full(len(self), seed)).view(np.int64)
        order = np.argsort(hash_keys(hashes[:, None], None))
        places = np.floor(np.cumsum((weights / kept)[order]) + 0.5)
        drawn = order[np.diff(places, prepend=0.0) > 0]
        return self.scaled((kept / weights)[:, None]).take(np.sort(drawn))


def rounded(values: Floats, n_bits: int = 32) -> Floats:
    """Numbers rounded to `n_bits` significant bits."""
    digits, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(digits, n_bits)), exponents - n_bits))


def check_entries(number: int) -> None:
    if number > MOST_ENTRIES:
        problem = f"gives more than {MOST_ENTRIES:,} cells, so most of them hold few rows"
        raise InputError("resolution", None, problem, "pass a lower one, such as 8, 4 or 2")


def sum_cells(parts: Sequence[Cells]) -> Cells:
    """Sum of several parts, entry by entry, in order."""
    table = CellTable(parts[0].class_weights.shape[1], parts[0].sums.shape[1])
    for part in parts:
        table.add_cells(part)
    return table.cells().in_order()


def hash_keys(keys: NDArray[Any], fold: NDArray[Any] | None) -> NDArray[np.uint64]:
    """SplitMix64 hash of each cell and fold. Two collide with a probability of 2**-64."""
    wide = np.float64 if keys.dtype.kind == "f" else np.int64
    hashes = hash_words(np.ascontiguousarray(keys, wide).view(np.uint64), 1)
    if fold is not None:
        folds = np.ascontiguousarray(fold, np.int64).view(np.uint64)
        hashes += hash_words(folds[:, None], keys.shape[1] + 1)
    return hashes


class CellTable:
    """Sums by cell and fold in a hash table, which grows with the number of entries."""

    def __init__(self, n_classes: int, n_sums: int) -> None:
        self.n_classes = n_classes
        self.length = 0
        self.keys: list[NDArray[Any]] = []
        self.fold: list[NDArray[np.int64]] = []
        self._slots = np.zeros((2, 2), np.uint64)
        #: Columns per entry: the rows, the weights and squares of the classes, and the sums.
        self._totals = np.zeros((0, 1 + 2 * n_classes + n_sums))

    def __len__(self) -> int:
        return self.length

    def add(
        self,
        keys: NDArray[Any],
        fold: NDArray[Any] | None,
        codes: NDArray[Any],
        *,
        sums: Floats,
        weights: Floats | None = None,
        squares: Floats | None = None,
        rows: Any = None,
    ) -> None:
        """Add rows, or parts of cells with the weight of one class."""
        group = self._find(keys, fold)
        given = (UNIT_WEIGHTS if each is None else each for each in (weights, squares, rows))
        w, s, n = (np.ascontiguousarray(values, np.float64) for values in given)
        sums = np.ascontiguousarray(sums)
        add_rows(group, codes.astype(np.intp), sums, w, s, n, self._totals, self.n_classes)

    def add_cells(self, cells: Cells) -> None:
        for rows in slices(len(cells)):
            part = cells.take(rows)
            group = self._find(part.keys, part.fold)
            values = [part.rows[:, None], part.class_weights, part.squares, part.sums]
            add_totals(group, np.hstack(values), self._totals)

    def cells(self) -> Cells:
        """All entries, in the order of their first rows."""
        K = self.n_classes
        rows, *parts = np.split(self._totals[: self.length], [1, 1 + K, 1 + 2 * K], axis=1)
        weights, squares, sums = map(np.ascontiguousarray, parts)
        keys, fold = (np.concatenate(parts) for parts in (self.keys, self.fold))
        return Cells(keys, fold, rows[:, 0].astype(np.int64), weights, sums, squares)

    def _find(self, keys: NDArray[Any], fold: NDArray[Any] | None) -> Ints:
        """Entry of each row. New entries get totals of zero."""
        folds = np.zeros(len(keys), np.int64) if fold is None else fold.astype(np.int64)
        if (size := _size_for(self.length + len(keys))) > len(self._slots):
            slots = np.zeros((size, 2), np.uint64)
            move_slots(self._slots, slots)
            self._slots = slots
        group, first = find_groups(hash_keys(keys, folds), self._slots, self.length)
        self.keys.append(keys[first])
        self.fold.append(folds[first])
        self.length += len(first)
        if self.length > len(self._totals):
            totals = np.zeros((self.length + self.length // 2, self._totals.shape[1]))
            totals[: len(self._totals)] = self._totals
            self._totals = totals
        return group


def _size_for(n_entries: int) -> int:
    """Number of slots of a hash table: a power of two, of which at most half are used."""
    return int(2 ** np.ceil(np.log2(2 * n_entries + 2)))


@dataclass
class Tally:
    """Gathers rows in cells, part by part.

    If there are more than `most` entries, the grid becomes coarser, down to the resolution `least`.
    If an exact grid has more than `most_exact` distinct forecasts, they are gathered in cells.
    Grids nest, so the result does not depend on the order of the rows.
    """

    grid: Grid
    n_classes: int
    most: int | None = None
    least: int = 1
    most_exact: int | None = None
    checked: int = 0
    table: CellTable = field(init=False)

    def __post_init__(self) -> None:
        self.table = CellTable(self.n_classes, self.grid.n_columns)

    def add(self, forecasts: Floats, sample: Sample, fold: NDArray[Any] | None = None) -> None:
        """Add rows of positive weight: probabilities (n, C), the sample, and the fold of each row.

        The parts of a row count once.
        """
        weights = sample.weights
        squares = sample.squares
        parts_of = sample.parts_of
        is_first = None if parts_of is None else np.diff(parts_of, prepend=-1) > 0
        for rows in slices(len(sample)):
            P = forecasts[rows]
            keys = self.grid.cells_of(P)
            folds = None if fold is None else fold[rows]
            if weights is None:
                self.table.add(keys, folds, sample.codes[rows], sums=P)
            else:
                w = weights[rows]
                self.table.add(
                    keys,
                    folds,
                    sample.codes[rows],
                    sums=P * w[:, None],
                    weights=w,
                    squares=w**2 if squares is None else squares[rows],
                    rows=None if is_first is None else is_first[rows],
                )
            self._limit()

    def add_cells(self, cells: Cells) -> None:
        self.table.add_cells(cells)
        self._limit()

    def cells(self) -> Cells:
        """Cells of all that was added, in order."""
        self._limit(at_end=True)
        return self.table.cells().in_order()

    def _limit(self, *, at_end: bool = False) -> None:
        """Make the grid coarser if there are too many entries.

        The check runs when their number has doubled, so the work stays linear.
        """
        if not at_end and len(self.table) <= 2 * max(self.checked, self.most or SLICE):
            return
        while self._are_many() and (coarser := self.grid.coarser()) != self.grid:
            joined = self.table.cells()
            keys = self.grid.join(joined.keys, coarser).astype(np.int32)
            self.table = CellTable(self.n_classes, self.grid.n_columns)
            self.table.add_cells(replace(joined, keys=keys))
            self.grid = coarser
        if self.most is None:
            check_entries(len(self.table))
        self.checked = len(self.table)

    def _are_many(self) -> bool:
        n_entries = len(self.table)
        if self.grid.exact and self.most_exact is not None and n_entries > self.most_exact:
            hashes = [hash_keys(keys, None) for keys in self.table.keys]
            return len(np.unique(np.concatenate(hashes))) > self.most_exact
        at_end = self.grid.resolution == self.least
        return self.most is not None and n_entries > self.most and not at_end


def probability_columns(sample: Sample) -> Floats:
    """Forecasts of a sample as columns of probabilities, one for scores."""
    return np.ascontiguousarray(sample.kind.on_simplex(NUMPY, columns_of(sample.forecasts)))


def deal_by_content(sample: Sample, n_folds: int) -> CellSample:
    """A sample in folds that do not depend on the order of rows or columns.

    The fold of a row is a hash of its rounded forecasts and its label, so changing one row does not
    move the others. Equal rows are numbered and spread over the folds, and so are the copies of a
    row with a frequency. Rows of one cluster share a fold. Folds are not stratified by class:
    otherwise chance differences between the frequencies of classes and their forecasts would look
    predictable.
    """
    ordered = by_content(sample)
    weights = ordered.row_weights()
    squares = ordered.squared_weights()
    row = np.arange(len(ordered))
    undealt = CellSample(
        ordered.forecasts,
        ordered.codes,
        weights,
        ordered.classes,
        ordered.unit,
        ordered.segments,
        clusters=ordered.clusters,
        parts_of=ordered.parts_of,
        fold=np.zeros_like(row),
        squares=squares,
    )
    copies = _count_rows(undealt)
    if ordered.clusters is None and copies.sum() > max(MANY_COPIES, len(row)):
        return deal_rows(undealt, np.full((len(row), n_folds), 1 / n_folds))
    columns = ordered.kind.probabilities(NUMPY, columns_of(ordered.forecasts))
    P = _rounded_roots(columns)
    of_label = P[row, ordered.codes]
    # Rows that differ by a permutation of the classes have the same key.
    key = _hash_entries(P) + hash_keys(np.stack([of_label, of_label], 1), None)
    tie = _hash_rows(P, ordered.codes, copies)
    exact = columns[row, ordered.codes]
    if ordered.clusters is None:
        row = np.repeat(row, copies)
        fold = _draw_folds(n_folds, key[row], tie[row], exact[row])
    else:
        _, unit = np.unique(ordered.clusters, return_inverse=True)
        times = copies.astype(np.uint64)
        of_units = (_sum_by(unit, values) for values in (key * times, tie * times, exact * copies))
        fold = _draw_folds(n_folds, *of_units)[unit]
    n_dealt = np.bincount(row * n_folds + fold, minlength=len(ordered) * n_folds)
    return _divide(undealt, n_dealt.reshape(-1, n_folds))


def _rounded_roots(P: Floats, n_steps: float = 100 * math.e) -> Floats:
    """Square roots of forecasts as numbers of steps of equal size, rounded.

    The steps are wide near 0, so that rounding errors and noise hardly ever change a number. Since
    `n_steps` is irrational, no share of votes lies on a border between two numbers.
    """
    return np.asarray(np.rint(n_steps * np.sqrt(P)))


def _draw_folds(n_folds: int, key: NDArray[np.uint64], *ties: NDArray[Any]) -> Ints:
    """Fold of each unit, drawn by the hash of its key and its number among units of this key."""
    draws = hash_keys(np.column_stack([key, occurrences(key, *ties)]), None)
    fold = (draws % np.uint64(n_folds)).astype(np.intp)
    if len(np.unique(fold)) < 2:  # very few rows
        fold = np.argsort(np.argsort(draws)) % n_folds
    return fold


def _sum_by(group: Ints, values: NDArray[Any]) -> NDArray[Any]:
    sums = np.zeros(group.max() + 1, dtype=values.dtype)
    np.add.at(sums, group, values)
    return sums


def occurrences(keys: NDArray[np.uint64], *ties: NDArray[Any]) -> NDArray[np.uint64]:
    """How many equal keys come before each key, in the order of `ties`, the first one first."""
    order = np.lexsort((*ties[::-1], keys))
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    first = np.repeat(starts, np.diff(np.append(starts, len(keys))))
    before = np.empty(len(keys), dtype=np.uint64)
    before[order] = np.arange(len(keys)) - first
    return before


def by_content(sample: Sample) -> Sample:
    """A sample whose rows are sorted by forecast, segments, class and weight.

    The order depends on the order of neither rows nor columns.
    """
    P = sample.kind.probabilities(NUMPY, columns_of(sample.forecasts))
    # The last digits of logits depend on the order of the columns, so exact values only break ties.
    coarse = rounded(P, 16)
    exact_hash = _hash_entries(P)
    coarse_hash = _hash_entries(coarse)
    label = np.arange(len(sample)), sample.codes
    columns = {} if sample.segments is None else sample.segments.columns
    segments = [column.values for column in columns.values()]  # levels are sorted
    # Rows that agree in 16 bits are in the order of 40 bits, whatever their weights.
    fine = rounded(P[label], 40)
    keys = (exact_hash, sample.row_weights(), fine, sample.codes, *segments, coarse[label])
    order = np.argsort(coarse_hash)  # faster than one sort by all keys
    ordered = coarse_hash[order]
    same = np.append(False, ordered[1:] == ordered[:-1])
    tied = np.flatnonzero(same | np.append(same[1:], False))
    if len(tied):
        rows = np.sort(order[tied])  # tied rows keep the same set of places
        among = [key[rows] for key in (*keys, coarse_hash)]
        best = np.lexsort(among)
        if np.all([key[best[1:]] == key[best[:-1]] for key in among], axis=0).any():
            # Such rows may differ by a permutation of the classes.
            hashes = _hash_rows(coarse, sample.codes, _count_rows(sample))
            best = np.lexsort((hashes[rows], *among))
        order[tied] = rows[best]
    return sample.take(order)


def _hash_rows(P: Floats, codes: Codes, copies: Ints) -> NDArray[np.uint64]:
    """Hash of the forecast and the label of each row, the same for any order of the columns.

    In place of a number, each class has its rank by the number of its labels, by its total forecast
    and by a hash of its forecasts and labels, of all rows in as many copies as they stand for. A
    row that changes hardly ever changes a rank.
    """
    bits = P.view(np.uint64) + np.equal.outer(codes, np.arange(P.shape[1]))
    times = copies.astype(np.uint64)
    hashes = [(hash_keys(column[:, None], None) * times).sum() for column in bits.T]
    totals = copies @ np.rint(P * 2.0**20).astype(np.int64)  # whole numbers add up in any order
    n_labels = np.bincount(codes, copies, P.shape[1])
    _, rank = np.unique(np.column_stack([n_labels, totals, hashes]), axis=0, return_inverse=True)
    return _hash_entries(bits + hash_keys(rank.reshape(-1, 1), None))


def _hash_entries(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Hash of each row of numbers, the same for any order of the columns."""
    return np.asarray(np.add.reduce([hash_keys(column[:, None], None) for column in values.T]))


def deal_in_cells(sample: Sample, n_folds: int, most: int) -> CellSample:
    """A sample of many rows as cells in folds, about `most` in total over all folds.

    The rows of a cell are exchangeable, so their number is dealt to the folds at random.
    """
    cells = in_cells(sample, most // n_folds, 2 * most)
    return deal_rows(cells, np.full((len(cells), n_folds), 1 / n_folds))


def limit_cells(cells: CellSample, most: int) -> CellSample:
    """Cells in folds, about `most` in total over all folds, as coarse as in `deal_in_cells`."""
    if len(cells) <= most:
        return cells
    n_folds = int(cells.fold.max()) + 1
    return in_cells(cells, most, 2 * most * n_folds)


def deal_rows(cells: CellSample, shares: Floats) -> CellSample:
    """The rows of each cell dealt to folds at random, with these shares of the folds."""
    n_dealt = np.random.default_rng(0).multinomial(_count_rows(cells), shares)
    return _divide(cells, n_dealt)


def _count_rows(sample: Sample) -> Ints:
    """Number of rows that each row or cell stands for."""
    copies = np.rint(sample.row_weights() ** 2 / sample.squared_weights())
    return copies.clip(min=1).astype(np.intp)


def _divide(cells: CellSample, n_dealt: Ints) -> CellSample:
    """Cells divided between folds, by the number of rows that each fold gets."""
    cell, fold = np.nonzero(n_dealt)
    part = cells.take(cell)
    share = n_dealt[cell, fold] / n_dealt.sum(axis=1)[cell]
    weights = part.row_weights() * share
    squares = part.squares * share
    return replace(part, fold=fold, weights=weights, squares=squares)


def in_cells(sample: Sample, most: int, n_drawn: int | None = None) -> CellSample:
    """A sample of many rows as cells, at most `most` in total over all of its folds.

    If there are more cells than `n_drawn`, by default twice `most`, even at the least resolution,
    `n_drawn` weighted rows are drawn: with many classes hardly two rows share a cell.
    """
    columns = probability_columns(sample)
    K = sample.n_classes
    start = Grid.choose(columns.shape[1], "auto")
    tally = Tally(start, K, most=most, least=least_resolution(K))
    fold = sample.fold if isinstance(sample, CellSample) else None
    tally.add(columns, sample, fold)
    drawn = tally.cells().sample(tally.grid, sample.classes).draw(n_drawn or 2 * most)
    forecasts = sample.kind.from_simplex(drawn.forecasts)
    return replace(drawn, forecasts=forecasts, unit=sample.unit)


def hash_rows(P: Floats, codes: NDArray[Any]) -> NDArray[np.uint64]:
    """Two numbers that name a set of rows: sums of hashes, so that batches of them add up."""
    row = hash_keys(np.column_stack([P + 0.0, codes]), None).view(np.int64)
    columns = np.column_stack([row]), np.column_stack([np.zeros_like(row), row])
    return np.array([hash_keys(each, None).sum(dtype=np.uint64) for each in columns])


def name_of(numbers: NDArray[np.uint64]) -> str:
    """The two numbers of `hash_rows` as text."""
    return "{:016x}{:016x}".format(*numbers.tolist())
