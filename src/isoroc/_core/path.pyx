"""Two classes: the order in which recursive partitioning reaches the isotonic blocks.

Array arguments are C-contiguous. `weights` (m, 2) are the class weights of the blocks and
`forecasts` (m,) the sums of the second probabilities of their rows.
"""

from libc.math cimport INFINITY

from isoroc._core.rows cimport lift

import numpy as np


cdef struct Pseudocounts:
    double first  # of the two classes,
    double second
    double forecast  # and of the mean forecast


cdef inline double smoothed(double w0, double w1, double f1,
                            const Pseudocounts* added) noexcept nogil:
    """Value of class weights with the sum f1 of the second probabilities of their rows.

    `bin_values` of `isoroc._tree` is its definition.
    """
    return ((w1 + added.second + added.forecast * (f1 / (w0 + w1)))
            / (w0 + added.first + w1 + added.second + added.forecast))


cdef double value_of(const double[:, ::1] weights, const double[::1] forecasts, Py_ssize_t start,
                     Py_ssize_t stop, const Pseudocounts* added) noexcept nogil:
    """Smoothed value of the blocks [start, stop)."""
    cdef Py_ssize_t b
    cdef double w0 = 0.0, w1 = 0.0, f1 = 0.0
    for b in range(start, stop):
        w0 += weights[b, 0]
        w1 += weights[b, 1]
        f1 += forecasts[b]
    return smoothed(w0, w1, f1, added)


cdef struct Bin:
    double gain  # at most
    Py_ssize_t start
    Py_ssize_t stop


cdef struct Cut:
    Py_ssize_t place  # -1 if there is none
    double height


cdef Cut best_cut(const double[:, ::1] weights, const double[::1] forecasts, Py_ssize_t before,
                  Py_ssize_t start, Py_ssize_t stop, Py_ssize_t after, const Pseudocounts* added,
                  double gap, double min_weight, double[:, ::1] rest) noexcept nogil:
    """Best place to cut the isotonic blocks [start, stop) in two.

    The height is that of the chord above the cumulative sum diagram at the cut, M(gamma) / 4. The
    two parts weigh at least `min_weight`, and their smoothed values and those of the neighbours
    [before, start) and [stop, after), -1 where there is none, increase by more than `gap`. Sums run
    over the bin alone, from both of its ends: differences of sums over all blocks would lose blocks
    that are lighter than the rounding of the total. `rest` (m + 1, 3) is work space.
    """
    cdef Py_ssize_t b, cut, m = stop - start
    cdef double height, left, right, l0 = 0.0, l1 = 0.0, lf = 0.0, r0, r1, w0, w1
    cdef double below = -INFINITY, above = INFINITY
    cdef Cut best = Cut(-1, -1.0)
    if before >= 0:
        below = value_of(weights, forecasts, before, start, added)
    if after >= 0:
        above = value_of(weights, forecasts, stop, after, added)
    rest[m, 0] = rest[m, 1] = rest[m, 2] = 0.0
    for b in range(m - 1, -1, -1):
        rest[b, 0] = rest[b + 1, 0] + weights[start + b, 0]
        rest[b, 1] = rest[b + 1, 1] + weights[start + b, 1]
        rest[b, 2] = rest[b + 1, 2] + forecasts[start + b]
    w0, w1 = rest[0, 0], rest[0, 1]
    for cut in range(start + 1, stop):
        l0 += weights[cut - 1, 0]
        l1 += weights[cut - 1, 1]
        lf += forecasts[cut - 1]
        r0, r1 = rest[cut - start, 0], rest[cut - start, 1]
        height = (r1 * l0 - r0 * l1) / (w0 + w1)
        if height <= best.height:
            continue
        if l0 + l1 < min_weight or r0 + r1 < min_weight:
            continue
        left = smoothed(l0, l1, lf, added)
        right = smoothed(r0, r1, rest[cut - start, 2], added)
        if below + gap < left and left + gap < right and right + gap < above:
            best = Cut(cut, height)
    return best


cdef inline bint precedes(const Bin* a, const Bin* b) noexcept nogil:
    """Whether a bin comes before another in the queue: by its gain, then by its place."""
    return a.gain > b.gain or (a.gain == b.gain and a.start < b.start)


cdef void push(Bin[::1] queue, Py_ssize_t* size, Bin new) noexcept nogil:
    """Add a bin to a heap."""
    cdef Py_ssize_t at = size[0], parent
    size[0] += 1
    while at > 0:
        parent = (at - 1) // 2
        if not precedes(&new, &queue[parent]):
            break
        queue[at] = queue[parent]
        at = parent
    queue[at] = new


cdef Bin pop(Bin[::1] queue, Py_ssize_t* size) noexcept nogil:
    """Remove the first bin from a heap."""
    cdef Bin first = queue[0], last
    cdef Py_ssize_t at = 0, child = 1
    size[0] -= 1
    last = queue[size[0]]
    while child < size[0]:
        if child + 1 < size[0] and precedes(&queue[child + 1], &queue[child]):
            child += 1
        if not precedes(&queue[child], &last):
            break
        queue[at] = queue[child]
        at = child
        child = 2 * at + 1
    queue[at] = last
    return first


