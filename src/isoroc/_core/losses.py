"""Losses of single rows, and what becomes of an outcome that was given probability 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Codes, Floats

#: Smaller probabilities of an outcome count as this in the log loss, as in scikit-learn: it is then
#: finite, 36.04 nats. Such rows are counted by `are_impossible` and reported next to the loss.
EPSILON = float(np.finfo(np.float64).eps)


def log_losses(forecasts: Floats, codes: Codes, eps: float = EPSILON) -> Floats:
    """Log loss of each row of a forecast matrix."""
    likelihood = forecasts[np.arange(len(codes)), codes]
    with np.errstate(divide="ignore"):
        # 0 - log(1) is 0, -log(1) would be -0
        return np.asarray(0.0 - np.log(np.maximum(likelihood, eps)))


def are_impossible(forecasts: Floats, codes: Codes) -> NDArray[np.bool_]:
    """Whether the outcome of each row was given probability 0, so that its log loss is bounded."""
    return np.asarray(forecasts[np.arange(len(codes)), codes] < EPSILON)


def brier_losses(forecasts: Floats, codes: Codes) -> Floats:
    """Squared distance of each row of a forecast matrix from its outcome, half of it for K = 2."""
    own = forecasts[np.arange(len(codes)), codes]
    others = np.einsum("ik,ik->i", forecasts, forecasts) - own * own
    losses = np.asarray(others.clip(min=0) + (1 - own) ** 2)
    return losses / 2 if forecasts.shape[1] == 2 else losses
