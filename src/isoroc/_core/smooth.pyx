"""Smooth maps of forecasts: logarithms, softmax, spline scaling and kernel scaling.

Array arguments are C-contiguous. Rows are taken in tiles: see smooth.h.
"""

from libc.math cimport INFINITY, log
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from "smooth.h" nogil:
    enum:
        ROWS
        BLOCK
        KNOTS
    void load(double* tile, const double* source, Py_ssize_t K, Py_ssize_t n, int width)
    void store(const double* tile, double* to, Py_ssize_t K, Py_ssize_t n, int width)
    void load_rows(double* tile, const double* source, Py_ssize_t K, int width)
    void store_rows(const double* tile, double* to, Py_ssize_t K, int width)
    void raise_tile(double* z, double lowest, Py_ssize_t K)
    void check_tile(const double* z, double* checked, Py_ssize_t K)
    void scale_tile(double* z, double factor, Py_ssize_t K)
    void log_tile(double* z, Py_ssize_t K)
    void softmax_tile(double* z, Py_ssize_t K, double share)
    void log_softmax_tile(double* z, Py_ssize_t K)
    void normalise_tile(double* z, Py_ssize_t K, double share)
    void copy_tile(double* to, Py_ssize_t step, const double* source, Py_ssize_t source_step,
                   Py_ssize_t K)
    void moments_tile(const double* z, double t, double lowest, double* mean, double* variance,
                      Py_ssize_t K)
    void sum_tile(const double* x, double* y, Py_ssize_t K)
    void lower_tile(double* z, Py_ssize_t K)
    void exp_tile(double* z, Py_ssize_t K)
    void share_tile(double* z, const double* weights, double* logs, Py_ssize_t K)
    void pair_tile(const double* x, double* products, Py_ssize_t B)
    void logistic_tile(const double* offset, const double* x, const double* theta, const double* y,
                       const double* weights, double* sums, Py_ssize_t B, Py_ssize_t P)
    void odds_tile(const double* p, const double* logs, double* odds, Py_ssize_t K)
    void sigmoid_tile(const double* logs, double* odds, const double* coef, const double* rest,
                      const double* intercept, Py_ssize_t K)
    void expit_tile(double* z, Py_ssize_t K)
    void accumulate_tile(const double* z, const double* p, const double* location,
                         const double* shifts, double a, double b, double least, double* u,
                         Py_ssize_t K)
    void separate_tile(const double* u, double* q, Py_ssize_t K)
    void bend_tile(const double* odds, const double* knots, const double* slopes, double* z,
                   Py_ssize_t K, Py_ssize_t n_knots)
    void position_tile(const double* z, const double* logs, const double* origin, double stretch,
                       const double* knots, const double* levels, const double* slopes, double* x,
                       double* square, Py_ssize_t K)
    void distance_tile(const double* centres, const double* offsets, const double* x,
                       const double* square, double* h, Py_ssize_t m, Py_ssize_t D)
    void invert_tile(double* h, Py_ssize_t m)
    void trust_tile(const double* h, const double* logs, double* z, double reach, Py_ssize_t m,
                    Py_ssize_t last)
    void product_tile(const double* weights, const double* h, double* z, Py_ssize_t m,
                      Py_ssize_t K)
    void line_tile(const double* x, const double* slopes, const double* intercepts, double* z,
                   Py_ssize_t K)
    void curve_tile(const double* x, const double* slopes, const double* quadratic,
                    const double* intercepts, double* z, bint adds, Py_ssize_t K)
    void soften_tile(double* z, double log_floor, double trace, Py_ssize_t K)
    void blend_tile(const double* z, const double* slopes, const double* biases,
                    const double* points, double* s, double* out, Py_ssize_t M)
    void score_tile(const double* z, const double* rises, double a, const double* softness,
                    const double* biases, double* s, Py_ssize_t K, Py_ssize_t L)
    void part_tile(const double* e, const double* softness, double* x, double* hard, double* soft,
                   Py_ssize_t K, Py_ssize_t L)
    void spread_tile(const double* x, double* y, Py_ssize_t K)
    void level_tile(const double* e, const double* towards, const double* outcome,
                    const double* softness, double* entries, double* x, double* v, Py_ssize_t K,
                    Py_ssize_t L)
    void mix_tile(const double* x, const double* v, const double* y, const double* weights,
                  double* all, double* outcome, double* mixed, Py_ssize_t K)
    void slope_tile(double* e, double* entries, const double* y, const double* pull,
                    const double* weights, const double* all, const double* likely,
                    const double* rises, const double* z, const double* towards,
                    const double* outcome, const double* softness, double* sums, double* soft,
                    Py_ssize_t K, Py_ssize_t L)


