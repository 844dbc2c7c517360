"""Losses of single rows, and the power of forecasts with the least log loss."""

import math

import numpy as np
from numpy.typing import NDArray

from isoroc._core.intervals import Share
from isoroc._core.rows import pick, square_distances
from isoroc._core.smooth import moments
from isoroc._core.types import Codes, Floats

#: Smaller probabilities of an outcome count as this in the log loss, as in scikit-learn: it is then
#: finite, 36.04 nats. Such rows are counted by `are_impossible` and reported next to the loss.
EPSILON = float(np.finfo(np.float64).eps)


def outcome_probabilities(forecasts: Floats, codes: Codes) -> Floats:
    """Probability that each row of a forecast matrix gave its outcome, shape (n,)."""
    return pick(forecasts, codes.astype(np.intp))


def log_losses(forecasts: Floats, codes: Codes, eps: float = EPSILON) -> Floats:
    """Log loss of each row of a forecast matrix."""
    likelihood = outcome_probabilities(forecasts, codes)
    with np.errstate(divide="ignore"):
        # 0 - log(1) is 0, -log(1) would be -0
        return np.asarray(0.0 - np.log(np.maximum(likelihood, eps)))


def are_impossible(forecasts: Floats, codes: Codes) -> NDArray[np.bool_]:
    """Whether the outcome of each row was given probability 0, so that its log loss is bounded."""
    return np.asarray(outcome_probabilities(forecasts, codes) < EPSILON)


def unseen_loss(impossible: Share) -> float:
    """Mean log loss that outcomes of probability 0 may add beyond those among the rows."""
    return -math.log(EPSILON) * (impossible.interval(0.95)[1] - impossible.value)


def brier_losses(forecasts: Floats, codes: Codes) -> Floats:
    """Squared distance of each row of a forecast matrix from its outcome, half of it for K = 2."""
    losses = square_distances(forecasts, codes.astype(np.intp))
    return losses / 2 if forecasts.shape[1] == 2 else losses


def likeliest_power(
    z: Floats,
    weights: Floats,
    low: float,
    high: float,
    *,
    start: float = 1.0,
    tolerance: float = 1e-10,
    least_gain: float = 0.0,
    precision: float = 0.0,
    lowest: float = -math.inf,
    outcome: float = 0.0,
) -> float:
    """The t between `low` and `high` that makes outcomes likeliest if forecasts are softmax(t z).

    z, of shape (K, n), has log forecasts, which are raised to `lowest`. `outcome` is their weighted
    mean for the outcomes, 0 if z is relative to the log forecast of the outcome. ``log(t)`` may
    have a normal prior of mean 0 and this precision, in rows. The loss is convex. Newton's method
    stays between the last values on either side of the minimum, and bisection follows after 50
    steps. The search ends where the slope over ``log(t)`` is at most `tolerance`, or after a step
    that promised to lower the mean loss by at most `least_gain`.
    """
    total = weights.sum()
    shares = np.ascontiguousarray(weights / total)
    precision = precision / total
    least = low
    most = high
    t = min(start, high)

    def derivatives(t: float) -> tuple[float, float]:
        mean, variance = moments(z, shares, t, lowest)
        return mean - outcome + precision * math.log(t) / t, variance + precision / t**2

    for count in range(100):
        slope, curvature = derivatives(t)
        if abs(slope) * t <= tolerance or (slope < 0 and t == most):
            break
        low, high = (low, t) if slope > 0 else (t, high)
        step = min(t - slope / curvature, most) if curvature > 0 else 0.0
        if step <= low == least and derivatives(least)[0] > 0:
            return float(least)
        newton = (low < step < high or step == high == most) and count < 50
        t = step if newton else math.sqrt(low * high)
        if newton and slope**2 <= 2 * least_gain * curvature:
            break
    return float(t)


def calibration_covariance(forecasts: Floats, weights: Floats) -> Floats:
    """Covariance of a slope and K shifts of log odds, given rows with these forecasts.

    It is the inverse of the Fisher information of a multinomial regression on calibrated forecasts.
    """
    q = forecasts
    w = weights[:, None]
    logs = np.log(np.maximum(q, EPSILON))
    centred = logs - (q * logs).sum(axis=1, keepdims=True)
    slope = np.array([[np.sum(w * q * centred**2)]])
    cross = (w * q * centred).sum(axis=0)[None]
    shifts = np.diag((w * q).sum(axis=0)) - (w * q).T @ q
    information = np.block([[slope, cross], [cross.T, shifts]])
    return np.asarray(np.linalg.inv(np.eye(len(information)) + information))  # a weak prior
