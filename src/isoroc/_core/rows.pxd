cpdef double lift(const double[:, ::1] children) noexcept nogil
