cdef struct Point:
    double t     # where the point changes region
    int row
    int other    # the region that it is in when it is not in the moving one


cdef void sort_points(Point* points, Point* spare, Py_ssize_t n) noexcept nogil


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