#: Places at which the ranks of log forecasts bend.
N_KNOTS = KNOTS


#: Blocks of rows that regressions add up on their own: sums of very many numbers would lose digits.
cdef enum:
    PART = 128


cdef enum Step:
    COPY
    LOG
    SOFTMAX
    LOG_SOFTMAX
    POWER
    EXPIT


def log_forecasts(const double[:, ::1] P, double floor):
    """Logarithms of forecasts, shape (n, K), those below a floor raised to it, as (K, n)."""
    return transform(P, True, None, False, LOG, floor, 1.0, 0.0)


def logs_of(const double[:, ::1] q):
    """Logarithms of positive numbers, shape (K, n)."""
    return transform(q, False, None, False, LOG, -INFINITY, 1.0, 0.0)


def softmax(z):
    """The softmax of each column of z, shape (K, n), in its place."""
    transform(z, False, z, False, SOFTMAX, -INFINITY, 1.0, 0.0)
    return z


def tempered(const double[:, ::1] logs, double lowest, double temperature, double share):
    """Softmax of max(logs, lowest) / temperature, with a share of the uniform forecast, (n, K).

    The logarithms have shape (K, n).
    """
    return transform(logs, False, None, True, SOFTMAX, lowest, 1 / temperature, share)


def log_tempered(const double[:, ::1] logs, double lowest, double temperature, double share):
    """Logarithms of what `tempered` returns, shape (K, n)."""
    return transform(logs, False, None, False, LOG_SOFTMAX, lowest, 1 / temperature, share)


def powered(const double[:, ::1] Q, double lowest, double exponent, double share=0.0):
    """Rows of max(Q, lowest), shape (n, K), to a power, divided by their sums.

    A share of the uniform forecast is mixed in.
    """
    return transform(Q, True, None, True, POWER, lowest, exponent, share)


def log_softmax(const double[:, ::1] z):
    """Logarithm of the softmax of each row of z, shape (n, K)."""
    return transform(z, True, None, True, LOG_SOFTMAX, -INFINITY, 1.0, 0.0)


def expit(x):
    """The logistic function, shape (n,). Numbers below -708 count as this."""
    q = np.empty_like(x)
    transform(x[None], False, q[None], False, EXPIT, -INFINITY, 1.0, 0.0)
    return q


def by_row(const double[:, ::1] q):
    """The transpose of an array of shape (K, n)."""
    return transform(q, False, None, True, COPY, -INFINITY, 1.0, 0.0)


