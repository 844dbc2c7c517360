"""Systems of difference constraints: what ROC monotonicity asks of the values of bins.

Array arguments are C-contiguous.
"""

import numpy as np


cdef bint has_cycle_below(double* W, Py_ssize_t K, double slack) noexcept nogil:
    """Whether the digraph W has a cycle with a mean weight below slack; W is overwritten."""
    cdef Py_ssize_t i, j, k
    cdef double walk
    for i in range(K * K):
        W[i] -= slack
    for k in range(K):
        for i in range(K):
            for j in range(K):
                walk = W[i * K + k] + W[k * K + j]
                if i != j and walk < W[i * K + j]:
                    W[i * K + j] = walk
                elif i == j and walk < 0:
                    return True
    return False


def keep_order(double[:, :, ::1] W, double slack):
    """Whether no digraph W, of shape (n, K, K), has a cycle of mean below slack; W is spent."""
    cdef Py_ssize_t s
    for s in range(W.shape[0]):
        if has_cycle_below(&W[s, 0, 0], W.shape[1], slack):
            return False
    return True


def smallest_differences(const double[:, :, ::1] values, const Py_ssize_t[::1] nodes,
                         const unsigned char[:, ::1] held, const Py_ssize_t[::1] ends,
                         Py_ssize_t skipped):
    """W of splits for each kind of values, shape (M, S, K, K), +inf where nothing bounds.

    The bins that split s answers for are nodes[ends[s - 1]:ends[s]]. W[m, s, i, j] is the smallest
    values[m, v, i] - values[m, v, j] among those v, but for the skipped one, that have points in
    region i: held[b, i] != 0 for node b.
    """
    cdef Py_ssize_t m, s, b, i, j, v, M = values.shape[0], K = values.shape[2]
    cdef double difference
    bounds = np.full((M, ends.shape[0], K, K), np.inf)
    cdef double[:, :, :, ::1] W = bounds
    with nogil:
        for m in range(M):
            b = 0
            for s in range(ends.shape[0]):
                while b < ends[s]:
                    v = nodes[b]
                    if v != skipped:
                        for i in range(K):
                            if held[b, i]:
                                for j in range(K):
                                    difference = values[m, v, i] - values[m, v, j]
                                    if i != j and difference < W[m, s, i, j]:
                                        W[m, s, i, j] = difference
                    b += 1
    return bounds


def required_differences(const double[:, :, :, ::1] W, const Py_ssize_t[::1] region, double slack):
    """Least r_i - r_j of a bin's children, shape (M, K, K), -inf where anything goes.

    W (M, S, K, K) are the bounds of splits without the bin, and region (S,) is where each has it,
    -1 for several regions. A cycle through region i leaves by r_i - r_j and returns on the
    lightest walk from j to i.
    """
    cdef Py_ssize_t m, s, i, j, k, M = W.shape[0], K = W.shape[2]
    needed = np.full((M, K, K), -np.inf)
    cdef double[:, :, ::1] out = needed
    cdef double[:, ::1] D = np.empty((K, K))
    with nogil:
        for m in range(M):
            for s in range(W.shape[1]):
                if region[s] < 0:
                    continue
                D[:, :] = W[m, s]
                for k in range(K):
                    for i in range(K):
                        for j in range(K):
                            if D[i, k] + D[k, j] < D[i, j]:
                                D[i, j] = D[i, k] + D[k, j]
                i = region[s]
                for j in range(K):
                    if j != i and slack - D[j, i] > out[m, i, j]:
                        out[m, i, j] = slack - D[j, i]
    return needed
