cdef bint has_cycle_below(double* W, Py_ssize_t K, double slack) noexcept nogil
