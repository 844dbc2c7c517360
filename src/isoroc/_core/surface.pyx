"""Compiled loops of the ROC surface: arrays in, arrays out, without the GIL.

Array arguments are C-contiguous.
"""

from libc.math cimport INFINITY
from libc.string cimport memmove

import numpy as np

from isoroc._core.lines cimport Point, best_other, region_of, sort_points


cdef Py_ssize_t select_side(const double[:, ::1] rows, double a, bint above, double shift,
                            double[:, ::1] out, double* lost) noexcept nogil:
    """Copy (place + shift, weight) of the rows on one side of a, and a row at infinity.

    Rows are (x, place, weight). `lost` becomes the sum of the negative weights.
    """
    cdef Py_ssize_t i, m = 0
    cdef double total = 0.0
    cdef bint taken
    for i in range(rows.shape[0]):
        # Write every row but advance only past those that are taken: no branch to mispredict.
        out[m, 0] = rows[i, 1] + shift
        out[m, 1] = rows[i, 2]
        taken = (rows[i, 0] >= a) == above
        total += rows[i, 2] if taken and rows[i, 2] < 0.0 else 0.0
        m += taken
    out[m, 0] = INFINITY
    out[m, 1] = 0.0
    lost[0] = total
    return m


cdef inline double lower_bound(const double[:, ::1] table, double x, double y,
                               bint concave) noexcept nogil:
    """Lower bound at (x, y) of a decreasing function, given its values at integers."""
    cdef Py_ssize_t i = <Py_ssize_t> x, j = <Py_ssize_t> y
    if not concave:
        return table[i + 1, j + 1]
    x -= i
    y -= j
    if x + y <= 1.0:
        return (1.0 - x - y) * table[i, j] + x * table[i + 1, j] + y * table[i, j + 1]
    return ((x + y - 1.0) * table[i + 1, j + 1] + (1.0 - y) * table[i + 1, j]
            + (1.0 - x) * table[i, j + 1])


cdef struct Corner:
    double c1        # weight of class 1 in its own region
    double c2        # of class 2
    double c3        # of class 3
    Py_ssize_t i     # number of entries passed in the right list
    Py_ssize_t j     # in the left list

CORNER = np.dtype([("c1", "f8"), ("c2", "f8"), ("c3", "f8"), ("i", np.intp), ("j", np.intp)])


cdef Py_ssize_t find_corners(const double[:, ::1] right, const double[:, ::1] left,
                             Py_ssize_t n_entries, double c1, double c2, double tolerance,
                             Corner[::1] corners) noexcept nogil:
    """Merge the two sorted lists of a line. A corner is where a gain is followed by a loss.

    `c1` and `c2` are the weights of the classes that lose, before the first entry. Where the
    places of both lists tie, the left list comes first: that is their order just left of the line,
    where the threshold will be.
    """
    cdef Py_ssize_t e, i = 0, j = 0, m = 0
    cdef double weight, loss, c3 = 0.0
    cdef bint is_left, gained = True
    for e in range(n_entries + 1):
        is_left = left[j, 0] <= right[i, 0] + tolerance
        weight = left[j, 1] if is_left else right[i, 1]
        # Write every entry but advance only past corners.
        corners[m].c1 = c1
        corners[m].c2 = c2
        corners[m].c3 = c3
        corners[m].i = i
        corners[m].j = j
        m += gained & (weight <= 0.0)
        gained = weight > 0.0
        loss = min(weight, 0.0)
        c3 += max(weight, 0.0)
        c2 += loss if is_left else 0.0
        c1 += 0.0 if is_left else loss
        j += is_left
        i += not is_left
    return m


cdef bint place_threshold(const double[:, ::1] right, const double[:, ::1] left, Corner corner,
                          double a, double gap, double tolerance, double[::1] out) noexcept nogil:
    """Write the threshold (a, b) of a corner. Returns False if no gap is wide enough.

    The threshold lies left of the line by half of what is free, at most half of `gap`. There the
    places of the left list are lower by as much.
    """
    cdef Py_ssize_t i = corner.i, j = corner.j
    cdef double right_before = right[i - 1, 0] if i > 0 else -INFINITY
    cdef double left_before = left[j - 1, 0] if j > 0 else -INFINITY
    cdef double shift = min(gap, left[j, 0] - right_before) / 2
    cdef double low = max(right_before, left_before - shift)
    cdef double high = min(right[i, 0], left[j, 0] - shift)
    if not high - low > tolerance:
        return False
    if low == -INFINITY:
        low = high - 2.0 if high < INFINITY else -1.0
    if high == INFINITY:
        high = low + 2.0
    out[3] = a - shift
    out[4] = (low + high) / 2
    return True


