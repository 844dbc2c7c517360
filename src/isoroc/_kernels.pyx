"""The compiled loops: arrays in, arrays out, no decisions and no GIL.

Array arguments are C-contiguous. An empty weight array stands for unit weights.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc, realloc

import numpy as np

cdef extern from *:
    """
    static const int isoroc_checked = ISOROC_CHECKED;
    """
    const int isoroc_checked

#: Whether this build has bounds checks and sanitizers on (``make sanitize``).
CHECKED = bool(isoroc_checked)


def check_rows(const double[:, ::1] P, double tolerance, double exact):
    """First row of P that is not a forecast, and whether any row needs normalising.

    A row is a forecast when its entries are numbers >= 0 whose sum is within `tolerance` of 1;
    it needs normalising when the sum is off by more than `exact`. Returns (row or -1, bool).
    """
    cdef Py_ssize_t i, k, bad = -1, n = P.shape[0], K = P.shape[1]
    cdef double total, off
    cdef bint ok, loose = False
    with nogil:
        for i in range(n):
            total = 0.0
            ok = True
            for k in range(K):
                ok = ok and P[i, k] >= 0.0  # false for NaN
                total += P[i, k]
            off = fabs(total - 1.0)
            if not (ok and off <= tolerance):
                bad = i
                break
            loose = loose or off > exact
    return bad, loose


def partition_scores(const double[::1] scores, const unsigned char[::1] positive):
    """Scores with those of class 0 first, and how many those are; no order within a class."""
    cdef Py_ssize_t i, n = scores.shape[0], low = 0, high = n - 1
    cdef double[::1] out = np.empty(n)
    with nogil:
        # Both ends are written and only one of them advances: no branch to mispredict, and
        # low <= high holds throughout, so the other write lands on a place still to be filled.
        for i in range(n):
            out[low] = scores[i]
            out[high] = scores[i]
            low += positive[i] == 0
            high -= positive[i] != 0
    return np.asarray(out), low


cdef inline double weight_of_run(const double[::1] w, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    if w.shape[0] == 0:
        return <double> (stop - start)
    for i in range(start, stop):
        total += w[i]
    return total


def merge_classes(const double[::1] a, const double[::1] wa,
                  const double[::1] b, const double[::1] wb):
    """Distinct values of two sorted score arrays, and the weight of each class at each value.

    Returns the values, shape (m,), ascending, and the class weights, shape (m, 2).
    """
    cdef Py_ssize_t i = 0, j = 0, i0, j0, m = 0, na = a.shape[0], nb = b.shape[0]
    values = np.empty(na + nb)
    weights = np.empty((na + nb, 2))
    cdef double[::1] x = values
    cdef double[:, ::1] w = weights
    cdef double v
    with nogil:
        while i < na or j < nb:
            v = a[i] if j == nb or (i < na and a[i] < b[j]) else b[j]
            i0, j0 = i, j
            while i < na and a[i] == v:
                i += 1
            while j < nb and b[j] == v:
                j += 1
            x[m] = v
            w[m, 0] = weight_of_run(wa, i0, i)
            w[m, 1] = weight_of_run(wb, j0, j)
            m += 1
    return values[:m], weights[:m]


cdef struct Block:
    double low    # smallest and
    double high   # largest score in the block
    double w0     # weight of class 0 and
    double w1     # of class 1


def pool_adjacent_violators(const double[::1] a, const double[::1] wa,
                            const double[::1] b, const double[::1] wb):
    """Blocks of the isotonic regression of the class on the score.

    `a` and `b` are the sorted, finite scores of class 0 and of class 1. The paper's Algorithm 1
    rescans the whole sequence until nothing is out of order; here a stack holds the blocks so
    far, always strictly increasing in mean, so each is pushed and pooled once. Rows enter in
    groups: a run of class 1, a tie and a run of class 0, in this order, pool in any case.

    Returns the blocks' lowest and highest scores, shape (m,), and class weights, shape (m, 2).
    """
    cdef Py_ssize_t i = 0, j = 0, i0, j0, top = -1, capacity = 256
    cdef Py_ssize_t na = a.shape[0], nb = b.shape[0]
    cdef double v
    cdef Block new
    cdef Block* larger
    cdef Block* stack = <Block*> malloc(capacity * sizeof(Block))
    if stack == NULL:
        raise MemoryError
    try:
        with nogil:
            while i < na or j < nb:
                i0, j0 = i, j
                v = a[i] if i < na else INFINITY
                while j < nb and b[j] < v:
                    j += 1
                if i < na and j < nb and b[j] == v:
                    while i < na and a[i] == v:
                        i += 1
                    while j < nb and b[j] == v:
                        j += 1
                v = b[j] if j < nb else INFINITY
                while i < na and a[i] < v:
                    i += 1
                new.low = b[j0] if j > j0 else a[i0]
                new.high = a[i - 1] if i > i0 else b[j - 1]
                new.w0 = weight_of_run(wa, i0, i)
                new.w1 = weight_of_run(wb, j0, j)
                # mean of the top >= mean of the new one, without a division
                while top >= 0 and stack[top].w1 * new.w0 >= new.w1 * stack[top].w0:
                    new.low = stack[top].low
                    new.w0 += stack[top].w0
                    new.w1 += stack[top].w1
                    top -= 1
                top += 1
                if top == capacity:
                    capacity *= 2
                    larger = <Block*> realloc(stack, capacity * sizeof(Block))
                    if larger == NULL:
                        with gil:
                            raise MemoryError
                    stack = larger
                stack[top] = new
        low = np.empty(top + 1)
        high = np.empty(top + 1)
        weights = np.empty((top + 1, 2))
        for i in range(top + 1):
            low[i] = stack[i].low
            high[i] = stack[i].high
            weights[i, 0] = stack[i].w0
            weights[i, 1] = stack[i].w1
    finally:
        free(stack)
    return low, high, weights


cdef inline double smoothed(const double[:, ::1] cumulative, Py_ssize_t start, Py_ssize_t stop,
                            double a0, double a1) noexcept nogil:
    cdef double w0 = cumulative[stop, 0] - cumulative[start, 0] + a0
    cdef double w1 = cumulative[stop, 1] - cumulative[start, 1] + a1
    return w1 / (w0 + w1)


def best_cut(const double[:, ::1] cumulative, Py_ssize_t before, Py_ssize_t start, Py_ssize_t stop,
             Py_ssize_t after, const double[::1] smoothing, double min_weight):
    """Best place to cut the isotonic blocks [start, stop) in two: (cut, height), or (-1, 0.0).

    Row b of `cumulative` holds the class weights of all blocks before b. The height is that of
    the chord above the cumulative sum diagram at the cut. The two parts weigh at least
    `min_weight`, and their smoothed values and those of the neighbours [before, start) and
    [stop, after), -1 where there is none, increase strictly.
    """
    cdef Py_ssize_t cut, best = -1
    cdef double height, highest = -1.0, left, right
    cdef double l0, l1, a0 = smoothing[0], a1 = smoothing[1]
    cdef double below = smoothed(cumulative, before, start, a0, a1) if before >= 0 else -INFINITY
    cdef double above = smoothed(cumulative, stop, after, a0, a1) if after >= 0 else INFINITY
    cdef double w0 = cumulative[stop, 0] - cumulative[start, 0]
    cdef double w1 = cumulative[stop, 1] - cumulative[start, 1]
    with nogil:
        for cut in range(start + 1, stop):
            l0 = cumulative[cut, 0] - cumulative[start, 0]
            l1 = cumulative[cut, 1] - cumulative[start, 1]
            height = (w1 * l0 - w0 * l1) / (w0 + w1)
            if height <= highest:
                continue
            if l0 + l1 < min_weight or w0 + w1 - l0 - l1 < min_weight:
                continue
            left = smoothed(cumulative, start, cut, a0, a1)
            right = smoothed(cumulative, cut, stop, a0, a1)
            if below < left < right < above:
                best = cut
                highest = height
    return best, highest if best >= 0 else 0.0


def locate(const double[::1] cuts, const double[::1] scores):
    """How many of the ascending cuts lie below each score: its bin, shape (n,)."""
    cdef Py_ssize_t i, first, length, half, n = scores.shape[0], m = cuts.shape[0]
    found = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = found
    with nogil:
        for i in range(n):
            # Invariant: the answer lies in [first, first + length]. The step is arithmetic, not a
            # branch, because its direction cannot be predicted.
            first, length = 0, m
            while length > 0:
                half = (length + 1) // 2
                first += half * (cuts[first + half - 1] < scores[i])
                length -= half
            out[i] = first
    return found


def route(const double[:, ::1] P, const double[:, ::1] thresholds,
          const Py_ssize_t[:, ::1] children, const Py_ssize_t[::1] split_of_node):
    """Leaf in which each forecast ends.

    At split s a forecast goes to the child k with the largest p[k] - thresholds[s, k] among those
    with children[s, k] >= 0, the lowest k on ties. `split_of_node` is -1 at leaves.
    """
    cdef Py_ssize_t i, k, s, best, n = P.shape[0], K = P.shape[1]
    cdef double margin, largest
    leaves = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = leaves
    with nogil:
        for i in range(n):
            out[i] = 0
            s = split_of_node[0]
            while s >= 0:
                best = -1
                largest = 0.0
                for k in range(K):
                    if children[s, k] >= 0:
                        margin = P[i, k] - thresholds[s, k]
                        if best < 0 or margin > largest:
                            best = k
                            largest = margin
                out[i] = children[s, best]
                s = split_of_node[out[i]]
    return leaves
