"""What calibration did to the order of rows: areas, volumes, reversed and tied pairs.

All are functions of the weights of the rows, so their derivatives with respect to the weights give
the sampling variance (infinitesimal jackknife, Efron 1982), without resampling. Volumes have no
intervals.
"""

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from isoroc._core.intervals import (
    Share,
    Statistic,
    design_effect,
    df_of_clusters,
    effective_rows,
    variance_of_sum,
)
from isoroc._core.losses import log_losses
from isoroc._core.rows import weigh_reversed
from isoroc._core.simplex import binary_scores, count_classes
from isoroc._core.types import Floats, Ints
from isoroc._evaluation.before_after import Pair
from isoroc._input import Sample, rows_by_group
from isoroc._support.threads import in_threads
from isoroc.metrics import volume_under_surface
from isoroc.metrics._estimation.grouping import group_equal, weight_below

#: Values, shape (m,), and their derivatives by the logarithms of the weights of the rows, (m, n).
Functionals = tuple[Floats, Floats]


def measure_order(before: Sample, after: Sample) -> dict[tuple[str, str], Statistic | Share]:
    """Areas under ROC curves before and after, and shares of reversed and tied pairs."""
    names = ["auc"] if before.n_classes == 2 else ["auc_one_vs_rest", "auc_one_vs_one"]
    old, new = in_threads(rank_rows, (before.forecasts, after.forecasts))
    shares, slopes = changed_pairs(old.values(), new.values(), before.row_weights())
    variances = variance_of_sum(slopes, before.clusters)
    estimates: dict[tuple[str, str], Statistic | Share] = {}
    for i, name in enumerate(("pairs_reversed", "pairs_tied")):
        estimates[name, "change"] = Statistic(float(shares[i]), float(variances[i]))
    disorder = float(shares[0] + shares[1] / 2)
    first, second = in_threads(partial(areas, before), (old, new))
    sizes = class_sizes(before, first[1][0])
    for name, a, da, b, db in zip(names, *first, *second, strict=False):
        estimates[name, "before"] = _area(float(a), da, before, sizes)
        estimates[name, "after"] = _area(float(b), db, before, sizes)
        estimates[name, "change"] = _change(float(b - a), db - da, before, sizes, disorder)
    return estimates


def measure_labels(pair: Pair) -> dict[tuple[str, str], Statistic]:
    """Log losses and areas under ROC curves, means over the labels of the segment "label"."""
    sample = pair.before
    terms = dict[tuple[str, str], tuple[float, Floats]]()
    label = sample.segments.columns["label"].values  # type: ignore[union-attr]
    total = np.bincount(label, sample.row_weights())
    share = sample.row_weights() / total[label]
    n = np.count_nonzero(total)
    for stage, forecasts in pair.samples.items():
        each = []
        slope = np.zeros(len(label))
        for _, rows in rows_by_group(label):
            part = forecasts.take(rows)
            (area, _), (slope[rows], _) = areas(part, rank_rows(part.forecasts))
            each += [] if math.isnan(area) else [area]
        mean = float(np.mean(each)) if each else math.nan
        terms["macro_auc", stage] = mean, slope / max(len(each), 1)
        if stage in pair.series:
            losses = log_losses(forecasts.forecasts, forecasts.codes)
            means = np.bincount(label, share * losses)
            terms["macro_log_loss", stage] = means.sum() / n, share * (losses - means[label]) / n
    for name, stage in list(terms):
        if stage == "after" and (name, "before") in terms:
            a, da = terms[name, "before"]
            b, db = terms[name, "after"]
            terms[name, "change"] = b - a, db - da
    return {
        key: Statistic(value, float(variance_of_sum(slopes, sample.clusters)))
        for key, (value, slopes) in terms.items()
    }


