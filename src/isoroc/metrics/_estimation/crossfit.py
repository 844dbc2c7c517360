"""Cross-fitted estimates of E[Y | forecast]: for each row, from the labels of other rows.

Forecasts are tempered, then tilted in the bins of an isotonic recursive partition so that their
means follow the labels. That follows the forecasts where a larger one means a larger probability.
Where it does not, because forecasts are inverted, belong to other classes or carry no information,
a monotone partition has one bin and finds nothing. So what is left of the residuals is estimated
without any condition, in stages: regressions of residuals on forecasts. Each stage takes the
residuals that earlier stages leave and returns its estimate for every row. It returns 0 unless its
signal exceeds the noise, so stages that find nothing change nothing.

What is learned for a row does not depend on its own label (cross-fitting: with five folds, the rows
of a fold learn from the other four). So whatever is learned, the mean of its product with the
residual of the row is 0 if forecasts are calibrated. "How it works" derives estimates of
calibration errors from this, and says why a plain fit to all rows would not do.

All stages decide between signal and noise in one way, `shrink_factor`. The estimate of a stage has
a sum of squares, its energy. If residuals were pure noise, the energy would have a known
expectation, because noise is independent between rows: the sum of squared contributions of single
rows. An energy well above it is shrunk by the factor of James and Stein, 1 - noise / energy. Any
other becomes 0.

Rows with the same forecast and label are one unit with their total weight. The noise in it follows
from the sum of the squared weights. Units are learned from with other weights for each fold held
out, several folds at a time. Arrays have shape (K, ..., n): classes first, then folds, units last.
"""

from collections.abc import Sized
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from isoroc._core import smooth
from isoroc._core.growth import hand_down
from isoroc._core.losses import EPSILON, likeliest_power
from isoroc._core.simplex import as_matrix
from isoroc._core.tree import BinTree
from isoroc._core.types import Codes, Floats, Ints
from isoroc._growth import GrowthOptions, grow_tree
from isoroc._input import InputError, Sample, deal_folds
from isoroc._maps.top import TopReduction
from isoroc.metrics._estimation.grouping import (
    count_halvings,
    group_equal,
    group_numbers,
    group_ranks,
    halve_repeatedly,
    number_sorted,
    order_rows,
    sum_rows,
)

#: Most classes for which partitions are of whole forecasts.
FULL = 4
#: With more classes, partitions are of this many of the largest probabilities and the rest.
N_LARGEST = 2
#: Linear maps and means in cells use this many of the most frequent classes.
MOST_FREQUENT = 64
#: Weight of rows that moves the residual of a bin half way from the bin it was split from.
SHRINKAGE = 100.0
#: Directions of a smaller mean square, relative to the largest one or to 1, are left out.
NEGLIGIBLE = 1e-9


class _Units(NamedTuple):
    """Rows that are learned from as one: those with the same forecast and label."""

    sample: Sample  # one row of each unit, with the sum of the weights
    P: Floats  # (K, n): forecasts
    value: Ints  # number of the distinct forecast, or of the cell of scores
    first: Ints  # one of the rows of each unit


class _FoldedRows(NamedTuple):
    """Rows in folds."""

    weights: Floats  # rounded to multiples of a power of 2
    squares: Floats  # squared weights, summed over the rows that a row stands for
    fold: Ints
    unit: Ints
    scores: Floats | None  # of each row, within (0, 1), if the scores of a unit differ


