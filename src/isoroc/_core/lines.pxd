"""Regions of thresholds, and lines: gamma moves along one axis, and points change their region.

Shared by the loops over rows, the search for splits and the ROC surface.
"""

from libc.string cimport memcpy


cdef inline Py_ssize_t region_of(const double* p, const double* gamma, Py_ssize_t K) noexcept nogil:
    """The lowest k with the largest p_k - gamma_k: `regions` of `isoroc._core.simplex` for K > 2."""
    cdef Py_ssize_t k, best = 0
    cdef double margin, largest = p[0] - gamma[0]
    for k in range(1, K):
        margin = p[k] - gamma[k]
        if margin > largest:
            best = k
            largest = margin
    return best


cdef struct Point:
    double t     # where the point changes region
    int row
    int other    # the region that it is in when it is not in the moving one


cdef inline Py_ssize_t best_other(const double[:, ::1] P, Py_ssize_t i, const double[::1] gamma,
                                  Py_ssize_t axis, double* margin) noexcept nogil:
    """Region of point i when it is not in the region of the axis, and its margin there."""
    cdef Py_ssize_t k, best = 0 if axis else 1
    margin[0] = P[i, best] - gamma[best]
    for k in range(best + 1, P.shape[1]):
        if k != axis and P[i, k] - gamma[k] > margin[0]:
            best = k
            margin[0] = P[i, k] - gamma[k]
    return best


cdef inline void sort_points(Point* points, Point* spare, Py_ssize_t n) noexcept nogil:
    """Sort by descending t, stably: insertion in short runs, then bottom-up merging."""
    cdef Py_ssize_t i, j, k, left, start, middle, stop, width = 16
    cdef Point moved
    cdef Point* source = points
    cdef Point* target = spare
    start = 0
    while start < n:
        for i in range(start + 1, min(start + width, n)):
            moved = points[i]
            j = i
            while j > start and points[j - 1].t < moved.t:
                points[j] = points[j - 1]
                j -= 1
            points[j] = moved
        start += width
    while width < n:
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            i = start
            j = middle
            k = start
            if j == stop or source[j - 1].t >= source[j].t:  # in order already
                memcpy(target + k, source + k, (stop - k) * sizeof(Point))
                start = stop
                continue
            while i < middle and j < stop:
                # Arithmetic, not a branch: which side is next cannot be predicted.
                left = source[i].t >= source[j].t
                target[k] = source[i if left else j]
                i += left
                j += 1 - left
                k += 1
            memcpy(target + k, source + i, (middle - i) * sizeof(Point))
            memcpy(target + k + middle - i, source + j, (stop - j) * sizeof(Point))
            start = stop
        source, target = target, source
        width *= 2
    if source != points:
        memcpy(points, source, n * sizeof(Point))
