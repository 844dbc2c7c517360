"""Regressions of residuals on forecasts: what is left of E[Y - p | p], stage by stage.

Each stage takes the residuals that earlier stages leave, of shape (n, C), and returns its estimate
for every row. Rows of weight 0 are not learned from. A stage returns 0 unless its signal exceeds
the noise, so stages that find nothing change nothing.

C is 1 for scores (n,), and otherwise the number of classes.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from scipy.special import xlogy

from isoroc._simplex import Floats, Ints
from isoroc._tree import BinTree
from isoroc.metrics._grouping import sum_rows

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
    multiple = P - weights @ P / weights.sum()
    square = float(weights @ _dot(multiple, multiple))
    if square > 0:  # make the two orthogonal
        sharper = sharper - float(weights @ _dot(multiple, sharper)) / square * multiple
    fitted = np.zeros_like(P)
    energy = noise = 0.0
    for direction in (multiple, sharper):
        square = float(weights @ _dot(direction, direction))
        if square <= NEGLIGIBLE * weights.sum():
            continue
        products = weights * _dot(direction, residuals)
        energy += products.sum() ** 2 / square
        noise += float(products @ products) / square
        fitted += products.sum() / square * direction
    return np.asarray(shrinkage(energy, noise, 2) * fitted)


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
    n_cells = 1 << n_levels
    sums = sum_rows(cell, residuals, weights, n_cells)
    noise = sum_rows(cell, _dot(residuals, residuals), weights**2, n_cells)
    weight = np.bincount(cell, weights, n_cells).astype(np.float64)
    levels = [(sums, noise, weight)]
    for _ in range(n_levels):
        sums, noise, weight = (values[::2] + values[1::2] for values in levels[-1])
        levels.append((sums, noise, weight))
    (total, noise, weight), *finer = levels[::-1]
    energy, spread = float((total**2).sum() / weight[0]), float(noise[0] / weight[0])
    fitted = shrinkage(energy, spread, _free(residuals)) * total / weight[0]
    for level in finer:
        fitted = fitted.repeat(2, axis=0) + _fit_halves(*level)
    return np.asarray(fitted[cell])


def _fit_halves(sums: Floats, noise: Floats, weight: Floats) -> Floats:
    """What the halves of cells, each next to its other half, add to the mean of their cell."""
    first, second = weight[::2], weight[1::2]
    divided = (first > 0) & (second > 0)
    safe = np.where(weight > 0, weight, 1.0)
    means, spread = sums / safe[:, None], noise / safe**2
    difference = np.where(divided[:, None], means[1::2] - means[::2], 0.0)
    both = np.where(divided, first + second, 1.0)
    pair_weight = first * second / both
    energy = float(pair_weight @ _dot(difference, difference))
    expected = float(pair_weight @ (spread[::2] + spread[1::2]))
    difference *= shrinkage(energy, expected, int(np.count_nonzero(divided)) * _free(sums))
    added = np.empty_like(sums)
    added[::2] = -(second / both)[:, None] * difference
    added[1::2] = (first / both)[:, None] * difference
    return added


def fit_bins(tree: BinTree, bin_of: Ints, residuals: Floats, weights: Floats) -> Floats:
    """Means in the bins of a tree, each shrunk to the mean of the bin it was split from.

    Deep bins have few rows, and the first splits tell much (hierarchical shrinkage, Agarwal et al.
    2022).
    """
    n_nodes = len(tree.class_weights)
    sums, weight = np.zeros((n_nodes, residuals.shape[1])), np.zeros((n_nodes, 1))
    sums[tree.bins] = sum_rows(bin_of, residuals, weights, len(tree.bins))
    weight[tree.bins, 0] = np.bincount(bin_of, weights, len(tree.bins))
    children = [below[below >= 0] for below in tree.children]
    for split in reversed(range(tree.n_splits)):
        node = tree.split_nodes[split]
        sums[node], weight[node] = sums[children[split]].sum(axis=0), weight[children[split]].sum()
    means = sums / np.where(weight > 0, weight, 1.0)
    trust = weight / (weight + SHRINKAGE)
    shrunk = trust * means
    for split in range(tree.n_splits):
        parent, below = shrunk[tree.split_nodes[split]], children[split]
        shrunk[below] = parent + trust[below] * (means[below] - parent)
    return np.asarray(shrunk[tree.bins][bin_of])


def shrinkage(energy: float, noise: float, n_terms: int) -> float:
    """Factor of some coefficients, given their sum of squares and its expectation from noise.

    The factor of James and Stein, or 0 if noise may well account for the sum of squares, which then
    has a standard deviation of about ``noise * sqrt(2 / n_terms)``.

    Examples
    --------
    >>> shrinkage(10.0, 1.0, 2), shrinkage(2.0, 1.0, 2)
    (0.9, 0.0)
    """
    if energy <= noise * (1 + THRESHOLD * sqrt(2 / max(n_terms, 1))):
        return 0.0
    return 1 - noise / energy


def _dot(a: Floats, b: Floats) -> Floats:
    """Products of the rows of two matrices."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


def _free(residuals: Floats) -> int:
    """Number of residuals of a row that can vary: with several classes they sum to 0."""
    return max(int(residuals.shape[1]) - 1, 1)
