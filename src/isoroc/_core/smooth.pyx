"""Smooth maps of forecasts: logarithms, softmax, spline scaling and kernel scaling.

Array arguments are C-contiguous. Rows are taken in tiles; see smooth.h.
"""

from libc.math cimport log

import numpy as np

cdef extern from "smooth.h" nogil:
    enum:
        ROWS
    void load(double* tile, const double* source, Py_ssize_t K, Py_ssize_t n, int width)
    void store(const double* tile, double* to, Py_ssize_t K, Py_ssize_t n, int width)
    void load_rows(double* tile, const double* source, Py_ssize_t K, int width)
    void store_rows(const double* tile, double* to, Py_ssize_t K, int width)
    void raise_tile(double* z, double lowest, Py_ssize_t K)
    void scale_tile(double* z, double factor, Py_ssize_t K)
    void log_tile(double* z, Py_ssize_t K)
    void softmax_tile(double* z, Py_ssize_t K, double share)
    void odds_tile(const double* p, const double* logs, double* odds, Py_ssize_t K)
    void bend_tile(const double* odds, const double* knots, const double* slopes, double* z,
                   Py_ssize_t K, Py_ssize_t n_knots)
    void position_tile(const double* z, const double* logs, const double* origin, double stretch,
                       const double* knots, const double* levels, const double* slopes, double* x,
                       double* square, Py_ssize_t K)
    void distance_tile(const double* centres, const double* offsets, const double* x,
                       const double* square, double* h, Py_ssize_t m, Py_ssize_t D)
    void invert_tile(double* h, Py_ssize_t m)
    void product_tile(const double* weights, const double* h, double* z, Py_ssize_t m,
                      Py_ssize_t K)


def log_forecasts(const double[:, ::1] P, double floor):
    """Logarithms of forecasts, shape (n, K), those below a floor raised to it, as (K, n)."""
    cdef Py_ssize_t t, i, n = P.shape[0], K = P.shape[1]
    cdef int width
    logs = np.empty((K, n))
    cdef double[:, ::1] out = logs
    cdef double[::1] tile = np.empty(K * ROWS)
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load_rows(&tile[0], &P[i, 0], K, width)
            raise_tile(&tile[0], floor, K)
            log_tile(&tile[0], K)
            store(&tile[0], &out[0, i], K, n, width)
    return logs


def logs_of(const double[:, ::1] q):
    """Logarithms of positive numbers, shape (K, n)."""
    cdef Py_ssize_t t, i, n = q.shape[1], K = q.shape[0]
    cdef int width
    logs = np.empty((K, n))
    cdef double[:, ::1] out = logs
    cdef double[::1] tile = np.empty(K * ROWS)
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(&tile[0], &q[0, i], K, n, width)
            log_tile(&tile[0], K)
            store(&tile[0], &out[0, i], K, n, width)
    return logs


def softmax(double[:, ::1] z):
    """Put the softmax of each column of z, shape (K, n), in its place."""
    cdef Py_ssize_t t, i, n = z.shape[1], K = z.shape[0]
    cdef int width
    cdef double[::1] tile = np.empty(K * ROWS)
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(&tile[0], &z[0, i], K, n, width)
            softmax_tile(&tile[0], K, 0.0)
            store(&tile[0], &z[0, i], K, n, width)


def tempered(const double[:, ::1] logs, double lowest, double temperature, double share):
    """Softmax of max(logs, lowest) / temperature, with a share of the uniform forecast, (K, n)."""
    cdef Py_ssize_t t, i, n = logs.shape[1], K = logs.shape[0]
    cdef int width
    q = np.empty((K, n))
    cdef double[:, ::1] out = q
    cdef double[::1] tile = np.empty(K * ROWS)
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(&tile[0], &logs[0, i], K, n, width)
            raise_tile(&tile[0], lowest, K)
            scale_tile(&tile[0], 1 / temperature, K)
            softmax_tile(&tile[0], K, share)
            store(&tile[0], &out[0, i], K, n, width)
    return q


def by_row(const double[:, ::1] q):
    """The transpose of an array of shape (K, n)."""
    cdef Py_ssize_t t, i, n = q.shape[1], K = q.shape[0]
    cdef int width
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef double[::1] tile = np.empty(K * ROWS)
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(&tile[0], &q[0, i], K, n, width)
            store_rows(&tile[0], &out[i, 0], K, width)
    return rows


