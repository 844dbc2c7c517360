"""The compiled loops of the ROC surface: arrays in, arrays out, no decisions and no GIL.

Array arguments are C-contiguous.
"""

from libc.math cimport INFINITY
from libc.string cimport memmove

import numpy as np

cdef extern from *:
    """
    static const int isoroc_checked = ISOROC_CHECKED;
    """
    const int isoroc_checked

#: Whether this build has bounds checks and sanitizers on (``make sanitize``).
CHECKED = bool(isoroc_checked)


cdef Py_ssize_t select(const double[:, ::1] rows, double a, bint above, double shift,
                       double[:, ::1] out, double* lost) noexcept nogil:
    """Copy (place + shift, weight) of the rows on one side of a; end with a row at infinity.

    Rows are (x, place, weight); `lost` becomes the sum of the negative weights.
    """
    cdef Py_ssize_t i, m = 0
    cdef double total = 0.0
    cdef bint taken
    for i in range(rows.shape[0]):
        # Written in any case, kept if taken: no branch to mispredict.
        out[m, 0] = rows[i, 1] + shift
        out[m, 1] = rows[i, 2]
        taken = (rows[i, 0] >= a) == above
        total += rows[i, 2] if taken and rows[i, 2] < 0.0 else 0.0
        m += taken
    out[m, 0] = INFINITY
    out[m, 1] = 0.0
    lost[0] = total
    return m


cdef inline double reach(const double[:, ::1] table, double x, double y, bint concave) noexcept nogil:
    """A lower bound, from its values at whole numbers, of a decreasing function at (x, y)."""
    cdef Py_ssize_t i = <Py_ssize_t> x, j = <Py_ssize_t> y
    if not concave:
        return table[i + 1, j + 1]
    x -= i
    y -= j
    if x + y <= 1.0:
        return (1.0 - x - y) * table[i, j] + x * table[i + 1, j] + y * table[i, j + 1]
    return ((x + y - 1.0) * table[i + 1, j + 1] + (1.0 - y) * table[i + 1, j]
            + (1.0 - x) * table[i, j + 1])


cdef struct Turn:
    double c1        # weight of each class in its own region at a corner,
    double c2
    double c3
    Py_ssize_t i     # and how many of the right
    Py_ssize_t j     # and of the left list are behind

TURN = np.dtype([("c1", "f8"), ("c2", "f8"), ("c3", "f8"), ("i", np.intp), ("j", np.intp)])


