"""Regressions of residuals: means in cells and in the bins of trees, shrunk as noise demands.

Residuals have shape (n, C). Rows of weight 0 are not learned from.
"""

from libc.math cimport sqrt

import numpy as np


cpdef double shrink_factor(double energy, double noise, Py_ssize_t n_terms,
                           double threshold) noexcept nogil:
    """Factor of James and Stein, or 0 if the energy exceeds the noise by too little.

    Too little are `threshold` standard deviations of the sum of squares of `n_terms` terms.
    """
    if energy <= noise * (1 + threshold * sqrt(2.0 / max(n_terms, 1))):
        return 0.0
    return 1 - noise / energy


cdef struct Fit:
    double square   # of the direction,
    double product  # with the residuals,
    double noise    # and sum of the squares of the products


cdef Fit fit_direction(const double[:, ::1] direction, const double[:, :] residuals,
                       const double[::1] weights) noexcept nogil:
    """Weighted products of a direction with itself and with the residuals."""
    cdef Py_ssize_t i, k
    cdef double square, product
    cdef Fit fit = Fit(0.0, 0.0, 0.0)
    for i in range(direction.shape[0]):
        if weights[i] == 0:
            continue
        square = product = 0.0
        for k in range(direction.shape[1]):
            square += direction[i, k] * direction[i, k]
            product += direction[i, k] * residuals[i, k]
        product *= weights[i]
        fit.square += weights[i] * square
        fit.product += product
        fit.noise += product * product
    return fit


cdef double centre(const double[:, :] P, const double[::1] weights,
                   double[:, ::1] out) noexcept nogil:
    """Subtract from the rows their weighted mean; the total weight."""
    cdef Py_ssize_t i, k
    cdef double total = 0.0, mean
    for i in range(P.shape[0]):
        total += weights[i]
    for k in range(P.shape[1]):
        mean = 0.0
        for i in range(P.shape[0]):
            mean += weights[i] * P[i, k]
        mean /= total
        for i in range(P.shape[0]):
            out[i, k] = P[i, k] - mean
    return total


def fit_slope(const double[:, :] P, const double[:, :] residuals, const double[::1] weights,
              double threshold):
    """Regression on one column of forecasts; shape (n, 1)."""
    cdef double factor = 0.0
    cdef Fit fit
    centred = np.empty((P.shape[0], 1))
    cdef double[:, ::1] x = centred
    with nogil:
        centre(P, weights, x)
        fit = fit_direction(x, residuals, weights)
        if fit.square > 1e-300:
            factor = shrink_factor(fit.product * fit.product / fit.square, fit.noise / fit.square,
                                   1, threshold) * (fit.product / fit.square)
    centred *= factor
    return centred


def fit_confidence(const double[:, :] P, const double[:, :] sharper,
                   const double[:, :] residuals, const double[::1] weights, double negligible,
                   double threshold):
    """Regression on the centred forecasts and on what `sharper` adds to them, shape (n, C).

    Directions of a mean square of at most `negligible` are left out.
    """
    cdef Py_ssize_t i, k, d, n = P.shape[0], C = P.shape[1]
    fitted = np.zeros((n, C))
    cdef double[:, ::1] out = fitted, multiple = np.empty((n, C)), rest = np.empty((n, C))
    cdef double total, slope = 0.0, square = 0.0, shrunk, energy = 0.0, noise = 0.0
    cdef double[2] factor
    cdef Fit[2] fits
    with nogil:
        total = centre(P, weights, multiple)
        for i in range(n):
            for k in range(C):
                square += weights[i] * multiple[i, k] * multiple[i, k]
                slope += weights[i] * multiple[i, k] * sharper[i, k]
        slope = slope / square if square > 0 else 0.0
        for i in range(n):  # make the two directions orthogonal
            for k in range(C):
                rest[i, k] = sharper[i, k] - slope * multiple[i, k]
        fits[0] = fit_direction(multiple, residuals, weights)
        fits[1] = fit_direction(rest, residuals, weights)
        for d in range(2):
            factor[d] = 0.0
            if fits[d].square > negligible * total:
                energy += fits[d].product * fits[d].product / fits[d].square
                noise += fits[d].noise / fits[d].square
                factor[d] = fits[d].product / fits[d].square
        shrunk = shrink_factor(energy, noise, 2, threshold)
        if shrunk > 0:
            for i in range(n):
                for k in range(C):
                    out[i, k] = shrunk * (factor[0] * multiple[i, k] + factor[1] * rest[i, k])
    return fitted


