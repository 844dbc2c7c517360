"""Outcomes less forecasts in cells of the forecasts of each class: sums that can be merged."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats, Ints

#: Cells of the forecasts of each class.
N_CELLS = 10


def probability_cells(q: Floats) -> Ints:
    """Cell of each probability. Cells are narrower near 0 and 1, where rates are more precise."""
    angle = np.arcsin(np.sqrt(np.clip(q, 0.0, 1.0)))
    return np.minimum((angle * (2 * N_CELLS / np.pi)).astype(np.intp), N_CELLS - 1)


def sum_in_cells(P: Floats, codes: NDArray[Any]) -> Floats:
    """Sums in cells, (C, N_CELLS, 3): of rows, of outcomes less forecasts, of their squares."""
    classes = range(1, 2) if P.shape[1] == 2 else range(P.shape[1])
    sums = np.zeros((len(classes), N_CELLS, 3))
    for c, k in enumerate(classes):
        residual = (codes == k) - P[:, k]
        cell = probability_cells(P[:, k])
        for i, values in enumerate((None, residual, residual**2)):
            sums[c, :, i] = np.bincount(cell, values, N_CELLS)
    return sums


def error_in_cells(sums: Floats, width: float) -> tuple[float, float, float]:
    """Calibration error and its interval, of a number of standard errors on each side.

    It is the root mean square, over rows and classes, of the difference between the frequency of a
    class and its mean forecast in a cell. What chance adds to the square of a sum R, the sum V of
    squares, is subtracted (Ferro and Fricker 2012). The variance of ``R**2 - V`` is about
    ``2 V**2 + 4 V (E R)**2``. Errors of classes count as perfectly correlated, which makes
    intervals too wide rather than too narrow.
    """
    n, R, V = np.moveaxis(sums, 2, 0)
    share = np.divide(1.0, n * n.sum(axis=1, keepdims=True), out=np.zeros_like(n), where=n > 0)
    excess = R**2 - V
    variance = share**2 * (2 * V**2 + 4 * V * np.maximum(excess, 0.0))
    square = float((share * excess).sum(axis=1).mean())
    half = width * float(np.sqrt(variance.sum(axis=1)).mean())
    error, low, high = np.sqrt(np.maximum([square, square - half, square + half], 0.0)).tolist()
    return error, low, high


#: Warn when more than this share of the rows falls in sparse cells.
TOLERATED = 0.01
#: The warning, with the share.
OUTSIDE = """{:.0%} of the rows have forecasts that hardly any calibration row had, so what is \
expected of them is a guess."""


def count_forecasts(Q: Floats, weights: Floats | None = None) -> Floats:
    """Rows in each cell of the second of two probabilities, or of the largest."""
    return np.asarray(np.bincount(_cells(Q), weights, N_CELLS), dtype=np.float64)


def share_outside(Q: Floats, counts: Floats, few_rows: int = 10) -> float:
    """Share of the rows in sparse cells, those with fewer than `few_rows` calibration rows."""
    return float(np.mean(counts[_cells(Q)] < few_rows))


def _cells(Q: Floats) -> Ints:
    return probability_cells(Q[:, 1] if Q.shape[1] == 2 else Q.max(axis=1))