def corners(const double[:, ::1] right, const double[:, ::1] left, const double[:, ::1] lines,
            Py_ssize_t line, Py_ssize_t capacity, const double[::1] totals,
            const double[:, ::1] table, bint concave, double step, double tolerance):
    """Corners of the ROC surface of classes 1, 2 and 3 on vertical lines a = gamma_1 - gamma_2.

    With x = p_1 - p_2, z = p_1 - p_3 and w = p_2 - p_3, a point with x >= a is in region 1 up to
    b = gamma_1 - gamma_3 = z and in region 3 beyond; one with x < a is in region 2 up to
    b = w + a and in region 3 beyond. So as b rises from -infinity to infinity, classes 1 and 2
    lose points and class 3 gains points, in the order of two sorted lists that are merged. A
    corner is where a gain is followed by a loss. Where the places of both lists tie, the left
    list comes first: that is their order just left of the line, where the threshold will be.

    Parameters
    ----------
    right : (n, 3)
        x, z and weight of points of class 1 (negative weight) and 3 (positive), ascending in z.
    left : (n, 3)
        x, w and weight of points of class 2 (negative weight) and 3 (positive), ascending in w.
    lines : (L, 2)
        a, and the largest x below it.
    line, capacity
        The first line to scan; stop before a line once this many corners are found.
    totals : (3,)
        Weight of each class.
    table : (D + 2, D + 2)
        How far on the third axis reaches what is known, over (i / D, j / D) on the other two: a
        decreasing function. A corner that is not beyond is of no use.
    concave
        Whether that function is concave, so that a straight line between its values is below it.
    step
        Of corners on a line that are closer than this, in the sum of all coordinates, the first.
    tolerance
        Thresholds that no wider gap than this sets apart are one.

    Returns
    -------
    Corners with their thresholds, rows (p_1, p_2, p_3, a, b), and the next line to scan.
    """
    cdef Py_ssize_t i, j, e, q, turns, n_events, m = 0, L = lines.shape[0]
    cdef Py_ssize_t D = table.shape[0] - 2, n_right = right.shape[0], n_left = left.shape[0]
    cdef double a, c1, c2, c3, p1, p2, p3, weight, loss, low, high, shift
    cdef double last1, last2, last3
    cdef double right_before, left_before
    cdef bint is_left, gained
    rows = np.empty((capacity + (n_right + n_left) // 2 + 2, 5))
    cdef double[:, ::1] out = rows
    cdef double[:, ::1] r = np.empty((n_right + 1, 2))
    cdef double[:, ::1] l = np.empty((n_left + 1, 2))
    cdef Turn[::1] turn = np.empty((n_right + n_left) // 2 + 3, dtype=TURN)
    with nogil:
        while line < L and m < capacity:
            a = lines[line, 0]
            n_events = select(right, a, True, 0.0, r, &c1)
            n_events += select(left, a, False, a, l, &c2)
            c1, c2, c3 = -c1, -c2, 0.0
            i = j = turns = 0
            gained = True
            for e in range(n_events + 1):
                is_left = l[j, 0] <= r[i, 0] + tolerance
                weight = l[j, 1] if is_left else r[i, 1]
                # Written in any case, kept if it is a corner.
                turn[turns].c1, turn[turns].c2, turn[turns].c3 = c1, c2, c3
                turn[turns].i, turn[turns].j = i, j
                turns += gained & (weight <= 0.0)
                gained = weight > 0.0
                loss = min(weight, 0.0)
                c3 += max(weight, 0.0)
                c2 += loss if is_left else 0.0
                c1 += 0.0 if is_left else loss
                j += is_left
                i += not is_left
            last1, last2, last3 = INFINITY, 0.0, 0.0
            for q in range(turns):
                p1, p2 = turn[q].c1 / totals[0], turn[q].c2 / totals[1]
                p3 = turn[q].c3 / totals[2]
                if p3 <= reach(table, D * p1, D * p2, concave):
                    continue
                if last1 - p1 + last2 - p2 + p3 - last3 < step:
                    continue
                last1, last2, last3 = p1, p2, p3
                # Step to the left of the line by half of what is free: there the places of the
                # left list are lower by as much.
                i, j = turn[q].i, turn[q].j
                right_before = r[i - 1, 0] if i > 0 else -INFINITY
                left_before = l[j - 1, 0] if j > 0 else -INFINITY
                shift = min(a - lines[line, 1], l[j, 0] - right_before) / 2
                low = max(right_before, left_before - shift)
                high = min(r[i, 0], l[j, 0] - shift)
                if high - low > tolerance:
                    if low == -INFINITY:
                        low = high - 2.0 if high < INFINITY else -1.0
                    if high == INFINITY:
                        high = low + 2.0
                    out[m, 0], out[m, 1], out[m, 2] = p1, p2, p3
                    out[m, 3], out[m, 4] = a - shift, (low + high) / 2
                    m += 1
            line += 1
    return rows[:m].copy(), line


def undominated(const double[:, ::1] points):
    """Which points no other dominates, and the volume of the union of their boxes.

    `points` come in descending order of the three coordinates, so each can only be dominated by
    one before it. Of equal points the first is kept. Those before it leave a staircase in the
    other two coordinates, ascending in the second and descending in the third.
    """
    cdef Py_ssize_t q, low, high, middle, first, height = 0, m = points.shape[0]
    cdef double y, z, area = 0.0, volume = 0.0, before
    kept = np.zeros(m, dtype=np.uint8)
    cdef unsigned char[::1] keep = kept
    cdef double[::1] ys = np.empty(m + 1)
    cdef double[::1] zs = np.empty(m + 1)
    with nogil:
        for q in range(m):
            if q > 0:
                volume += area * (points[q - 1, 0] - points[q, 0])
            y, z = points[q, 1], points[q, 2]
            low, high = 0, height
            while low < high:
                middle = (low + high) // 2
                if ys[middle] < y:
                    low = middle + 1
                else:
                    high = middle
            if low < height and zs[low] >= z:
                continue
            keep[q] = True
            # Steps [first, high) are hidden behind the new one.
            high = low + 1 if low < height and ys[low] == y else low
            area += (y - (ys[low - 1] if low > 0 else 0.0)) * (z - (zs[low] if low < height else 0.0))
            first = low
            while first > 0 and zs[first - 1] <= z:
                first -= 1
                before = ys[first - 1] if first > 0 else 0.0
                area += (ys[first] - before) * (z - zs[first])
            if first + 1 != high and high < height:
                memmove(&ys[first + 1], &ys[high], (height - high) * sizeof(double))
                memmove(&zs[first + 1], &zs[high], (height - high) * sizeof(double))
            ys[first], zs[first] = y, z
            height += first + 1 - high
        if m > 0:
            volume += area * points[m - 1, 0]
    return kept.view(np.bool_), volume


def lower_envelope(const double[:, ::1] planes, Py_ssize_t cells):
    """Lowest of some planes over a square grid, shape (cells + 2, cells + 2).

    Entry [i, j] is the smallest ``u * i / cells + v * j / cells + c`` among the planes (u, v, c),
    which come in descending order of v.
    """
    cdef Py_ssize_t i, j, f, top, F = planes.shape[0]
    cdef double x, y, c, v
    lowest = np.empty((cells + 2, cells + 2))
    cdef double[:, ::1] out = lowest
    # Over one row of the grid planes are lines, and those that are lowest somewhere form a
    # stack: line s is the lowest from start[s] on, until start[s + 1].
    cdef double[::1] slope = np.empty(F + 1)
    cdef double[::1] level = np.empty(F + 1)
    cdef double[::1] start = np.empty(F + 1)
    with nogil:
        for i in range(cells + 2):
            x = <double> i / cells
            top = -1
            for f in range(F):
                v, c = planes[f, 1], planes[f, 0] * x + planes[f, 2]
                y = -INFINITY
                while top >= 0:
                    # where the new line, less steep upwards, comes below the last
                    if slope[top] > v:
                        y = (c - level[top]) / (slope[top] - v)
                    else:
                        y = -INFINITY if c < level[top] else INFINITY
                    if y > start[top]:
                        break
                    top -= 1
                    y = -INFINITY
                if y < INFINITY:
                    top += 1
                    slope[top], level[top], start[top] = v, c, y
            f = 0
            for j in range(cells + 2):
                y = <double> j / cells
                while f < top and start[f + 1] <= y:
                    f += 1
                out[i, j] = slope[f] * y + level[f]
    return lowest


def own_shares(const double[:, ::1] P, const Py_ssize_t[::1] codes, const double[::1] weights,
               const double[:, ::1] thresholds):
    """Weight of each class in its own region under each threshold, shape (C, K).

    The rule of simplex.regions for K > 2: the lowest k with the largest p_k - gamma_k.
    """
    cdef Py_ssize_t c, i, k, own, n = P.shape[0], K = P.shape[1], C = thresholds.shape[0]
    cdef double margin
    cdef bint inside
    shares = np.zeros((C, K))
    cdef double[:, ::1] out = shares
    with nogil:
        for c in range(C):
            for i in range(n):
                own = codes[i]
                margin = P[i, own] - thresholds[c, own]
                inside = True
                for k in range(K):
                    if k < own:
                        inside = inside and P[i, k] - thresholds[c, k] < margin
                    else:
                        inside = inside and P[i, k] - thresholds[c, k] <= margin
                out[c, own] += weights[i] if inside else 0.0
    return shares
