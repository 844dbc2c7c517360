"""Bins of rows by their forecasts: equal forecasts, cells of equal size, cells of equal weight.

The functions ``group_...`` take a forecast array and return the bin of each row, numbered from 0. A
bin may be empty. `fix_class_order` and `order_rows` sort classes and rows independently of how they
were passed, so metrics that use random numbers or break ties depend only on the set of rows.
"""

import heapq
from dataclasses import replace
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.rows import locate
from isoroc._core.types import Floats, Ints
from isoroc._counts import hash_keys
from isoroc._input import Sample


def group_rows(forecasts: Floats, weights: Floats | None, bins: int | str, n_bins: int) -> Ints:
    """Bins of a kind: a number of bins of equal width, "quantile" with `n_bins`, or "exact"."""
    if bins == "exact":
        return group_equal(forecasts)
    if bins == "quantile":
        return group_quantile(forecasts, weights, n_bins)
    return group_uniform(forecasts, int(bins))


def group_equal(forecasts: Floats) -> Ints:
    """One bin for each distinct forecast."""
    if forecasts.ndim == 1:
        return np.asarray(np.unique(forecasts, return_inverse=True)[1])
    return _find_equal(forecasts)[1]


def number_sorted(values: Floats, order: Ints) -> Ints:
    """Numbers of the distinct values of rows, ascending, where `order` sorts the rows."""
    ordered = values[order]
    number = np.empty(len(order), dtype=np.intp)
    number[order] = np.cumsum(np.diff(ordered, prepend=ordered[:1]) > 0)
    return number


def group_numbers(numbers: Ints) -> tuple[Ints, Ints]:
    """First row of each distinct number, ascending, and the group of each row.

    The numbers are whole and not negative. They are few or small, so counting is faster than a
    sort.
    """
    first = np.full(int(numbers.max()) + 1, -1)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # the last one assigned stays
    occurs = first >= 0
    return first[occurs], np.cumsum(occurs)[numbers] - 1


def distinct_rows(values: Floats) -> Ints:
    """Index of the first of each group of equal rows of a matrix."""
    return _find_equal(values)[0]


def _find_equal(values: Floats) -> tuple[Ints, Ints]:
    """First row of each group of equal rows, and the group of each row."""
    key = hash_keys(values + 0.0, None)  # adding 0.0 turns -0.0 into 0.0
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    # Different rows almost never share a 64-bit key. If they do, sort whole rows.
    if all(np.array_equal(column[first][group], column) for column in values.T):
        return first, group
    _, first, group = np.unique(values, axis=0, return_index=True, return_inverse=True)
    return first, np.asarray(group).ravel()


def group_frequent(forecasts: Floats, fewest: int = 20) -> Ints:
    """One bin for each distinct forecast of enough rows: the error of few rows would be chance.

    Enough are `fewest` rows, or half as many as forecasts have on average. A rarer score joins the
    next lower one, and rarer forecasts of several classes share a bin.
    """
    group = group_equal(forecasts)
    sizes = np.bincount(group)
    frequent = sizes >= min(fewest, sizes.mean() / 2)
    if forecasts.ndim == 1:  # groups are in ascending order
        return np.asarray(np.maximum(np.cumsum(frequent) - 1, 0)[group])
    return np.where(frequent[group], group, len(frequent))


