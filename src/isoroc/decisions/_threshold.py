"""Thresholds that reach a target, and the net benefit of acting at each threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from isoroc._core.intervals import design_effect, effective_rows
from isoroc._evaluation.decision_curve import DecisionCurve, decision_curve
from isoroc._evaluation.evaluate import pair_of_arrays
from isoroc._input import InputError, check_confidence, check_number, check_option
from isoroc._support.table import Table

__all__ = ["DecisionCurve", "ThresholdReport", "net_benefit", "threshold_for"]

Metric = Literal["precision", "recall", "false_positive_rate", "alerts"]
#: Metrics that the target bounds from below. The others are bounded from above.
AT_LEAST = ("precision", "recall")


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdReport:
    """A threshold and what it achieves. ``float(report)`` is the threshold."""

    threshold: float
    """Act on rows with at least this probability."""
    metric: str
    target: float
    table: Table
    """For each metric its value on these rows (``achieved``), and an interval of its mean on new
    rows, ``low`` to ``high``."""
    confidence: float

    def __float__(self) -> float:
        return self.threshold

    def __repr__(self) -> str:
        sign = ">=" if self.metric in AT_LEAST else "<="
        head = f"  act at or above {self.threshold:.6g}: {self.metric} {sign} {self.target:g}"
        return f"{head}\n{self.table!r}"


def threshold_for(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    metric: Metric,
    target: float,
    label: Any = None,
    n_rows: float | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> ThresholdReport:
    """The threshold that reaches a target, with an interval for what it reaches on new rows.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    metric : {"precision", "recall", "false_positive_rate", "alerts"}
        "precision" and "recall" must be at least `target`, and the others at most. "recall" is
        reached with as few alerts as possible, the others with as many as possible.
    target : float
        A share between 0 and 1. With `n_rows`, the target of "alerts" is a number of rows.
    label : object, default=None
        The class that is acted on, the last by default.
    n_rows : float, default=None
        Number of rows that arrive in a period, such as a day. Alerts are then counted per period.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other.
    confidence : float, default=0.95
        Probability that an interval covers the mean on new rows.

    Returns
    -------
    ThresholdReport

    See Also
    --------
    best_threshold : The threshold for given costs, which needs no rows.

    Notes
    -----
    A threshold that is chosen on some rows does worse on others. Clopper and Pearson's
    intervals allow for this: the share of the population above the k-th largest of m rows has the
    distribution Beta(k, m + 1 - k), and its quantile is the lower end.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import threshold_for
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> round(float(threshold_for(y, p, metric="precision", target=0.9)), 3)
    0.754
    >>> round(float(threshold_for(y, p, metric="alerts", target=100, n_rows=5000)), 3)
    0.981
    """
    metrics: tuple[str, ...] = get_args(Metric)
    check_option("metric", metric, metrics)
    check_number("target", target, minimum=0)
    check_number("n_rows", n_rows, minimum=1, others=(None,))
    if target > 1 and (metric != "alerts" or n_rows is None):
        fix = f"{metric} is a share, expected at most 1"
        if metric == "alerts":
            fix += ". For a number of alerts pass n_rows=, which is len(y_true) for these rows"
        raise InputError("target", None, f"is {target:g}", fix)
    check_confidence(confidence)
    pair = pair_of_arrays(y_true, y_prob, None, sample_weight, labels, clusters=clusters)
    sample = pair.before
    classes = pair.before.classes.tolist()
    check_option("label", label, (None, *classes))
    k = len(classes) - 1 if label is None else classes.index(label)
    p = sample.forecasts if sample.forecasts.ndim == 1 else sample.forecasts[:, k]
    event = (sample.codes == k) * 1.0
    weights = sample.row_weights()
    # What acting on no row achieves, and on the rows at or above each distinct forecast.
    values, step = np.unique(-p, return_inverse=True)
    thresholds = np.append(np.nextafter(p.max(), np.inf), -values)
    right, acted = (np.cumsum(np.bincount(step + 1, w)) for w in (weights * event, weights))
    wrong = acted - right
    scale = np.array([1.0, 1.0, 1.0, n_rows or 1.0])
    with np.errstate(invalid="ignore"):
        rates = np.array([right / acted, right / right[-1], wrong / wrong[-1], acted / acted[-1]])
    row = metrics.index(metric)
    sign = 1 if metric in AT_LEAST else -1
    reached = np.flatnonzero(sign * (rates[row] * scale[row] - target) >= -1e-12 * max(target, 1.0))
    if not len(reached):
        bound = f"the largest is {np.nanmax(rates[row]):.4g}"
        problem = f"no threshold has {metric} {target:g}; {bound}"
        raise InputError("target", None, problem, "choose a lower one")
    at = reached[0] if metric == "recall" else reached[-1]
    n = effective_rows(weights.sum(), (weights**2).sum())
    size = n / acted[-1] * np.array([acted[at], right[-1], wrong[-1], acted[-1]])
    if clusters is not None:
        chosen = (p >= thresholds[at]) * 1.0
        among = np.array([chosen, event, 1 - event, np.ones(len(p))])
        terms = weights * among * (np.array([event, chosen, chosen, chosen]) - rates[:, at, None])
        size /= design_effect(terms, sample.clusters)
    hits = rates[:, at] * size
    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):  # rates of no rows are NaN
        low = np.where(hits > 0, betaincinv(hits, size - hits + 1, tail), 0 * hits)
        high = np.where(hits < size, betaincinv(hits + 1, size - hits, 1 - tail), 0 * hits + 1)
    columns = {"achieved": rates[:, at] * scale, "low": low * scale, "high": high * scale}
    table = Table({"metric": np.array(metrics)} | columns)
    return ThresholdReport(float(thresholds[at]), metric, target, table, confidence)


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
    y_true : array-like of shape (n,) or (n, 2)
        Labels, or the shares of the two classes in each row (soft labels).
    y_prob : array-like of shape (n, 2) or (n,)
        Forecasts, or the probability of the second class.
    thresholds : array-like of shape (T,), default=None
        Between 0 and 1, 1 excluded, by default 0.01, 0.02, ..., 0.99.
    after : array-like of shape (n, 2) or (n,), or calibrator, default=None
        Other forecasts of the same rows, or a fitted calibrator that makes them.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (2,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other.
    confidence : float, default=0.95
        Probability that an interval covers the true value, at each threshold.

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
    none ("none", 0). Intervals are normal, computed with four extra rows so that they also cover
    where few rows are acted on.

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
