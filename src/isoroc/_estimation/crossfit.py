"""Cross-fitted estimates of E[Y | forecast]: for each row, from the labels of other rows.

Isotonic recursive partitions follow the forecasts where a larger one means a larger probability.
Where it does not, because forecasts are inverted, belong to other classes or carry no information,
a monotone partition has one bin and finds nothing. So what the partition leaves of the residuals is
estimated without any condition, in stages: regressions of residuals on forecasts. Each stage takes
the residuals that earlier stages leave, of shape (n, C), and returns its estimate for every row. It
returns 0 unless its signal exceeds the noise, so stages that find nothing change nothing. C is 1
for scores (n,), and otherwise the number of classes.

What is learned for a row does not depend on its own label. So whatever is learned, the mean of its
product with the residual of the row is 0 if forecasts are calibrated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from isoroc._estimation.grouping import halve_repeatedly, order_rows, sum_rows
from isoroc._folds import deal_folds
from isoroc._growth import GrowthOptions, grow_tree
from isoroc._input import InputError, Sample
from isoroc._simplex import Floats, Ints
from isoroc._top import TopReduction
from isoroc._tree import BinTree, bin_values

#: Number of folds,
N_FOLDS = 5
#: and the number of rows above which there are two: then half of the rows are plenty.
MANY_ROWS = 100_000
#: With more classes than FULL, partitions are of the TOP largest probabilities and the rest.
FULL, TOP = 4, 2
#: Linear maps and means in cells are of the MOST_CLASSES most frequent classes. With more classes,
#: cells are cells of the largest probabilities and the rest.
MOST_CLASSES = 64
#: Share of the rest that a class of probability 0 gets, relative to probability 1.
FLOOR = 1e-6
#: Weights are rounded to multiples of 1 / GRID.
GRID = 2.0**30
#: The finest cells have about this many rows, and there are at most 2 ** MOST_LEVELS of them.
ROWS_IN_CELL, MOST_LEVELS = 32, 10
#: A stage is used if its signal exceeds the noise by this many standard deviations.
THRESHOLD = 2.0
#: Weight of rows that moves the residual of a bin half way from that of the bin it was split from.
SHRINKAGE = 100.0
#: Directions of a smaller mean square, relative to the largest one or to 1, are left out.
NEGLIGIBLE = 1e-9


class CrossFit:
    """What is learned about the rows of a sample, each from other rows.

    Folds are drawn with a fixed seed and do not depend on the order of rows. Only ratios of weights
    matter: they are scaled to sum to Kish's effective number of rows. Nothing is learned before it
    is needed, and trees are grown once for all that is learned from them. Rows must have positive
    weight.
    """

    def __init__(self, sample: Sample) -> None:
        self.sample = self._scaled = sample
        n, weights = len(sample), sample.weights
        if weights is not None:
            kish = weights.sum() / (weights @ weights)
            # Sums of multiples of 1 / GRID are exact, whatever the order of rows.
            weights = np.maximum(np.rint(weights * (kish * GRID)), 1.0) / GRID
            self._scaled = replace(sample, weights=weights)
        self._n_folds = min(N_FOLDS if n <= MANY_ROWS else 2, n)
        n_training = n - n // self._n_folds
        self._n_levels = min(MOST_LEVELS, max(0, (n_training // ROWS_IN_CELL).bit_length() - 1))
        self._P = sample.forecasts.reshape(n, -1)  # shape (n, C)

    @cached_property
    def values(self) -> Floats:
        """E[Y | forecast] for each row."""
        return self._learn(self._learn_values)

    @cached_property
    def residuals(self) -> Floats:
        """E[Y - forecast | forecast] for each row and class, whose signs are more often right."""
        return self._learn(self._learn_residuals)

    def _learn(self, learn: Callable[[_Training], Floats]) -> Floats:
        """What is learned about the rows of each fold from the others, shaped as the forecasts."""
        learned = np.empty_like(self.sample.forecasts)
        for training in self._trainings:
            held_out = training.weights == 0
            learned[held_out] = learn(training).reshape(learned.shape)[held_out]
        return learned

    @cached_property
    def _trainings(self) -> list[_Training]:
        """The rows to learn from, for each fold."""
        n = len(self.sample)
        if n < 2:
            raise InputError("y_prob", None, "one row only", "holding rows out takes two or more")
        fold = np.empty(n, dtype=np.intp)
        rng = np.random.default_rng(0)
        fold[order_rows(self._scaled)] = deal_folds(n, self._n_folds, rng)
        K = self._reduced.n_classes
        trainings = []
        for held_out in range(self._n_folds):
            rows = np.flatnonzero(fold != held_out)
            weights = np.where(fold == held_out, 0.0, self._scaled.row_weights())
            # The tree that `IRPCalibrator` would grow on these rows.
            tree = grow_tree(self._reduced.take(rows), GrowthOptions(np.full(K, 1 / K)))
            bin_of = tree.bin_of(self._reduced.forecasts)
            trainings.append(_Training(rows, weights, tree, bin_of))
        return trainings

    @cached_property
    def _reduced(self) -> Sample:
        """The sample of the largest probabilities and the rest, or the sample itself."""
        if self.sample.n_classes <= FULL:
            return self._scaled
        return TopReduction(TOP, FLOOR).reduce_sample(self._scaled)

    @cached_property
    def _largest(self) -> Ints:
        """Classes of the TOP largest probabilities, shape (n, TOP), the first of equal ones."""
        return np.argsort(-self._P, axis=1, kind="stable")[:, :TOP]

    @cached_property
    def _cells(self) -> Ints:
        """The finest cell of each row."""
        # Cells may depend on the forecasts of all rows, as they do not depend on labels.
        few = self.sample.n_classes <= MOST_CLASSES
        return halve_repeatedly((self.sample if few else self._reduced).forecasts, self._n_levels)

    @cached_property
    def _sharper(self) -> Floats:
        """How forecasts change as they become sharper."""
        return sharpen(self._P)

    def _learn_values(self, training: _Training) -> Floats:
        """E[Y | forecast] of every row, (n, C): IRP, plus maps and means of what it leaves."""
        P, tree = self._P, training.tree
        shares = bin_values(tree.class_weights[0], np.full(tree.n_classes, 1 / tree.n_classes))
        values = tree.values(pseudocount=1.0, prior=shares)[tree.bins][training.bin_of]
        if P.shape[1] == 1:
            values = values[:, 1:]
        elif self._reduced is not self._scaled:
            values = TopReduction.fit(TOP, self._scaled.take(training.rows)).expand(values, P)
        left = self._residuals() + P - values  # residuals and forecasts add up to outcomes
        added = fit_confidence(P, self._sharper, left, training.weights)
        left -= added
        self._fit_rest(training.weights, left, added)
        if not added.any():
            return np.asarray(values)
        # Corrections are not precise enough to make values smaller or larger than this.
        margin = len(training.rows) ** -0.5
        values = np.clip(values + added, np.minimum(values, margin), np.maximum(values, 1 - margin))
        return np.asarray(values if P.shape[1] == 1 else values / values.sum(axis=1, keepdims=True))

    def _learn_residuals(self, training: _Training) -> Floats:
        """E[Y - forecast | forecast] of every row, shape (n, C), learned from some of them.

        The forecasts in a bin differ by more than its mean label differs from their mean. So this
        takes the mean residuals of bins and not their values.
        """
        left = self._residuals()
        found = fit_confidence(self._P, self._sharper, left, training.weights)
        left -= found
        of_bins = self._fit_tree(training, left)
        found += of_bins
        left -= of_bins
        self._fit_rest(training.weights, left, found)
        return found

    def _residuals(self) -> Floats:
        """A new array of the residuals, shape (n, C)."""
        return self.sample.residuals().reshape(self._P.shape)

    def _fit_tree(self, training: _Training, left: Floats) -> Floats:
        """Mean residuals in the bins of IRP; with many classes, of the largest and the rest."""
        _, weights, tree, bin_of = training
        if self._reduced is self._scaled:
            return fit_bins(tree, bin_of, left, weights)
        left = np.take_along_axis(left, self._largest, axis=1)
        left = np.column_stack([left, -left.sum(axis=1)])
        return TopReduction(TOP, FLOOR).expand(fit_bins(tree, bin_of, left, weights), self._P)

    def _fit_rest(self, weights: Floats, left: Floats, found: Floats) -> None:
        """Add to `found`, in place, what a linear map and cells find in the residuals left."""
        frequent = slice(MOST_CLASSES)  # the columns are sorted by their totals
        left, found = left[:, frequent], found[:, frequent]
        linear = fit_linear(self._P[:, frequent], left, weights)
        left -= linear
        found += linear
        found += fit_cells(self._cells, self._n_levels, left, weights)


class _Training(NamedTuple):
    """The rows to learn from while a fold is held out."""

    rows: Ints
    weights: Floats
    """Of all rows of the sample, 0 for those held out."""
    tree: BinTree
    """Grown on the rows to learn from."""
    bin_of: Ints
    """Its bin in which each row of the sample lies."""


def shrink_factor(energy: float, noise: float, n_terms: int) -> float:
    """Factor of James and Stein, or 0 if the energy exceeds the noise by too little.

    Too little are `THRESHOLD` standard deviations of the sum of squares of `n_terms` terms.
    """
    least = noise * (1 + THRESHOLD * (2 / max(n_terms, 1)) ** 0.5)
    return 1 - noise / energy if energy > least else 0.0


def fit_confidence(P: Floats, sharper: Floats, residuals: Floats, weights: Floats) -> Floats:
    """Two numbers for all classes: a multiple of the forecasts, and a change of their sharpness.

    Forecasts without information have multiple -1, inverted forecasts a lower one. Over- and
    underconfident forecasts are too sharp or not sharp enough. `sharper` is that of `sharpen`.
    """
    total, slope = float(weights.sum()), 0.0
    multiple = P - weights @ P / total
    if square := float(weights @ _products(multiple, multiple)):
        slope = float(weights @ _products(multiple, sharper)) / square
    fitted, energy, noise = np.zeros(P.shape), 0.0, 0.0
    for direction in (multiple, sharper - slope * multiple):  # which are orthogonal
        square = float(weights @ _products(direction, direction))
        if square > NEGLIGIBLE * total:
            products = weights * _products(direction, residuals)
            energy += float(products.sum()) ** 2 / square
            noise += float(products @ products) / square
            fitted += products.sum() / square * direction
    return fitted * shrink_factor(energy, noise, 2)


def _products(a: Floats, b: Floats) -> Floats:
    """Inner products of the rows of two matrices."""
    return np.asarray(np.einsum("ik,ik->i", a, b))


def sharpen(P: Floats) -> Floats:
    """Derivative by t of the forecasts ``P**t``, normalised, at t = 1."""
    if P.shape[1] == 1:
        return np.asarray((1 - P) * xlogy(P, P) - P * xlogy(1 - P, 1 - P))
    entropy = xlogy(P, P)
    return np.asarray(entropy - P * entropy.sum(axis=1, keepdims=True))


def fit_linear(P: Floats, residuals: Floats, weights: Floats) -> Floats:
    """Linear map of the forecasts: a class may have been forecast in the place of another."""
    x = P - weights @ P / weights.sum()
    variance, directions = np.linalg.eigh(x.T @ (weights[:, None] * x))
    kept = variance > max(NEGLIGIBLE * variance[-1], 1e-300)
    features = x @ (directions[:, kept] / np.sqrt(variance[kept]))
    coefficients = features.T @ (weights[:, None] * residuals)
    energy = float((coefficients**2).sum())
    size = _products(features, features) * _products(residuals, residuals)
    n_terms = features.shape[1] * _free(residuals)
    factor = shrink_factor(energy, float(weights**2 @ size), n_terms)
    return np.asarray(factor * (features @ coefficients))


def fit_cells(cell: Ints, n_levels: int, residuals: Floats, weights: Floats) -> Floats:
    """Means in nested cells: an estimate for residuals of any shape.

    `cell` comes from `halve_repeatedly`. The difference between the means of the two halves of a
    cell is a Haar coefficient. The coefficients of a level are used or dropped together (block
    thresholding, Cai 1999).
    """
    n_cells, n_free = 2**n_levels, _free(residuals)
    squares = weights**2 * _products(residuals, residuals)
    others = (np.bincount(cell, own, n_cells) for own in (squares, weights))
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


def fit_bins(tree: BinTree, bin_of: Ints, residuals: Floats, weights: Floats) -> Floats:
    """Means in the bins of a tree, each shrunk to the mean of the bin it was split from.

    Deep bins have few rows, and the first splits tell much (hierarchical shrinkage, Agarwal et al.
    2022).
    """
    B = len(tree.bins)
    of_bins = sum_rows(bin_of, residuals, weights, B), np.bincount(bin_of, weights, B)
    sums = tree.add_up(np.column_stack(of_bins))
    weight = sums[:, -1:] + SHRINKAGE
    means = sums[:, :-1] / weight
    for node, below in tree.splits:
        means[below] += SHRINKAGE / weight[below] * means[node]
    return np.asarray(means[tree.bins][bin_of])


def _free(residuals: Floats) -> int:
    """Number of residuals of a row that can vary: with several classes they sum to 0."""
    return max(int(residuals.shape[1]) - 1, 1)
