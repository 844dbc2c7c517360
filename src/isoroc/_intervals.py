"""Intervals."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Floats
from isoroc._special import normal_quantile


def half_width(confidence: float) -> float:
    """Half the width of a normal interval, in standard errors."""
    return normal_quantile(0.5 + confidence / 2)


def normal_interval(
    value: float,
    error: float,
    confidence: float,
    least: float = -np.inf,
    most: float = np.inf,
) -> tuple[float, float]:
    """Ends of the interval of an estimate with a standard error, cut off at what is possible.

    NaN stands for an unknown value or error.
    """
    half = half_width(confidence) * error
    return float(np.maximum(value - half, least)), float(np.minimum(value + half, most))


def wilson(rate: Floats, weight: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Score interval of a binomial rate (Wilson 1927), weights taken as counts of rows."""
    z = half_width(confidence)
    shrink = 1 / (1 + z**2 / weight)
    centre = shrink * (rate + z**2 / (2 * weight))
    half = shrink * z * np.sqrt(rate * (1 - rate) / weight + (z / (2 * weight)) ** 2)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
