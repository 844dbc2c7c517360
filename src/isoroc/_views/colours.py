"""Colours of classes and of points of the simplex."""

from __future__ import annotations

import numpy as np

from isoroc._simplex import Floats

#: The palette of Okabe and Ito, safe for colour-blind readers; colours of medium lightness first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def mix(values: Floats) -> Floats:
    """Colours of points of the simplex: the colours of the classes, weighted by the coordinates.

    Colours are mixed in linear light, not in gamma-encoded RGB, which would make mixtures too dark.

    Parameters
    ----------
    values : ndarray of shape (m, K)

    Returns
    -------
    ndarray of shape (m, 3)
        Red, green and blue.

    Examples
    --------
    >>> import numpy as np
    >>> mix(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])).round(2)
    array([[0.  , 0.45, 0.7 ],
           [0.61, 0.51, 0.33]])
    """
    codes = [
        [int(COLOURS[k % len(COLOURS)][i : i + 2], 16) for i in (1, 3, 5)]
        for k in range(values.shape[1])
    ]
    light = (np.array(codes) / 255) ** 2.2
    return np.asarray((values @ light).clip(0, 1) ** (1 / 2.2))


def hexadecimal(colours: Floats) -> list[str]:
    """Colours as text.

    Examples
    --------
    >>> import numpy as np
    >>> hexadecimal(mix(np.eye(3)[:1]))
    ['#0072b2']
    """
    bytes_: list[list[int]] = np.rint(colours * 255).astype(int).tolist()
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in bytes_]
