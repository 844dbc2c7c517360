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
    """Mean of ``-log`` of the probability forecast for the observed class (log loss).

    If an observed class had forecast 0, the loss is infinite, and by default infinity is returned.
    Clipping can change which of two models has the smaller loss, so it must be requested with
    `eps`. Forecasts of calibrators with ``pseudocount > 0`` are never 0.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    eps : float, default=0.0
        Probabilities below `eps` are replaced by `eps`. scikit-learn's ``log_loss`` clips at the
        machine epsilon of the forecasts' type.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        In nats; 0 for certain forecasts that are right, log K for uniform forecasts.

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
    y_true: Any,
    y_prob: Any,
    *,
    scale_by_half: bool = False,
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Mean squared distance of forecasts and outcomes, summed over the classes (Brier 1950).

    For two classes this is twice the mean of ``(y - p)**2``. scikit-learn's ``brier_score_loss``
    halves the sum for two classes (``scale_by_half="auto"``, its default) and does not halve it
    for more. So with the defaults of both, the value for two classes is twice that of scikit-learn,
    and for more classes the values are equal.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    scale_by_half : bool, default=False
        Whether to return half of the sum: for two classes the mean of ``(y - p)**2``. The option
        of the same name of ``brier_score_loss`` does the same.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        Between 0 and 2, or between 0 and 1 with `scale_by_half`.

    Examples
    --------
    >>> from isoroc.metrics import brier_score
    >>> brier_score([0, 1], [0.25, 0.5])
    0.3125
    >>> brier_score([0, 1], [0.25, 0.5], scale_by_half=True)
    0.15625
    """
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    score = mean(brier_losses(sample.forecasts, sample.codes), sample.weights)
    return score / 2 if scale_by_half else score


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