def spline(const double[:, ::1] P, const double[:, ::1] logs, double floor, coef,
           const double[::1] knots, const double[:, ::1] slopes, intercept, double share):
    """Forecasts of a `SplineCalibrator`, shape (n, K).

    Forecasts P have shape (n, K), their logarithms (K, n); what is below the floor is raised to it.
    The intercept is that of sums of slopes * max(odds, knots).
    """
    cdef Py_ssize_t t, i, n = P.shape[0], K = P.shape[1], m = knots.shape[0]
    cdef int width
    cdef double log_floor = log(floor)
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef const double[:, :, ::1] weights = in_fours(np.column_stack([coef, intercept]).T)
    cdef Py_ssize_t K4 = 4 * weights.shape[0]
    # Log forecasts, and one for the intercept, are the inputs of the linear part.
    cdef double[:, ::1] tiles = np.ones((4, (K4 + 1) * ROWS))
    cdef double* inputs = &tiles[0, 0]
    cdef double* p = &tiles[1, 0]
    cdef double* odds = &tiles[2, 0]
    cdef double* z = &tiles[3, 0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load_rows(p, &P[i, 0], K, width)
            raise_tile(p, floor, K)
            load(inputs, &logs[0, i], K, n, width)
            raise_tile(inputs, log_floor, K)
            odds_tile(p, inputs, odds, K)
            product_tile(&weights[0, 0, 0], inputs, z, K + 1, K4)
            if m > 0:
                bend_tile(odds, &knots[0], &slopes[0, 0], z, K, m)
            softmax_tile(z, K, share)
            store_rows(z, &out[i, 0], K, width)
    return rows


def kernel(const double[:, ::1] z, const double[:, ::1] logs, const double[:, ::1] knots,
           const double[:, ::1] origin, const double[::1] stretch, centres, weights, coef,
           intercept):
    """Forecasts of a `KernelCalibrator`, shape (n, K), from tempered and plain log forecasts.

    Centres have shape (m, 2 K); other arguments are fitted attributes.
    """
    cdef Py_ssize_t t, i, n = z.shape[1], K = z.shape[0], D = 2 * K
    cdef int width
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    ranks = (np.linspace(0, 1, knots.shape[1]) - np.asarray(origin)[1][:, None]) * stretch[1]
    cdef const double[:, ::1] levels = ranks
    cdef const double[:, ::1] slopes = np.diff(ranks) / np.diff(knots)
    cdef const double[:, :, ::1] groups = in_fours(centres.T)
    cdef Py_ssize_t m = 4 * groups.shape[0]
    spare = np.zeros(m - len(centres))
    cdef const double[::1] offsets = 1 + np.append((centres**2).sum(axis=1) / 2, spare)
    # What the map adds up: bumps, log forecasts, one.
    cdef double[::1] inputs = np.ones((m + K + 1) * ROWS)
    cdef double* h = &inputs[0]
    cdef double* own = h + m * ROWS
    joint = np.hstack([weights, np.zeros((K, len(spare))), coef + np.eye(K), intercept[:, None]])
    cdef const double[:, :, ::1] fours = in_fours(joint.T)
    cdef Py_ssize_t K4 = 4 * fours.shape[0]
    cdef double[:, ::1] tiles = np.empty((4, K4 * 2 * ROWS))
    cdef double* plain = &tiles[0, 0]
    cdef double* x = &tiles[1, 0]
    cdef double* square = &tiles[2, 0]
    cdef double* q = &tiles[3, 0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(own, &z[0, i], K, n, width)
            load(plain, &logs[0, i], K, n, width)
            position_tile(own, plain, &origin[0, 0], stretch[0], &knots[0, 0], &levels[0, 0],
                          &slopes[0, 0], x, square, K)
            distance_tile(&groups[0, 0, 0], &offsets[0], x, square, h, m, D)
            invert_tile(h, m)
            product_tile(&fours[0, 0, 0], h, q, m + K + 1, K4)
            softmax_tile(q, K, 0.0)
            store_rows(q, &out[i, 0], K, width)
    return rows


def in_fours(A):
    """Columns of a matrix of shape (R, M) in groups of four, shape (M / 4, R, 4); zeros fill up."""
    R, M = A.shape
    padded = np.zeros((R, (M + 3) // 4 * 4))
    padded[:, :M] = A
    return np.ascontiguousarray(padded.reshape(R, padded.shape[1] // 4, 4).transpose(1, 0, 2))
