"""Thresholds that reach a target, and what they will reach on new rows."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import betaincinv

from isoroc._evaluation.evaluate import pairs_of
from isoroc._evaluation.pair import Pair
from isoroc._input import InputError, check_confidence, check_number, check_option
from isoroc._random import check_random_state
from isoroc._simplex import Floats, Ints
from isoroc._table import Table

Metric = Literal["precision", "recall", "false_positive_rate", "alerts"]
METRICS = get_args(Metric)
#: Metrics of which more is better; the others are bounded from above.
AT_LEAST = ("precision", "recall")


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdReport:
    """A threshold and what it achieves; ``float(report)`` is the threshold."""

    threshold: float
    """Act on rows whose probability is at least this."""
    metric: str
    target: float
    table: Table
    """For each metric its value on these rows (``achieved``), the mean that new rows are expected
    to have, and an interval of it, ``low`` to ``high``."""
    confidence: float

    def __float__(self) -> float:
        return self.threshold

    def __repr__(self) -> str:
        sign = ">=" if self.metric in AT_LEAST else "<="
        head = f"  act from {self.threshold:.6g} on: {self.metric} {sign} {self.target:g}"
        return f"{head}\n{self.table!r}"


def threshold_for(
    metric: Metric,
    target: float,
    y_true: Any,
    y_prob: Any = None,
    *,
    label: Any = None,
    n_rows: float | None = None,
    sample_weight: Any = None,
    labels: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 400,
    random_state: Any = 0,
) -> ThresholdReport:
    """The threshold that reaches a target, with an interval for what it reaches on new rows.

    Parameters
    ----------
    metric : {"precision", "recall", "false_positive_rate", "alerts"}
        "precision": at least `target`, with as many alerts as possible. "recall": at least
        `target`, with as few alerts as possible. "false_positive_rate" and "alerts": at most
        `target`, with as many alerts as possible. Alerts are a share of the rows, or with `n_rows`
        a number.
    target : float
        The target.
    y_true : array-like of shape (n,) or Counts
        Labels; or counts in place of `y_true` and `y_prob`.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    label : object, default=None
        The class that is acted on; the last by default.
    n_rows : float, default=None
        Number of rows that arrive in a period, such as a day: alerts are then those of a period.
    sample_weight, labels : array-like of shape (n,) and (K,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).
    confidence : float, default=0.95
        Probability that an interval covers the mean on new rows.
    n_resamples, random_state : int, default=400; int, RandomState or None, default=0
        How often the rows are resampled for the intervals, and the seed.

    Returns
    -------
    ThresholdReport

    See Also
    --------
    best_threshold : The threshold for given costs, which needs no rows.

    Notes
    -----
    A threshold that is chosen on some rows does worse on others. How much is found by choosing it
    on resamples, and comparing what it achieves there with what it achieves on all rows (Efron's
    optimism). New rows are those of a population like these rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import threshold_for
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < p
    >>> report = threshold_for("precision", 0.9, y, p)
    >>> report.table.select("metric", "achieved")
                   metric  achieved
                precision   0.90099
                   recall   0.45139
      false_positive_rate  0.050403
                   alerts    0.2525
    >>> round(float(threshold_for("alerts", 100, y, p, n_rows=5000)), 3)
    0.981
    """
    check_option("metric", metric, METRICS)
    check_number("target", target, numbers.Real, minimum=0)
    check_number("n_resamples", n_resamples, numbers.Integral, minimum=2)
    check_confidence(confidence)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    (pair,) = pairs_of(y_true, y_prob, None, sample_weight, labels)
    steps = _Steps.of(pair, label, float(n_rows or 1.0))
    actual, own = steps.values(pair.before.row_weights()), METRICS.index(metric)
    found = _place(actual, own, target)
    if found is None:
        bound = f"the largest is {np.nanmax(actual[own]):.4g}"
        problem = f"no threshold has {metric} {target:g}; {bound}"
        raise InputError("target", None, problem, "choose a lower one")
    lost = np.array([steps.loss(actual, own, target, rng) for _ in range(n_resamples)])
    tails, lines = [(1 + confidence) / 2, (1 - confidence) / 2], []
    sizes = steps.sizes(pair, float(actual[3, found]))
    for name, value, column, size in zip(METRICS, actual[:, found], lost.T, sizes, strict=True):
        losses = column[~np.isnan(column)]  # no row is acted on, or all have the same label
        ends = np.full(3, np.nan)
        if len(losses) and not np.isnan(value):
            most = steps.n_rows if name == "alerts" else 1.0
            low, high = value - np.quantile(losses, tails)
            least, largest = most * _exact_interval(value / most, size, confidence)
            ends = np.clip([value - losses.mean(), min(low, least), max(high, largest)], 0, most)
        lines.append((name, float(value), *ends.tolist()))
    table = Table.from_rows(lines, "metric", "achieved", "expected", "low", "high")
    return ThresholdReport(float(steps.thresholds[found]), metric, target, table, confidence)


@dataclass(frozen=True)
class _Steps:
    """What each threshold achieves: the distinct forecasts from the largest on, and none before."""

    thresholds: Floats
    step: Ints
    """Step from which on each row is acted on."""
    event: Any
    chances: Floats
    """Probability that a drawn row is this one,"""
    scale: Floats
    """and its weight."""
    n_drawn: int
    n_rows: float

    @classmethod
    def of(cls, pair: Pair, label: Any, n_rows: float) -> _Steps:
        sample, classes = pair.before, pair.before.classes.tolist()
        if label is not None and label not in classes:
            fix = f"expected one of {', '.join(map(str, classes))}"
            raise InputError("label", None, f"is {label!r}", fix)
        k = len(classes) - 1 if label is None else classes.index(label)
        p = sample.forecasts if sample.forecasts.ndim == 1 else sample.forecasts[:, k]
        values, step = np.unique(-p, return_inverse=True)
        thresholds = np.concatenate([[np.nextafter(p.max(), np.inf)], -values])
        weights, ones = sample.row_weights(), np.ones(len(p))
        chances, scale = (ones, weights) if pair.counted is None else (weights, ones)
        shares = chances / chances.sum()
        return cls(thresholds, step + 1, sample.codes == k, shares, scale, pair.n_rows, n_rows)

    def values(self, weights: Floats) -> Floats:
        """Each metric (row) at each threshold, for rows of these weights."""
        n = len(self.thresholds)
        right, wrong = (
            np.cumsum(np.bincount(self.step, weights * of, n)) for of in (self.event, ~self.event)
        )
        acted = right + wrong
        with np.errstate(invalid="ignore"):
            rates = right / acted, right / right[-1], wrong / wrong[-1]
        return np.vstack([*rates, self.n_rows * acted / acted[-1]])

    def sizes(self, pair: Pair, alerts: float) -> Floats:
        """Number of rows of which each metric is a rate; weighted rows count less (Kish)."""
        weights = pair.before.row_weights()
        n = weights.sum() ** 2 / pair.squared_weights().sum()
        share = weights @ self.event / weights.sum()
        shares = np.array([alerts / self.n_rows, share, 1 - share, 1.0])
        return np.asarray(np.maximum(n * shares, 1.0))

    def loss(self, actual: Floats, own: int, target: float, rng: np.random.Generator) -> Floats:
        """By how much metrics are better on a resample than on all rows, at its threshold."""
        apparent = self.values(rng.multinomial(self.n_drawn, self.chances) * self.scale)
        found = _place(apparent, own, target)
        if found is None:
            found = int(np.nan_to_num(apparent[own], nan=-np.inf).argmax())
        return np.asarray(apparent[:, found] - actual[:, found])


def _exact_interval(rate: float, n: float, confidence: float) -> Floats:
    """Interval of Clopper and Pearson; it holds rates of 0 and 1, which no resample varies.

    Among m rows, the share of the population above the k-th largest has the distribution Beta(k,
    m + 1 - k), whose quantile is its lower end.
    """
    k, tail = rate * n, (1 - confidence) / 2
    low = betaincinv(k, n - k + 1, tail) if k > 0 else 0.0
    high = betaincinv(k + 1, n - k, 1 - tail) if k < n else 1.0
    return np.array([low, high])


def _place(values: Floats, own: int, target: float) -> int | None:
    """Step of the threshold that reaches the target, None if there is none."""
    sign = 1.0 if METRICS[own] in AT_LEAST else -1.0
    reached = np.flatnonzero(sign * (values[own] - target) >= -1e-12 * max(target, 1.0))
    if not len(reached):
        return None
    return int(reached[0] if METRICS[own] == "recall" else reached[-1])
