"""Decision curves: the net benefit of acting on forecasts."""

from typing import Any

from numpy.typing import ArrayLike

from isoroc._evaluation.decision_curve import DecisionCurve, decision_curve
from isoroc._evaluation.evaluate import pair_of_arrays
from isoroc._input import check_confidence

__all__ = ["DecisionCurve", "net_benefit"]


def net_benefit(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    thresholds: ArrayLike | None = None,
    *,
    after: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> DecisionCurve:
    """Net benefit of acting on forecasts, for a range of thresholds (Vickers and Elkin 2006).

    A threshold t says how acting on a row is valued: it is worth 1 if the second class occurs, and
    costs ``t / (1 - t)`` otherwise. Then it pays to act if the probability is at least t.

    Parameters
    ----------
    y_true, y_prob : array-like
        As in `isoroc.evaluate`, with two classes.
    thresholds : array-like of shape (T,), default=None
        Between 0 and 1, 1 excluded; by default 0.01, 0.02, ..., 0.99.
    after, sample_weight, labels, clusters, confidence
        As in `isoroc.evaluate`. The confidence holds at each threshold.

    Returns
    -------
    DecisionCurve

    See Also
    --------
    isoroc.plots.DecisionCurveDisplay : Draws it.
    expected_cost : Mean cost of decisions under one cost matrix, for any number of classes.

    Notes
    -----
    With TP and FP the shares of rows that are acted on and have the second class or not, the net
    benefit is ``TP - FP * t / (1 - t)``. Forecasts have to beat acting on all rows ("all") and on
    none ("none", 0). Intervals are normal, with the covariances of means over the same rows and of
    four more rows, so that they also cover where few rows are acted on.

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
    """
    check_confidence(confidence)
    pair = pair_of_arrays(y_true, y_prob, after, sample_weight, labels, clusters=clusters)
    return decision_curve(pair, thresholds, confidence)
