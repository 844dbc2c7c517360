"""Cross-fitted estimates of E[Y | forecast]: for each row, from the labels of other rows.

Isotonic recursive partitions follow the forecasts where a larger one means a larger probability.
Where it does not, because forecasts are inverted, belong to other classes or carry no information,
a monotone partition has one bin and finds nothing. So what the partition leaves of the residuals is
estimated without any condition, see `isoroc.metrics._residuals`.

What is learned for a row does not depend on its own label. So whatever is learned, the mean of its
product with the residual of the row is 0 if forecasts are calibrated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from isoroc._folds import deal_folds
from isoroc._growth import GrowthOptions, grow_tree
from isoroc._input import InputError, Sample
from isoroc._simplex import Floats, Ints
from isoroc._top import TopReduction
from isoroc._tree import BinTree
from isoroc.metrics._grouping import halve_repeatedly
from isoroc.metrics._ordering import order_rows
from isoroc.metrics._residuals import fit_bins, fit_cells, fit_confidence, fit_linear, sharpen

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


def calibrated(sample: Sample) -> Floats:
    """E[Y | forecast] for each row, as learned from other rows.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.tile([0.1, 0.9], 500)
    >>> y = (np.arange(1000) % 4 == 1).astype(np.uint8)
    >>> calibrated(Sample(p, y, None))[:4].round(1)
    array([0. , 0.5, 0. , 0.5])
    """
    return _cross_fit(sample, _learn_values)


def residual_signs(sample: Sample) -> Floats:
    """Sign of E[Y | forecast] - forecast for each row and class, as learned from other rows."""
    return np.sign(_cross_fit(sample, _learn_residuals))


@dataclass(frozen=True, eq=False)
class _Rows:
    """A sample and what does not depend on its folds."""

    sample: Sample
    reduced: Sample
    """The sample of the largest probabilities and the rest, or the sample itself."""
    largest: Ints
    """Classes of the TOP largest probabilities, shape (n, TOP); none if `reduced` is `sample`."""
    cells: Ints
    n_levels: int

    @classmethod
    def of(cls, sample: Sample, n_training: int) -> _Rows:
        """The rows of a sample, of which `n_training` are learned from at a time."""
        reduced, largest = sample, np.empty((len(sample), 0), dtype=np.intp)
        if sample.n_classes > FULL:
            reduced = TopReduction(TOP, FLOOR).reduce_sample(sample)
            largest = _largest(sample.forecasts)
        n_levels = min(MOST_LEVELS, max(0, (n_training // ROWS_IN_CELL).bit_length() - 1))
        # Cells may depend on the forecasts of all rows, as they do not depend on labels.
        P = sample.forecasts if sample.n_classes <= MOST_CLASSES else reduced.forecasts
        return cls(sample, reduced, largest, halve_repeatedly(P, n_levels), n_levels)

    @cached_property
    def sharper(self) -> Floats:
        """How forecasts change as they become sharper."""
        return sharpen(self.columns)

    @property
    def columns(self) -> Floats:
        """Forecasts of shape (n, C), with C = 1 for scores."""
        return self.sample.forecasts.reshape(len(self.sample), -1)

    def residuals(self) -> Floats:
        """A new array of the residuals, of the same shape."""
        return self.sample.residuals().reshape(len(self.sample), -1)

    def grow(self, training: Ints) -> tuple[BinTree, Ints]:
        """The tree that `IRPCalibrator` would grow on some rows, and the bin of every row."""
        K = self.reduced.n_classes
        tree = grow_tree(self.reduced.take(training), GrowthOptions(smoothing=np.full(K, 1 / K)))
        return tree, tree.bin_of(self.reduced.forecasts)


def _cross_fit(sample: Sample, learn: Callable[[_Rows, Ints], Floats]) -> Floats:
    """What is learned about the rows of each fold from the other folds, shaped as the forecasts.

    The folds are drawn with a fixed seed and do not depend on the order of rows. Only ratios of
    weights matter: they are scaled to sum to Kish's effective number of rows.
    """
    n = len(sample)
    if n < 2:
        raise InputError("y_prob", None, "one row only", "holding rows out takes two or more")
    if sample.weights is not None:
        kish = sample.weights.sum() / (sample.weights @ sample.weights)
        # Sums of multiples of 1 / GRID are exact: rounding and the order of rows change nothing.
        weights = np.maximum(np.rint(sample.weights * (kish * GRID)), 1.0) / GRID
        sample = replace(sample, weights=weights)
    n_folds = min(N_FOLDS if n <= MANY_ROWS else 2, n)
    fold = np.empty(n, dtype=np.intp)
    fold[order_rows(sample)] = deal_folds(n, n_folds, np.random.default_rng(0))
    rows = _Rows.of(sample, n - n // n_folds)
    learned = np.empty_like(sample.forecasts)
    for held_out in range(n_folds):
        inside = fold == held_out
        found = learn(rows, np.flatnonzero(~inside))
        learned[inside] = found.reshape(learned.shape)[inside]
    return learned


def _learn_values(rows: _Rows, training: Ints) -> Floats:
    """E[Y | forecast] of every row, shape (n, C), learned from some of them.

    The values of IRP, plus linear maps and means of what they leave.
    """
    P = rows.columns
    tree, bin_of = rows.grow(training)
    values = tree.values(pseudocount=1.0)[tree.bins][bin_of]
    if P.shape[1] == 1:
        values = values[:, 1:]
    elif rows.reduced is not rows.sample:
        values = TopReduction.fit(TOP, rows.sample.take(training)).expand(values, P)
    weights = _training_weights(rows.sample, training)
    left = rows.residuals() + P - values  # residuals and forecasts add up to outcomes
    added = fit_confidence(P, rows.sharper, left, weights)
    left -= added
    _fit_rest(rows, weights, left, added)
    if not added.any():
        return np.asarray(values)
    # Corrections are not precise enough to make values smaller or larger than this.
    margin = len(training) ** -0.5
    values = np.clip(values + added, np.minimum(values, margin), np.maximum(values, 1 - margin))
    return np.asarray(values if P.shape[1] == 1 else values / values.sum(axis=1, keepdims=True))


def _learn_residuals(rows: _Rows, training: Ints) -> Floats:
    """E[Y - forecast | forecast] of every row, shape (n, C), learned from some of them.

    The forecasts in a bin differ by more than its mean label differs from their mean. So this
    takes the mean residuals of bins and not their values.
    """
    P, weights = rows.columns, _training_weights(rows.sample, training)
    left = rows.residuals()
    found = fit_confidence(P, rows.sharper, left, weights)
    left -= found
    of_bins = _fit_tree(rows, training, weights, left)
    found += of_bins
    left -= of_bins
    _fit_rest(rows, weights, left, found)
    return found


def _fit_tree(rows: _Rows, training: Ints, weights: Floats, left: Floats) -> Floats:
    """Mean residuals in the bins of IRP; with many classes, of the largest ones and the rest."""
    tree, bin_of = rows.grow(training)
    if rows.reduced is rows.sample:
        return fit_bins(tree, bin_of, left, weights)
    left = np.take_along_axis(left, rows.largest, axis=1)
    left = np.column_stack([left, -left.sum(axis=1)])
    return TopReduction(TOP, FLOOR).expand(fit_bins(tree, bin_of, left, weights), rows.columns)


def _fit_rest(rows: _Rows, weights: Floats, left: Floats, found: Floats) -> None:
    """Add to `found`, in place, what a linear map and cells find in the residuals left."""
    frequent = slice(MOST_CLASSES)  # the columns are sorted by their totals
    left, found = left[:, frequent], found[:, frequent]
    linear = fit_linear(rows.columns[:, frequent], left, weights)
    left -= linear
    found += linear
    found += fit_cells(rows.cells, rows.n_levels, left, weights)


def _largest(P: Floats) -> Ints:
    """Classes of the TOP largest probabilities of each row, the lower index first on ties."""
    P = P.copy()
    classes = np.empty((len(P), TOP), dtype=np.intp)
    for rank in range(TOP):
        classes[:, rank] = P.argmax(axis=1)
        P[np.arange(len(P)), classes[:, rank]] = -1.0
    return classes


def _training_weights(sample: Sample, training: Ints) -> Floats:
    """Weights of the rows to learn from, 0 for all others."""
    weights = np.zeros(len(sample))
    weights[training] = 1.0 if sample.weights is None else sample.weights[training]
    return weights