cdef double lift_of_cut(const double[:, ::1] weights, Py_ssize_t start, Py_ssize_t cut,
                        Py_ssize_t stop, double[:, ::1] parts) noexcept nogil:
    """By how much a cut raises the log likelihood of the bin's labels."""
    cdef Py_ssize_t b, part
    parts[0, 0] = parts[0, 1] = parts[1, 0] = parts[1, 1] = 0.0
    for b in range(start, stop):
        part = b >= cut
        parts[part, 0] += weights[b, 0]
        parts[part, 1] += weights[b, 1]
    return lift(parts)


def split_blocks(const double[:, ::1] weights, const double[::1] forecasts,
                 const double[::1] pseudocounts, double forecast_pseudocount, double gap,
                 double min_weight, double min_lift, Py_ssize_t max_bins):
    """Best-first splitting of a sequence of isotonic blocks: the IRP path.

    The best split of a bin is at the point of its cumulative sum diagram farthest from the chord.
    That point is a vertex of the greatest convex minorant, hence an end of a block, so blocks are
    all that has to be searched. A bin is the range of blocks [start, stop).

    The means of unions of blocks are in order by themselves. Their smoothed values need not be:
    a split is taken only if it leaves them in order, and a bin for which none does waits until
    a neighbour is split. Without smoothing no bin ever waits and the path ends at the blocks.

    The whole is node 0, and split s appends the nodes 2s + 1 and 2s + 2. Returns the nodes that are
    split, shape (S,), and the splits (start, cut, stop), shape (S, 3), in the order of the path.
    """
    cdef Py_ssize_t m = weights.shape[0], n_splits = 0, size = 0
    cdef double[:, ::1] rest = np.empty((m + 1, 3))
    cdef double[:, ::1] parts = np.empty((2, 2))
    cdef Bin[::1] queue = np.empty(m + 1, dtype=[("gain", "f8"), ("start", "p"), ("stop", "p")])
    # The bins, found by their start and by their stop; -1 where none starts or stops.
    cdef Py_ssize_t[::1] stop_of = np.full(m + 1, -1, dtype=np.intp)
    cdef Py_ssize_t[::1] start_of = np.full(m + 1, -1, dtype=np.intp)
    cdef unsigned char[::1] waits = np.zeros(m + 1, dtype=np.uint8)  # by start
    cdef Py_ssize_t[::1] node_of = np.zeros(m + 1, dtype=np.intp)  # by start
    cdef Pseudocounts added = Pseudocounts(pseudocounts[0], pseudocounts[1], forecast_pseudocount)
    nodes, splits = np.empty(m, dtype=np.intp), np.empty((m, 3), dtype=np.intp)
    cdef Py_ssize_t[::1] node = nodes
    cdef Py_ssize_t[:, ::1] out = splits
    cdef Bin here
    cdef Cut cut
    with nogil:
        stop_of[0], start_of[m] = m, 0
        push(queue, &size, Bin(INFINITY, 0, m))
        while size > 0 and n_splits + 1 < max_bins:
            here = pop(queue, &size)
            cut = best_cut(weights, forecasts, start_of[here.start], here.start, here.stop,
                           stop_of[here.stop], &added, gap, min_weight, rest)
            if cut.place < 0 or (min_lift > 0 and lift_of_cut(
                    weights, here.start, cut.place, here.stop, parts) < min_lift * 0.5):
                waits[here.start] = True
            elif size > 0 and cut.height < queue[0].gain:
                push(queue, &size, Bin(cut.height, here.start, here.stop))
            else:
                out[n_splits, 0], out[n_splits, 1] = here.start, cut.place
                out[n_splits, 2] = here.stop
                node[n_splits] = node_of[here.start]
                node_of[here.start], node_of[cut.place] = 2 * n_splits + 1, 2 * n_splits + 2
                n_splits += 1
                stop_of[here.start], start_of[cut.place] = cut.place, here.start
                stop_of[cut.place], start_of[here.stop] = here.stop, cut.place
                push(queue, &size, Bin(INFINITY, here.start, cut.place))
                push(queue, &size, Bin(INFINITY, cut.place, here.stop))
                if start_of[here.start] >= 0 and waits[start_of[here.start]]:
                    waits[start_of[here.start]] = False
                    push(queue, &size, Bin(INFINITY, start_of[here.start], here.start))
                if waits[here.stop]:
                    waits[here.stop] = False
                    push(queue, &size, Bin(INFINITY, here.stop, stop_of[here.stop]))
    return nodes[:n_splits], splits[:n_splits]


def sum_ranges(const double[:, ::1] weights, const Py_ssize_t[:, ::1] ranges):
    """Sums of the rows [start, stop) of (m, 2) weights for (n, 2) ranges, shape (n, 2)."""
    cdef Py_ssize_t i, b
    sums = np.zeros((ranges.shape[0], 2))
    cdef double[:, ::1] out = sums
    with nogil:
        for i in range(ranges.shape[0]):
            for b in range(ranges[i, 0], ranges[i, 1]):
                out[i, 0] += weights[b, 0]
                out[i, 1] += weights[b, 1]
    return sums
