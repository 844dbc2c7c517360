"""Forecasts for a population with another class prior, and the estimation of this prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtrc

from isoroc._core.intervals import effective_weights, half_width
from isoroc._core.losses import EPSILON, calibration_covariance
from isoroc._core.newton import newton
from isoroc._core.types import Floats
from isoroc._input import (
    InputError,
    check_calibration,
    check_confidence,
    check_shares,
    check_unlabelled,
    check_weights,
)
from isoroc._support.table import Table

LEAST_LIKELIHOOD = 1e-12  # of a row


def adjust_prior(P: Any, old: Any, new: Any, *, labels: Any = None) -> Floats:
    """Forecasts for a population with another class prior.

    The forecasts must be calibrated for the old population, and rows of each class must look the
    same in both (label shift), as when some classes were sampled less often before training.

    Parameters
    ----------
    P : array-like of shape (n, K) or (n,)
        Calibrated forecasts, or the probability of the second of two classes.
    old : array-like of shape (K,), mapping of labels to shares, or float
        Class shares of the calibration rows. One number is the share of the second of two classes.
    new : array-like of shape (K,), mapping of labels to shares, or float
        Class shares of the other population.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, by default the column names of a dataframe, or
        their numbers.

    Returns
    -------
    ndarray of the shape of P
        ``P * new / old``, divided by its sum in each row.

    Examples
    --------
    A model was trained on as many fraudulent as honest payments, but only 1 in 100 is fraudulent:

    >>> from isoroc import adjust_prior
    >>> adjust_prior([0.5, 0.9, 0.99], old=0.5, new=0.01).round(3)
    array([0.01 , 0.083, 0.5  ])
    """
    forecasts, classes = check_unlabelled(P, labels)
    shares = check_shares(old, classes, name="old", positive=True)
    adjusted = forecasts * (check_shares(new, classes, name="new", positive=False) / shares)
    totals = adjusted.sum(axis=1, keepdims=True)
    if not totals.all():
        row = int(np.argmin(totals))
        problem = "is certain of classes that have no share in the new population"
        raise InputError("P", row, problem, "calibrated forecasts of 0 and 1 cannot be adjusted")
    adjusted /= totals
    return np.asarray(adjusted[:, 1] if np.ndim(P) == 1 else adjusted)


@dataclass(frozen=True, eq=False, repr=False)
class PriorEstimate:
    """Class prior of new rows, with intervals, and a test of whether it differs from the old one.

    Arrays have one entry per class.
    """

    prior: Floats
    """The estimate."""
    low: Floats
    """Interval of each share, from `low` to `high`."""
    high: Floats
    old: Floats
    """Class shares of the calibration rows."""
    p_value: float
    """How likely a difference of this size is by chance if the prior is the old one."""
    confidence: float
    """Probability that an interval covers the true share."""
    classes: NDArray[Any]
    n_rows: int

    @property
    def table(self) -> Table:
        """One row per class: old share, estimate and interval."""
        columns = {"class": self.classes, "old": self.old, "new": self.prior}
        return Table(columns, low=self.low, high=self.high)

    def __repr__(self) -> str:
        by_chance = f"p = {self.p_value:.2g} under the old shares, {self.n_rows} rows"
        return f"{self.table!r}\n  {by_chance}"


def estimate_prior(
    P: Any,
    old: Any,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    calibration: Any = None,
    confidence: float = 0.95,
) -> PriorEstimate:
    """Class prior of new rows without labels, by maximum likelihood.

    The conditions of `adjust_prior` must hold (Saerens, Latinne and Decaestecker 2002).

    Parameters
    ----------
    P : array-like of shape (n, K) or (n,)
        Calibrated forecasts of the new rows, not adjusted.
    old, labels
        As in `adjust_prior`.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    calibration : int, array-like of shape (m, K) or (m,), or calibrator, default=None
        What `P` was calibrated with: the number of rows, their calibrated forecasts, or the fitted
        calibrator. Intervals and test then allow for the uncertainty of the calibration. Without
        it they are too narrow if the calibrator was fitted to few rows.
    confidence : float, default=0.95
        Probability that an interval covers the true share.

    Returns
    -------
    PriorEstimate

    Notes
    -----
    The log likelihood of shares w is ``sum_i log(sum_k P[i, k] w[k] / old[k])``. One row with the
    old shares is added to its maximum, so that no share is 0. The test and the intervals are based
    on likelihood ratios. Weights are scaled to sum to Kish's effective number of rows. With
    `calibration`, the prior is estimated 20 more times with another slope and shifts of the log
    odds, drawn with twice the variance that m calibration rows leave, and `old` moves with the
    forecasts of these rows. The variance of the estimates is added.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import estimate_prior
    >>> rng = np.random.default_rng(0)
    >>> x = np.where(rng.random(2000) < 0.2, 1.0, -1.0) + rng.normal(size=2000)  # 20 % positive
    >>> p = 1 / (1 + np.exp(-2 * x))  # calibrated if half of the rows are positive
    >>> estimate_prior(p, [0.5, 0.5], labels=["no", "yes"])
      class  old      new      low     high
         no  0.5  0.78968  0.76393  0.81464
        yes  0.5  0.21032  0.18536  0.23607
      p = 1.2e-86 under the old shares, 2000 rows
    """
    check_confidence(confidence)
    P, classes = check_unlabelled(P, labels)
    shares = check_shares(old, classes, name="old", positive=True)
    given = check_weights(sample_weight, len(P))
    weights = np.ones(len(P)) if given is None else effective_weights(given)
    likelihood = P / shares
    total = weights.sum()
    best = _most_likely(likelihood, weights, shares)
    lift = 2 * float(
        weights @ np.log(np.maximum(likelihood @ best, LEAST_LIKELIHOOD))
    )  # 0 for the old shares
    prior = (total * best + shares) / (total + 1)
    shift = np.zeros(len(shares))
    most = max(60_000 // len(shares), 1000)
    if len(P) > most:  # intervals from fewer rows, scaled to the number of rows
        rows = np.random.default_rng(0).permutation(len(P))[:most]
        likelihood = likelihood[rows]
        weights = weights[rows] * (total / weights[rows].sum())
        some = _most_likely(likelihood, weights, best)
        shift = best - some
        best = some
    width = half_width(confidence)
    ends = [_interval(likelihood, weights, best, k, width) for k in range(len(shares))]
    low, high = np.clip(np.transpose(ends) + shift, 0.0, 1.0)
    low = np.minimum(low, prior)
    high = np.maximum(high, prior)
    if calibration is not None:
        spread, change = _refit_covariance(likelihood, weights, best, shares, calibration)
        added = width * np.sqrt(np.diag(spread))
        low = np.maximum(prior - np.hypot(prior - low, added), 0.0)
        high = np.minimum(prior + np.hypot(high - prior, added), 1.0)
        lift *= _share_of_variance(likelihood, weights, best, change, best - shares)
    p_value = float(chdtrc(len(shares) - 1, max(lift, 0.0)))
    return PriorEstimate(prior, low, high, shares, p_value, confidence, classes, len(P))


def _refit_covariance(
    L: Floats, weights: Floats, best: Floats, old: Floats, calibration: Any, *, n_refits: int = 20
) -> tuple[Floats, Floats]:
    """Covariances of prior and change over calibrations that could have been learned as well.

    The factor 2 is for calibrators that shrink or overfit: without it, 89 to 96 % of the intervals
    covered after 200 calibration rows (settings of benchmarks/simulations.py learned_priors).
    """
    P = L * old
    rows, n_rows = check_calibration(calibration, P)
    if rows is P:  # the calibration rows had the old shares
        as_before = 1 / np.maximum(L @ best, LEAST_LIKELIHOOD)
        n_rows = as_before * (n_rows.sum() / as_before.sum())
    covariance = 2 * calibration_covariance(rows, n_rows)
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(n_refits, len(covariance))) @ np.linalg.cholesky(covariance).T
    total = n_rows.sum()
    # The calibration rows are a sample too, so their population has other shares.
    times = rng.multinomial(round(total), n_rows / total, size=n_refits)
    priors = []
    changes = []
    for (slope, *shifts), time in zip(drawn.tolist(), times, strict=True):
        moved = old * (time @ _move(rows, slope, shifts)) / (n_rows @ rows)
        moved /= moved.sum()
        priors.append(_most_likely(_move(P, slope, shifts) / moved, weights, best))
        changes.append(priors[-1] - moved)
    return np.cov(np.transpose(priors)), np.cov(np.transpose(changes))


def _move(P: Floats, slope: float, shifts: list[float]) -> Floats:
    """Forecasts with other log odds."""
    logs = (1 + slope) * np.log(np.maximum(P, EPSILON)) + shifts
    moved = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def _share_of_variance(
    L: Floats, weights: Floats, best: Floats, added: Floats, direction: Floats
) -> float:
    """Share of a likelihood ratio in this direction that is left if a covariance is added."""
    X = L * (np.sqrt(weights) / np.maximum(L @ best, LEAST_LIKELIHOOD))[:, None]
    along = np.eye(len(best)) - 1 / len(best)  # shares sum to 1
    information = along @ (X.T @ X) @ along
    both = np.linalg.pinv(np.linalg.pinv(information, hermitian=True) + added, hermitian=True)
    ratio = direction @ information @ direction
    return min(float(direction @ both @ direction / ratio), 1.0) if ratio > 0 else 1.0


def _interval(L: Floats, weights: Floats, best: Floats, k: int, width: float) -> list[float]:
    """Interval of the share of class k, from the profile likelihood ratio."""
    others = np.delete(best, k)
    likelihood = L[:, [k]]
    rest = np.delete(L, k, axis=1)
    others = others / others.sum() if others.any() else np.full(len(others), 1 / len(others))
    most = weights @ np.log(np.maximum(L @ best, LEAST_LIKELIHOOD))
    slope = L[:, k] / np.maximum(L @ best, LEAST_LIKELIHOOD) - 1

    def excess(share: float) -> float:
        """Signed root of the likelihood ratio at this share, less the largest one accepted."""
        nonlocal others
        # With the share fixed, this is a mixture of the others, each with its part of class k.
        mixed = (1 - share) * rest + share * likelihood
        others = _most_likely(mixed, weights, others)
        fall = float(most - weights @ np.log(np.maximum(mixed @ others, LEAST_LIKELIHOOD)))
        return float(np.sqrt(max(2 * fall, 0.0)) - width)

    def end(limit: float) -> float:
        step = width / np.sqrt(weights @ slope**2 + 1)  # too short: it doubles until it is outside
        inside = best[k]
        while abs(limit - inside) > 1e-9:
            outside = max(limit, inside - step) if limit < inside else min(limit, inside + step)
            if excess(outside) >= 0:
                precision = 1e-6 + 1e-3 / weights.sum()
                return float(brentq(excess, *sorted((inside, outside)), xtol=precision))
            inside = outside
            step = 2 * step
        return limit

    return [end(0.0), end(1.0)]


class _Prior(NamedTuple):
    """A prior, shape (K,), and how likely it makes the rows."""

    theta: Floats
    value: float  # minus the mean log likelihood
    mixed: Floats  # likelihood of each row, shape (n,)


def _most_likely(L: Floats, weights: Floats, start: Floats) -> Floats:
    """Prior of maximum likelihood up to 1e-4: Newton's method among the classes with a share."""
    total = weights.sum()
    rows = weights / total

    def at(prior: Floats) -> _Prior:
        # A sum and not a maximum: a share that has become 0 can grow again where a row needs it.
        mixed = L @ prior + LEAST_LIKELIHOOD
        return _Prior(prior, -float(rows @ np.log(mixed)), mixed)

    def project(prior: Floats) -> _Prior:
        positive = np.maximum(prior, 0.0)
        return at(positive / positive.sum())

    def direction(point: _Prior) -> Floats:
        prior = point.theta
        slope = (rows / point.mixed) @ L
        level = float(slope @ prior)
        step = np.zeros(len(prior))
        if total * (slope.max() - level) <= 1e-4:
            return step
        moved = np.flatnonzero((prior > 0) | (slope > level))
        X = L[:, moved] * (np.sqrt(rows) / point.mixed)[:, None]
        H = X.T @ X
        H[np.diag_indices_from(H)] += 1e-10 * np.trace(H)
        # A step among priors: its entries sum to 0.
        along, ones = np.linalg.solve(H, np.column_stack([slope[moved], np.ones(len(moved))])).T
        step[moved] = along - along.sum() / ones.sum() * ones
        return step

    return newton(at(start), project, direction).theta
