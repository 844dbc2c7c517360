"""Thresholds that reach a target, and what they will reach on new rows."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from isoroc._evaluation.evaluate import pairs_of
from isoroc._evaluation.pair import Pair
from isoroc._input import InputError, check_confidence, check_number, check_option, to_array
from isoroc._intervals import wilson
from isoroc._random import check_random_state
from isoroc._simplex import Floats, Ints
from isoroc._table import Table

Metric = Literal["precision", "recall", "false_positive_rate", "alerts"]
METRICS = ("precision", "recall", "false_positive_rate", "alerts")
#: Metrics of which more is better; the others are bounded from above.
AT_LEAST = ("precision", "recall")


@dataclass(frozen=True, eq=False, repr=False)
class ThresholdReport:
    """A threshold and what it achieves; ``float(report)`` is the threshold.

    Attributes
    ----------
    threshold : float
        Act on rows whose probability is at least this.
    metric : str
        What has a target.
    target : float
        The target.
    table : Table
        For each metric its value on these rows (``achieved``), the mean that new rows are expected
        to have, and an interval of it, ``low`` to ``high``.
    confidence : float
        Probability that an interval covers the mean on new rows.
    """

    threshold: float
    metric: str
    target: float
    table: Table
    confidence: float

    def __float__(self) -> float:
        return self.threshold

    def __repr__(self) -> str:
        sign = ">=" if self.metric in AT_LEAST else "<="
        return f"  act from {self.threshold:.6g} on: {self.metric} {sign} {self.target:g}\n" + repr(
            self.table
        )


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
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.
    confidence : float, default=0.95
        Probability that an interval covers the mean on new rows.
    n_resamples : int, default=400
        How often the rows are resampled for the intervals.
    random_state : int, RandomState or None, default=0
        Seed of the resamples.

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
    seed = int(check_random_state(random_state).randint(2**31 - 1))
    (pair,) = pairs_of(y_true, y_prob, None, sample_weight, labels)
    steps = _Steps.of(pair, label, float(n_rows or 1.0))
    rng = np.random.default_rng(seed)
    found = steps.place(metric, target, steps.values(steps.weights))
    if found is None:
        largest = float(np.nanmax(steps.values(steps.weights)[metric]))
        problem = f"no threshold has {metric} {target:g}; the largest is {largest:.4g}"
        raise InputError("target", None, problem, "choose a lower one")
    achieved = {name: float(v[found]) for name, v in steps.values(steps.weights).items()}
    sizes = steps.sizes(achieved["alerts"])
    losses = [steps.loss(metric, target, rng) for _ in range(n_resamples)]
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    lines = []
    for name in METRICS:
        lost = np.array([loss[name] for loss in losses])
        lost = lost[~np.isnan(lost)]  # no row is acted on, or all have the same label
        if np.isnan(achieved[name]) or not len(lost):
            lines.append((name, achieved[name], np.nan, np.nan, np.nan))
            continue
        low, high = achieved[name] - np.quantile(lost, tails[::-1])
        # Rates of 0 and 1 do not vary among resamples.
        most = steps.n_rows if name == "alerts" else 1.0
        rate = most * np.array(wilson(np.array(achieved[name] / most), sizes[name], confidence))
        ends = np.array([achieved[name] - lost.mean(), min(low, rate[0]), max(high, rate[1])])
        lines.append((name, achieved[name], *ends.clip(0.0, most).tolist()))
    table = Table.from_rows(lines, "metric", "achieved", "expected", "low", "high")
    return ThresholdReport(float(steps.thresholds[found]), metric, target, table, confidence)


@dataclass(frozen=True)
class _Steps:
    """What each threshold achieves: the distinct forecasts from the largest on, and none before."""

    thresholds: Floats
    step: Ints
    """Step from which on each row is acted on."""
    event: Any
    weights: Floats
    chances: Floats
    """Probability that a drawn row is this one."""
    n_drawn: int
    n_rows: float

    @classmethod
    def of(cls, pair: Pair, label: Any, n_rows: float) -> _Steps:
        sample = pair.before
        classes = sample.classes.tolist()
        k = len(classes) - 1 if label is None else -1
        if label is not None:
            given = to_array([label], name="label").tolist()[0]
            k = classes.index(given) if given in classes else -1
        if k < 0:
            fix = f"expected one of {', '.join(map(str, classes))}"
            raise InputError("label", None, f"is {label!r}", fix)
        p = sample.forecasts if sample.forecasts.ndim == 1 else sample.forecasts[:, k]
        values, step = np.unique(-p, return_inverse=True)
        weights = sample.row_weights()
        chances = weights if pair.counted is not None else np.ones(len(p))
        thresholds = np.concatenate([[np.nextafter(p.max(), np.inf)], -values])
        event = sample.codes == k
        shares = chances / chances.sum()
        return cls(thresholds, step + 1, event, weights, shares, pair.n_rows, n_rows)

    def values(self, weights: Floats) -> dict[str, Floats]:
        """Each metric at each threshold, for rows of these weights."""
        n = len(self.thresholds)
        right, wrong = (
            np.cumsum(np.bincount(self.step, weights * of, n)) for of in (self.event, ~self.event)
        )
        alerts = right + wrong
        with np.errstate(invalid="ignore"):
            return {
                "precision": right / alerts,
                "recall": right / right[-1],
                "false_positive_rate": wrong / wrong[-1],
                "alerts": self.n_rows * alerts / alerts[-1],
            }

    def sizes(self, alerts: float) -> dict[str, Any]:
        """Number of rows of which each metric is a rate; weighted rows count less (Kish)."""
        total = self.weights.sum()
        squares = (self.weights**2).sum() if self.n_drawn == len(self.weights) else total
        n, share = total**2 / squares, self.weights @ self.event / total
        shares = (alerts / self.n_rows, share, 1 - share, 1.0)
        return {name: np.maximum(n * s, 1.0) for name, s in zip(METRICS, shares, strict=True)}

    def place(self, metric: str, target: float, values: dict[str, Floats]) -> int | None:
        """Step of the threshold that reaches the target, None if there is none."""
        slack = 1e-12 * max(target, 1.0)
        if metric in AT_LEAST:
            reached = np.flatnonzero(values[metric] >= target - slack)
        else:
            reached = np.flatnonzero(values[metric] <= target + slack)
        if not len(reached):
            return None
        return int(reached[0] if metric == "recall" else reached[-1])

    def loss(self, metric: str, target: float, rng: np.random.Generator) -> dict[str, float]:
        """By how much metrics are better on a resample than on all rows, at its threshold."""
        times = rng.multinomial(self.n_drawn, self.chances)
        scale = 1.0 if self.n_drawn != len(self.weights) else self.weights
        apparent = self.values(np.asarray(times * scale, dtype=np.float64))
        found = self.place(metric, target, apparent)
        if found is None:
            found = int(np.nanargmax(np.append(apparent[metric][:-1], -1.0)))
        actual = self.values(self.weights)
        return {name: float(apparent[name][found] - actual[name][found]) for name in METRICS}
