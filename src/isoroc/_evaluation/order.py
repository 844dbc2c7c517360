"""What calibration did to the order of rows: areas, volumes, reversed and tied pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from isoroc._input import Sample
from isoroc._simplex import Codes, Floats, Ints, binary_scores, count_classes
from isoroc.metrics import bootstrap, volume_under_surface

#: Standard errors are computed from at most this many rows, fewer for more classes than three, and
#: scaled to the number of rows;
RESAMPLED_ROWS, LEAST_RESAMPLED = 5000, 1000
#: volumes from at most this many, and their standard errors from fewer rows and fewer resamples.
VOLUME_ROWS, RESAMPLED_VOLUME_ROWS = 2000, 500

#: Values by measure and what they are of: "before", "after" or "change".
Values = dict[tuple[str, str], float]
#: Values for the rows of two samples, given the weights of the rows.
Measure = Callable[[Floats], Values]


def measure_order(
    first: Sample, second: Sample, n_resamples: int, seed: int
) -> tuple[Values, Values, list[str]]:
    """Measures of ranking, their bootstrap standard errors, and notes on rows that were left out.

    Before and after are resampled together, so standard errors of changes are paired. There are an
    eighth of the resamples, but at least 16, for the volume. With none, standard errors are NaN.
    """
    rng, of_areas, of_volumes = (
        np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3)
    )
    both = first, second
    most = max(LEAST_RESAMPLED, 3 * RESAMPLED_ROWS // max(3, first.n_classes))
    resampled = _draw(both, most, rng)
    values, errors = _estimate(_measure, both, resampled, n_resamples, of_areas)
    notes = []
    if n_resamples and len(resampled[0]) < len(first):
        shown = f"{len(resampled[0]):,} of {len(first):,} rows"
        notes.append(f"Intervals of ranking measures are based on {shown}.")
    if first.n_classes == 3:
        few = max(n_resamples // 8, min(n_resamples, 16))
        judged = _draw(both, VOLUME_ROWS, rng)
        resampled = _draw(judged, RESAMPLED_VOLUME_ROWS, rng)
        volumes, errors_of_volumes = _estimate(_volumes, judged, resampled, few, of_volumes)
        values, errors = values | volumes, errors | errors_of_volumes
        if len(judged[0]) < len(first):
            notes.append(f"Volumes are based on {len(judged[0]):,} of {len(first):,} rows.")
    return values, errors, notes


def _draw(
    both: tuple[Sample, Sample], most: int, rng: np.random.Generator
) -> tuple[Sample, Sample]:
    """At most this many rows, the same of both samples."""
    n = len(both[0])
    if n <= most:
        return both
    rows = np.sort(rng.choice(n, most, replace=False))
    return both[0].take(rows), both[1].take(rows)


def _measure(first: Sample, second: Sample) -> Measure:
    """Measures that are quick to compute for other weights: everything is sorted once."""
    rankings = [Ranking(sample.forecasts, first.codes) for sample in (first, second)]
    columns = zip(ranked_columns(first.forecasts), ranked_columns(second.forecasts), strict=True)
    changes = [PairChanges(a, b) for (_, a), (_, b) in columns]
    names = ["auc"] if first.n_classes == 2 else ["auc_one_vs_rest", "auc_one_vs_one"]

    def measured(weights: Floats) -> Values:
        values: Values = {}
        areas = zip(*(ranking.areas(weights) for ranking in rankings), strict=True)
        for name, (earlier, later) in zip(names, areas, strict=False):
            values |= _with_change(name, earlier, later)
        ordered, out_of_order, tied = np.sum([pairs(weights) for pairs in changes], axis=0)
        values["pairs_reversed", "change"] = float(out_of_order / ordered) if ordered else 0.0
        values["pairs_tied", "change"] = float(tied / ordered) if ordered else 0.0
        return values

    return measured


def _volumes(first: Sample, second: Sample) -> Measure:
    """Volume under the ROC surface of three classes, which takes long."""

    def measured(weights: Floats) -> Values:
        if not np.bincount(first.codes, weights, 3).all():
            return _with_change("vus", math.nan, math.nan)
        volumes = [
            volume_under_surface(
                first.codes, sample.forecasts, sample_weight=weights, labels=range(3)
            )
            for sample in (first, second)
        ]
        return _with_change("vus", *map(float, volumes))

    return measured


def _with_change(measure: str, before: float, after: float) -> Values:
    values = {"before": before, "after": after, "change": after - before}
    return {(measure, of): value for of, value in values.items()}


def _estimate(
    measure: Callable[[Sample, Sample], Measure],
    judged: tuple[Sample, Sample],
    resampled: tuple[Sample, Sample],
    n_resamples: int,
    rng: np.random.Generator,
) -> tuple[Values, Values]:
    """Values of some rows, and their standard errors from some of these."""
    values = measure(*judged)(judged[0].row_weights())
    if not n_resamples:
        return values, dict.fromkeys(values, math.nan)
    measured = measure(*resampled)
    places = np.arange(len(resampled[0]))
    one = resampled[0].row_weights()

    def metric(_: Any, __: Any, sample_weight: Floats | None = None) -> list[float]:
        return list(measured(one if sample_weight is None else sample_weight).values())

    draws = bootstrap(
        metric,
        places,
        places,
        sample_weight=resampled[0].weights,
        n_resamples=n_resamples,
        random_state=int(rng.integers(2**31 - 1)),
    ).distribution
    scale = math.sqrt(len(resampled[0]) / len(judged[0]))
    errors = [scale * _deviation(column) for column in draws.T]
    return values, dict(zip(values, errors, strict=True))


def _deviation(draws: Floats) -> float:
    """Standard deviation over the resamples in which the measure is defined."""
    known = draws[~np.isnan(draws)]
    return float(known.std(ddof=1)) if len(known) > 1 else math.nan


def ranked_columns(forecasts: Floats) -> list[tuple[int, Floats]]:
    """Classes and the scores that rank rows by them; two classes have one score."""
    K = count_classes(forecasts)
    if K == 2:
        return [(1, binary_scores(forecasts))]
    return [(k, forecasts[:, k]) for k in range(K)]


class Ranking:
    """Ranks of the rows by the score of each class, and the areas that they give."""

    def __init__(self, forecasts: Floats, codes: Codes) -> None:
        self._codes = codes
        self._n_classes = K = count_classes(forecasts)
        self._groups = []
        for k, scores in ranked_columns(forecasts):
            distinct, rank = np.unique(scores, return_inverse=True)
            self._groups.append((k, len(distinct), rank * K + codes))

    def areas(self, weights: Floats) -> tuple[float, float]:
        """Mean area of one class against the rest, and of one class against another.

        Both are plain means over the classes, or pairs of classes, that have weight. The area of a
        pair of classes is the mean of those by the scores of either (Hand and Till 2001). For two
        classes both are the area under the ROC curve. NaN if only one class has weight.
        """
        K = self._n_classes
        size = np.bincount(self._codes, weights, K)
        wins = np.zeros((K, K))  # of rows of class i over rows of class j, by the score of class i
        for k, n_groups, cell in self._groups:
            group = np.bincount(cell, weights, n_groups * K).reshape(n_groups, K)
            below = np.cumsum(group, axis=0) - group / 2
            wins[k] = group[:, k] @ below
        present = np.flatnonzero(size)
        if len(present) < 2:
            return math.nan, math.nan
        if K == 2:
            area = float(wins[1, 0] / size.prod())
            return area, area
        np.fill_diagonal(wins, 0.0)
        size = size[present]
        wins = wins[np.ix_(present, present)]
        one_vs_rest = wins.sum(axis=1) / (size * (size.sum() - size))
        pairs = wins / np.outer(size, size)
        n_pairs = len(present) * (len(present) - 1)
        return float(one_vs_rest.mean()), float(pairs.sum() / n_pairs)


class PairWeights(NamedTuple):
    """Total weights of pairs of rows; a pair weighs the product of the weights of its rows."""

    ordered: float
    """Pairs with different scores before."""
    reversed: float
    """Pairs with the opposite order after."""
    tied: float
    """Pairs with different scores before and equal ones after."""


class _Level(NamedTuple):
    """Pairs counted by one bit of the ranks, see `PairChanges`."""

    high: Ints
    """Rows whose bit is 1, in order."""
    low: Ints
    """Rows whose bit is 0 and that follow a row of their block whose bit is 1."""
    first: Ints
    """Number of high rows before the block of each low row."""
    last: Ints
    """Number of high rows before each low row."""


class PairChanges:
    """Counts pairs of rows that change their order between two scores, for any weights of the rows.

    The rows are sorted by the score before, and their ranks by the score after are compared bit by
    bit: two ranks are out of order iff, at the highest bit in which they differ, the earlier row
    has a 1 and the later row a 0. So each bit takes one cumulative sum per set of weights, and all
    n (n - 1) / 2 pairs are counted in O(n log n).
    """

    def __init__(self, before: Floats, after: Floats) -> None:
        self._before, self._after = (np.unique(x, return_inverse=True)[1] for x in (before, after))
        both = self._after * (self._before.max() + 1) + self._before
        cells, self._cell = np.unique(both, return_inverse=True)
        self._after_of_cell = cells // (self._before.max() + 1)
        order = np.lexsort((self._after, self._before))  # ties before must not count as reversed
        self._levels = [level for level in _levels(self._after, order) if len(level.low)]

    def __call__(self, weights: Floats) -> PairWeights:
        groups = np.bincount(self._before, weights)
        out_of_order = 0.0
        for high, low, first, last in self._levels:
            above = np.append(0.0, np.cumsum(weights[high]))
            out_of_order += float(weights[low] @ (above[last] - above[first]))
        # Equal sums cancel exactly, so a map without new ties gets exactly 0.
        tied = np.bincount(self._after, weights) ** 2 - np.bincount(
            self._after_of_cell, np.bincount(self._cell, weights) ** 2
        )
        total = float(groups.sum())
        return PairWeights(
            ordered=max(0.0, total**2 - float(groups @ groups)) / 2,
            reversed=out_of_order,
            tied=max(0.0, float(tied.sum())) / 2,
        )


def _levels(rank: Ints, order: Ints) -> list[_Level]:
    """For each bit of the ranks, from the highest: which rows are out of order at this bit."""
    levels = []
    for bit in reversed(range(int(rank.max()).bit_length())):
        ranks = rank[order]  # sorted by their higher bits, and within such a block as at the start
        block, is_high = ranks >> (bit + 1), (ranks >> bit) & 1 == 1
        n_high = np.append(0, np.cumsum(is_high))
        start = n_high[np.searchsorted(block, block)]
        late = np.flatnonzero(~is_high & (n_high[:-1] > start))
        levels.append(_Level(order[is_high], order[late], start[late], n_high[late]))
        order = order[np.argsort(ranks >> bit, kind="stable")]
    return levels
