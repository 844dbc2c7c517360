"""The cost of decisions between two classes, for every ratio of the two costs."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoroc._input import InputError, Sample, check_number, check_probabilities
from isoroc._simplex import Floats
from isoroc.metrics import roc_convex_hull


@dataclass(frozen=True, eq=False)
class CostCurve:
    """Mean cost of decisions against the ratio of costs.

    The costs are scaled such that those of the two errors add up to 2: deciding for the second
    class costs ``2 * ratio`` if it does not occur, deciding for the first ``2 * (1 - ratio)`` if
    the second one does.

    Attributes
    ----------
    ratio : ndarray of shape (m,)
        Cost of a false decision for the second class, as a share of the sum of both costs. This is
        also the probability above which calibrated forecasts decide for the second class.
    cost : ndarray of shape (m,)
        Mean cost of the decisions of the forecasts.
    best : ndarray of shape (m,)
        The least mean cost that a threshold on these scores has. The difference to `cost` is what
        calibration can save, and it is found on the same rows.
    constant : ndarray of shape (m,)
        Mean cost of the better one of the two constant decisions.
    """

    ratio: Floats
    cost: Floats
    best: Floats
    constant: Floats

    def area(self) -> float:
        """Mean cost if all ratios are equally likely: the mean of ``(y - p)**2``."""
        return float(np.trapezoid(self.cost, self.ratio))


def cost_curve(
    y_true: Any,
    y_prob: Any,
    *,
    n_ratios: int = 1001,
    sample_weight: Any = None,
    labels: Any = None,
) -> CostCurve:
    """Mean cost of decisions against the ratio of costs, for two classes.

    This is the Brier curve of Hernández-Orallo, Flach and Ferri (2011); `best` is the cost curve of
    Drummond and Holte (2006).

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels of two classes.
    y_prob : array-like of shape (n, 2) or (n,)
        Forecasts, or the probability of the second class.
    n_ratios : int, default=1001
        Number of ratios, between 0 and 1.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (2,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    CostCurve

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import cost_curve
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> y = rng.random(5000) < p**2
    >>> curve = cost_curve(y, p, n_ratios=11)
    >>> (curve.cost - curve.best).round(3)
    array([0.   , 0.024, 0.043, 0.059, 0.052, 0.046, 0.038, 0.035, 0.026,
           0.003, 0.   ])
    >>> round(cost_curve(y, p).area(), 3), round(float(np.mean((y - p) ** 2)), 3)
    (0.165, 0.165)
    """
    check_number("n_ratios", n_ratios, numbers.Integral, minimum=2)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    if sample.n_classes != 2:
        problem = f"{sample.n_classes} classes; the curve is defined for two"
        raise InputError("y_prob", None, problem, "use expected_cost for more classes")
    ratio = np.linspace(0.0, 1.0, n_ratios)
    shares = sample.class_weights() / sample.row_weights().sum()
    above = [_share_above(sample, code, ratio) for code in (0, 1)]
    hull = roc_convex_hull(
        sample.codes, sample.forecasts, sample_weight=sample.weights, labels=[0, 1]
    )
    false = np.vstack([shares[0] * (1 - hull.p0), shares[1] * (1 - hull.p1)])
    errors = np.vstack([2 * ratio, 2 * (1 - ratio)])
    return CostCurve(
        ratio,
        errors[0] * shares[0] * above[0] + errors[1] * shares[1] * (1 - above[1]),
        (errors.T @ false).min(axis=1),
        np.minimum(errors[0] * shares[0], errors[1] * shares[1]),
    )


def _share_above(sample: Sample, code: int, ratio: Floats) -> Floats:
    """Share of the rows of a class that are decided for the second one, for each ratio."""
    rows = np.flatnonzero(sample.codes == code)
    # decide() takes the second class if its expected cost is lower: p (1 - ratio) > (1 - p) ratio
    scores, weights = sample.forecasts[rows, 1], sample.row_weights()[rows]
    order = np.argsort(scores, kind="stable")
    total = np.concatenate([[0.0], np.cumsum(weights[order])])
    below = total[np.searchsorted(scores[order], ratio, side="right")]
    return np.asarray(1 - below / total[-1])