def class_sizes(sample: Sample, slopes: Floats) -> Floats:
    """Effective number of rows of each class that has weight.

    Clusters make it smaller by the factor by which they increase the variance of an area. If that
    is 0, because all rows are in order, each cluster counts as one row.
    """
    total = sample.class_weights()
    squares = np.bincount(sample.codes, sample.row_weights() ** 2, sample.n_classes)
    in_clusters = design_effect(slopes, sample.clusters)
    effect = in_clusters if slopes.any() else len(sample) / sample.n_units
    size = effective_rows(total[total > 0], squares[total > 0]) / effect
    return np.asarray(np.maximum(size, 1.0))


def _area(value: float, slopes: Floats, sample: Sample, sizes: Floats) -> Share:
    """Area under a ROC curve as a share of pairs of rows.

    With few rows of a class, or an area near 1, the variance of their scores is poorly known. Then
    the size follows from scores with exponential distributions (Hanley and McNeil 1982), which vary
    more in the smaller class.
    """
    if len(sizes) < 2:
        return Share(math.nan, math.nan)
    less, more = np.sort([sizes, sizes.sum() - sizes], axis=0)  # a class against the rest
    low, high = sorted([(1 - value) / (2 - value), value / (1 + value)])
    least = np.mean((1 + (more - 1) * high + (less - 1) * low) / (less * more))
    variance = _variance(slopes, sample, sizes)
    informative = 4 * value * (1 - value)
    share = Share.of(value, variance, 1 / least, informative * _events(sizes), prior=2.0)
    if not slopes.any():  # all rows are in order: nothing was estimated between clusters
        return share
    return share._replace(df=df_of_clusters(sample.clusters, sample.row_weights()))


def _events(sizes: Floats) -> float:
    """Degrees of freedom of the variance of an area: about the rows of the rarest class, less 1."""
    return max(len(sizes) / 2 / float((1 / sizes).sum()) - 1, 0.0)


def _variance(slopes: Floats, sample: Sample, sizes: Floats) -> float:
    """Variance of an area, with n / (n - 1) for each class."""
    factor = np.ones(sample.n_classes)
    factor[np.unique(sample.codes)] = np.sqrt(sizes / np.maximum(sizes - 1, 1.0))
    return float(variance_of_sum(slopes * factor[sample.codes], sample.clusters))


def _change(
    value: float, slopes: Floats, sample: Sample, sizes: Floats, disorder: float
) -> Statistic:
    """Change of an area, which is certain to be 0 if no pair of rows changed its order."""
    if len(sizes) < 2:
        return Statistic(math.nan, math.nan)
    events = _events(sizes)
    # With few rows of a class, few of them changed their place, and the variance is poorly known. A
    # guess from all pairs stands beside it, with four degrees of freedom: for two classes, a row's
    # share of higher rows of the other class changes by a mean square of disorder**2 / 2. With more
    # classes a row counts in few of the areas. Chosen in simulations (docs/evidence.md).
    expected = 2 * (disorder / len(sizes)) ** 2 * float((1 / sizes).sum())
    variance = (events * _variance(slopes, sample, sizes) + 4 * expected) / (events + 4)
    df = df_of_clusters(sample.clusters, sample.row_weights())
    return Statistic(value, variance, df=min(max(events, 1.0), df))


def rank_rows(forecasts: Floats) -> dict[int, Ints]:
    """Ranks of the rows by the score of each class. Two classes have one score."""
    if count_classes(forecasts) == 2:
        return {1: group_equal(binary_scores(forecasts))}
    return {k: group_equal(column) for k, column in enumerate(forecasts.T)}


