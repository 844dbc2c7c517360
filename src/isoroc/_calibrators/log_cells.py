"""Many rows of few classes in cells of log forecasts, where a fit costs what a small one does."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Codes, Floats

#: Up to so many rows every row stands for itself.
MOST_ROWS = 50_000
#: Above so many classes almost every row would have a cell of its own.
MOST_CLASSES = 3
#: Width of a cell in each log forecast. At the mean of a cell, the loss differs from its mean over
#: the cell by about its curvature times WIDTH**2 / 24.
WIDTH = 1 / 16


def gather(z: Floats, codes: Codes, weights: Floats) -> tuple[Floats, Codes, Floats]:
    """Rows of one class in the same cell become one, at their mean and with their weight.

    Cells of `isoroc._counts` are too coarse for functions of log forecasts: the square root that
    they take brings all forecasts close to 0 together.

    Parameters
    ----------
    z : ndarray of shape (K, n)
        Log forecasts. A constant added to all of a row makes no difference.
    codes : ndarray of shape (n,)
        The class of each row.
    weights : ndarray of shape (n,)
        Weight of each row.

    Returns
    -------
    z, codes, weights
        The same for fewer rows; as they were if there are not many or they are all apart.

    Examples
    --------
    >>> import numpy as np
    >>> odds = np.linspace(-4, 4, 100_000)
    >>> codes = (odds > 0).astype(np.uint8)
    >>> z, codes, weights = gather(np.stack([0 * odds, odds]), codes, np.ones(100_000))
    >>> z.shape, weights.sum()
    ((2, 66), np.float64(100000.0))
    """
    K, n = z.shape
    if n <= MOST_ROWS or K > MOST_CLASSES:
        return z, codes, weights
    z = z - z.mean(axis=0)
    # A sum of whole numbers times fixed odd 64-bit numbers, modulo 2**64, tells cells apart.
    mix = 2 * np.random.default_rng(0).integers(2**62, size=K + 1) + 1
    places = np.floor(z / WIDTH).astype(np.int64)
    keys = (places * mix[:K, None]).sum(axis=0) + codes * mix[K]
    _, first, cell = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) > n // 2:
        return z, codes, weights
    total = np.bincount(cell, weights).astype(np.float64)
    means = np.stack([np.bincount(cell, weights * row) for row in z]) / total
    return means, codes[first], total
