"""Curves with few vertices."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Floats, Ints

#: Largest number of vertices of a line; a picture is fewer pixels wide.
MAX_VERTICES = 2000


def thin(x: Floats, y: Floats, most: int = MAX_VERTICES) -> Ints:
    """Indices of at most about `most` vertices of a monotone curve, both ends included.

    They are evenly spaced in the sum of both coordinates, each scaled to a range of 1, so the curve
    moves by no more than one step.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 1, 1001)
    >>> thin(t, t, most=5)
    array([   0,  250,  500,  750, 1000])
    """
    if len(x) <= most:
        return np.arange(len(x))
    length = np.append(
        0.0, np.cumsum(np.abs(np.diff(x)) / np.ptp(x) + np.abs(np.diff(y)) / np.ptp(y))
    )
    steps = np.linspace(0, length[-1], most)
    return np.unique(np.searchsorted(length, steps).clip(max=len(x) - 1))
