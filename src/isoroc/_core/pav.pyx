"""Two classes: sorted scores merged and pooled, and the IRP path to the pooled blocks.

Array arguments are C-contiguous. An empty weight array stands for unit weights.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc, realloc

from isoroc._core.rows cimport lift

import numpy as np


def partition_scores(const double[::1] scores, const unsigned char[::1] positive):
    """Scores with those of class 0 first, and how many those are; no order within a class."""
    cdef Py_ssize_t i, n = scores.shape[0], low = 0, high = n - 1
    cdef double[::1] out = np.empty(n)
    with nogil:
        # Both ends are written and only one of them advances: no branch to mispredict, and
        # low <= high holds throughout, so the other write lands on a place still to be filled.
        for i in range(n):
            out[low] = scores[i]
            out[high] = scores[i]
            low += positive[i] == 0
            high -= positive[i] != 0
    return np.asarray(out), low


cdef inline double weight_of_run(const double[::1] w, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t i
    if w.shape[0] == 0:
        return <double> (stop - start)
    for i in range(start, stop):
        total += w[i]
    return total


def merge_classes(const double[::1] a, const double[::1] wa,
                  const double[::1] b, const double[::1] wb):
    """Distinct values of two sorted score arrays, and the weight of each class at each value.

    Returns the values, shape (m,), ascending, and the class weights, shape (m, 2).
    """
    cdef Py_ssize_t i = 0, j = 0, i0, j0, m = 0, na = a.shape[0], nb = b.shape[0]
    values = np.empty(na + nb)
    weights = np.empty((na + nb, 2))
    cdef double[::1] x = values
    cdef double[:, ::1] w = weights
    cdef double v
    with nogil:
        while i < na or j < nb:
            v = a[i] if j == nb or (i < na and a[i] < b[j]) else b[j]
            i0, j0 = i, j
            while i < na and a[i] == v:
                i += 1
            while j < nb and b[j] == v:
                j += 1
            x[m] = v
            w[m, 0] = weight_of_run(wa, i0, i)
            w[m, 1] = weight_of_run(wb, j0, j)
            m += 1
    return values[:m], weights[:m]


def concordance(const double[::1] a, const double[::1] wa,
                const double[::1] b, const double[::1] wb):
    """Weight of the pairs of `a` and `b` in which the score of `b` is higher; ties count one half.

    `a` and `b` are the sorted scores of class 0 and of class 1. Divided by the weight of all pairs
    this is the area under the ROC curve, found without any array as long as the scores.
    """
    cdef Py_ssize_t i = 0, j = 0, i0, j0, na = a.shape[0], nb = b.shape[0]
    cdef bint weighted = wa.shape[0] > 0 or wb.shape[0] > 0
    cdef double x, y, tied, below = 0.0, wins = 0.0  # below: weight of a[:i]
    with nogil:
        while i < na and j < nb:
            x, y = a[i], b[j]
            if weighted or x == y:
                if x < y:
                    below += weight_of_run(wa, i, i + 1)
                    i += 1
                    continue
                i0, j0 = i, j
                while i < na and a[i] == y:
                    i += 1
                while j < nb and b[j] == y:
                    j += 1
                tied = weight_of_run(wa, i0, i)
                wins += weight_of_run(wb, j0, j) * (below + tied / 2)
                below += tied
            else:  # no branch on the order of the two, which cannot be predicted
                wins += (y < x) * below
                below += x < y
                i += x < y
                j += y < x
        below += weight_of_run(wa, i, na)
        wins += weight_of_run(wb, j, nb) * below
    return wins


cdef struct Block:
    double low    # smallest and
    double high   # largest score in the block
    double w0     # weight of class 0 and
    double w1     # of class 1


def pool_adjacent_violators(const double[::1] a, const double[::1] wa,
                            const double[::1] b, const double[::1] wb):
    """Blocks of the isotonic regression of the class on the score.

    `a` and `b` are the sorted, finite scores of class 0 and of class 1. The paper's Algorithm 1
    rescans the whole sequence until nothing is out of order; here a stack holds the blocks so
    far, always strictly increasing in mean, so each is pushed and pooled once. Rows enter in
    groups: a run of class 1, a tie and a run of class 0, in this order, pool in any case.

    Returns the blocks' lowest and highest scores, shape (m,), and class weights, shape (m, 2).
    """
    cdef Py_ssize_t i = 0, j = 0, i0, j0, top = -1, capacity = 256
    cdef Py_ssize_t na = a.shape[0], nb = b.shape[0]
    cdef double v
    cdef Block new
    cdef Block* larger
    cdef Block* stack = <Block*> malloc(capacity * sizeof(Block))
    if stack == NULL:
        raise MemoryError
    try:
        with nogil:
            while i < na or j < nb:
                i0, j0 = i, j
                v = a[i] if i < na else INFINITY
                while j < nb and b[j] < v:
                    j += 1
                if i < na and j < nb and b[j] == v:
                    while i < na and a[i] == v:
                        i += 1
                    while j < nb and b[j] == v:
                        j += 1
                v = b[j] if j < nb else INFINITY
                while i < na and a[i] < v:
                    i += 1
                new.low = b[j0] if j > j0 else a[i0]
                new.high = a[i - 1] if i > i0 else b[j - 1]
                new.w0 = weight_of_run(wa, i0, i)
                new.w1 = weight_of_run(wb, j0, j)
                # mean of the top >= mean of the new one, without a division
                while top >= 0 and stack[top].w1 * new.w0 >= new.w1 * stack[top].w0:
                    new.low = stack[top].low
                    new.w0 += stack[top].w0
                    new.w1 += stack[top].w1
                    top -= 1
                top += 1
                if top == capacity:
                    capacity *= 2
                    larger = <Block*> realloc(stack, capacity * sizeof(Block))
                    if larger == NULL:
                        with gil:
                            raise MemoryError
                    stack = larger
                stack[top] = new
        blocks = np.array(<double[:top + 1, :4]> &stack.low)
    finally:
        free(stack)
    return blocks[:, 0].copy(), blocks[:, 1].copy(), blocks[:, 2:].copy()


cdef inline bint is_below(const double* c, const double* a, const double* b) noexcept nogil:
    """Whether the point c lies strictly below the line from a to b, b to the right of a."""
    return (b[0] - a[0]) * (c[1] - a[1]) < (b[1] - a[1]) * (c[0] - a[0])


def with_one_more(const double[:, ::1] weights, double extra):
    """Isotonic regression at each distinct score, had one more row of class 1 been seen there.

    `weights` (m, 2) are the class weights at the scores, ascending, and `extra` is the weight of
    the row. With P_i the points of the cumulative sum diagram, such a row moves P_i and all after
    it by (extra, extra); here those before move back instead. The value is then the slope of the
    bridge between what is left of i and what is not, and as i advances, each point enters and
    leaves the stack of corners once (Vovk, Petej and Fedorova 2015).
    """
    cdef Py_ssize_t i, top = -1, m = weights.shape[0]
    values = np.empty(m)
    cdef double[::1] out = values
    cdef double[:, ::1] points = np.empty((m, 2))
    cdef double[:, ::1] stack = np.empty((m + 1, 2))  # corners, the leftmost on top
    cdef double[2] p
    cdef double x = 0.0, y = 0.0
    with nogil:
        for i in range(m):
            x += weights[i, 0] + weights[i, 1]
            y += weights[i, 1]
            points[i, 0], points[i, 1] = x, y
        for i in range(m, -1, -1):
            if i > 0:
                p[0], p[1] = points[i - 1, 0], points[i - 1, 1]
            else:
                p[0], p[1] = -extra, -extra
            while top > 0 and not is_below(&stack[top, 0], p, &stack[top - 1, 0]):
                top -= 1
            top += 1
            stack[top, 0], stack[top, 1] = p[0], p[1]
        for i in range(m):
            out[i] = (stack[top - 1, 1] - stack[top, 1]) / (stack[top - 1, 0] - stack[top, 0])
            p[0], p[1] = points[i, 0] - extra, points[i, 1] - extra
            if i + 1 < m and is_below(p, &stack[top, 0], &stack[top - 1, 0]):
                top -= 1
                while top > 0 and not is_below(&stack[top, 0], p, &stack[top - 1, 0]):
                    top -= 1
                top += 1
                stack[top, 0], stack[top, 1] = p[0], p[1]
    return values


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

    `weights` (m, 2) are the class weights of the blocks and `forecasts` (m,) the sums of the second
    probabilities of their rows. The whole is node 0, and split s appends the nodes 2s + 1 and
    2s + 2. Returns the nodes that are split, shape (S,), and the splits (start, cut, stop), shape
    (S, 3), in the order of the path.
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