cdef transform(const double[:, ::1] source, bint from_rows, double[:, ::1] to, bint to_rows,
               Step step, double lowest, double factor, double share):
    """A step of max(source, lowest) * factor: put into an array, or returned as a new one.

    Arrays have shape (n, K) if they hold rows, otherwise (K, n). The softmax gets a share of the
    uniform forecast. The factor of a power is its exponent.
    """
    cdef Py_ssize_t K = source.shape[1 if from_rows else 0], n = source.shape[0 if from_rows else 1]
    cdef Py_ssize_t t, i
    cdef int width
    cdef double[::1] memory = np.empty(K * ROWS)
    made = None
    if to is None:
        made = to = np.empty((n, K) if to_rows else (K, n))
    cdef double* tile = &memory[0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            if from_rows:
                load_rows(tile, &source[i, 0], K, width)
            else:
                load(tile, &source[0, i], K, n, width)
            if lowest > -INFINITY:
                raise_tile(tile, lowest, K)
            if step == POWER:
                log_tile(tile, K)
            if factor != 1.0:
                scale_tile(tile, factor, K)
            if step == LOG:
                log_tile(tile, K)
            elif step == EXPIT:
                expit_tile(tile, K)
            elif step == LOG_SOFTMAX and share == 0.0:
                log_softmax_tile(tile, K)
            elif step != COPY:
                softmax_tile(tile, K, share)
                if step == LOG_SOFTMAX:
                    log_tile(tile, K)
            if to_rows:
                store_rows(tile, &to[i, 0], K, width)
            else:
                store(tile, &to[0, i], K, n, width)
    return made


def moments(const double[:, ::1] z, const double[::1] weights, double t, double lowest):
    """Sums over the columns of max(z, lowest), shape (K, n), of their mean and variance.

    Entries have the probabilities softmax(t z). Columns are multiplied by their weights.
    """
    cdef Py_ssize_t tile, i, n = z.shape[1], K = z.shape[0]
    cdef int r, width
    cdef double[::1] memory = np.empty(K * ROWS)
    cdef double* scores = &memory[0]
    cdef double sum_of_means = 0.0, sum_of_variances = 0.0
    cdef double[ROWS] mean, variance
    with nogil:
        for tile in range((n + ROWS - 1) // ROWS):
            i = tile * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(scores, &z[0, i], K, n, width)
            moments_tile(scores, t, lowest, mean, variance, K)
            for r in range(width):
                sum_of_means += weights[i + r] * mean[r]
                sum_of_variances += weights[i + r] * variance[r]
    return sum_of_means, sum_of_variances


def power_loss(const double[:, ::1] z, const Py_ssize_t[::1] codes, const double[::1] weights,
               double t, double lowest, double share):
    """Log loss of outcomes under the softmax of t max(z, lowest), shape (K, n), times the weights.

    A share of the uniform forecast is mixed in.
    """
    cdef Py_ssize_t tile, i, n = z.shape[1], K = z.shape[0]
    cdef int r, width
    cdef double loss = 0.0
    cdef double[::1] memory = np.empty(K * ROWS)
    cdef double* scores = &memory[0]
    cdef double[ROWS] ones, own, logs, likely
    cdef Py_ssize_t[ROWS] at
    for r in range(ROWS):
        ones[r] = 1.0
    with nogil:
        for tile in range((n + ROWS - 1) // ROWS):
            i = tile * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(scores, &z[0, i], K, n, width)
            if lowest > -INFINITY:
                raise_tile(scores, lowest, K)
            scale_tile(scores, t, K)
            lower_tile(scores, K)
            for r in range(ROWS):
                at[r] = codes[i + (r if r < width else 0)] * ROWS + r
                own[r] = scores[at[r]]
            exp_tile(scores, K)
            share_tile(scores, ones, logs, K)
            for r in range(ROWS):
                likely[r] = scores[at[r]] * (1.0 - share) + share / <double>K
            log_tile(likely, 1)
            for r in range(width):
                # Without a share, the loss is linear where the exponential underflows.
                loss += weights[i + r] * (-likely[r] if share > 0.0 else logs[r] - own[r])
    return loss


cdef inline void load_block(double* to, const double* source, Py_ssize_t K, Py_ssize_t n,
                            int width) noexcept nogil:
    """Read columns of an array of shape (K, n) into a block. Zeros fill up what is missing."""
    cdef Py_ssize_t k
    for k in range(K):
        memcpy(to + k * BLOCK, source + k * n, width * sizeof(double))
        memset(to + k * BLOCK + width, 0, (BLOCK - width) * sizeof(double))


def softened(const double[:, ::1] logs, double floor, double trace):
    """``(1 - trace) log(p + floor) + trace log(p)`` from log p, shape (K, n)."""
    cdef Py_ssize_t tile, i, n = logs.shape[1], K = logs.shape[0]
    cdef int width
    cdef double log_floor = log(floor)
    cdef double[::1] memory = np.empty(K * ROWS)
    cdef double* z = &memory[0]
    result = np.empty((K, n))
    cdef double[:, ::1] out = result
    with nogil:
        for tile in range((n + ROWS - 1) // ROWS):
            i = tile * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(z, &logs[0, i], K, n, width)
            soften_tile(z, log_floor, trace, K)
            store(z, &out[0, i], K, n, width)
    return result


def softmax_loss(double[:, ::1] z, const Py_ssize_t[::1] codes, const double[::1] weights):
    """Sum of the log losses of rows under the softmax of z, shape (K, n), times their weights.

    The derivatives replace z. The loss is NaN if some z is not finite.
    """
    cdef Py_ssize_t t, i, n = z.shape[1], K = z.shape[0]
    cdef int r, width
    cdef double loss = 0.0
    cdef double[::1] memory = np.empty(K * ROWS)
    cdef double* tile = &memory[0]
    cdef double[ROWS] of_label, weight, logs, checked
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(tile, &z[0, i], K, n, width)
            check_tile(tile, checked, K)
            lower_tile(tile, K)
            for r in range(ROWS):
                of_label[r] = tile[codes[i + (r if r < width else 0)] * ROWS + r]
                weight[r] = weights[i + r] if r < width else 0.0
            raise_tile(tile, -300.0, K)  # products of subnormal numbers are slow
            exp_tile(tile, K)
            share_tile(tile, weight, logs, K)
            for r in range(width):
                tile[codes[i + r] * ROWS + r] -= weight[r]
                loss += weight[r] * (logs[r] - of_label[r]) + checked[r]
            store(tile, &z[0, i], K, n, width)
    return loss


def logistic_sums(const double[:, :, ::1] X, const double[:, ::1] y, const double[::1] weights,
                  const double[::1] offset, const double[:, ::1] theta):
    """Loss, gradient and Hessian (its upper triangle) of G logistic regressions, in rows of sums.

    theta has the shape (G, B). Regressions have features X (G, B, n) and outcomes y (G, n), or
    share the first. All share the weights of the rows and the offset of the log odds.
    """
    cdef Py_ssize_t block, blocks, g, i, n = X.shape[2], B = X.shape[1], G = theta.shape[0]
    cdef Py_ssize_t P = B * (B + 1) // 2
    cdef bint alike = X.shape[0] == 1
    cdef int width
    cdef double[::1] memory = np.zeros((3 + B + P) * BLOCK)
    cdef double* odds = &memory[0]
    cdef double* weight = odds + BLOCK
    cdef double* outcome = weight + BLOCK
    cdef double* x = outcome + BLOCK
    blocks = (n + BLOCK - 1) // BLOCK
    sums = np.zeros((blocks // PART + 1, G, 1 + B + P, ROWS))
    cdef double[:, :, :, ::1] to_sums = sums
    with nogil:
        for block in range(blocks):
            i = block * BLOCK
            width = <int>min(<Py_ssize_t>BLOCK, n - i)
            load_block(odds, &offset[i], 1, n, width)
            load_block(weight, &weights[i], 1, n, width)
            for g in range(G):
                if g == 0 or not alike:
                    load_block(outcome, &y[g, i], 1, n, width)
                    load_block(x, &X[g, 0, i], B, n, width)
                    pair_tile(x, x + B * BLOCK, B)
                logistic_tile(odds, x, &theta[g, 0], outcome, weight,
                              &to_sums[block // PART, g, 0, 0], B, P)
    return sums.sum(axis=(0, 3))


def spline_numbers(const double[:, :] coef, const double[:] knots, const double[:, :] slopes,
                   const double[:] intercept):
    """What `spline` takes: slopes (K, m) and constants of the bends, and the linear part.

    `coef` has the shape (K, K), or (K, 1) for the diagonal of a matrix that is 0 elsewhere.
    """
    cdef Py_ssize_t j, k, K = coef.shape[0], m = knots.shape[0]
    cdef bint joint = coef.shape[1] == K
    cdef double[::1] constant = np.array(intercept)
    cdef double[::1] weights = np.zeros(in_fours(K) * (K + 1) if joint else K)
    for k in range(K):
        for j in range(m):
            # max(odds - knot, 0) = max(odds, knot) - knot
            constant[k] -= slopes[k, j] * knots[j]
        if joint:  # the linear part is a product with the log forecasts and one
            for j in range(K):
                weights[of_four(k, j, K + 1)] = coef[k, j]
            weights[of_four(k, K, K + 1)] = constant[k]
        else:
            weights[k] = coef[k, 0]
    return np.array(knots), np.array(slopes, order="C"), np.asarray(constant), np.asarray(weights)


def spline(const double[:, ::1] P, const double[:, ::1] logs, double floor,
           const double[::1] knots, const double[:, ::1] slopes, const double[::1] constant,
           const double[::1] weights, double share):
    """Forecasts of a `SplineCalibrator`, shape (n, K).

    Forecasts P have shape (n, K), their logarithms (K, n). Others come from `spline_numbers`.
    """
    cdef Py_ssize_t t, i, n = P.shape[0], K = P.shape[1], m = knots.shape[0], K4 = in_fours(K)
    cdef bint joint = weights.shape[0] > K
    cdef int width
    cdef double log_floor = log(floor)
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
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
            if joint:
                product_tile(&weights[0], inputs, z, K + 1, K4)
            else:
                line_tile(inputs, &weights[0], &constant[0], z, K)
            if m:
                bend_tile(odds, &knots[0], &slopes[0, 0], z, K, m)
            softmax_tile(z, K, share)
            store_rows(z, &out[i, 0], K, width)
    return rows


def matrix(const double[:, ::1] z, const double[::1] groups, const double[::1] slopes,
           const double[::1] quadratic, const double[::1] intercept):
    """Forecasts of a matrix map, shape (n, K), from tempered log forecasts (K, n): `MatrixMap`.

    A matrix comes in `groups`, from `in_groups`, None if it is diagonal: then `slopes` has it.
    """
    cdef Py_ssize_t t, i, n = z.shape[1], K = z.shape[0]
    cdef int width
    cdef const double* linear = NULL
    if groups is not None:
        linear = &groups[0]
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef double[:, ::1] tiles = np.zeros((2, in_fours(K) * ROWS))
    cdef double* x = &tiles[0, 0]
    cdef double* scores = &tiles[1, 0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(x, &z[0, i], K, n, width)
            if linear != NULL:
                product_tile(linear, x, scores, K, in_fours(K))
            curve_tile(x, &slopes[0], &quadratic[0], &intercept[0], scores, linear != NULL, K)
            softmax_tile(scores, K, 0.0)
            store_rows(scores, &out[i, 0], K, width)
    return rows


def tilted(const double[:, ::1] P, const Py_ssize_t[::1] bins, const double[:, ::1] table,
           double floor, double temperature, double share):
    """Tempered forecasts times the tilts of their bins, in shares, shape (n, K).

    A row of the table, of shape (B, 2 K + 1), holds the tilt of a bin, the constant part of its
    forecasts, and the share of the rest.
    """
    cdef Py_ssize_t t, i, k, b, n = P.shape[0], K = P.shape[1]
    cdef int r, width
    cdef double total
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef double[::1] memory = np.empty(K * ROWS)
    cdef double* q = &memory[0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load_rows(q, &P[i, 0], K, width)
            raise_tile(q, floor, K)
            log_tile(q, K)
            scale_tile(q, 1 / temperature, K)
            softmax_tile(q, K, share)
            for r in range(width):
                b = bins[i + r]
                total = 0.0
                for k in range(K):
                    q[k * ROWS + r] *= table[b, k]
                    total += q[k * ROWS + r]
                total = table[b, 2 * K] / total
                for k in range(K):
                    out[i + r, k] = table[b, K + k] + total * q[k * ROWS + r]
    return rows


def kernel_numbers(const double[:, :] knots, const double[:, :] origin, const double[:] stretch,
                   const double[:, :, :] centres, const double[:, :] weights,
                   const double[:, :] coef, const double[:] intercept):
    """What `kernel` takes: bends of the ranks, the start and stretch of positions, and matrices."""
    cdef Py_ssize_t j, k, K = knots.shape[0], D = 2 * K - 1, last = K - 1
    cdef Py_ssize_t m = in_fours(centres.shape[0]), M = m + K + 1
    cdef double[:, :, ::1] bends = np.zeros((3, K, KNOTS))
    for k in range(K):
        for j in range(KNOTS):
            bends[0, k, j] = knots[k, j]
            bends[1, k, j] = (j / <double>(KNOTS - 1) - origin[1, k]) * stretch[1]
            if j + 1 < KNOTS:
                bends[2, k, j] = stretch[1] / (KNOTS - 1) / (knots[k, j + 1] - knots[k, j])
    cdef double[::1] groups = np.zeros(m * D), offsets = np.ones(m)
    cdef double total = 0.0
    for k in range(K):
        total -= origin[0, k] * stretch[0]
    # Positions of z sum to the total, so the others determine the last class.
    for j in range(centres.shape[0]):
        offsets[j] -= centres[j, 0, last] * total
        for k in range(K):
            offsets[j] += 0.5 * (centres[j, 0, k] ** 2 + centres[j, 1, k] ** 2)
            groups[of_four(j, last + k, D)] = centres[j, 1, k]
            if k < last:
                groups[of_four(j, k, D)] = centres[j, 0, k] - centres[j, 0, last]
    # The map adds up bumps, log forecasts and one. Scores are relative to the last class, which has
    # 0. The softmax is the same.
    cdef double[::1] joint = np.zeros(in_fours(last) * M)
    for k in range(last):
        for j in range(centres.shape[0]):
            joint[of_four(k, j, M)] = weights[k, j] - weights[last, j]
        for j in range(K):
            joint[of_four(k, m + j, M)] = coef[k, j] - coef[last, j]
        joint[of_four(k, m + K, M)] = intercept[k] - intercept[last]
    start = np.array(origin[0])
    arrays = np.asarray(bends), start, np.asarray(groups), np.asarray(offsets), np.asarray(joint)
    return float(stretch[0]), centres.shape[0], *arrays


def kernel(const double[:, ::1] z, const double[:, ::1] logs, double stretch,
           Py_ssize_t n_centres, const double[:, :, ::1] bends, const double[::1] start,
           const double[::1] groups, const double[::1] offsets, const double[::1] joint,
           double reach):
    """Forecasts, shape (n, K), from tempered and plain log forecasts and `kernel_numbers`."""
    cdef Py_ssize_t t, i, n = z.shape[1], K = z.shape[0], D = 2 * K - 1, last = K - 1
    cdef Py_ssize_t K4 = in_fours(last), m = offsets.shape[0], M = m + K + 1
    cdef int r, width
    cdef double[::1] inputs = np.empty(M * ROWS)
    cdef double* h = &inputs[0]
    cdef double* forecasts = h + m * ROWS
    for r in range(ROWS):
        forecasts[K * ROWS + r] = 1.0
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef double[:, ::1] tiles = np.empty((4, in_fours(2 * K) * ROWS))
    cdef double* plain = &tiles[0, 0]
    cdef double* x = &tiles[1, 0]
    cdef double* square = &tiles[2, 0]
    cdef double* q = &tiles[3, 0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(forecasts, &z[0, i], K, n, width)
            load(plain, &logs[0, i], K, n, width)
            position_tile(forecasts, plain, &start[0], stretch, &bends[0, 0, 0], &bends[1, 0, 0],
                          &bends[2, 0, 0], x, square, K)
            distance_tile(&groups[0], &offsets[0], x, square, h, m, D)
            invert_tile(h, m)
            product_tile(&joint[0], h, q, M, K4)
            trust_tile(h, forecasts, q, reach, n_centres, last)
            for r in range(ROWS):
                q[last * ROWS + r] = 0.0
            softmax_tile(q, K, 0.0)
            store_rows(q, &out[i, 0], K, width)
    return rows


def sigmoid(const double[:, ::1] logs, double floor, const double[::1] coef,
            const double[::1] rest, const double[::1] intercept):
    """Forecasts of a sigmoid map, shape (n, K), from log forecasts (K, n): see `SigmoidMap`."""
    cdef Py_ssize_t t, i, n = logs.shape[1], K = logs.shape[0]
    cdef int width
    cdef double log_floor = log(floor)
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef double[:, ::1] tiles = np.empty((3, K * ROWS))
    cdef double* z = &tiles[0, 0]
    cdef double* p = &tiles[1, 0]
    cdef double* odds = &tiles[2, 0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(z, &logs[0, i], K, n, width)
            raise_tile(z, log_floor, K)
            copy_tile(p, ROWS, z, ROWS, K)
            exp_tile(p, K)
            odds_tile(p, z, odds, K)
            sigmoid_tile(z, odds, &coef[0], &rest[0], &intercept[0], K)
            softmax_tile(odds, K, 0.0)
            store_rows(odds, &out[i, 0], K, width)
    return rows


def logistic(const double[:, ::1] logs, double floor, double coef, double rest, double intercept):
    """Forecasts of a sigmoid map of two classes with opposite log odds, shape (n, 2).

    The numbers are those of the second class: see `sigmoid`.
    """
    cdef Py_ssize_t t, i, n = logs.shape[1]
    cdef int r, width
    cdef double log_floor = log(floor)
    rows = np.empty((n, 2))
    cdef double[:, ::1] out = rows
    cdef double[2 * ROWS] z
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(z, &logs[0, i], 2, n, width)
            raise_tile(z, log_floor, 2)
            for r in range(ROWS):
                z[ROWS + r] = coef * z[ROWS + r] - rest * z[r] + intercept
                z[r] = -z[ROWS + r]
            expit_tile(z, 2)
            store_rows(z, &out[i, 0], 2, width)
    return rows


def cumulative(const double[:, ::1] z, const double[::1] tilt, const double[::1] rates,
               const double[::1] location, const double[::1] shifts, double least):
    """Forecasts of ordered classes, shape (n, K), from tempered log forecasts: `CumulativeMap`.

    Probabilities of the first classes, or the last, count as at least `least`.
    """
    cdef Py_ssize_t t, i, k, n = z.shape[1], K = z.shape[0]
    cdef int r, width
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef double[:, ::1] tiles = np.empty((3, K * ROWS))
    cdef double* logs = &tiles[0, 0]
    cdef double* q = &tiles[1, 0]
    cdef double* u = &tiles[2, 0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(logs, &z[0, i], K, n, width)
            for k in range(K):
                for r in range(ROWS):
                    q[k * ROWS + r] = logs[k * ROWS + r] + tilt[k]
            softmax_tile(q, K, 0.0)
            accumulate_tile(logs, q, &location[0], &shifts[0], rates[0], rates[1], least, u, K)
            separate_tile(u, q, K)
            store_rows(q, &out[i, 0], K, width)
    return rows


def blend(const double[:, ::1] logs, double floor, double trace, const double[:, ::1] slopes,
          const double[::1] biases, const double[:, ::1] points):
    """Forecasts of a monotone map of two classes, shape (n, 2), from log forecasts (2, n).

    They are means of the points, shape (M, 2), weighted by the softmax of ``z @ slopes.T + biases``
    with ``z = (1 - trace) log(p + floor) + trace log(p)``.
    """
    cdef Py_ssize_t t, i, n = logs.shape[1], M = points.shape[0]
    cdef int width
    cdef double log_floor = log(floor)
    rows = np.empty((n, 2))
    cdef double[:, ::1] out = rows
    cdef double[::1] memory = np.empty((M + 4) * ROWS)
    cdef double* z = &memory[0]
    cdef double* q = z + 2 * ROWS
    cdef double* s = q + 2 * ROWS
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(z, &logs[0, i], 2, n, width)
            soften_tile(z, log_floor, trace, 2)
            blend_tile(z, &slopes[0, 0], &biases[0], &points[0, 0], s, q, M)
            store_rows(q, &out[i, 0], 2, width)
    return rows


def gradient(const double[:, ::1] logs, double floor, double trace, double scale,
             const double[:, ::1] softness, const double[:, ::1] biases,
             const double[::1] across, const double[::1] down, const double[::1] factors):
    """Forecasts of a monotone map, shape (n, K), from log forecasts (K, n).

    The rows of `across` and the columns of `down` are the points t_k, None if uniform. `factors`
    are exp(J), or None for ones. These matrices come from `in_groups`. See `isoroc._maps.monotone`
    and, for z, `blend`.
    """
    cdef Py_ssize_t t, i, k, n = logs.shape[1], K = logs.shape[0], L = softness.shape[1]
    cdef int width
    cdef double log_floor = log(floor)
    cdef const double* interacting = NULL
    cdef const double* to_rises = NULL
    cdef const double* to_classes = NULL
    if factors is not None:
        interacting = &factors[0]
    if across is not None:
        to_rises = &across[0]
        to_classes = &down[0]
    rows = np.empty((n, K))
    cdef double[:, ::1] out = rows
    cdef double[:, ::1] tiles = np.empty((6, in_fours(K) * ROWS))
    cdef double[::1] scores = np.empty(K * L * ROWS)
    cdef double* z = &tiles[0, 0]
    cdef double* rise = &tiles[1, 0]
    cdef double* x = &tiles[2, 0]
    cdef double* y = &tiles[3, 0]
    cdef double* hard = &tiles[4, 0]
    cdef double* soft = &tiles[5, 0]
    cdef double* e = &scores[0]
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(z, &logs[0, i], K, n, width)
            soften_tile(z, log_floor, trace, K)
            spread(to_rises, z, rise, K)
            for k in range(K * ROWS):
                rise[k] -= z[k]
            score_tile(z, rise, scale, &softness[0, 0], &biases[0, 0], e, K, L)
            lower_tile(e, K * L)
            exp_tile(e, K * L)
            part_tile(e, &softness[0, 0], x, hard, soft, K, L)
            if factors is not None:
                interact(interacting, x, y, K)
                for k in range(K * ROWS):
                    hard[k] *= y[k]
                    soft[k] *= y[k]
            spread(to_classes, soft, x, K)
            for k in range(K * ROWS):
                x[k] += hard[k]
            normalise_tile(x, K, 0.0)
            store_rows(x, &out[i, 0], K, width)
    return rows


def slopes(const double[:, ::1] z, const Py_ssize_t[::1] codes, const double[::1] weights,
           double scale, const double[:, ::1] softness, const double[:, ::1] biases,
           const double[:, :] directions, const double[:, :] factors, bint of_rows):
    """Loss of rows under a monotone map, and its derivatives: see `isoroc._calibrators.monotone`.

    `directions` are the points t_k, or None if uniform, and `factors` are exp(J), or None for ones.
    After the loss come the derivatives in the scores, alone, times the rises <z, t_k - e_k> and
    times z, and minus the derivatives in r_kl along t_k - e_k, shape (4, K, L). With factors follow
    minus the derivatives in r_kl, shape (K, L, K), and for each row x, the derivatives in exp(J) x,
    and the sums over the levels of the derivatives in the scores times the softness, shape
    (3, K, n). With `of_rows` follow, for each row, the derivatives in the scores and minus the
    derivatives in r_kl[outcome], shape (2, K, L, n).
    """
    cdef Py_ssize_t t, i, k, n = z.shape[1], K = z.shape[0], L = softness.shape[1], KL = K * L
    cdef int r, width
    cdef double loss = 0.0
    cdef bint paired = factors is not None
    cdef double[::1] groups = np.ones(1) if factors is None else in_groups(factors)
    cdef double[::1] across = np.ones(1) if directions is None else in_groups(directions)
    cdef double[:, ::1] by_outcome = np.ascontiguousarray(
        np.ones((1, 1)) if directions is None else directions.T)
    sums = np.zeros((4, K, L, ROWS // 2))
    entries = np.zeros((K if paired else 0, K, L))
    rows = np.empty((2, K, L, n if of_rows else 0))
    mixed = np.empty((3, K, n if paired else 0))
    cdef double[:, :, :, ::1] to_sums = sums, to_rows = rows
    cdef double[:, :, ::1] to_entries = entries, to_mixed = mixed
    cdef double[:, ::1] tiles = np.empty((10, (in_fours(K) + KL) * ROWS))
    cdef double* points = &tiles[0, 0]
    cdef double* rise = &tiles[1, 0]
    cdef double* towards = &tiles[2, 0]
    cdef double* outcome = &tiles[3, 0]
    cdef double* e = &tiles[4, 0]
    cdef double* entry = &tiles[5, 0]
    cdef double* x = &tiles[6, 0]
    cdef double* v = &tiles[7, 0]
    cdef double* y = &tiles[8, 0]
    cdef double* dy = &tiles[9, 0]
    cdef double* interacting = &groups[0] if paired else NULL
    cdef double* to_rises = NULL if directions is None else &across[0]
    cdef double* of_outcome = NULL if directions is None else &by_outcome[0, 0]
    cdef double* entries_of
    cdef double[ROWS] weight, all, likely
    with nogil:
        for t in range((n + ROWS - 1) // ROWS):
            i = t * ROWS
            width = <int>min(<Py_ssize_t>ROWS, n - i)
            load(points, &z[0, i], K, n, width)
            spread(to_rises, points, rise, K)
            for k in range(K * ROWS):
                rise[k] -= points[k]
            for r in range(ROWS):
                weight[r] = weights[i + r] if r < width else 0.0
            load_outcomes(&codes[i], of_outcome, towards, outcome, K, width)
            score_tile(points, rise, scale, &softness[0, 0], &biases[0, 0], e, K, L)
            lower_tile(e, KL)
            exp_tile(e, KL)
            level_tile(e, towards, outcome, &softness[0, 0], entry, x, v, K, L)
            interact(interacting, x, y, K)
            mix_tile(x, v, y, weight, all, likely, dy, K)
            interact(interacting, dy, v, K)
            if paired:
                store(x, &to_mixed[0, 0, i], K, n, width)
                store(dy, &to_mixed[1, 0, i], K, n, width)
            slope_tile(e, entry, y, v, weight, all, likely, rise, points, towards, outcome,
                       &softness[0, 0], &to_sums[0, 0, 0, 0], x, K, L)
            log_tile(all, 1)
            log_tile(likely, 1)
            for r in range(width):
                loss += weight[r] * (all[r] - likely[r])
            if paired:
                store(x, &to_mixed[2, 0, i], K, n, width)
                for r in range(width):
                    entries_of = &to_entries[codes[i + r], 0, 0]
                    for k in range(KL):
                        entries_of[k] += entry[k * ROWS + r]
            if of_rows:
                store(e, &to_rows[0, 0, 0, i], KL, n, width)
                store(entry, &to_rows[1, 0, 0, i], KL, n, width)
    return loss, sums.sum(axis=3), entries.transpose(1, 2, 0), mixed, rows


cdef inline void load_outcomes(const Py_ssize_t* codes, const double* by_outcome, double* towards,
                               double* outcome, Py_ssize_t K, int width) noexcept nogil:
    """t_k[outcome] and whether k is the outcome, for the rows of a tile.

    `by_outcome` has t in columns. NULL stands for the mean of other classes.
    """
    cdef Py_ssize_t j, k
    cdef int r
    for k in range(K * ROWS):
        outcome[k] = 0.0
        towards[k] = 1.0 / <double>(K - 1)
    for r in range(ROWS):
        j = codes[r if r < width else 0]
        outcome[j * ROWS + r] = 1.0
        if by_outcome == NULL:
            towards[j * ROWS + r] = 0.0
            continue
        for k in range(K):
            towards[k * ROWS + r] = by_outcome[j * K + k]


def in_groups(const double[:, :] matrix):
    """A square matrix whose rows stand in groups of four, as products of tiles take it."""
    cdef Py_ssize_t j, k, K = matrix.shape[0]
    groups = np.zeros(in_fours(K) * K)
    cdef double[::1] to = groups
    for k in range(K):
        for j in range(K):
            to[of_four(k, j, K)] = matrix[k, j]
    return groups


cdef inline void interact(const double* factors, const double* x, double* y,
                          Py_ssize_t K) noexcept nogil:
    """A matrix in groups of four rows times a tile. NULL stands for ones."""
    if factors == NULL:
        sum_tile(x, y, K)
    else:
        product_tile(factors, x, y, K, in_fours(K))


cdef inline void spread(const double* points, const double* x, double* y,
                        Py_ssize_t K) noexcept nogil:
    """A matrix in groups of four rows times a tile. NULL stands for the mean of other classes."""
    if points == NULL:
        spread_tile(x, y, K)
    else:
        product_tile(points, x, y, K, in_fours(K))


cdef inline Py_ssize_t in_fours(Py_ssize_t n) noexcept nogil:
    """The next multiple of four."""
    return (n + 3) // 4 * 4


cdef inline Py_ssize_t of_four(Py_ssize_t row, Py_ssize_t column, Py_ssize_t width) noexcept nogil:
    """Place of an entry in a matrix of `width` columns whose rows stand in groups of four."""
    return (row // 4 * width + column) * 4 + row % 4
