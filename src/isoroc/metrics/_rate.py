"""The rate of an outcome, from few labels and a judge's scores of many rows."""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot, inf
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core.intervals import Estimate, Share, Statistic, mean_of
from isoroc._core.newton import logistic_regression
from isoroc._core.special import expit
from isoroc._core.types import Floats, Ints
from isoroc._input import (
    InputError,
    check_confidence,
    check_forecasts,
    check_groups,
    check_sample,
    deal_folds,
    refuse_soft_labels,
)
from isoroc._support.seeds import check_random_state


@dataclass(frozen=True)
class RateEstimate:
    """An estimated rate, its interval, and what the labels alone would have given.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import estimate_rate
    >>> y = np.arange(100) % 4 > 0
    >>> first = estimate_rate(y, y, np.arange(9000) % 4 > 0)
    >>> second = estimate_rate(y, y, np.arange(9000) % 5 > 0)
    >>> round(first.value, 3), round(second.minus(first).value, 3)
    (0.75, 0.048)
    """

    value: float
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end of the interval."""
    labels_alone: Estimate
    """The estimate without the scores."""
    n_effective: float
    """Number of labelled rows that would give as narrow an interval without the scores."""

    def minus(self, other: Self) -> Estimate:
        """Difference from another rate, estimated from other labels.

        The interval combines both (Newcombe 1998). It is too wide if labels share questions.
        """
        difference = self.value - other.value
        low = difference - hypot(self.value - self.low, other.high - other.value)
        high = difference + hypot(self.high - self.value, other.value - other.low)
        return Estimate(difference, low, high)


def estimate_rate(
    y: ArrayLike,
    p: ArrayLike,
    p_unlabelled: ArrayLike,
    *,
    labels: ArrayLike = (0, 1),
    clusters: ArrayLike | None = None,
    clusters_unlabelled: ArrayLike | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> RateEstimate:
    """Rate of an outcome among all rows, where few rows have labels and all have scores.

    Typically a language model judges 10,000 answers, and people check 100 of them, drawn at random.
    The mean of the scores is biased, the mean of the labels imprecise. This estimate is neither
    (prediction-powered inference, Angelopoulos et al. 2023).

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes of the labelled rows, a random sample of all rows.
    p : array-like of shape (n,) or (n, 2)
        Scores of the labelled rows: probabilities, verdicts of 0 and 1, or any score that increases
        with the probability of the outcome.
    p_unlabelled : array-like of shape (N,) or (N, 2)
        Scores of the other rows.
    labels : array-like of shape (2,), default=(0, 1)
        The two outcomes. The rate belongs to the second.
    clusters : array-like of shape (n,), default=None
        Clusters of labelled rows that depend on each other.
    clusters_unlabelled : array-like of shape (N,), default=None
        Clusters of the other rows. Equal names are the same cluster as in `clusters`.
    confidence : float, default=0.95
        Probability that the interval covers the rate.
    random_state : int, RandomState or None, default=0
        Seed of the folds.

    Returns
    -------
    RateEstimate
        The rate and its interval.

    Notes
    -----
    The scores are calibrated on the labelled rows by logistic regression, cross-fitted in five
    folds. The estimate is the mean label plus the difference of the mean forecasts of unlabelled
    and labelled rows, times the factor between 0 and 1 that minimises the variance (PPI++,
    Angelopoulos et al. 2024). The interval is Wilson's, for the number of labels whose mean would
    be as precise.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import estimate_rate
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(10_000) < 0.6
    >>> judged = np.where(rng.random(10_000) < 0.9, right, ~right)  # the judge errs on 10 %
    >>> rate = estimate_rate(right[:100], judged[:100], judged[100:])
    >>> [round(x, 3) for x in (rate.value, rate.low, rate.high)]
    [0.554, 0.492, 0.613]
    >>> [round(x, 3) for x in rate.labels_alone]
    [0.51, 0.412, 0.607]
    """
    check_confidence(confidence)
    sample = check_sample(p, y, None, labels, clusters=clusters, name="p")
    refuse_soft_labels(sample)
    if len(sample) < 10:
        raise InputError("y", None, f"{len(sample)} labelled rows", "expected at least 10")
    unseen = check_forecasts(p_unlabelled, name="p_unlabelled", unit=sample.unit)
    if unseen.ndim != sample.forecasts.ndim:
        raise InputError("p_unlabelled", None, "other columns than p", "they must agree")
    outcomes = sample.codes.astype(np.float64)
    alone = mean_of(outcomes, None, sample.clusters)
    scores, unlabelled = (_log_odds(values, sample.unit) for values in (sample.forecasts, unseen))
    forecasts, means = _cross_fit(scores, outcomes, unlabelled, sample.clusters, random_state)
    others = Statistic(float(means.mean()), float(means.var() / len(means)))
    groups = None
    if clusters_unlabelled is not None:
        groups = _groups(clusters, clusters_unlabelled, len(outcomes), len(means))
        others = mean_of(means, None, np.unique(groups[len(outcomes) :], return_inverse=True)[1])
    # The weight of the forecasts that minimises the variance of the estimate.
    scale = np.append(forecasts, means).var() + len(outcomes) * others.variance
    covariance = np.cov(outcomes, forecasts)[0, 1]
    factor = float(np.clip(covariance / scale, 0.0, 1.0)) if scale > 1e-12 else 0.0
    rest = mean_of(outcomes - factor * forecasts, None, sample.clusters)
    value = float(np.clip(rest.value + factor * others.value, 0.0, 1.0))
    added = factor**2 * others.variance
    variance = rest.variance + added
    df = others.df * (variance / added) ** 2 if added > 0 else inf
    if clusters is not None and groups is not None:
        residuals = outcomes - factor * forecasts - rest.value
        variance += 2 * factor * _covariance(residuals, means - others.value, groups)
    spread = value * (1 - value)
    size = spread / alone.variance if alone.variance > 0 and spread > 0 else float(len(sample))
    precise = size
    if variance > 0 and spread > 0:
        precise = spread / variance if groups is not None else max(size, spread / variance)
    low, high = Share(value, precise, df).interval(confidence)
    by_labels = Estimate(alone.value, *Share(alone.value, size).interval(confidence))
    return RateEstimate(value, low, high, by_labels, float(precise))


def _groups(clusters: Any, unlabelled: Any, n: int, n_others: int) -> Ints:
    """Cluster of each labelled row, its own if there are none, and then of each other row."""
    first = np.array([f"row {i}" for i in range(n)])
    if clusters is not None:
        first = check_groups(clusters, n, of="p", name="clusters")
    name = "clusters_unlabelled"
    second = check_groups(unlabelled, n_others, of="p_unlabelled", name=name)
    if (second == second[0]).all():
        problem = f"all {n_others} rows are in cluster {second[0]}"
        raise InputError(name, None, problem, "at least two clusters are needed")
    return np.unique(np.append(first, second), return_inverse=True)[1]


def _covariance(labelled: Floats, others: Floats, groups: Ints) -> float:
    """Covariance of two means of values around 0 that share groups. A negative one counts as 0."""
    n = len(labelled)
    size = groups.max() + 1
    first = np.bincount(groups[:n], labelled, size) / n
    second = np.bincount(groups[n:], others, size) / len(others)
    return max(float(first @ second), 0.0)


def _log_odds(values: Floats, unit: str, floor: float = 1e-4) -> Floats:
    """Log odds of probabilities, other scores unchanged."""
    scores = values if values.ndim == 1 else values[:, -1]
    clipped = np.clip(scores, floor, 1 - floor)
    return np.log(clipped) - np.log1p(-clipped) if unit == "probability" else scores


def _cross_fit(
    scores: Floats, y: Floats, unlabelled: Floats, clusters: Any, random_state: Any
) -> tuple[Floats, Floats]:
    """Out-of-fold forecasts of the labelled rows, mean forecasts of the others over all folds."""
    scale = scores.std() or 1.0
    x = (scores - scores.mean()) / scale
    new = (unlabelled - scores.mean()) / scale
    fold = deal_folds(len(y), 5, check_random_state(random_state), clusters)
    if clusters is None:  # the order of the rows does not matter
        fold = fold[np.argsort(np.lexsort((y, scores)))]
    forecasts = np.empty(len(y))
    means = np.zeros(len(new))
    for k in np.unique(fold):
        rows = fold != k
        # Half an outcome of each kind at the mean score keeps the intercept finite.
        X = np.stack([np.ones(rows.sum() + 1), np.append(x[rows], 0.0)])
        theta, *_ = logistic_regression(
            X,
            np.append(y[rows], 0.5),
            np.ones(X.shape[1]),
            start=np.zeros((1, 2)),
            precision=np.array([[1e-3, 0.5]]),
        )
        intercept, slope = theta[0]
        forecasts[~rows] = expit(intercept + slope * x[~rows])
        means += expit(intercept + slope * new) / len(np.unique(fold))
    return forecasts, means
