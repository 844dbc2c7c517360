"""Proper scores: log loss and Brier score."""

from __future__ import annotations

import numbers
from typing import Any, Literal

import numpy as np

from isoroc._input import check_number, check_option, check_probabilities
from isoroc._simplex import Codes, Floats

Loss = Literal["log", "brier"]


def log_loss(
    y_true: Any,
    y_prob: Any,
    *,
    eps: float = 0.0,
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Mean of ``-log`` of the probability forecast for the observed class.

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
    >>> from isoroc.metrics import log_loss
    >>> round(log_loss([0, 1], [0.25, 0.5]), 4)
    0.4904
    >>> log_loss([0, 1], [0.25, 0.0])
    inf
    """
    check_number("eps", eps, numbers.Real, minimum=0)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    return mean(log_losses(sample.forecasts, sample.codes, float(eps)), sample.weights)


def brier_score_loss(
    y_true: Any,
    y_prob: Any,
    *,
    scale_by_half: bool | Literal["auto"] = "auto",
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Mean squared distance of forecasts and outcomes (Brier 1950).

    For two classes it is the mean of ``(y - p)**2``, and for more the sum over the classes, as in
    scikit-learn's function of the same name.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    scale_by_half : bool or "auto", default="auto"
        Whether to return half of the sum over the classes; "auto" does so for two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        Between 0 and 1 for half of the sum, otherwise between 0 and 2.

    Examples
    --------
    >>> from isoroc.metrics import brier_score_loss
    >>> brier_score_loss([0, 1], [0.25, 0.5])
    0.15625
    >>> brier_score_loss([0, 1], [0.25, 0.5], scale_by_half=False)
    0.3125
    """
    check_option("scale_by_half", scale_by_half, (True, False, "auto"))
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    score = mean(brier_losses(sample.forecasts, sample.codes), sample.weights)
    is_half = sample.n_classes == 2
    if scale_by_half in ("auto", is_half):
        return score
    return score / 2 if scale_by_half else 2 * score


def log_losses(forecasts: Floats, codes: Codes, eps: float = 0.0) -> Floats:
    """Log loss of each row of a forecast matrix."""
    likelihood = forecasts[np.arange(len(codes)), codes]
    with np.errstate(divide="ignore"):
        # 0 - log(1) is 0, -log(1) would be -0
        return np.asarray(0.0 - np.log(np.maximum(likelihood, eps)))


def brier_losses(forecasts: Floats, codes: Codes) -> Floats:
    """Squared distance of each row of a forecast matrix from its outcome, half of it for K = 2."""
    own = forecasts[np.arange(len(codes)), codes]
    others = np.einsum("ik,ik->i", forecasts, forecasts) - own * own
    losses = np.asarray(others.clip(min=0) + (1 - own) ** 2)
    return losses / 2 if forecasts.shape[1] == 2 else losses


def mean(values: Floats, weights: Floats | None) -> float:
    """Weighted mean over the rows."""
    if weights is None:
        return float(values.mean())
    return float(weights @ values / weights.sum())
