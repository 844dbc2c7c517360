"""Proper scores: log loss and Brier score."""

from __future__ import annotations

import numbers
from typing import Any, Literal

from isoroc._input import check_number, check_option, check_probabilities
from isoroc._losses import EPSILON, brier_losses, log_losses, mean


def log_loss(
    y_true: Any,
    y_prob: Any,
    *,
    eps: float = EPSILON,
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Mean of ``-log`` of the probability forecast for the observed class.

    An observed class that was given probability 0 counts as one of probability 2.2e-16, as in
    scikit-learn's function of the same name: such a row costs 36.04 nats. `isoroc.evaluate` reports
    the number of these rows next to the loss.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    eps : float, default=2.2e-16
        Probabilities below `eps` are replaced by `eps`. With 0 the loss may be infinite.
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
    >>> round(log_loss([0, 1], [0.25, 0.0]), 4)
    18.1657
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
