"""Two classes: sorted scores merged and pooled, and the cuts of the IRP path.

Array arguments are C-contiguous. An empty weight array stands for unit weights.
"""

import heapq

from libc.math cimport INFINITY

import numpy as np

from isoroc._core.rows import lift


def partition_scores(const double[::1] scores, const unsigned char[::1] positive):
    """Scores of class 0, then of class 1, and how many come first. No order within a class."""
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
            i0 = i
            j0 = j
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
    """Weight of the pairs of `a` and `b` in which the score of `b` is higher. Ties count half.

    `a` and `b` are the sorted scores of class 0 and of class 1. Divided by the weight of all pairs
    this is the area under the ROC curve, found without any array as long as the scores.
    """
    cdef Py_ssize_t i = 0, j = 0, i0, j0, na = a.shape[0], nb = b.shape[0]
    cdef bint weighted = wa.shape[0] > 0 or wb.shape[0] > 0
    cdef double x, y, tied, below = 0.0, wins = 0.0  # below: weight of a[:i]
    with nogil:
        while i < na and j < nb:
            x = a[i]
            y = b[j]
            if weighted or x == y:
                if x < y:
                    below += weight_of_run(wa, i, i + 1)
                    i += 1
                    continue
                i0 = i
                j0 = j
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


cdef class Stack:
    """Blocks so far, strictly increasing in mean: two numbers and the class weights of each."""

    cdef double[:, ::1] blocks
    cdef Py_ssize_t size

    def __cinit__(self):
        self.blocks = np.empty((256, 4))
        self.size = 0

    cdef inline int push(self, double low, double high, double w0, double w1) except -1 nogil:
        """Add a block above all others, pooled with those whose mean is not lower."""
        cdef Py_ssize_t top = self.size - 1
        # mean of the top >= mean of the new one, without a division
        while top >= 0 and self.blocks[top, 3] * w0 >= w1 * self.blocks[top, 2]:
            low = self.blocks[top, 0]
            w0 += self.blocks[top, 2]
            w1 += self.blocks[top, 3]
            top -= 1
        top += 1
        if top == self.blocks.shape[0]:
            with gil:
                self.blocks = np.concatenate([self.blocks, np.empty_like(self.blocks)])
        self.blocks[top, 0] = low
        self.blocks[top, 1] = high
        self.blocks[top, 2] = w0
        self.blocks[top, 3] = w1
        self.size = top + 1
        return 0

    cdef int push_rows(self, const double[::1] a, const double[::1] wa, Py_ssize_t i, Py_ssize_t na,
                       const double[::1] b, const double[::1] wb, Py_ssize_t j, Py_ssize_t nb
                       ) except -1 nogil:
        """Add the rows a[i:na] of class 0 and b[j:nb] of class 1.

        They enter in groups: a run of class 1, a tie and a run of class 0, in this order, pool in
        any case.
        """
        cdef Py_ssize_t i0, j0
        cdef double v
        while i < na or j < nb:
            i0 = i
            j0 = j
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
            self.push(b[j0] if j > j0 else a[i0], a[i - 1] if i > i0 else b[j - 1],
                      weight_of_run(wa, i0, i), weight_of_run(wb, j0, j))
        return 0


cdef inline Py_ssize_t first_not_below(const double[::1] x, Py_ssize_t start,
                                       double v) noexcept nogil:
    """Place of the first number >= v in x[start:], ascending."""
    cdef Py_ssize_t length = 16, half, n = x.shape[0]
    while start + length <= n and x[start + length - 1] < v:
        start += length
        length *= 2
    length = min(length, n - start)
    # Invariant: the answer lies in [start, start + length]. The step is arithmetic, not a branch,
    # because its direction cannot be predicted.
    while length > 0:
        half = (length + 1) // 2
        start += half * (x[start + half - 1] < v)
        length -= half
    return start


