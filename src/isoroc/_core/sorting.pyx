"""Points of a line search in order, without the GIL."""

from libc.string cimport memcpy


cdef void sort_points(Point* points, Point* spare, Py_ssize_t n) noexcept nogil:
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
            i, j, k = start, middle, start
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
