"""The symmetric ROC curve of two classes, its convex hull, and the areas under them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core.types import Floats
from isoroc._counts import BinaryCounts
from isoroc._input import InputError, check_every_class, check_outcomes


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
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> RocCurve:
    """Symmetric ROC curve: one point for each distinct score.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels : array-like
        As in `roc_auc`.

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
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> RocCurve:
    """Vertices of the convex hull of the symmetric ROC curve.

    Its edges are the bins of isotonic regression. Its area is the AUC after isotonic calibration.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels : array-like
        As in `roc_auc`.

    Returns
    -------
    RocCurve

    Examples
    --------
    >>> from isoroc.metrics import roc_convex_hull
    >>> hull = roc_convex_hull([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8])
    >>> hull.p0, hull.p1, hull.area()
    (array([0. , 0.5, 1. , 1. ]), array([1. , 1. , 0.5, 0. ]), 0.875)
    """
    _, highest, class_weights = _counts(y_true, y_prob, sample_weight, labels).isotonic_blocks()
    return _curve(highest, class_weights)


def roc_auc(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Area under the ROC curve: how often class 1 scores above class 0. Ties count one half.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, 2)
        Labels, or the shares of the two classes in each row (soft labels).
    y_prob : array-like of shape (n, 2) or (n,)
        Forecasts, or scores that increase with the probability of the second class.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row. Weight 2 is the same as the row twice.
    labels : array-like of shape (2,), default=None
        The classes in the order of the columns, sorted by default.

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


def _counts(y_true: Any, y_prob: Any, sample_weight: Any, labels: Any) -> BinaryCounts:
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    if (K := sample.n_classes) != 2:
        raise InputError("y_prob", None, f"{K} columns", "a ROC curve needs two classes")
    check_every_class(sample, "both classes are needed")
    return BinaryCounts.from_sample(sample)


def _curve(scores: Floats, class_weights: Floats) -> RocCurve:
    """Curve through the ends of consecutive groups of rows, in ascending order of the score."""
    share = np.cumsum(class_weights, axis=0)
    share /= share[-1]
    p0 = np.append(0.0, share[:, 0])
    p1 = np.append(1.0, 1 - share[:, 1])
    return RocCurve(p0, p1, np.append(-np.inf, scores))