def is_discrete(forecasts: Floats) -> bool:
    """Whether each of the m distinct forecasts of K classes has m (K - 1) rows on average."""
    free = 1 if forecasts.ndim == 1 else forecasts.shape[1] - 1
    allowed = max(isqrt(len(forecasts) // free), 1)
    # The first rows settle most cases: they have no more distinct values than all rows.
    few = forecasts[: 2 * allowed]
    if group_equal(few).max() >= allowed:
        return False
    return bool(group_equal(forecasts).max() < allowed)


def group_uniform(forecasts: Floats, n_bins: int) -> Ints:
    """Cells of width 1 / n_bins: bin b of scores is (b / n_bins, (b + 1) / n_bins], 0 in the first.

    For three classes or more, each coordinate of a cell lies in one such interval. For three
    classes these are the n_bins**2 small triangles into which parallels to the sides divide the
    simplex.
    """
    edges = np.linspace(0, 1, n_bins + 1)[1:-1]
    if forecasts.ndim == 1:
        return locate(edges, forecasts)
    cells = np.column_stack([locate(edges, np.ascontiguousarray(column)) for column in forecasts.T])
    return group_equal(cells.astype(np.float64))


def group_quantile(forecasts: Floats, weights: Floats | None, n_bins: int) -> Ints:
    """About n_bins bins of equal weight. Equal forecasts share a bin.

    Only ratios of weights matter, and integer weights are the same as repeated rows.

    For three classes or more, the heaviest bin is halved at the median of the coordinate with the
    largest variance in it, until there are n_bins (the data-dependent bins of Vaicenavicius et al.
    2019, with medians in place of means).
    """
    if forecasts.ndim == 1:
        return group_ranks(group_equal(forecasts), weights, n_bins)
    group = np.zeros(len(forecasts), dtype=np.intp)
    shares = np.full(len(group), 1 / len(group)) if weights is None else weights / weights.sum()
    queue = [(-1.0, 0, np.arange(len(group)))]
    n_found = 1
    while queue and n_found < n_bins:
        _, number, rows = heapq.heappop(queue)
        upper = _upper_half(forecasts[rows], None if weights is None else weights[rows])
        if upper is None:
            continue
        group[rows[upper]] = n_found
        for bin_, part in ((number, rows[~upper]), (n_found, rows[upper])):
            # Rounding must not decide between bins of equal weight.
            heapq.heappush(queue, (-shares[part].sum().round(12), bin_, part))
        n_found += 1
    return group


def count_halvings(n_rows: int) -> int:
    """Number of halvings after which bins have about 32 rows, at most 10."""
    return min(10, max(0, (n_rows // 32).bit_length() - 1))


def halve_repeatedly(forecasts: Floats, n_levels: int) -> Ints:
    """Bins of n_levels nested halvings: after l of them a row is in bin ``b >> (n_levels - l)``.

    Each bin is halved at the median of the coordinate with the largest variance in it. A bin of
    equal forecasts is not divided.
    """
    if forecasts.ndim == 1:
        return _halve_scores(forecasts, n_levels)
    parts = [(np.arange(len(forecasts)), forecasts)]
    for _ in range(n_levels):
        halves = []
        for rows, P in parts:
            upper = _upper_half(P, None) if len(rows) else None
            lower = np.ones(len(rows), dtype=bool) if upper is None else ~upper
            halves += [(rows[lower], P[lower]), (rows[~lower], P[~lower])]
        parts = halves
    group = np.empty(len(forecasts), dtype=np.intp)
    for number, (rows, _) in enumerate(parts):
        group[rows] = number
    return group


def _halve_scores(scores: Floats, n_levels: int) -> Ints:
    """`halve_repeatedly` for scores: one sort gives the medians of all bins."""
    ordered = np.sort(scores)
    # A bin holds the sorted scores from `first` to before `last`, and equal scores share a bin.
    first = np.array([0])
    last = np.array([len(scores)])
    for _ in range(n_levels):
        median = ordered[np.maximum((first + last - 1) // 2, 0)]
        start, end = (np.searchsorted(ordered, median, side=side) for side in ("left", "right"))
        cut = np.where(start + end >= first + last, start, end)
        cut = np.where(cut > first, cut, last)  # all scores are equal: the bin is not divided
        first, last = (np.column_stack(pair).ravel() for pair in ((first, cut), (cut, last)))
    ends = np.where(last > 0, ordered[last - 1], -np.inf)
    return locate(ends[:-1], scores)


def sum_classes(
    group: Ints, codes: NDArray[np.integer[Any]], n_classes: int, weights: Floats | None
) -> Floats:
    """Weight of each class in each bin, shape (B, K)."""
    n_bins = int(group.max()) + 1
    sums = np.bincount(group * n_classes + codes, weights, n_bins * n_classes)
    return sums.reshape(n_bins, n_classes).astype(np.float64)


def sum_rows(group: Ints, values: Floats, weights: Floats | None, n_bins: int = 0) -> Floats:
    """Weighted sum in each bin of values of the rows: (B,) for (n,), (B, C) for (n, C)."""
    if values.ndim == 2:
        return np.column_stack([sum_rows(group, column, weights, n_bins) for column in values.T])
    scaled = values if weights is None else values * weights
    return np.bincount(group, scaled, n_bins).astype(np.float64)


def group_means(group: Ints, weights: Floats | None, *columns: Any) -> tuple[Floats, ...]:
    """Weight of each bin that has rows, and the means in it of columns or matrices."""
    occupied = np.flatnonzero(np.bincount(group))
    weight = np.bincount(group, weights)[occupied].astype(np.float64)
    sums = (sum_rows(group, values, weights)[occupied] for values in columns)
    return weight, *((total.T / weight).T for total in sums)


def weight_below(rank: Ints, weights: Floats | None) -> Floats:
    """Weight of the rows of lower rank than each row, plus half of its own rank."""
    group = np.bincount(rank, weights)
    return np.asarray((np.cumsum(group) - group / 2)[rank])


def group_ranks(rank: Ints, weights: Floats | None, n_bins: int) -> Ints:
    """Bins by the middle of the share of the weight that each rank takes up."""
    total = len(rank) if weights is None else weights.sum()
    middle = weight_below(rank, weights) / total
    # Rounding must not decide where the middle lies between two bins.
    return np.floor(n_bins * middle + 1e-9).clip(max=n_bins - 1).astype(np.intp)


def _upper_half(P: Floats, weights: Floats | None) -> NDArray[np.bool_] | None:
    """Rows above the median of the coordinate of largest variance. None if all rows are equal."""
    w = np.ones(len(P)) if weights is None else weights
    variance = w @ (P - w @ P / w.sum()) ** 2 / w.sum()
    # Rounding must not decide between coordinates of equal variance.
    for k in np.argsort(-variance.round(12), kind="stable"):
        column = np.ascontiguousarray(P[:, k])
        if weights is None:
            median = np.partition(column, (len(column) - 1) // 2)[(len(column) - 1) // 2]
            upper = column > median
            below = np.count_nonzero(column < median)
            if below >= np.count_nonzero(upper):  # the median is closer to the upper half
                upper = column >= median
        else:
            upper = group_ranks(group_equal(column), weights, 2) > 0
        if not upper.all():
            return np.asarray(upper)
    return None


def fix_class_order(sample: Sample) -> Sample:
    """The sample with its columns sorted by their totals, the largest first."""
    order = np.argsort(-(sample.row_weights() @ sample.forecasts), kind="stable")
    if (np.diff(order) > 0).all():
        return sample
    new_code = np.argsort(order).astype(sample.codes.dtype)
    return replace(
        sample,
        forecasts=np.ascontiguousarray(sample.forecasts[:, order]),
        codes=new_code[sample.codes],
        classes=None if sample.classes is None else sample.classes[order],
    )


def order_rows(sample: Sample) -> Ints:
    """Rows sorted by their forecasts. Only those equal up to a permutation of classes can tie."""
    P, codes, weights = sample.arrays
    largest = P if P.ndim == 1 else P.max(axis=1)
    order = np.argsort(largest)
    if (np.diff(largest[order]) > 0).all():
        return order
    if P.ndim == 1:
        keys: list[Floats] = [codes.astype(np.float64), P]
    else:
        keys = [P[np.arange(len(P)), codes], *np.sort(P, axis=1).T]
    return np.lexsort(keys if weights is None else [weights, *keys])