cdef double fit_halves(const double[:, ::1] sums, const double[::1] noise,
                       const double[::1] weight, Py_ssize_t first, Py_ssize_t n_pairs,
                       Py_ssize_t n_free, double threshold) noexcept nogil:
    """Shrinkage of the differences between the halves first, first + 1, ... of `n_pairs` cells."""
    cdef Py_ssize_t pair, a, b, k, n_divided = 0
    cdef double difference, square, w, energy = 0.0, expected = 0.0
    for pair in range(n_pairs):
        a, b = first + 2 * pair, first + 2 * pair + 1
        if weight[a] > 0 and weight[b] > 0:
            square = 0.0
            for k in range(sums.shape[1]):
                difference = sums[b, k] / weight[b] - sums[a, k] / weight[a]
                square += difference * difference
            w = weight[a] * weight[b] / (weight[a] + weight[b])
            energy += w * square
            expected += w * (noise[a] / (weight[a] * weight[a])
                             + noise[b] / (weight[b] * weight[b]))
            n_divided += 1
    return shrink_factor(energy, expected, n_divided * n_free, threshold)


def fit_cells(const Py_ssize_t[::1] cell, Py_ssize_t n_levels, const double[:, :] residuals,
              const double[::1] weights, Py_ssize_t n_free, double threshold):
    """Means in nested cells; shape (n, C).

    The cells of level l are the nodes 2**l, ..., 2**(l + 1) - 1, and the halves of node v are the
    nodes 2v and 2v + 1. `cell` numbers the finest ones from 0. A level adds to the means of its
    cells the differences between their halves, times the shrinkage of the level.
    """
    cdef Py_ssize_t i, k, v, a, b, level, n = cell.shape[0], C = residuals.shape[1]
    cdef Py_ssize_t finest = 1 << n_levels
    cdef double square, w, difference, factor
    cdef double[:, ::1] sums = np.zeros((2 * finest, C)), means = np.zeros((2 * finest, C))
    cdef double[::1] noise = np.zeros(2 * finest), weight = np.zeros(2 * finest)
    fitted = np.empty((n, C))
    cdef double[:, ::1] out = fitted
    with nogil:
        for i in range(n):
            w, v = weights[i], finest + cell[i]
            square = 0.0
            for k in range(C):
                sums[v, k] += w * residuals[i, k]
                square += residuals[i, k] * residuals[i, k]
            noise[v] += w * w * square
            weight[v] += w
        for v in range(finest - 1, 0, -1):
            for k in range(C):
                sums[v, k] = sums[2 * v, k] + sums[2 * v + 1, k]
            noise[v] = noise[2 * v] + noise[2 * v + 1]
            weight[v] = weight[2 * v] + weight[2 * v + 1]
        square = 0.0
        for k in range(C):
            square += sums[1, k] * sums[1, k]
        factor = shrink_factor(square / weight[1], noise[1] / weight[1], n_free, threshold)
        for k in range(C):
            means[1, k] = factor * sums[1, k] / weight[1]
        for level in range(n_levels):
            factor = fit_halves(sums, noise, weight, 2 << level, 1 << level, n_free, threshold)
            for v in range(1 << level, 2 << level):
                a, b = 2 * v, 2 * v + 1
                for k in range(C):
                    means[a, k] = means[b, k] = means[v, k]
                    if factor > 0 and weight[a] > 0 and weight[b] > 0:
                        difference = sums[b, k] / weight[b] - sums[a, k] / weight[a]
                        means[a, k] -= weight[b] / weight[v] * factor * difference
                        means[b, k] += weight[a] / weight[v] * factor * difference
        for i in range(n):
            for k in range(C):
                out[i, k] = means[finest + cell[i], k]
    return fitted


def fit_nodes(double[:, ::1] sums, double[::1] weight, const Py_ssize_t[:, ::1] children,
              const Py_ssize_t[::1] split_nodes, double shrinkage):
    """Means in the nodes of a tree, each shrunk to that of the node it was split from.

    `sums` (N, C) and `weight` (N,) are given for bins and 0 for other nodes, which are filled in.
    `shrinkage` is the weight that moves a mean half way. Returns an array of shape (N, C).
    """
    cdef Py_ssize_t s, c, k, node, child, C = sums.shape[1]
    cdef double parent, trust
    values = np.empty((sums.shape[0], C))
    cdef double[:, ::1] out = values
    with nogil:
        for s in range(split_nodes.shape[0] - 1, -1, -1):
            node = split_nodes[s]
            for c in range(children.shape[1]):
                child = children[s, c]
                if child >= 0:
                    weight[node] += weight[child]
                    for k in range(C):
                        sums[node, k] += sums[child, k]
        for k in range(C):
            out[0, k] = sums[0, k] / (weight[0] + shrinkage)
        for s in range(split_nodes.shape[0]):
            node = split_nodes[s]
            for c in range(children.shape[1]):
                child = children[s, c]
                if child < 0:
                    continue
                trust = weight[child] / (weight[child] + shrinkage)
                for k in range(C):
                    parent = out[node, k]
                    out[child, k] = parent
                    if weight[child] > 0:
                        out[child, k] += trust * (sums[child, k] / weight[child] - parent)
    return values
