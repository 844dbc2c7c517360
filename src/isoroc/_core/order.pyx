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


cdef class Wards:
    """Nodes (B,) of the bins that a split answers for; (B, K): whether each has points in a region."""

    cdef readonly Py_ssize_t n_bins
    cdef Py_ssize_t[::1] nodes
    cdef unsigned char[:, ::1] held

    def __init__(self, const Py_ssize_t[::1] nodes, const unsigned char[:, ::1] held):
        self.n_bins = 0
        self.nodes = np.empty(0, dtype=np.intp)
        self.held = np.empty((0, held.shape[1]), dtype=np.uint8)
        self._add(nodes, held)

    cdef _add(self, const Py_ssize_t[::1] nodes, const unsigned char[:, :] held):
        cdef Py_ssize_t needed = self.n_bins + nodes.shape[0]
        if needed > self.nodes.shape[0]:
            before, before_held = self.nodes, self.held
            self.nodes = np.empty(2 * needed, dtype=np.intp)
            self.held = np.empty((2 * needed, held.shape[1]), dtype=np.uint8)
            self.nodes[:self.n_bins] = before[:self.n_bins]
            self.held[:self.n_bins] = before_held[:self.n_bins]
        self.nodes[self.n_bins:needed] = nodes
        self.held[self.n_bins:needed] = held
        self.n_bins = needed

    def replace(self, Py_ssize_t node, const Py_ssize_t[::1] children,
                const unsigned char[:, :] held):
        """Put the children of a bin in its place."""
        cdef Py_ssize_t b = 0
        while self.nodes[b] != node:
            b += 1
        self.nodes[b] = children[0]
        self.held[b] = held[0]
        self._add(children[1:], held[1:])


def keep_order(double[:, :, :, ::1] W, const double[:, :, ::1] values,
               const unsigned char[:, :, ::1] held, double slack):
    """Whether no split has a cycle of mean below slack once a bin has been replaced; W is spent.

    W (M, S, K, K) are the bounds of splits without the bin. Its children have values (M, c, K), and
    points in region i of split s where held[c, s, i] != 0.
    """
    cdef Py_ssize_t m, s, c, i, j, K = W.shape[2]
    cdef double difference
    for m in range(W.shape[0]):
        for s in range(W.shape[1]):
            for c in range(held.shape[0]):
                for i in range(K):
                    if held[c, s, i]:
                        for j in range(K):
                            difference = values[m, c, i] - values[m, c, j]
                            if i != j and difference < W[m, s, i, j]:
                                W[m, s, i, j] = difference
            if has_cycle_below(&W[m, s, 0, 0], K, slack):
                return False
    return True


def smallest_differences(const double[:, :, ::1] values, list wards, Py_ssize_t skipped):
    """W of splits for each kind of values, shape (M, S, K, K), +inf where nothing bounds.

    W[m, s, i, j] is the smallest values[m, v, i] - values[m, v, j] among the bins v, but for the
    skipped one, that split s answers for and that have points in region i. In the list of wards
    None stands for a split without any.
    """
    cdef Py_ssize_t m, s, b, i, j, v, M = values.shape[0], K = values.shape[2]
    cdef double difference
    cdef Wards bins
    bounds = np.full((M, len(wards), K, K), np.inf)
    cdef double[:, :, :, ::1] W = bounds
    for s in range(len(wards)):
        bins = wards[s]
        if bins is None:
            continue
        for b in range(bins.n_bins):
            v = bins.nodes[b]
            if v == skipped:
                continue
            for i in range(K):
                if not bins.held[b, i]:
                    continue
                for m in range(M):
                    for j in range(K):
                        difference = values[m, v, i] - values[m, v, j]
                        if i != j and difference < W[m, s, i, j]:
                            W[m, s, i, j] = difference
    return bounds


def required_differences(const double[:, :, :, ::1] W, const unsigned char[:, ::1] held,
                         double slack):
    """Least r_i - r_j of a bin's children, shape (M, K, K), -inf where anything goes.

    W (M, S, K, K) are the bounds of splits without the bin, which has points in region i of split s
    where held[s, i] != 0. Splits that have it in several regions are left out. A cycle through
    region i leaves by r_i - r_j and returns on the lightest walk from j to i.
    """
    cdef Py_ssize_t m, s, i, j, k, n_held, M = W.shape[0], K = W.shape[2]
    needed = np.full((M, K, K), -np.inf)
    cdef double[:, :, ::1] out = needed
    cdef double[:, ::1] D = np.empty((K, K))
    with nogil:
        for m in range(M):
            for s in range(W.shape[1]):
                n_held = 0
                for i in range(K):
                    n_held += held[s, i]
                if n_held != 1:
                    continue
                D[:, :] = W[m, s]
                for k in range(K):
                    for i in range(K):
                        for j in range(K):
                            if D[i, k] + D[k, j] < D[i, j]:
                                D[i, j] = D[i, k] + D[k, j]
                for i in range(K):
                    if held[s, i]:
                        for j in range(K):
                            if j != i and slack - D[j, i] > out[m, i, j]:
                                out[m, i, j] = slack - D[j, i]
    return needed
