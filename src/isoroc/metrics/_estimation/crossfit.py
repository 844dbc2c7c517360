"""Cross-fitted estimates of E[Y | forecast]: for each row, from the labels of other rows.

Forecasts are tempered, then tilted in the bins of an isotonic recursive partition so that their
means follow the labels. That follows the forecasts where a larger one means a larger probability.
Where it does not, because forecasts are inverted, belong to other classes or carry no information,
a monotone partition has one bin and finds nothing. So what is left of the residuals is estimated
without any condition, in stages: regressions of residuals on forecasts. Each stage takes the
residuals that earlier stages leave, of shape (n, K), and returns its estimate for every row. It
returns 0 unless its signal exceeds the noise, so stages that find nothing change nothing. Rows with
the same forecast, label and fold are one row with their total weight; the noise in it follows from
the sum of the squared weights.

What is learned for a row does not depend on its own label. So whatever is learned, the mean of its
product with the residual of the row is 0 if forecasts are calibrated.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from isoroc._core import smooth
from isoroc._core.losses import EPSILON, likeliest_power
from isoroc._core.simplex import as_matrix, residuals
from isoroc._core.tree import BinTree
from isoroc._core.types import Codes, Floats, Ints
from isoroc._growth import GrowthOptions, grow_tree
from isoroc._input import InputError, Sample, deal_folds
from isoroc._maps.top import TopReduction
from isoroc.metrics._estimation.grouping import (
    count_halvings,
    group_equal,
    group_quantile,
    halve_repeatedly,
    order_rows,
    sum_rows,
)

#: More than twice this many distinct scores are grouped into this many cells of equal weight.
MOST_SCORES = 2048
#: Most classes for which partitions are of whole forecasts.
FULL = 4
#: With more classes, partitions are of this many of the largest probabilities and the rest.
TOP = 2
#: Linear maps and means in cells are those of this many of the most frequent classes.
MOST_CLASSES = 64
#: Weight of rows that moves the residual of a bin half way from that of the bin it was split from.
SHRINKAGE = 100.0
#: Directions of a smaller mean square, relative to the largest one or to 1, are left out.
NEGLIGIBLE = 1e-9


class _Units(NamedTuple):
    """Rows that are learned from as one: those with the same forecast, label and fold."""

    sample: Sample
    """With the sums of their weights."""
    squares: Floats
    """Sums of their squared weights."""
    fold: Ints
    value: Ints
    """Number of the distinct forecast, or of the cell of scores."""
    first: Ints
    """One of the rows of each unit."""
    of_row: Ints
    """Unit of each row."""
    scores: Floats | None
    """Score of each row, within (0, 1), if those of a unit differ."""


class _Training(NamedTuple):
    """The rows to learn from while a fold is held out."""

    weights: Floats
    """Of all units, 0 for those held out."""
    squares: Floats
    """Squared weights, likewise."""
    tree: BinTree
    """Grown on the rows to learn from."""
    bin_of: Ints
    """Its bin in which each unit lies."""


class CrossFit:
    """What is learned about the rows of a sample, each from other rows.

    Folds are drawn with a fixed seed and do not depend on the order of rows. Rows with the same
    forecast are dealt to several folds, those of one cluster to the same. Only ratios of weights
    matter: rows count as in `Sample.effective`. Nothing is learned before it is needed. Rows must
    have positive weight.
    """

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        n = len(sample)
        self._n_folds = min(5 if n <= 100_000 else 2, n)  # half of many rows are plenty
        self._n_levels = count_halvings(n - n // self._n_folds)

    @cached_property
    def values(self) -> Floats:
        """E[Y | forecast] for each row, shaped as the forecasts."""
        learned = np.empty(self._matrix.shape)
        for training in self._trainings():
            held_out = training.weights == 0
            learned[held_out] = self._learn(training)[held_out]
        learned = learned if self.sample.forecasts.ndim == 2 else learned[:, 1]
        g, p = np.take(learned, self._units.of_row, axis=0), self._units.scores
        if p is None:
            return g
        mean = np.take(self._units.sample.forecasts, self._units.of_row)
        ratio = p / mean, (1 - p) / (1 - mean)  # odds in a cell change by the same factor
        return np.asarray(g * ratio[0] / (g * ratio[0] + (1 - g) * ratio[1]))

    @cached_property
    def _units(self) -> _Units:
        """The rows in folds; those with the same forecast, label and fold are added up.

        So are neighbours of many scores: they differ by less than can be learned about them.
        """
        sample, n = self.sample.effective(), len(self.sample)
        if sample.n_units < 2:
            problem = f"one {'row' if sample.clusters is None else 'cluster'} only"
            raise InputError("y_prob", None, problem, "holding rows out takes two or more")
        weights = sample.row_weights()
        if sample.weights is not None:
            # Sums of multiples of a power of 2 are exact, whatever the order of rows.
            weights = np.maximum(np.rint(weights * 2.0**30), 1.0) / 2.0**30
            sample = replace(sample, weights=weights)
        squares = weights**2 if sample.parts_of is None else sample.squared_weights()
        fold, order = np.empty(n, dtype=np.intp), order_rows(sample)
        clusters = None if sample.clusters is None else sample.clusters[order]
        fold[order] = deal_folds(n, self._n_folds, np.random.default_rng(0), clusters)
        value, scores = group_equal(sample.forecasts), None
        if sample.forecasts.ndim == 1 and value.max() >= 2 * MOST_SCORES:
            value = group_quantile(sample.forecasts, None, MOST_SCORES)
            scores = np.clip(sample.forecasts, 0.5 / n, 1 - 0.5 / n)
            means = np.bincount(value[order], scores[order]) / np.maximum(np.bincount(value), 1)
            sample = replace(sample, forecasts=means[value])
        elif 2 * value.max() > n:  # hardly any ties
            rows = np.arange(n)
            return _Units(sample, squares, fold, value, rows, rows, scores)
        key = (value * sample.n_classes + sample.codes) * self._n_folds + fold
        _, first, of_row = np.unique(key, return_index=True, return_inverse=True)
        sums, squares = (sum_rows(of_row, w, None) for w in (weights, squares))
        units = replace(sample.take(first), weights=sums)
        return _Units(units, squares, fold[first], value[first], first, of_row, scores)

    @cached_property
    def _matrix(self) -> Floats:
        """Forecasts of the units, shape (n, K)."""
        P = as_matrix(self._units.sample.forecasts)
        # Sums over few classes are quicker by columns.
        return np.asfortranarray(P) if self.sample.n_classes <= FULL else P

    def _trainings(self) -> Iterator[_Training]:
        """The rows to learn from, for each fold."""
        sample, squares, fold, *_ = self._units
        K = self._reduced.n_classes
        for number in range(self._n_folds):
            weights, noise = (
                np.where(fold == number, 0.0, w) for w in (sample.row_weights(), squares)
            )
            # The tree that `IRPCalibrator` would grow on these rows.
            tree = grow_tree(self._reduced.take(weights > 0), GrowthOptions(np.full(K, 1 / K)))
            yield _Training(weights, noise, tree, tree.bin_of(self._reduced.forecasts))

    @cached_property
    def _reduced(self) -> Sample:
        """The sample of the largest probabilities and the rest, or the sample itself."""
        sample = self._units.sample
        if sample.n_classes <= FULL:
            return sample
        return TopReduction(TOP, 0.0).reduce_sample(sample)

    @cached_property
    def _cells(self) -> tuple[Ints, int]:
        """The finest cell of each row, and the number of levels."""
        # Cells may depend on the forecasts of all rows, as they do not depend on labels.
        value, n_levels = self._units.value, self._n_levels
        if value.max() < 2**n_levels:  # each distinct forecast has a cell
            return value, int(value.max()).bit_length()
        if self.sample.n_classes > MOST_CLASSES:
            return halve_repeatedly(self._reduced.forecasts, n_levels), n_levels
        # As forecasts of the units: those of one value share a cell, whatever their labels.
        forecasts = np.take(self._units.sample.forecasts, self._units.of_row, axis=0)
        return halve_repeatedly(forecasts, n_levels)[self._units.first], n_levels

    def _learn(self, training: _Training) -> Floats:
        """E[Y | forecast] of every row, shape (n, K), learned from some of them."""
        weights, codes, values = training.weights, self._units.sample.codes, self._matrix
        n_rows = weights.sum()
        observed = np.bincount(codes, weights, values.shape[1])
        for _ in range(3):  # power and shares of classes are fitted in turn
            values = raise_to_power(values, codes, weights, training.squares)
            shares = (observed - weights @ values) / (n_rows + SHRINKAGE)
            values = tilt(values, None, shares[None], weights)
        values = self._tilt_in_bins(values, training)
        # Smaller probabilities, one row in total over the classes, cannot be learned. No factor
        # raises a probability of 0: it becomes the share of such outcomes.
        zero, least = self._matrix < EPSILON, 1 / (n_rows * values.shape[1])
        seen = weights @ zero[np.arange(len(codes)), codes]
        share = seen / max(weights @ zero.sum(axis=1), 1.0)
        values = _normalise(np.maximum(values, np.where(zero, max(share, least), least)))
        added = self._fit_rest(residuals(values, codes), weights, training.squares)
        if added.any():
            # Corrections are not precise enough to make values smaller or larger than this.
            margin = n_rows**-0.5
            limits = np.minimum(values, margin), np.maximum(values, 1 - margin)
            values = np.clip(values + added, *limits)
        return _normalise(values)

    def _tilt_in_bins(self, P: Floats, training: _Training) -> Floats:
        """Forecasts tilted so that their means in the bins of IRP follow the labels."""
        sample, (weights, squares, tree, bin_of) = self._units.sample, training
        if self._reduced is sample:
            left = residuals(P, sample.codes)
            return tilt(P, bin_of, fit_bins(tree, bin_of, left, weights, squares), weights)
        reduction = TopReduction.fit(TOP, replace(sample, forecasts=P).take(weights > 0))
        ranked = reduction.reduce_sample(replace(sample, forecasts=P))
        differences = fit_bins(tree, bin_of, ranked.residuals(), weights, squares)
        return reduction.expand(tilt(ranked.forecasts, bin_of, differences, weights), P)

    def _fit_rest(self, left: Floats, weights: Floats, squares: Floats) -> Floats:
        """What linear maps and cells find in the residuals left, which change in place."""
        K = left.shape[1]
        # The columns are sorted by their totals; of two, the second is the first with other signs.
        frequent = slice(1 if K == 2 else MOST_CLASSES)
        added, left = np.zeros_like(left), left[:, frequent]
        for fit in (fit_multiple, fit_linear):
            of_forecasts = fit(self._matrix[:, frequent], left, weights, squares)
            left -= of_forecasts
            added[:, frequent] += of_forecasts
        added[:, frequent] += fit_cells(*self._cells, left, weights, squares)
        if K == 2:
            added[:, 1] = -added[:, 0]
        return added


def shrink_factor(energy: float, noise: float, n_terms: int) -> float:
    """Factor of James and Stein, or 0 unless the energy clearly exceeds the noise.

    It must do so by two standard deviations of the sum of squares of `n_terms` terms.
    """
    least = noise * (1 + 2 * (2 / max(n_terms, 1)) ** 0.5)
    return 1 - noise / energy if energy > least else 0.0


def raise_to_power(P: Floats, codes: Codes, weights: Floats, squares: Floats) -> Floats:
    """Forecasts ``P**t``, normalised, with the most likely t, shrunk towards 1.

    The shrinkage depends on the evidence against t = 1, less its noise.
    """
    logs = smooth.logs_of(np.maximum(np.ascontiguousarray(P.T), EPSILON))
    rows = np.flatnonzero(weights)
    z, weights, squares = np.take(logs, rows, axis=1), weights[rows], squares[rows]
    z -= z[codes[rows], np.arange(len(rows))]
    slopes, _ = smooth.moments(z, 1.0)
    slope = float(weights @ slopes)
    evidence = max(1 - float(squares @ slopes**2) / slope**2, 0.0) if slope else 0.0
    t = likeliest_power(z, weights, 1 / 20, 20.0, tolerance=1e-6) if evidence else 1.0
    q = smooth.softmax(logs * (1 + evidence * (t - 1)))
    return q.T if P.flags.f_contiguous else smooth.by_row(q)


def tilt(P: Floats, bin_of: Ints | None, differences: Floats, weights: Floats) -> Floats:
    """Forecasts with a factor for each bin and class, which changes their means by differences.

    No class becomes rarer than one row per bin can resolve. Without `bin_of`, there is one bin.
    """
    if bin_of is None:
        weight, sums = weights.sum(keepdims=True)[:, None], (weights @ P)[None]
    else:
        weight = np.bincount(bin_of, weights, len(differences))[:, None]
        sums = sum_rows(bin_of, P, weights, len(differences))
    mean = np.maximum(sums / np.maximum(weight, EPSILON), EPSILON)
    factors = np.maximum(mean + differences, mean / (1 + weight * mean)) / mean
    return _normalise(P * (factors if bin_of is None else np.take(factors.T, bin_of, axis=1).T))


def _normalise(P: Floats) -> Floats:
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def _products(a: Floats, b: Floats) -> Floats:
    """Inner products of the rows of two matrices."""
    return np.asarray(np.einsum("ik,ik->i", a, b))


def fit_multiple(P: Floats, residuals: Floats, weights: Floats, squares: Floats) -> Floats:
    """One multiple of the forecasts of all classes: enough for inverted forecasts."""
    x = P - weights @ P / weights.sum()
    square = float(weights @ _products(x, x))
    if square <= NEGLIGIBLE * weights.sum():
        return np.zeros(P.shape)
    terms = _products(x, residuals)
    total = float(weights @ terms)
    factor = shrink_factor(total**2, float(squares @ terms**2), 1)
    return np.asarray(factor * total / square * x)


def fit_linear(P: Floats, residuals: Floats, weights: Floats, squares: Floats) -> Floats:
    """Linear map of the forecasts: classes may have been confused with one another."""
    x = P - weights @ P / weights.sum()
    variance, directions = np.linalg.eigh(x.T @ (weights[:, None] * x))
    kept = variance > max(NEGLIGIBLE * variance[-1], 1e-300)
    features = x @ (directions[:, kept] / np.sqrt(variance[kept]))
    coefficients = features.T @ (weights[:, None] * residuals)
    energy = float((coefficients**2).sum())
    size = _products(features, features) * _products(residuals, residuals)
    n_terms = features.shape[1] * _free(residuals)
    factor = shrink_factor(energy, float(squares @ size), n_terms)
    return np.asarray(factor * (features @ coefficients))


def fit_cells(
    cell: Ints, n_levels: int, residuals: Floats, weights: Floats, squares: Floats
) -> Floats:
    """Means in nested cells: an estimate for residuals of any shape.

    `cell` comes from `halve_repeatedly`. The difference between the means of the two halves of a
    cell is a Haar coefficient. The coefficients of a level are used or dropped together (block
    thresholding, Cai 1999).
    """
    n_cells, n_free = 2**n_levels, _free(residuals)
    noise = squares * _products(residuals, residuals)
    others = (np.bincount(cell, column, n_cells) for column in (noise, weights))
    # Sums of residuals, noise and weight in the cells of each level, the finest first.
    levels = [np.column_stack([sum_rows(cell, residuals, weights, n_cells), *others])]
    while len(levels[-1]) > 1:
        levels.append(levels[-1][::2] + levels[-1][1::2])
    *whole, noise, weight = levels.pop()[0]
    means = np.array([whole]) / weight
    means *= shrink_factor(float(weight * (means**2).sum()), float(noise / weight), n_free)
    for level in reversed(levels):
        means = np.repeat(means, 2, axis=0)
        first = 2 * np.flatnonzero((level[::2, -1] > 0) & (level[1::2, -1] > 0))
        low, high = level[first], level[first + 1]
        share = (high[:, -1] / (low + high)[:, -1])[:, None]  # of the second half in its cell
        difference = high[:, :-2] / high[:, -1:] - low[:, :-2] / low[:, -1:]
        spread = low[:, -2] / low[:, -1] ** 2 + high[:, -2] / high[:, -1] ** 2
        weight = low[:, -1] * share[:, 0]
        energy, noise = weight @ _products(difference, difference), weight @ spread
        difference *= shrink_factor(float(energy), float(noise), len(first) * n_free)
        means[first] -= share * difference
        means[first + 1] += (1 - share) * difference
    return np.asarray(means[cell])


def fit_bins(
    tree: BinTree, bin_of: Ints, residuals: Floats, weights: Floats, squares: Floats
) -> Floats:
    """Means in the bins of a tree, each shrunk to the mean of the bin it was split from.

    Deep bins have few rows, while those of the first splits have many (hierarchical shrinkage,
    Agarwal et al. 2022). The means are 0 unless they exceed the noise.
    """
    n_bins = len(tree.bins)
    squares = squares * _products(residuals, residuals)
    weight = np.bincount(bin_of, weights, n_bins)
    of_bins = np.column_stack([sum_rows(bin_of, residuals, weights, n_bins), weight])
    held = np.maximum(weight, EPSILON)
    energy = float((of_bins[:, :-1] ** 2).sum(axis=1) @ (1 / held))
    # Bins were chosen for their labels, which at most doubles the noise in them.
    noise = 2.0 * float(np.bincount(bin_of, squares, n_bins) @ (1 / held))
    if not shrink_factor(energy, noise, n_bins * _free(residuals)):
        return np.zeros((n_bins, residuals.shape[1]))
    sums = tree.add_up(of_bins)
    trust = sums[:, -1:] + SHRINKAGE
    means = sums[:, :-1] / trust
    for node, below in tree.splits:
        means[below] += SHRINKAGE / trust[below] * means[node]
    return np.asarray(means[tree.bins])


def _free(residuals: Floats) -> int:
    """Number of residuals of a row that can vary: with several classes they sum to 0."""
    return max(int(residuals.shape[1]) - 1, 1)
