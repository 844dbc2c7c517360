"""Step functions of one score: isotonic regression with smoothing, and Venn-Abers intervals.

A step function is its ascending cuts and one value more: ``values[i]`` for the scores with i cuts
below them.
"""

from __future__ import annotations

import numpy as np

from isoroc._core.pav import with_one_more
from isoroc._counts import BinaryCounts
from isoroc._growth.pav import pool_smoothed
from isoroc._simplex import Floats, midpoint


def isotonic_steps(counts: BinaryCounts, smoothing: Floats) -> tuple[Floats, Floats]:
    """Isotonic regression of the class on the score, its blocks' values smoothed.

    Parameters
    ----------
    counts : BinaryCounts
    smoothing : ndarray of shape (2,)
        What is added to the class weights of a block for its value. Blocks whose values it would
        bring out of order are pooled.

    Returns
    -------
    cuts, values : ndarrays
        A step function.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 1, 0, 1, 1], dtype=np.uint8)
    >>> counts = BinaryCounts.from_arrays(np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.9]), y)
    >>> isotonic_steps(counts, np.array([0.5, 0.5]))
    (array([0.25, 0.6 ]), array([0.16666667, 0.5       , 0.83333333]))
    """
    low, high, weights = pool_smoothed(*counts.isotonic_blocks(), smoothing)
    smoothed = weights + smoothing
    return midpoint(high[:-1], low[1:]), smoothed[:, 1] / smoothed.sum(axis=1)


def venn_abers_steps(counts: BinaryCounts, extra: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Isotonic regression at any score, had one more row been seen there: of class 0, of class 1.

    Parameters
    ----------
    counts : BinaryCounts
    extra : float
        Weight of the row.

    Returns
    -------
    cuts, lower, upper : ndarrays
        Two step functions with the same cuts.

    Examples
    --------
    >>> import numpy as np
    >>> counts = BinaryCounts.from_arrays(np.array([0.2, 0.7]), np.array([0, 1], dtype=np.uint8))
    >>> cuts, lower, upper = venn_abers_steps(counts)
    >>> cuts, lower, upper
    (array([0.2, 0.7]), array([0. , 0. , 0.5]), array([0.5, 1. , 1. ]))
    """
    scores, weights = counts.distinct()
    p1 = with_one_more(weights, extra)
    # The same with scores and classes turned around.
    p0 = 1 - with_one_more(np.ascontiguousarray(weights[::-1, ::-1]), extra)[::-1]
    # Between two scores a row of class 1 pools with the next and one of class 0 with the last, so
    # p0 rises at a score and p1 just above it. A cut just below a score makes it the former.
    cuts = np.column_stack([np.nextafter(scores, -np.inf), scores]).ravel()
    lower = np.append(0.0, np.repeat(p0, 2))
    upper = np.append(np.repeat(p1, 2), 1.0)
    change = (np.diff(lower) != 0) | (np.diff(upper) != 0)
    kept = np.append(True, change)
    return cuts[change], lower[kept], upper[kept]