def areas(sample: Sample, ranks: dict[int, Ints]) -> Functionals:
    """Mean area of one class against the rest, and of one class against another.

    Plain means over the classes, or pairs of classes, that have weight. NaN if only one has. A pair
    of classes has the mean of the areas by the scores of either (Hand and Till 2001).
    """
    codes = sample.codes
    weights = sample.row_weights()
    K = sample.n_classes
    size = np.bincount(codes, weights, K)
    shares = weights / size[codes]  # of each row in its class
    present = np.count_nonzero(size)
    sums = np.zeros(2)
    slopes = np.zeros((2, len(codes)))
    if present < 2:
        return np.full(2, math.nan), slopes
    for k, rank in ranks.items():
        if not size[k]:
            continue
        in_class = codes == k
        above = 1 - weight_below(rank, np.where(in_class, shares, 0.0))  # of class k, for each row
        rest, each = (np.where(in_class, 0.0, w) for w in (weights, shares))
        for i, (other, total) in enumerate(((rest, size.sum() - size[k]), (each, 1.0))):
            lower = weight_below(rank, other)
            area = float(weights[in_class] @ lower[in_class]) / (size[k] * total)
            of_class = np.full(K, area) if i == 0 else np.bincount(codes, each * above, K)
            sums[i] += area
            lead = lower / total - area
            excess = above - of_class[codes]
            slopes[i] += np.where(in_class, shares * lead, other / total * excess)
    n_terms = np.array([1, 1] if K == 2 else [present, present * (present - 1)])
    return sums / n_terms, slopes / n_terms[:, None]


def changed_pairs(before: Iterable[Ints], after: Iterable[Ints], weights: Floats) -> Functionals:
    """Shares of reversed and tied pairs among pairs with different ranks before, over rankings."""
    ranks = zip(before, after, strict=True)
    sums: Any = weights * sum(in_threads(lambda both: pairs_of_rows(*both, weights), ranks))
    ordered = sums[0]
    changed = sums[1:]
    total = max(float(ordered.sum()), 1e-300)
    shares = changed.sum(axis=1) / total
    # A pair weighs the product of the weights of its rows, so each of them changes its weight.
    return shares, 2 * (changed - np.outer(shares, ordered)) / total


def pairs_of_rows(before: Ints, after: Ints, weights: Floats) -> Floats:
    """Weights of three sets of rows that are compared with each row, shape (3, n).

    The first set has the rows whose ranks before differ. The others are subsets of it: the rows in
    the opposite order after, and the rows with equal ranks after.
    """
    both = before * (after.max() + 1) + after  # ties before must not count as reversed
    order = np.argsort(both)
    sums = np.empty((3, len(order)))
    sums[1, order] = weigh_reversed(after[order], weights[order])
    cell = np.empty_like(order)
    cell[order] = np.cumsum(np.diff(both[order], prepend=both[order[:1]]) > 0)
    in_before, in_after, in_cell = (np.bincount(g, weights)[g] for g in (before, after, cell))
    # Equal sums cancel exactly, so a map without new ties gets exactly 0.
    sums[0] = weights.sum() - in_before
    sums[2] = in_after - in_cell
    return sums


def measure_volumes(before: Sample, after: Sample) -> dict[tuple[str, str], Statistic]:
    """Volumes under the ROC surface, NaN if a class is absent, without intervals."""
    volumes = [math.nan, math.nan]
    if before.class_weights().all():
        volumes = in_threads(volume_of, (before, after))
    named = zip(("before", "after", "change"), [*volumes, volumes[1] - volumes[0]], strict=True)
    return {("vus", stage): Statistic(value, math.nan) for stage, value in named}


class Effort(NamedTuple):
    """How much a volume of a comparison may take. It is exact for three classes."""

    rows: int
    directions: int | None = None


#: Effort by the number of classes: some tenths of a second. With more classes it would take longer.
EFFORTS = {3: Effort(2000), 4: Effort(1000, 300), 5: Effort(1000, 200), 6: Effort(1000, 150)}


def effort_for(n_classes: int) -> Effort | None:
    """Rows and directions of a volume, or None if this number of classes has no volume."""
    return EFFORTS.get(n_classes)


def volume_of(sample: Sample) -> float:
    """Volume under the ROC surface, with the directions that comparisons use."""
    effort = effort_for(sample.n_classes)
    directions = None if effort is None else effort.directions
    return float(sample.measure(volume_under_surface, resolution=directions))
