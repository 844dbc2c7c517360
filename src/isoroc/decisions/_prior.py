"""Forecasts for a population with another class prior, and the estimation of this prior."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from isoroc._input import InputError, check_confidence, check_number, check_weights
from isoroc._random import check_random_state
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc.decisions._inputs import check_new, check_shares

#: EM ends when no share changes by more than this in a step,
TOLERANCE = 1e-9
#: or after this many steps.
EM_STEPS = 10_000
#: Intervals are computed from at most this many rows and scaled to the number of rows.
RESAMPLED_ROWS = 5000


def adjust_prior(Q: Any, old: Any, new: Any, *, labels: Any = None) -> Floats:
    """Forecasts for a population with another class prior.

    This is right if only the class prior differs, and rows of each class look the same as before
    (label shift), as when rows of some classes were left out or repeated at random before training.
    The forecasts must be calibrated for the old population.

    Parameters
    ----------
    Q : array-like of shape (n, K) or (n,)
        Calibrated forecasts, or the probability of the second of two classes.
    old : array-like of shape (K,) or mapping of labels to shares
        Class prior of the population that the forecasts are calibrated for: the class shares of
        the calibration rows.
    new : array-like of shape (K,) or mapping of labels to shares
        Class prior of the other population.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; by default the column names of a dataframe, or
        their numbers.

    Returns
    -------
    ndarray of the shape of Q
        ``Q * new / old``, divided by its sum in each row.

    Examples
    --------
    A model was trained on as many fraudulent as honest payments, of which one in a hundred is
    fraudulent:

    >>> from isoroc.decisions import adjust_prior
    >>> adjust_prior([0.5, 0.9, 0.99], old=[0.5, 0.5], new=[0.99, 0.01]).round(3)
    array([0.01 , 0.083, 0.5  ])
    """
    P, classes = check_new(Q, labels)
    shares = check_shares(old, classes, name="old", positive=True)
    adjusted = P * (check_shares(new, classes, name="new", positive=False) / shares)
    totals = adjusted.sum(axis=1, keepdims=True)
    if not totals.all():
        row = int(np.argmin(totals))
        problem = "is certain of classes that have no share in the new population"
        raise InputError("Q", row, problem, "calibrated forecasts of 0 and 1 cannot be adjusted")
    adjusted /= totals
    return np.asarray(adjusted[:, 1] if np.ndim(Q) == 1 else adjusted)


@dataclass(frozen=True, eq=False, repr=False)
class PriorEstimate:
    """Class prior of new rows, with intervals, and a test of whether it differs from the old one.

    Attributes
    ----------
    prior : ndarray of shape (K,)
        The estimate.
    low, high : ndarray of shape (K,)
        Bootstrap intervals, one for each class.
    old : ndarray of shape (K,)
        Class shares of the calibration rows.
    p_value : float
        How likely a difference of this size is by chance if the prior is the old one.
    confidence : float
        Probability that an interval covers the true share.
    classes : ndarray of shape (K,)
        The label of each entry.
    n_rows : int
        Number of rows.
    """

    prior: Floats
    low: Floats
    high: Floats
    old: Floats
    p_value: float
    confidence: float
    classes: NDArray[Any]
    n_rows: int

    @property
    def table(self) -> Table:
        """One row per class: old share, estimate and interval."""
        return Table(
            {"class": self.classes, "old": self.old, "new": self.prior}
            | {"low": self.low, "high": self.high}
        )

    def __repr__(self) -> str:
        by_chance = f"p = {self.p_value:.2g} under the old shares, {self.n_rows} rows"
        return f"{self.table!r}\n  {by_chance}"


def estimate_prior(
    Q: Any,
    old: Any,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 200,
    random_state: Any = None,
) -> PriorEstimate:
    """Class prior of new rows without labels, by maximum likelihood.

    The prior under which the forecasts of the new rows are likeliest (Saerens, Latinne and
    Decaestecker 2002), for `adjust_prior`, under whose conditions it is right.

    Parameters
    ----------
    Q : array-like of shape (n, K) or (n,)
        Calibrated forecasts of the new rows, not adjusted.
    old : array-like of shape (K,) or mapping of labels to shares
        Class shares of the calibration rows.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; by default the column names of a dataframe, or
        their numbers.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    confidence : float, default=0.95
        Probability that an interval covers the true share.
    n_resamples : int, default=200
        Number of bootstrap resamples.
    random_state : int, RandomState or None, default=None
        Seed of the resamples.

    Returns
    -------
    PriorEstimate

    Notes
    -----
    The log likelihood of shares w is ``sum_i log(sum_k Q[i, k] w[k] / old[k])``, a concave function
    that EM maximises. The test compares twice its increase over ``w = old`` with a chi-squared
    distribution with K - 1 degrees of freedom. Weights count rows: for the test, and for the
    intervals, they are scaled to sum to Kish's effective number of rows. Intervals do not include
    the uncertainty of `old` and of the calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.decisions import estimate_prior
    >>> rng = np.random.default_rng(0)
    >>> x = np.where(rng.random(2000) < 0.2, 1.0, -1.0) + rng.normal(size=2000)  # 20 % positive
    >>> p = 1 / (1 + np.exp(-2 * x))  # calibrated if half of the rows are positive
    >>> estimate_prior(p, [0.5, 0.5], labels=["no", "yes"], random_state=0)
      class  old      new      low     high
         no  0.5  0.78982  0.76209  0.81465
        yes  0.5  0.21018  0.18535  0.23791
      p = 1.2e-86 under the old shares, 2000 rows
    """
    check_number("n_resamples", n_resamples, numbers.Integral, minimum=2)
    check_confidence(confidence)
    P, classes = check_new(Q, labels)
    shares = check_shares(old, classes, name="old", positive=True)
    weights = check_weights(sample_weight, len(P))
    weights = np.ones(len(P)) if weights is None else weights * weights.sum() / (weights @ weights)
    likelihood = P / shares
    prior = _most_likely(likelihood, weights, shares)
    lift = 2 * float(weights @ np.log(likelihood @ prior))  # 0 for prior = shares

    spread = _resample(likelihood, weights, prior, n_resamples, check_random_state(random_state))
    low, high = np.quantile(spread, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
    low, high = np.clip([prior + low, prior + high], 0.0, 1.0)
    p_value = float(chdtrc(len(shares) - 1, max(lift, 0.0)))
    return PriorEstimate(prior, low, high, shares, p_value, confidence, classes, len(P))


def _resample(
    likelihood: Floats, weights: Floats, prior: Floats, n_resamples: int, rng: np.random.RandomState
) -> Floats:
    """Deviations of resampled estimates from the estimate, shape (n_resamples, K)."""
    n, start = len(weights), np.maximum(prior, TOLERANCE)
    if n > RESAMPLED_ROWS:
        rows = np.sort(rng.permutation(n)[:RESAMPLED_ROWS])
        likelihood, weights = likelihood[rows], weights[rows]
        prior = _most_likely(likelihood, weights, start)
    m = len(weights)
    drawn = np.empty((n_resamples, len(prior)))
    for b in range(n_resamples):
        times = np.bincount(rng.randint(m, size=m), minlength=m)
        drawn[b] = _most_likely(likelihood, weights * times, start)
    return np.asarray((drawn - prior) * np.sqrt(m / n))


def _most_likely(likelihood: Floats, weights: Floats, start: Floats) -> Floats:
    """Mixture proportions of maximum likelihood, by EM."""
    share = weights / weights.sum()
    prior = start / start.sum()
    for _ in range(EM_STEPS):
        change = prior * ((share / (likelihood @ prior)) @ likelihood - 1)
        prior = prior + change
        if np.abs(change).max() < TOLERANCE:
            break
    return np.asarray(prior)
