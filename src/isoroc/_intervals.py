"""Intervals for rates that were counted."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from isoroc._simplex import Floats


def wilson(rate: Floats, weight: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Score interval of a binomial rate (Wilson 1927), weights taken as counts of rows.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([10.0, 40.0]))
    >>> low.round(3), high.round(3)
    (array([0.   , 0.352]), array([0.278, 0.648]))
    """
    z = ndtri(0.5 + confidence / 2)
    shrink = 1 / (1 + z**2 / weight)
    centre = shrink * (rate + z**2 / (2 * weight))
    half = shrink * z * np.sqrt(rate * (1 - rate) / weight + (z / (2 * weight)) ** 2)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
