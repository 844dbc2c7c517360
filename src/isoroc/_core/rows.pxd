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
