"""The symmetric ROC curve of two classes, its convex hull, and the areas under them.

For any number of classes, the share of tuples, one row of each class, that a threshold separates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats
from isoroc._counts import BinaryCounts
from isoroc._input import InputError, Sample, check_every_class, check_number, check_outcomes
from isoroc._maps.monotonicity import largest_slack
from isoroc._support.seeds import check_random_state
from isoroc.metrics._estimation.grouping import fix_class_order, fix_row_order

#: Ties are broken at random, by noise of this size.
NOISE = 1e-12
#: Number of matrix entries to process at a time.
BLOCK = 2**21


class RocCurve(NamedTuple):
    """Points of a symmetric ROC curve, from (0, 1) to (1, 0).

    The curve has no preferred class: the usual false positive rate is ``1 - p0``.
    """

    p0: Floats
    """Share of class 0 with a score at or below the threshold."""
    p1: Floats
    """Share of class 1 with a score above the threshold."""
    thresholds: Floats
    """The score of each point, -infinity for the first."""

    def area(self) -> float:
        """Area under the straight lines between the points."""
        return float(np.trapezoid(self.p1, self.p0))


def symmetric_roc_curve(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None
) -> RocCurve:
    """Symmetric ROC curve: one point for each distinct score.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, 2) or (n,)
        Labels; forecasts, or scores that increase with the probability of the second class.
    sample_weight, labels : array-like of shape (n,) and (2,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).

    Returns
    -------
    RocCurve

    Examples
    --------
    >>> from isoroc.metrics import symmetric_roc_curve
    >>> curve = symmetric_roc_curve([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    >>> curve.p0, curve.p1
    (array([0. , 0.5, 1. , 1. ]), array([1. , 1. , 0.5, 0. ]))
    """
    return _curve(*_counts(y_true, y_prob, sample_weight, labels).distinct())


def roc_convex_hull(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None
) -> RocCurve:
    """Vertices of the convex hull of the symmetric ROC curve.

    The edges of the hull are the bins of isotonic regression.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, 2) or (n,)
        Labels; forecasts, or scores that increase with the probability of the second class.
    sample_weight, labels : array-like of shape (n,) and (2,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).

    Returns
    -------
    RocCurve

    Examples
    --------
    >>> from isoroc.metrics import roc_convex_hull
    >>> hull = roc_convex_hull([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8])
    >>> hull.p0, hull.p1
    (array([0. , 0.5, 1. , 1. ]), array([1. , 1. , 0.5, 0. ]))
    """
    _, highest, class_weights = _counts(y_true, y_prob, sample_weight, labels).isotonic_blocks()
    return _curve(highest, class_weights)


def roc_auc(y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None) -> float:
    """Area under the ROC curve: how often a row of class 1 scores above one of class 0.

    Ties count one half.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, 2) or (n,)
        Labels; forecasts, or scores that increase with the probability of the second class.
    sample_weight, labels : array-like of shape (n,) and (2,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).

    Returns
    -------
    float

    Examples
    --------
    >>> from isoroc.metrics import roc_auc
    >>> roc_auc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    return _counts(y_true, y_prob, sample_weight, labels).area()


def hull_auc(y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None) -> float:
    """Area under the convex hull of the ROC curve: the AUC after isotonic calibration.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, 2) or (n,)
        Labels; forecasts, or scores that increase with the probability of the second class.
    sample_weight, labels : array-like of shape (n,) and (2,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).

    Returns
    -------
    float

    Examples
    --------
    >>> from isoroc.metrics import hull_auc
    >>> hull_auc([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8])
    0.875
    """
    return roc_convex_hull(y_true, y_prob, sample_weight=sample_weight, labels=labels).area()


def _counts(y_true: Any, y_prob: Any, sample_weight: Any, labels: Any) -> BinaryCounts:
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    if sample.n_classes != 2:
        problem = f"{sample.n_classes} columns"
        raise InputError("y_prob", None, problem, "a ROC curve needs two classes")
    check_every_class(sample, "both classes are needed")
    return BinaryCounts.from_sample(sample)