def scan_lines(const double[:, ::1] right, const double[:, ::1] left, const double[:, ::1] lines,
               Py_ssize_t line, Py_ssize_t capacity, const double[::1] totals,
               const double[:, ::1] table, bint concave, double step, double tolerance):
    """Corners of the ROC surface of classes 1, 2 and 3 on vertical lines a = gamma_1 - gamma_2.

    With x = p_1 - p_2, z = p_1 - p_3 and w = p_2 - p_3, a point with x >= a is in region 1 up to
    b = gamma_1 - gamma_3 = z and in region 3 beyond. One with x < a is in region 2 up to
    b = w + a and in region 3 beyond. So as b rises from -infinity to infinity, classes 1 and 2
    lose points and class 3 gains points, in the order of two sorted lists that are merged.

    `right` (n, 3) holds x, z and weight of points of class 1 (negative weight) and 3 (positive),
    ascending in z. `left` holds x, w and weight of points of class 2 (negative) and 3, ascending in
    w. `lines` (L, 2) holds a and the largest x below it. The scan starts at `line` and stops before
    a line once `capacity` corners are found. `totals` (3,) are the weights of the classes. `table`
    (D + 2, D + 2) says how far the points found so far reach on the third axis over (i / D, j / D)
    on the other two: a decreasing function, and if it is `concave`, linear interpolation is a lower
    bound. Corners that do not reach further are skipped, and so are those closer than `step` to the
    last one kept on their line, in the sum of all coordinates. Gaps up to `tolerance` separate
    nothing.

    Returns corners with their thresholds, rows (p_1, p_2, p_3, a, b), and the next line to scan.
    """
    cdef Py_ssize_t q, n_entries, n_corners, m = 0, L = lines.shape[0], D = table.shape[0] - 2
    cdef Py_ssize_t n_right = right.shape[0], n_left = left.shape[0]
    cdef double a, lost1, lost2, p1, p2, p3, last1, last2, last3
    rows = np.empty((capacity + (n_right + n_left) // 2 + 2, 5))
    cdef double[:, ::1] out = rows
    cdef double[:, ::1] r = np.empty((n_right + 1, 2))
    cdef double[:, ::1] l = np.empty((n_left + 1, 2))
    cdef Corner[::1] corner = np.empty((n_right + n_left) // 2 + 3, dtype=CORNER)
    with nogil:
        while line < L and m < capacity:
            a = lines[line, 0]
            n_entries = select_side(right, a, True, 0.0, r, &lost1)
            n_entries += select_side(left, a, False, a, l, &lost2)
            n_corners = find_corners(r, l, n_entries, -lost1, -lost2, tolerance, corner)
            last1 = INFINITY
            last2 = 0.0
            last3 = 0.0
            for q in range(n_corners):
                p1 = corner[q].c1 / totals[0]
                p2 = corner[q].c2 / totals[1]
                p3 = corner[q].c3 / totals[2]
                if p3 <= lower_bound(table, D * p1, D * p2, concave):
                    continue
                if last1 - p1 + last2 - p2 + p3 - last3 < step:
                    continue
                last1 = p1
                last2 = p2
                last3 = p3
                if place_threshold(r, l, corner[q], a, a - lines[line, 1], tolerance, out[m]):
                    out[m, 0] = p1
                    out[m, 1] = p2
                    out[m, 2] = p3
                    m += 1
            line += 1
    return rows[:m].copy(), line


def undominated(const double[:, ::1] points):
    """Which points are not dominated by another, and the volume of the union of their boxes.

    `points` are sorted in descending order of the three coordinates, so each can only be dominated
    by an earlier one. Of equal points the first is kept. The earlier points form a staircase in the
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
            y = points[q, 1]
            z = points[q, 2]
            low = 0
            high = height
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
            ys[first] = y
            zs[first] = z
            height += first + 1 - high
        if m > 0:
            volume += area * points[m - 1, 0]
    return kept.view(np.bool_), volume


def lower_envelope(const double[:, ::1] planes, Py_ssize_t cells):
    """Lowest of some planes over a square grid, shape (cells + 2, cells + 2).

    Entry [i, j] is the smallest ``u * i / cells + v * j / cells + c`` among the planes (u, v, c),
    which are sorted in descending order of v.
    """
    cdef Py_ssize_t i, j, f, top, F = planes.shape[0]
    cdef double x, y, c, v
    lowest = np.empty((cells + 2, cells + 2))
    cdef double[:, ::1] out = lowest
    # Over one row of the grid, planes are lines. Those that are lowest somewhere form a stack:
    # line s is the lowest from start[s] to start[s + 1].
    cdef double[::1] slope = np.empty(F + 1)
    cdef double[::1] level = np.empty(F + 1)
    cdef double[::1] start = np.empty(F + 1)
    with nogil:
        for i in range(cells + 2):
            x = <double> i / cells
            top = -1
            for f in range(F):
                v = planes[f, 1]
                c = planes[f, 0] * x + planes[f, 2]
                y = -INFINITY
                while top >= 0:
                    # where the new line, which rises less steeply, falls below the last one
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
                    slope[top] = v
                    level[top] = c
                    start[top] = y
            f = 0
            for j in range(cells + 2):
                y = <double> j / cells
                while f < top and start[f + 1] <= y:
                    f += 1
                out[i, j] = slope[f] * y + level[f]
    return lowest


def own_shares(const double[:, ::1] P, const Py_ssize_t[::1] codes, const double[::1] shares,
               const double[:, ::1] thresholds):
    """ROC point of each threshold: share of each class in its own region, shape (m, K)."""
    cdef Py_ssize_t q, i, n = P.shape[0], K = P.shape[1], m = thresholds.shape[0]
    points = np.zeros((m, K))
    cdef double[:, ::1] out = points
    with nogil:
        for q in range(m):
            for i in range(n):
                if region_of(&P[i, 0], &thresholds[q, 0], K) == codes[i]:
                    out[q, codes[i]] += shares[i]
    return points


cdef double best_move(const double[:, ::1] P, const Py_ssize_t[::1] codes, const double[::1] values,
                      const double[::1] gamma, Py_ssize_t axis, double tolerance, Point* points,
                      double* reached) noexcept nogil:
    """The move of gamma along an axis that puts most value, `reached`, into its own region.

    A row is in the region of the axis if the move is at most its t, and otherwise in a region that
    does not depend on the move. So one sort and one pass give the value of every move. The move ends
    near the middle of a gap, not the same part of it on every axis: in the middle, forecasts on a
    lattice would tie between other classes, and rounding would decide. `points` has space for 2 n.
    """
    cdef Py_ssize_t i, m = 0, j, best = 0
    cdef Py_ssize_t n = P.shape[0]
    cdef double margin, largest, total = 0.0
    cdef double part = 0.45 + 0.1 * (0.618034 * (axis + 1) % 1.0)
    for i in range(n):
        if values[i] == 0.0:
            continue
        points[m].other = best_other(P, i, gamma, axis, &margin)
        points[m].t = P[i, axis] - gamma[axis] - margin
        points[m].row = i
        if codes[i] == points[m].other:
            total += values[i]
        m += codes[i] == axis or codes[i] == points[m].other
    sort_points(points, points + n, m)
    largest = total  # of a move above all t, with which the region of the axis is empty
    for j in range(m):
        i = points[j].row
        total += values[i] if codes[i] == axis else -values[i]
        if total > largest and (j + 1 == m or points[j].t - points[j + 1].t > tolerance):
            largest = total
            best = j + 1
    reached[0] = largest
    if best == 0:
        return points[0].t + 1.0 if m > 0 else 0.0
    if best == m:
        return points[m - 1].t - 1.0
    return points[best].t + part * (points[best - 1].t - points[best].t)


def ascend(const double[:, ::1] P, const Py_ssize_t[::1] codes, const double[::1] shares,
           const double[:, ::1] directions, double[:, ::1] thresholds, Py_ssize_t max_cycles,
           double tolerance):
    """Move thresholds along their axes until no move improves the shares in a direction u >= 0.

    `P` (n, K), `codes` and `shares` are forecasts, the class of each and its share of the class.
    Row q of `thresholds` starts an ascent in direction q and becomes its end. Where u_k is 0, the
    threshold must put class k out of reach. Rows of the class are not looked at. Gaps up to
    `tolerance` separate nothing.

    Returns the value that each ascent reaches: the sum of u_k times the share of class k.
    """
    cdef Py_ssize_t q, i, k, step, idle, n_axes
    cdef Py_ssize_t n = P.shape[0], K = P.shape[1], m = directions.shape[0]
    cdef double move, value
    reached = np.full(m, -np.inf)
    cdef double[::1] out = reached
    cdef double[::1] values = np.empty(n)
    memory = np.empty(2 * n + 1, dtype=[("t", "f8"), ("row", "i4"), ("other", "i4")])
    cdef Point[::1] points = memory
    with nogil:
        for q in range(m):
            n_axes = 0
            for k in range(K):
                n_axes += directions[q, k] > 0.0
            for i in range(n):
                values[i] = directions[q, codes[i]] * shares[i]
            idle = 0
            for step in range(K * max_cycles):
                k = step % K
                if directions[q, k] == 0.0:
                    continue
                move = best_move(P, codes, values, thresholds[q], k, tolerance, &points[0], &value)
                idle += 1
                if value > out[q] + 1e-12:
                    thresholds[q, k] += move
                    out[q] = value
                    idle = 1
                if idle == n_axes:
                    break
    return reached
