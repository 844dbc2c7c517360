cdef struct Point:
    double t     # where the point changes region
    int row
    int other    # the region that it is in when it is not in the moving one


cdef void sort_points(Point* points, Point* spare, Py_ssize_t n) noexcept nogil
