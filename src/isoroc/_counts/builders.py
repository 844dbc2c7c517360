"""From forecasts and outcomes in memory to cells: batch by batch for counts, or at once."""

from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._counts.cells import Cells, Tally, hash_keys
from isoroc._counts.grid import MOST_EXACT, Grid, Resolution, fold
from isoroc._input import (
    CellSample,
    InputError,
    Sample,
    Scores,
    check_length,
    check_number,
    check_sample,
    check_units,
    slices,
    to_array,
)
from isoroc._kinds import columns_of
from isoroc._simplex import Floats

#: Cells are made no larger than at these resolutions, by the number of classes: members that read
#: logarithms of forecasts would see too much of the difference between a cell and its mean.
LEAST_RESOLUTION = {2: 1024, 3: 32, 4: 32}
#: Classes, grid, number of folds and cells: what counts are made of.
Parts = tuple[NDArray[Any], Grid, int, Cells]


class Builder:
    """Counts batches of arrays, or of tensors on their device: see `Counts.from_arrays`.

    With `numbered`, labels are numbers of columns by default, as in `Counts.from_batches`.
    """

    def __init__(
        self,
        labels: Any,
        scores: Scores,
        resolution: Resolution,
        folds: int,
        *,
        numbered: bool = False,
    ) -> None:
        check_folds(folds)
        self._labels = labels
        self._scores = scores
        self._resolution = resolution
        self._folds = int(folds)
        self._numbered = numbered
        self._classes: NDArray[Any] | None = None
        self._tally: Tally | None = None

    def add(self, P: Any, y: Any, weight: Any = None, *, fold_by: Any = None) -> None:
        """Add forecasts, labels and perhaps weights and row keys."""
        if type(P).__module__.partition(".")[0] == "torch":
            self._add_tensors(P, y, weight, fold_by)
            return
        if self._numbered and self._labels is None:
            shape = np.shape(to_array(P, name="P"))
            self._labels = np.arange(2 if len(shape) < 2 else max(shape[1], 2))
        options: Any = {"scores": self._scores, "clip": True, "advice": "pass"}
        sample = check_sample(P, y, weight, self._labels, **options)
        check_units(sample, self._scores)
        key = None
        if fold_by is not None:
            key = check_key(to_array(fold_by, name="fold_by"))
            check_length(key, len(sample), name="fold_by")
        if sample.weights is not None and not sample.weights.all():
            heavy = np.flatnonzero(sample.weights)
            sample, key = sample.take(heavy), None if key is None else key[heavy]
        columns = probabilities(sample)
        fold = find_folds(columns, self._folds, key)
        self._tally_for(columns.shape[1], sample.classes).add(
            columns, sample.codes, sample.weights, fold
        )

    def _add_tensors(self, P: Any, y: Any, weight: Any, fold_by: Any) -> None:
        from isoroc._counts import tensors  # noqa: PLC0415  # the only users are those of torch

        batch = tensors.check_batch(P, y, weight, fold_by, self._scores)
        n_columns = batch.forecasts.shape[1]
        K = max(n_columns, 2)
        labels = np.arange(K) if self._labels is None else np.asarray(self._labels)
        codes = tensors.encode(batch.labels, labels, K)
        tally = self._tally_for(n_columns, labels)
        for cells in tensors.count(batch, codes, tally.grid, self._folds, K):
            tally.add_cells(cells)

    def _tally_for(self, n_columns: int, classes: NDArray[Any]) -> Tally:
        if self._tally is None:
            grid = Grid.choose(n_columns, self._resolution)
            most_exact = MOST_EXACT if self._resolution == "auto" else None
            self._tally = Tally(grid, len(classes), most_exact=most_exact)
            self._classes = classes
        elif n_columns != self._tally.grid.n_columns:
            problem = f"{n_columns} columns, but {self._tally.grid.n_columns} in the first batch"
            raise InputError("P", None, problem, "all batches must have the same columns")
        return self._tally

    def result(self) -> Parts:
        """What counts are made of."""
        if self._tally is None or self._classes is None:
            raise InputError("batches", None, "there are none", "at least one is needed")
        cells = self._tally.cells()
        return self._classes, self._tally.grid, self._folds, cells


def check_folds(folds: Any) -> None:
    """Check a number of folds."""
    check_number("folds", folds, numbers.Integral, minimum=1)
    if folds > 1000:
        raise InputError("folds", None, f"is {folds}", "expected at most 1000")


def check_key(key: NDArray[Any]) -> Floats:
    """Row keys as doubles."""
    if key.dtype.kind not in "biu":
        fix = "expected whole numbers; hash other keys to integers first"
        raise InputError("fold_by", None, f"has the type {key.dtype}", fix)
    return key.astype(np.float64)


def probabilities(sample: Sample) -> Floats:
    """Forecasts of a sample as columns of probabilities, one for scores."""
    return np.ascontiguousarray(sample.kind.on_simplex(NUMPY, columns_of(sample.forecasts)))


def find_folds(columns: Floats, n_folds: int, key: Floats | None) -> NDArray[np.int16]:
    """Fold of each row by a hash of its forecast, or of its key if there are keys."""
    found = np.empty(len(columns), dtype=np.int16)
    for rows in slices(len(columns)):
        own = None if key is None else key[rows, None]
        found[rows] = fold(NUMPY, np.asfortranarray(columns[rows]), n_folds, own)[:, 0]
    return found


def deal_by_content(
    sample: Sample, n_folds: int, random_state: np.random.RandomState
) -> CellSample:
    """A sample in folds that neither the order of the rows nor that of the columns changes.

    Equal rows become one, so that weight two is the row twice. Rows with the same forecast share a
    fold, unless they would make up much of it: then they are dealt one by one, as rows of the
    least weight. Classes are not spread evenly over the folds by design: that would make it look as
    if chance departures of their frequencies from the forecasts could be learned.
    """
    digits, exponents = np.frexp(sample.kind.probabilities(NUMPY, columns_of(sample.forecasts)))
    rounded = np.ldexp(np.rint(np.ldexp(digits, 24)), exponents)  # logits may differ in the last
    content = np.zeros(len(sample), dtype=np.uint64)
    for column in rounded.T:
        content += hash_keys(column[:, None], None)
    own = rounded[np.arange(len(sample)), sample.codes]
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
