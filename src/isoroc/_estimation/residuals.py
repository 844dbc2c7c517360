"""Regressions of residuals on forecasts: what is left of E[Y - p | p], stage by stage.

Each stage takes the residuals that earlier stages leave, of shape (n, C), and returns its estimate
for every row. Rows of weight 0 are not learned from. A stage returns 0 unless its signal exceeds
the noise, so stages that find nothing change nothing.

C is 1 for scores (n,), and otherwise the number of classes.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from isoroc._core import residuals as compiled
from isoroc._estimation.grouping import sum_rows
from isoroc._simplex import Floats, Ints
from isoroc._tree import BinTree

#: A stage is used if its signal exceeds the noise by this many standard deviations.
THRESHOLD = 2.0
#: Weight of rows that moves the residual of a bin half way from that of the bin it was split from.
SHRINKAGE = 100.0
#: Directions of a smaller mean square, relative to the largest one or to 1, are left out.
NEGLIGIBLE = 1e-9


def fit_confidence(P: Floats, sharper: Floats, residuals: Floats, weights: Floats) -> Floats:
    """Two numbers for all classes: a multiple of the forecasts, and a change of their sharpness.

    Forecasts without information have multiple -1, inverted forecasts a lower one. Over- and
    underconfident forecasts are too sharp or not sharp enough. `sharper` is that of `sharpen`.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.linspace(0, 1, 1001)[:, None]
    >>> fit_confidence(p, sharpen(p), 1 - 2 * p, np.ones(1001))[[0, -1]].round(2)
    array([[ 1.],
           [-1.]])
    """
    return compiled.fit_confidence(P, sharper, residuals, weights, NEGLIGIBLE, THRESHOLD)


def sharpen(P: Floats) -> Floats:
    """Derivative by t of the forecasts ``P**t``, normalised, at t = 1.

    Examples
    --------
    >>> import numpy as np
    >>> sharpen(np.array([[0.6, 0.2, 0.2]])).round(2)
    array([[ 0.26, -0.13, -0.13]])
    """
    if P.shape[1] == 1:
        return np.asarray((1 - P) * xlogy(P, P) - P * xlogy(1 - P, 1 - P))
    entropy = xlogy(P, P)
    return np.asarray(entropy - P * entropy.sum(axis=1, keepdims=True))


def fit_linear(P: Floats, residuals: Floats, weights: Floats) -> Floats:
    """Linear map of the forecasts: a class may have been forecast in the place of another.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]).repeat(100, axis=0)
    >>> swapped = P[:, [1, 0, 2]]
    >>> (P + fit_linear(P, swapped - P, np.ones(300)))[::100].round(1)
    array([[0.1, 0.8, 0.1],
           [0.8, 0.1, 0.1],
           [0.1, 0.1, 0.8]])
    """
    if P.shape[1] == 1:  # the most frequent case, and one that needs no eigenvectors
        return compiled.fit_slope(P, residuals, weights, THRESHOLD)
    x = P - weights @ P / weights.sum()
    variance, directions = np.linalg.eigh(x.T @ (weights[:, None] * x))
    kept = variance > max(NEGLIGIBLE * variance[-1], 1e-300)
    features = x @ (directions[:, kept] / np.sqrt(variance[kept]))
    coefficients = features.T @ (weights[:, None] * residuals)
    energy = float((coefficients**2).sum())
    size = _dot(features, features) * _dot(residuals, residuals)
    factor = shrinkage(energy, float(weights**2 @ size), features.shape[1] * _free(residuals))
    return np.asarray(factor * (features @ coefficients))


def fit_cells(cell: Ints, n_levels: int, residuals: Floats, weights: Floats) -> Floats:
    """Means in nested cells: an estimate for residuals of any shape.

    `cell` comes from `halve_repeatedly`. The difference between the means of the two halves of a
    cell is a Haar coefficient. The coefficients of a level are used or dropped together (block
    thresholding, Cai 1999).

    Examples
    --------
    >>> import numpy as np
    >>> wave = np.where(np.arange(512) // 128 % 2, 0.5, -0.5)[:, None]
    >>> np.unique(fit_cells(np.arange(512) // 128, 2, wave, np.ones(512)).round(2))
    array([-0.5,  0.5])
    """
    return compiled.fit_cells(cell, n_levels, residuals, weights, _free(residuals), THRESHOLD)


def fit_bins(tree: BinTree, bin_of: Ints, residuals: Floats, weights: Floats) -> Floats:
    """Means in the bins of a tree, each shrunk to the mean of the bin it was split from.

    Deep bins have few rows, and the first splits tell much (hierarchical shrinkage, Agarwal et al.
    2022).
    """
    n_nodes = len(tree.class_weights)
    sums, weight = np.zeros((n_nodes, residuals.shape[1])), np.zeros(n_nodes)
    sums[tree.bins] = sum_rows(bin_of, residuals, weights, len(tree.bins))
    weight[tree.bins] = np.bincount(bin_of, weights, len(tree.bins))
    means = compiled.fit_nodes(sums, weight, tree.children, tree.split_nodes, SHRINKAGE)
    return np.asarray(means[tree.bins][bin_of])


def shrinkage(energy: float, noise: float, n_terms: int) -> float:
    """Factor of some coefficients, given their sum of squares and its expectation from noise.

    The factor of James and Stein, or 0 if noise may well account for the sum of squares, which then
    has a standard deviation of about ``noise * sqrt(2 / n_terms)``.

    Examples
    --------
    >>> shrinkage(10.0, 1.0, 2), shrinkage(2.0, 1.0, 2)
    (0.9, 0.0)
    """
    return compiled.shrink_factor(energy, noise, n_terms, THRESHOLD)


def _dot(a: Floats, b: Floats) -> Floats:
    """Products of the rows of two matrices."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _free(residuals: Floats) -> int:
    """Number of residuals of a row that can vary: with several classes they sum to 0."""
    return max(int(residuals.shape[1]) - 1, 1)