class CrossFit:
    """What is learned about the rows of a sample, each from other rows.

    Folds are drawn with a fixed seed and do not depend on the order of rows. Rows with the same
    forecast are dealt to several folds, and rows of one cluster to the same. Only ratios of weights
    matter: rows count as in `Sample.effective`. Nothing is learned before it is needed. Rows must
    have positive weight.

    Parameters
    ----------
    sample : Sample
    rows_in_cell : int
        Rows per cell of distinct scores. There are at most 512 cells.
    most_values : int
        Folds are learned together as long as their arrays have at most this many values.
    """

    def __init__(self, sample: Sample, rows_in_cell: int = 8, most_values: int = 2**16) -> None:
        self.sample = sample
        self._rows_in_cell = rows_in_cell
        self._most_values = most_values
        n = len(sample)
        self._n_folds = min(5 if n <= 100_000 else 2, n)  # half of many rows are plenty
        self._n_levels = count_halvings(n - n // self._n_folds)
        self._values: Floats | None = None

    @property
    def values(self) -> Floats:
        """E[Y | forecast] for each row, shaped as the forecasts."""
        # A `cached_property` of Python 3.11 has one lock for all instances, so threads would wait.
        if self._values is None:
            self._values = self._learn_about_rows()
        return self._values

    def _learn_about_rows(self) -> Floats:
        """The `values`."""
        units, rows = self._prepared
        learned = np.empty((units.P.shape[0], len(rows.fold)))
        # Several folds at a time save calls, as long as their arrays are small.
        n_together = max(1, self._most_values // units.P.size)
        others = [self._sum_others(w) for w in rows[:2]]
        for start in range(0, self._n_folds, n_together):
            stop = start + n_together
            g = self._learn(*(w[start:stop] for w in others))
            held = np.flatnonzero((rows.fold >= start) & (rows.fold < stop))
            learned[:, held] = g[:, rows.fold[held] - start, rows.unit[held]]
        if self.sample.forecasts.ndim == 2:
            return np.ascontiguousarray(learned.T)
        g = learned[1]
        p = rows.scores
        if p is None:
            return np.asarray(g)
        mean = units.P[1, rows.unit]
        ratio = p / mean, (1 - p) / (1 - mean)  # odds in a cell change by the same factor
        return np.asarray(g * ratio[0] / (g * ratio[0] + (1 - g) * ratio[1]))

    @cached_property
    def _prepared(self) -> tuple[_Units, _FoldedRows]:
        """The rows in folds. Those with the same forecast and label are one unit.

        So are neighbours of many scores: they differ by less than can be learned about them.
        """
        sample = self.sample.effective()
        n = len(self.sample)
        if sample.n_units < 2:
            problem = f"one {'row' if sample.clusters is None else 'cluster'} only"
            raise InputError("y_prob", None, problem, "holding rows out takes two or more")
        weights = sample.row_weights()
        if sample.weights is not None:
            # Sums of multiples of a power of 2 are exact, whatever the order of rows.
            weights = np.maximum(np.rint(weights * 2.0**30), 1.0) / 2.0**30
            sample = replace(sample, weights=weights)
        squares = weights**2 if sample.parts_of is None else sample.squared_weights()
        fold = np.empty(n, dtype=np.intp)
        order = order_rows(sample)
        clusters = None if sample.clusters is None else sample.clusters[order]
        fold[order] = deal_folds(n, self._n_folds, np.random.default_rng(0), clusters)
        single = sample.forecasts.ndim == 1
        value = number_sorted(sample.forecasts, order) if single else group_equal(sample.forecasts)
        scores = None
        first = np.arange(n)
        unit = first
        n_cells = min(max(n // self._rows_in_cell, 32), 512)
        if single and value.max() >= 2 * n_cells:
            scores = np.clip(sample.forecasts, EPSILON, 1 - EPSILON)
            # Cells of equal weight, divided where odds differ: probabilities near 0 or 1.
            odds = np.floor(2 * np.log(scores / (1 - scores)))
            cell = group_ranks(value, None, n_cells) + odds
            value = number_sorted(cell, order)
            means = np.bincount(value[order], scores[order]) / np.bincount(value)
            sample = replace(sample, forecasts=means[value])
        if scores is not None or 2 * value.max() <= n:  # otherwise there are hardly any ties
            first, unit = group_numbers(value * sample.n_classes + sample.codes)
            sample = replace(sample.take(first), weights=sum_rows(unit, weights, None))
        P = np.ascontiguousarray(as_matrix(sample.forecasts).T)
        return _Units(sample, P, value[first], first), _FoldedRows(
            weights, squares, fold, unit, scores
        )

    def _sum_others(self, weights: Floats) -> Floats:
        """Sums over the rows of each unit outside each fold, shape (F, n)."""
        units, (_, _, fold, unit, _) = self._prepared
        shape = self._n_folds, len(units.first)
        inside = np.bincount(fold * shape[1] + unit, weights, shape[0] * shape[1]).reshape(shape)
        return np.asarray(inside.sum(axis=0) - inside)

    @cached_property
    def _reduced(self) -> Sample:
        """The sample of the largest probabilities and the rest, or the sample itself."""
        sample = self._prepared[0].sample
        if sample.n_classes <= FULL:
            return sample
        return TopReduction(N_LARGEST, 0.0).reduce_sample(sample)

    @cached_property
    def _cells(self) -> tuple[Ints, int]:
        """The finest cell of each unit, and the number of levels."""
        # Cells may depend on the forecasts of all rows, as they do not depend on labels.
        units, rows = self._prepared
        n_levels = self._n_levels
        m = int(units.value.max())
        if m < 2**n_levels:  # each distinct forecast has a cell
            return units.value, m.bit_length()
        if self.sample.n_classes > MOST_FREQUENT:
            return halve_repeatedly(self._reduced.forecasts, n_levels), n_levels
        # As forecasts of the units: units of one value share a cell, whatever their labels.
        forecasts = np.take(units.sample.forecasts, rows.unit, axis=0)
        return halve_repeatedly(forecasts, n_levels)[units.first], n_levels

    def _learn(self, weights: Floats, squares: Floats) -> Floats:
        """E[Y | forecast] of every unit, shape (K, F, n), for weights of the units in F folds."""
        P = self._prepared[0].P
        codes = self._prepared[0].sample.codes
        K = len(P)
        n_rows = weights.sum(axis=1)
        observed = _sum_in(codes, weights, K).T
        values = P
        for _ in range(3):  # power and shares of classes are fitted in turn
            values = raise_to_power(values, codes, weights, squares)
            shares = (observed - _weigh(values, weights)) / (n_rows + SHRINKAGE)
            values = tilt(values, None, shares[..., None], weights)
        values = self._tilt_in_bins(values, weights, squares)
        # Smaller probabilities, one row in total over the classes, cannot be learned. No factor
        # raises a probability of 0: it becomes the share of such outcomes.
        zero = P <= EPSILON
        least = 1 / (n_rows * K)
        seen = weights @ zero[codes, np.arange(len(codes))]
        share = seen / np.maximum(weights @ zero.sum(axis=0), 1.0)
        floors = (floor[:, None] for floor in (np.maximum(share, least), least))
        values = _normalise(np.maximum(values, np.where(zero[:, None], *floors)))
        added = self._fit_rest(residuals_by_class(values, codes), weights, squares)
        # Corrections are not precise enough to make values smaller or larger than this. The
        # standard error of a share in n rows is up to half as large.
        margin = n_rows[:, None] ** -0.5
        limits = np.minimum(values, margin), np.maximum(values, 1 - margin)
        return _normalise(np.clip(values + added, *limits))

    def _tilt_in_bins(self, P: Floats, weights: Floats, squares: Floats) -> Floats:
        """Forecasts tilted so that their means in the bins of IRP follow the labels."""
        sample = self._prepared[0].sample
        reduced = self._reduced
        K = reduced.n_classes
        options = GrowthOptions(np.full(K, 1 / K))
        trees = []
        for w in weights:
            rows = np.flatnonzero(w)
            weight = None if sample.weights is None else w[rows]
            # The tree that `IRPCalibrator` would grow on these rows.
            training = Sample(reduced.forecasts[rows], reduced.codes[rows], weight)
            tree = grow_tree(training, options)
            trees.append((tree, tree.bin_of(reduced.forecasts)))
        if reduced is sample:
            return tilt_in_bins(P, sample.codes, trees, weights, squares)
        for fold, (grown, w, s) in enumerate(zip(trees, weights, squares, strict=True)):
            by_row = smooth.by_row(np.ascontiguousarray(P[:, fold]))
            tempered = replace(sample, forecasts=by_row, weights=w)
            reduction = TopReduction.fit(N_LARGEST, tempered.take(w > 0))
            ranked = reduction.reduce_sample(tempered)
            tilted = tilt_in_bins(ranked.forecasts.T, ranked.codes, [grown], w, s)
            P[:, fold] = reduction.expand(tilted.T, by_row).T
        return P

    def _fit_rest(self, left: Floats, weights: Floats, squares: Floats) -> Floats:
        """What linear maps and cells find in the residuals left, which change in place."""
        K = left.shape[0]
        P = self._prepared[0].P
        # The classes are sorted by their totals. Of two, the second is the first with other signs,
        # and a linear map of the first is a multiple.
        frequent = slice(1 if K == 2 else MOST_FREQUENT)
        added = np.zeros_like(left)
        left = left[frequent]
        for fit in (fit_multiple, fit_linear) if K > 2 else (fit_multiple,):
            of_forecasts = fit(P[frequent], left, weights, squares)
            left -= of_forecasts
            added[frequent] += of_forecasts
        added[frequent] += fit_cells(*self._cells, left, weights, squares)
        if K == 2:
            added[1] = -added[0]
        return added


def shrink_factor(energy: Floats, noise: Floats, n_terms: Floats | Ints | int) -> Floats:
    """Factor of James and Stein, or 0 unless the energy clearly exceeds the noise.

    It must do so by two standard deviations of the sum of squares of `n_terms` terms: m squares of
    normal variables with total expectation N have the standard deviation ``N sqrt(2 / m)``.
    """
    clear = energy > noise * (1 + 2 * (2 / np.maximum(n_terms, 1)) ** 0.5)
    return np.where(clear, 1 - noise / np.where(clear, energy, 1.0), 0.0)


def raise_to_power(P: Floats, codes: Codes, weights: Floats, squares: Floats) -> Floats:
    """Forecasts ``P**t``, normalised, with the most likely t in each fold, shrunk towards 1.

    The shrinkage depends on the evidence against t = 1, less its noise. P has shape (K, n) if the
    forecasts of all folds are the same.
    """
    K = len(P)
    n = len(codes)
    logs = smooth.logs_of(np.maximum(P.reshape(K, -1), EPSILON)).reshape(K, -1, n)
    z = logs - logs[codes, :, np.arange(n)].T
    slopes = _inner_products(P.reshape(z.shape), z)
    values = np.empty((K, len(weights), n))
    for fold, (w, s) in enumerate(zip(weights, squares, strict=True)):
        at = min(fold, len(slopes) - 1)
        slope = float(w @ slopes[at])
        evidence = max(1 - float(s @ slopes[at] ** 2) / slope**2, 0.0) if slope else 0.0
        values[:, fold] = P.reshape(z.shape)[:, at]
        if evidence:
            t = likeliest_power(np.ascontiguousarray(z[:, at]), w, 1 / 20, 20.0, tolerance=1e-6)
            values[:, fold] = smooth.softmax(logs[:, at] * (1 + evidence * (t - 1)))
    return values


def tilt(P: Floats, bin_of: Ints | None, differences: Floats, weights: Floats) -> Floats:
    """Forecasts with a factor for each bin and class, which changes their means by differences.

    No class becomes rarer than one row per bin can resolve. Differences have shape (K, B), or
    (K, ..., 1) without `bin_of`: then each fold is a bin.
    """
    if bin_of is None:
        weight = weights.sum(axis=-1, keepdims=True)
        sums = _weigh(P, weights)[..., None]
    else:
        columns = _sum_in(bin_of, np.stack([weights, *(P * weights)]), differences.shape[1])
        weight = columns[0]
        sums = columns[1:]
    mean = np.maximum(sums / np.maximum(weight, EPSILON), EPSILON)
    factors = np.maximum(mean + differences, mean / (1 + weight * mean)) / mean
    return _normalise(P * (factors if bin_of is None else np.take(factors, bin_of, axis=1)))


def tilt_in_bins(
    P: Floats, codes: Codes, trees: list[tuple[BinTree, Ints]], weights: Floats, squares: Floats
) -> Floats:
    """Forecasts tilted so that their means in bins follow the labels.

    Each fold has a tree, and the bin of that tree in which each unit lies.
    """
    left = residuals_by_class(P, codes)
    noise = squares * _inner_products(left, left)
    ends = np.cumsum([len(tree.bins) for tree, _ in trees])
    starts = [0, *ends[:-1]]
    numbers = np.array([start + bin_of for start, (_, bin_of) in zip(starts, trees, strict=True)])
    numbers = numbers.reshape(weights.shape)
    sums = _sum_in(numbers, np.stack([*(left * weights), weights, noise]), ends[-1])
    parts = zip(trees, np.split(sums, ends[:-1], axis=1), strict=True)
    differences = np.hstack([fit_bins(tree, part) for (tree, _), part in parts])
    return tilt(P, numbers, differences, weights)


def _normalise(P: Floats) -> Floats:
    return np.asarray(P / P.sum(axis=0))


def _weigh(P: Floats, weights: Floats) -> Floats:
    """Weighted sums over the units."""
    return np.asarray(np.einsum("k...i,...i->k...", P, weights))


def _sum_in(group: Ints | Codes, values: Floats, n_groups: int) -> Floats:
    """Sums of values in groups of units, shape (..., n_groups)."""
    rows = values.reshape(-1, group.size)
    flat = group.ravel()
    sums = np.array([np.bincount(flat, row, n_groups) for row in rows])
    return sums.reshape(*values.shape[: values.ndim - group.ndim], n_groups)


def _inner_products(a: Floats, b: Floats) -> Floats:
    """Inner products over the classes."""
    return np.asarray(np.einsum("k...,k...->...", a, b))


def _centre(P: Floats, weights: Floats) -> Floats:
    """Forecasts, shape (K, n), less their weighted means in each fold."""
    mean = P @ weights.T / weights.sum(axis=-1)
    return np.asarray(P.reshape(len(P), *(1,) * (weights.ndim - 1), -1) - mean[..., None])


def fit_multiple(P: Floats, residuals: Floats, weights: Floats, squares: Floats) -> Floats:
    """One multiple of the forecasts of all classes: enough for inverted forecasts.

    The least squares slope is the sum of ``x * residual`` over the sum of ``x * x``. The energy is
    the square of the former sum.
    """
    x = _centre(P, weights)
    square = (weights * _inner_products(x, x)).sum(axis=-1)
    varies = square > NEGLIGIBLE * weights.sum(axis=-1)
    terms = _inner_products(x, residuals)
    total = (weights * terms).sum(axis=-1)
    factor = shrink_factor(total**2, (squares * terms**2).sum(axis=-1), 1)
    slope = np.where(varies, factor * total / np.where(varies, square, 1.0), 0.0)
    return np.asarray(slope[..., None] * x)


def fit_linear(P: Floats, residuals: Floats, weights: Floats, squares: Floats) -> Floats:
    """Linear map of the forecasts: classes may have been confused with one another.

    The forecasts are whitened: rotated and scaled so that their weighted second moments are the
    identity matrix. Least squares coefficients are then plain sums of products, and their squares
    add up to the energy.
    """
    x, left = (np.moveaxis(a, 0, -2) for a in (_centre(P, weights), residuals))
    variance, directions = np.linalg.eigh((weights[..., None, :] * x) @ x.swapaxes(-1, -2))
    kept = variance > np.maximum(NEGLIGIBLE * variance[..., -1:], 1e-300)
    scales = np.where(kept, np.where(kept, variance, 1.0) ** -0.5, 0.0)
    features = (directions * scales[..., None, :]).swapaxes(-1, -2) @ x
    coefficients = (weights[..., None, :] * left) @ features.swapaxes(-1, -2)
    lengths = np.einsum("...kn,...kn->...n", features, features)
    size = lengths * _inner_products(residuals, residuals)
    n_terms = kept.sum(axis=-1) * _free(residuals)
    energy = (coefficients**2).sum(axis=(-2, -1))
    noise = (squares * size).sum(axis=-1)
    factor = shrink_factor(energy, noise, n_terms)[..., None, None]
    return np.moveaxis((factor * coefficients) @ features, -2, 0)


def fit_cells(
    cell: Ints, n_levels: int, residuals: Floats, weights: Floats, squares: Floats
) -> Floats:
    """Means in nested cells: an estimate for residuals of any shape.

    `cell` comes from `halve_repeatedly`. The difference between the means of the two halves of a
    cell is a Haar coefficient. The coefficients of a level are used or dropped together (block
    thresholding, Cai 1999). Halves of weights a and b, whose means differ by d, have the energy
    ``d**2 a b / (a + b)``: what their means explain beyond the common one.
    """
    n_cells = 2**n_levels
    n_free = _free(residuals)
    noise = squares * _inner_products(residuals, residuals)
    sums = np.empty((len(residuals) + 2, *weights.shape[:-1], 2 * n_cells))
    # Of residuals, noise and weight. The halves of cell v are 2 v and 2 v + 1. Cell 1 is all.
    columns = np.stack([*(residuals * weights), noise, weights])
    sums[..., n_cells:] = _sum_in(cell, columns, n_cells)
    starts = 2 ** np.arange(n_levels)  # first cell of each level
    for v in reversed(starts):
        sums[..., v : 2 * v] = sums[..., 2 * v : 4 * v : 2] + sums[..., 2 * v + 1 : 4 * v : 2]
    *whole, noise, weight = sums[..., 1:2]
    means = np.array(whole) / weight
    means *= shrink_factor(weight * _inner_products(means, means), noise / weight, n_free)
    low = sums[..., 2::2]
    high = sums[..., 3::2]
    both = (low[-1] > 0) & (high[-1] > 0)
    first = np.where(both, low[-1], 1.0)
    second = np.where(both, high[-1], 1.0)
    share = second / (first + second)  # of the second half in its cell
    difference = np.where(both, high[:-2] / second - low[:-2] / first, 0.0)
    spread = np.where(both, low[-2] / first**2 + high[-2] / second**2, 0.0)
    energy = first * share * _inner_products(difference, difference)
    columns = np.stack([energy, first * share * spread, both * n_free])
    factor = shrink_factor(*np.add.reduceat(columns, starts - 1, axis=-1))
    difference *= np.repeat(factor, starts, axis=-1)
    for v in starts:
        added = difference[..., v - 1 : 2 * v - 1]
        part = share[..., v - 1 : 2 * v - 1]
        halves = means - part * added, means + (1 - part) * added
        means = np.stack(halves, axis=-1).reshape(*means.shape[:-1], -1)
    return np.take(means, cell, axis=-1)


def fit_bins(tree: BinTree, sums: Floats) -> Floats:
    """Means in the bins of a tree, each shrunk to the mean of the bin it was split from.

    `sums` in the bins are of residuals, weights and noise, shape (K + 2, B). Deep bins have
    few rows, while bins of the first splits have many (hierarchical shrinkage, Agarwal et al.
    2022). The means are 0 unless they exceed the noise.
    """
    *left, weights, noise = sums
    per_weight = 1 / np.maximum(weights, EPSILON)
    energy = np.square(left).sum(axis=0) @ per_weight
    # Bins were chosen for their labels, which at most doubles the noise in them.
    if not shrink_factor(energy, 2.0 * noise @ per_weight, len(noise) * _free(left)):
        return np.zeros((len(left), len(noise)))
    nodes = tree.add_up(sums[:-1].T)
    trust = nodes[:, -1] + SHRINKAGE
    means = nodes[:, :-1] / trust[:, None]
    hand_down(means, SHRINKAGE / trust, tree.children, tree.split_nodes)
    return means[tree.bins].T


def _free(residuals: Sized) -> int:
    """Number of residuals of a row that can vary: with several classes they sum to 0."""
    return max(len(residuals) - 1, 1)


def residuals_by_class(P: Floats, codes: Codes) -> Floats:
    """Outcomes less forecasts."""
    classes = np.arange(len(P), dtype=codes.dtype)
    return np.asarray((codes == classes.reshape(-1, *(1,) * (P.ndim - 1))) - P)