def _curve(scores: Floats, class_weights: Floats) -> RocCurve:
    """Curve through the ends of consecutive groups of rows, in ascending order of the score."""
    share = np.cumsum(class_weights, axis=0)
    share /= share[-1]
    p0, p1 = np.append(0.0, share[:, 0]), np.append(1.0, 1 - share[:, 1])
    return RocCurve(p0, p1, np.append(-np.inf, scores))


@dataclass(frozen=True, repr=False)
class Separability:
    """Share of separated tuples, estimated from a sample. ``float(separability)`` is its value."""

    value: float
    standard_error: float
    """Due to drawing tuples, given the rows; 0 if the value is exact. See also `bootstrap`."""
    n_samples: int
    """Number of tuples drawn, 0 if the value is exact."""

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        how = f"{self.n_samples} tuples" if self.n_samples else "exact"
        return f"Separability({self.value:.6g} +- {self.standard_error:.2g}, {how})"


def pairwise_separability(
    y_true: Any,
    y_prob: Any,
    *,
    n_samples: int = 100_000,
    random_state: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
) -> Separability:
    """Share of K-tuples of rows, one of each class, that some threshold separates.

    Such a threshold puts each row of the tuple into the region of its own class. It exists iff, of
    all assignments of the K rows to the K classes, the true one has the largest sum of forecasts.
    Ties are broken at random. Separability is 1 for perfect forecasts, 1 / K! for constant ones,
    and the area under the ROC curve for two classes.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, K) or (n,)
        Labels; forecasts, or scores that increase with the probability of the second class.
    n_samples : int, default=100_000
        Number of tuples to draw. For two classes the value is exact and none are drawn.
    random_state : int, RandomState or None, default=None
        Seed of the draws and of the random tie breaks.
    sample_weight, labels : array-like of shape (n,) and (K,), default=None
        Weights, and the classes in the order of the columns (sorted by default).

    Returns
    -------
    Separability

    Examples
    --------
    >>> from isoroc.metrics import pairwise_separability
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]
    >>> pairwise_separability([0, 1, 1, 2], P)
    Separability(1 +- 0, 100000 tuples)
    >>> pairwise_separability([0, 1, 1], [0.5, 0.7, 0.3])
    Separability(0.5 +- 0, exact)
    """
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    K = sample.n_classes
    if K == 2:
        value = roc_auc(y_true, y_prob, sample_weight=sample_weight, labels=labels)
        return Separability(value, standard_error=0.0, n_samples=0)
    check_number("n_samples", n_samples, int, minimum=1)
    check_every_class(sample, "a tuple needs a row of each class")
    sample = fix_row_order(fix_class_order(sample))
    rng = check_random_state(random_state)
    size = max(1, BLOCK // K**2)
    separated = sum(
        int(_separated(_tuples(sample, min(size, n_samples - start), rng), rng).sum())
        for start in range(0, n_samples, size)
    )
    value = separated / n_samples
    return Separability(value, (value * (1 - value) / n_samples) ** 0.5, n_samples)


def _tuples(sample: Sample, size: int, rng: np.random.RandomState) -> Floats:
    """Forecasts of drawn tuples: entry [t, i] is the forecast of a row of class i, (size, K, K)."""
    drawn = []
    for k in range(sample.n_classes):
        rows = np.flatnonzero(sample.codes == k)
        cumulative = np.cumsum(sample.row_weights()[rows])
        chance = rng.random_sample(size) * cumulative[-1]
        drawn.append(rows[np.searchsorted(cumulative, chance, side="right")])
    return np.asarray(sample.forecasts[np.column_stack(drawn)])


def _separated(tuples: Floats, rng: np.random.RandomState) -> NDArray[np.bool_]:
    """Whether the true assignment of each tuple is the best one."""
    tuples = tuples + NOISE * rng.random_sample(tuples.shape)
    # W[t, i, j] bounds gamma_i - gamma_j: the lead of class i over class j in row i.
    W = np.einsum("tii->ti", tuples)[:, :, None] - tuples
    # Most failures are cycles of two classes: check those first.
    separated = np.asarray((W + W.transpose(0, 2, 1) >= 0).all(axis=(1, 2)))
    W[:, *np.diag_indices(W.shape[1])] = np.inf
    separated[separated] = largest_slack(W[separated]) >= 0
    return separated