def cut_into_cells(const double[::1] a, const double[::1] b, Py_ssize_t size):
    """Cells of about `size` rows of the shorter of two sorted arrays: how many rows lie before each.

    Ties are in one cell. The shape is (m + 1, 2), with all rows before the last entry.
    """
    cdef bint by_second = b.shape[0] < a.shape[0]
    cdef const double[::1] x = b if by_second else a, y = a if by_second else b
    cdef Py_ssize_t i = 0, j = 0, c = 0, at = size, n = x.shape[0]
    cells = np.zeros((n // size + 2, 2), dtype=np.intp)
    cdef Py_ssize_t[:, ::1] out = cells
    with nogil:
        while at < n:
            i = at if x[at - 1] < x[at] else first_not_below(x, i, x[at])
            j = first_not_below(y, j, x[at])
            c += i + j > out[c, 0] + out[c, 1]
            out[c, by_second] = i
            out[c, 1 - by_second] = j
            at += size
        c += 1
        out[c, 0] = a.shape[0]
        out[c, 1] = b.shape[0]
    return cells[:c + 1]


def pool_adjacent_violators(const double[::1] a, const double[::1] wa,
                            const double[::1] b, const double[::1] wb, Py_ssize_t size=16):
    """Blocks of the isotonic regression of the class on the score.

    `a` and `b` are the sorted, finite scores of class 0 and of class 1. The paper's Algorithm 1
    rescans the whole sequence until nothing is out of order. Here a stack holds the blocks so far,
    so each is pushed and pooled once.

    Without weights, few rows are looked at. Blocks end at corners of the greatest convex minorant
    of the cumulative sum diagram, and the minorant of some of its points, the ends of cells of
    about `size` rows of the rarer class, lies above or on that of all. So no block ends inside a
    cell that stays above or on the former even if its rows of class 0 come first.

    Returns the blocks' lowest and highest scores, shape (m,), and class weights, shape (m, 2).
    """
    cdef Py_ssize_t c, block, i, j, i0, j0, na = a.shape[0], nb = b.shape[0]
    cdef const Py_ssize_t[:, ::1] ends
    cdef double* w
    cdef Stack cells, stack = Stack()
    if wa.shape[0] or wb.shape[0] or min(na, nb) < 16 * size:
        with nogil:
            stack.push_rows(a, wa, 0, na, b, wb, 0, nb)
    else:
        ends = cut_into_cells(a, b, size)
        cells = Stack()
        with nogil:
            for c in range(ends.shape[0] - 1):
                cells.push(c, c + 1, ends[c + 1, 0] - ends[c, 0], ends[c + 1, 1] - ends[c, 1])
            for block in range(cells.size):
                w = &cells.blocks[block, 2]
                i0 = ends[<Py_ssize_t>cells.blocks[block, 0], 0]
                j0 = ends[<Py_ssize_t>cells.blocks[block, 0], 1]
                for c in range(<Py_ssize_t>cells.blocks[block, 0],
                               <Py_ssize_t>cells.blocks[block, 1]):
                    i = ends[c + 1, 0]
                    j = ends[c, 1]
                    if i == ends[c, 0] or j == ends[c + 1, 1] or (j - j0) * w[0] < (i - i0) * w[1]:
                        stack.push_rows(a, wa, ends[c, 0], i, b, wb, j, ends[c + 1, 1])
                    else:
                        stack.push(min(a[ends[c, 0]], b[j]), max(a[i - 1], b[ends[c + 1, 1] - 1]),
                                   i - ends[c, 0], ends[c + 1, 1] - j)
    blocks = np.asarray(stack.blocks[:stack.size])
    return blocks[:, 0].copy(), blocks[:, 1].copy(), blocks[:, 2:].copy()


cdef inline bint is_below(const double* c, const double* a, const double* b) noexcept nogil:
    """Whether the point c lies strictly below the line from a to b, b to the right of a."""
    return (b[0] - a[0]) * (c[1] - a[1]) < (b[1] - a[1]) * (c[0] - a[0])


def with_one_more(const double[:, ::1] weights, double extra):
    """Isotonic regression at each distinct score, had one more row of class 1 been seen there.

    `weights` (m, 2) are the class weights at the scores, ascending, and `extra` is the weight of
    the row. With P_i the points of the cumulative sum diagram, such a row moves P_i and all after
    it by (extra, extra). Here those before move back instead. The value is then the slope of the
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
            points[i, 0] = x
            points[i, 1] = y
        for i in range(m, -1, -1):
            if i > 0:
                p[0] = points[i - 1, 0]
                p[1] = points[i - 1, 1]
            else:
                p[0] = -extra
                p[1] = -extra
            while top > 0 and not is_below(&stack[top, 0], p, &stack[top - 1, 0]):
                top -= 1
            top += 1
            stack[top, 0] = p[0]
            stack[top, 1] = p[1]
        for i in range(m):
            out[i] = (stack[top - 1, 1] - stack[top, 1]) / (stack[top - 1, 0] - stack[top, 0])
            p[0] = points[i, 0] - extra
            p[1] = points[i, 1] - extra
            if i + 1 < m and is_below(p, &stack[top, 0], &stack[top - 1, 0]):
                top -= 1
                while top > 0 and not is_below(&stack[top, 0], p, &stack[top - 1, 0]):
                    top -= 1
                top += 1
                stack[top, 0] = p[0]
                stack[top, 1] = p[1]
    return values


cdef class Cuts:
    """Cuts of the bins of isotonic blocks that leave smoothed values in order.

    `sums` (m, 3) are class weights and sums of second probabilities. The parts of a bin weigh at
    least `min_weight`, and values increase by more than `gap`.
    """

    cdef const double[:, ::1] sums
    cdef double[:, ::1] rest  # scratch
    cdef double added0, added1, forecast_pseudocount, gap, min_weight

    def __init__(self, const double[:, ::1] sums, pseudocounts, double forecast_pseudocount,
                 double gap, double min_weight):
        self.sums = sums
        self.rest = np.empty((sums.shape[0] + 1, 3))
        self.added0, self.added1 = pseudocounts
        self.forecast_pseudocount = forecast_pseudocount
        self.gap = gap
        self.min_weight = min_weight

    cdef inline double smoothed(self, const double* s) noexcept nogil:
        """Value of blocks with the sums s. `bin_values` of `isoroc._core.tree` is its definition."""
        return ((s[1] + self.added1 + self.forecast_pseudocount * (s[2] / (s[0] + s[1])))
                / (s[0] + self.added0 + s[1] + self.added1 + self.forecast_pseudocount))

    cdef double value_of(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """Smoothed value of the blocks [start, stop)."""
        cdef Py_ssize_t b, k
        cdef double[3] s = [0.0, 0.0, 0.0]
        for b in range(start, stop):
            for k in range(3):
                s[k] += self.sums[b, k]
        return self.smoothed(s)

    cdef (Py_ssize_t, double) best(self, Py_ssize_t before, Py_ssize_t start, Py_ssize_t stop,
                                   Py_ssize_t after) noexcept nogil:
        """Best place to cut the blocks [start, stop) in two, -1 if there is none, and its height.

        The height of the chord above the cumulative sum diagram at the cut, M(gamma) / 4.
        The neighbours are [before, start) and [stop, after), -1 where there is none. Sums run over
        the bin alone, from both ends: differences of sums over all blocks would lose light blocks
        to the rounding of the total.
        """
        cdef Py_ssize_t b, k, cut, best_cut = -1
        cdef double height, left, right, best = -1.0, below = -INFINITY, above = INFINITY
        cdef double[3] l = [0.0, 0.0, 0.0]
        cdef double* r
        if before >= 0:
            below = self.value_of(before, start)
        if after >= 0:
            above = self.value_of(stop, after)
        self.rest[stop] = 0.0
        for b in range(stop - 1, start - 1, -1):
            for k in range(3):
                self.rest[b, k] = self.rest[b + 1, k] + self.sums[b, k]
        for cut in range(start + 1, stop):
            for k in range(3):
                l[k] += self.sums[cut - 1, k]
            r = &self.rest[cut, 0]
            height = (r[1] * l[0] - r[0] * l[1]) / (self.rest[start, 0] + self.rest[start, 1])
            if height <= best or min(l[0] + l[1], r[0] + r[1]) < self.min_weight:
                continue
            left = self.smoothed(l)
            right = self.smoothed(r)
            if below + self.gap < left and left + self.gap < right and right + self.gap < above:
                best_cut = cut
                best = height
        return best_cut, best


def irp_path(const double[:, ::1] sums, pseudocounts, double forecast_pseudocount, double gap,
             double min_weight, double min_lift, Py_ssize_t max_bins):
    """Best-first splitting of a sequence of isotonic blocks: the IRP path.

    The best split of a bin is at the point of its cumulative sum diagram farthest from the chord, a
    vertex of the greatest convex minorant, hence an end of a block. Means of unions of blocks are
    in order by themselves. Smoothed values need not be: a bin for which no split leaves them in
    order waits until a neighbour is split. Arguments are as in `Cuts`, and the least lift in log
    likelihood of a split.

    Returns the nodes that are split, where split s appends the nodes 2s + 1 and 2s + 2 to the node
    0, and the splits (start, cut, stop) as ranges of blocks, shape (S, 3).
    """
    cdef Py_ssize_t start, stop, cut = -1, before, after, m = sums.shape[0]
    cdef double height
    cdef bint is_new
    cdef Cuts cuts = Cuts(sums, pseudocounts, forecast_pseudocount, gap, min_weight)
    # The start of a bin by its stop, and its stop by its start. -1 where there is none.
    cdef Py_ssize_t[::1] start_of = np.full(m + 1, -1), stop_of = np.full(m + 1, -1)
    cdef Py_ssize_t[::1] node_of = np.zeros(m + 1, dtype=np.intp)
    cdef unsigned char[::1] waits = np.zeros(m + 1, dtype=np.uint8)  # whether no cut is known
    start_of[m] = 0
    stop_of[0] = m
    nodes = []
    splits = []
    pending = [0]  # bins to search, by their start
    queue = []  # height of a bin's best cut, and what it was found for
    while (pending or queue) and len(splits) + 1 < max_bins:
        is_new = bool(pending)
        if is_new:
            start = pending.pop()
        else:
            _, start, cut, searched = heapq.heappop(queue)
        stop = stop_of[start]
        before = start_of[start]
        after = stop_of[stop]
        if is_new or (before, stop, after) != searched:
            cut, height = cuts.best(before, start, stop, after)
            waits[start] = cut < 0
            if cut >= 0 and min_lift > 0:
                parts = np.add.reduceat(sums[start:stop, :2], [0, cut - start])
                waits[start] = lift(parts) < min_lift
            if waits[start]:
                continue
            if pending or (queue and height < -queue[0][0]):
                heapq.heappush(queue, (-height, start, cut, (before, stop, after)))
                continue
        nodes.append(node_of[start])
        node_of[start] = 2 * len(nodes) - 1
        node_of[cut] = 2 * len(nodes)
        splits.append((start, cut, stop))
        stop_of[start] = start_of[stop] = cut
        start_of[cut] = start
        stop_of[cut] = stop
        waits[start] = cut - start > 1
        waits[cut] = stop - cut > 1
        pending = [b for b in (stop, cut, start, before) if b >= 0 and waits[b]]
    return np.array(nodes, dtype=np.intp), np.array(splits, dtype=np.intp).reshape(-1, 3)
