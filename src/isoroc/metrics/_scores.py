"""Proper scores: cross entropy and Brier score."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np

from isoroc._input import check_number
from isoroc._simplex import Codes, Floats
from isoroc.metrics._inputs import check_probabilities

Loss = Literal["log", "brier"]


def cross_entropy(
    y_true: Any,
    y_prob: Any,
    *,
    eps: float = 0.0,
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Mean of ``-log`` of the probability that was forecast for what came true (log loss).

    A forecast of 0 for something that happens costs infinity, and by default that is what is
    returned: clipping is a choice that changes which of two models looks better, so it has to be
    asked for. Forecasts of calibrators with ``pseudocount > 0`` are never 0.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    eps : float, default=0.0
        Probabilities below `eps` count as `eps`. scikit-learn's ``log_loss`` clips at the machine
        epsilon of the forecasts' type.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        In nats; 0 for certain forecasts that come true, log K for uniform ones.

    Examples
    --------
    >>> from isoroc.metrics import cross_entropy
    >>> round(cross_entropy([0, 1], [0.25, 0.5]), 4)
    0.4904
    >>> cross_entropy([0, 1], [0.25, 0.0])
    inf
    """
    check_number("eps", eps, numbers.Real, minimum=0)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    return mean(log_losses(sample.forecasts, sample.codes, float(eps)), sample.weights)


def brier_score(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None
) -> float:
    """Mean squared distance of forecasts and outcomes, summed over the classes (Brier 1950).

    For two classes this is twice the mean of ``(y - p)**2``, the number that scikit-learn's
    ``brier_score_loss`` returns for them by default; for more classes the two agree.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        Between 0 and 2.

    Examples
    --------
    >>> from isoroc.metrics import brier_score
    >>> brier_score([0, 1], [0.25, 0.5])
    0.3125
    """
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    return mean(brier_losses(sample.forecasts, sample.codes), sample.weights)


def log_losses(forecasts: Floats, codes: Codes, eps: float = 0.0) -> Floats:
    """Log loss of each row of a forecast matrix."""
    likelihood = forecasts[np.arange(len(codes)), codes]
    with np.errstate(divide="ignore"):
        # 0 - log(1) is 0, -log(1) would be -0
        return np.asarray(0.0 - np.log(np.maximum(likelihood, eps)))


def brier_losses(forecasts: Floats, codes: Codes) -> Floats:
    """Squared distance of each row of a forecast matrix from its outcome."""
    own = forecasts[np.arange(len(codes)), codes]
    others = np.einsum("ik,ik->i", forecasts, forecasts) - own * own
    return np.asarray(others.clip(min=0) + (1 - own) ** 2)


def mean(values: Floats, weights: Floats | None) -> float:
    """Weighted mean over the rows."""
    if weights is None:
        return float(values.mean())
    return float(weights @ values / weights.sum())
