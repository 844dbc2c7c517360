"""Decision curves: the net benefit of acting on forecasts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from isoroc._core.types import Floats
from isoroc._evaluation.decision_curve import DecisionCurve, decision_curve
from isoroc._evaluation.evaluate import pair_of_arrays
from isoroc._input import check_confidence
from isoroc.decisions._cost import check_costs

__all__ = ["DecisionCurve", "net_benefit"]


def net_benefit(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    thresholds: ArrayLike | None = None,
    *,
    after: Any = None,
    costs: Callable[[float], Any] | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> DecisionCurve:
    """Net benefit of acting on forecasts, for a range of thresholds (Vickers and Elkin 2006).

    A threshold t says how an action on a row is valued: it is worth 1 if the second class occurs,
    and costs ``t / (1 - t)`` otherwise. Whoever thinks so acts if the probability is at least t.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, K) or (n,)
        Labels; forecasts, or the probability of the second of two classes.
    thresholds : array-like of shape (T,), default=None
        Between 0 and 1, 1 excluded; by default 0.01, 0.02, ..., 0.99. With `costs`, any numbers.
    after : array-like of shape (n, K) or (n,), or calibrator, default=None
        Forecasts of the same rows after calibration, or a fitted calibrator that makes them.
    costs : callable, default=None
        For more than two classes or other actions: a function from a threshold to a cost matrix,
        see `decide`. Its first action is the one with which all others are compared.
    sample_weight, labels : array-like of shape (n,) and (K,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).
    clusters : array-like of shape (n,), default=None
        Cluster of each row, if rows of one cluster depend on each other: intervals allow for that.
    confidence : float, default=0.95
        Probability that an interval covers the true value, at each threshold.

    Returns
    -------
    DecisionCurve

    See Also
    --------
    isoroc.plots.DecisionCurveDisplay : Draws it.
    expected_cost : Mean cost of decisions under one cost matrix.

    Notes
    -----
    With TP and FP the shares of rows that are acted on and have the second class or not, the net
    benefit is ``TP - FP * t / (1 - t)``. That of acting on all rows ("all") and on none ("none", 0)
    are the alternatives that forecasts have to beat. With a cost matrix, the net benefit is the
    mean cost of the first action less that of the actions taken. Intervals are normal, with the
    covariances of means over the same rows and of four more rows, so that they also cover where few
    rows are acted on.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import net_benefit
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(5000)
    >>> y = rng.random(5000) < p**2  # forecasts of p are too high
    >>> curve = net_benefit(y, p, [0.1, 0.3, 0.5], after=p**2)
    >>> curve
      threshold  before   after  none      all       95 % change
            0.1  0.2748  0.2876     0   0.2631  0.0098 to 0.0158
            0.3  0.1696  0.2107     0   0.0526  0.0332 to 0.0490
            0.5  0.0914  0.1364     0  -0.3264  0.0325 to 0.0575
    >>> curve.benefit("after", minus="all", scaled=True)
      threshold     value       low      high
            0.1  0.072776  0.062268  0.083285
            0.3   0.46955   0.42686   0.51223
            0.5    1.3741    1.2674    1.4808
    """
    check_confidence(confidence)
    pair = pair_of_arrays(y_true, y_prob, after, sample_weight, labels, clusters=clusters)
    if costs is None:
        return decision_curve(pair, thresholds, confidence)

    def benefits(t: float, classes: NDArray[Any]) -> tuple[Floats, list[str]]:
        matrix = check_costs(costs(t), classes)
        return matrix.values[:, :1] - matrix.values, [str(a) for a in matrix.actions.tolist()]

    return decision_curve(pair, thresholds, confidence, benefits)
