"""The compiled loops: arrays in, arrays out, no decisions and no GIL.

Array arguments are C-contiguous. An empty weight array stands for unit weights.
"""

from libc.math cimport INFINITY, fabs, log
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

import numpy as np

cdef extern from *:
    """
    static const int isoroc_checked = ISOROC_CHECKED;
    """
    const int isoroc_checked

#: Whether this build has bounds checks and sanitizers on (``make sanitize``).
CHECKED = bool(isoroc_checked)


def check_rows(const double[:, ::1] P, double tolerance, double exact):
    """First row of P that is not a forecast, and whether any row needs normalising.

    A row is a forecast when its entries are numbers >= 0 whose sum is within `tolerance` of 1;
    it needs normalising when the sum is off by more than `exact`. Returns (row or -1, bool).
    """
    cdef Py_ssize_t i, k, bad = -1, n = P.shape[0], K = P.shape[1]
    cdef double total, off
    cdef bint ok, loose = False
    with nogil:
        for i in range(n):
            total = 0.0
            ok = True
            for k in range(K):
                ok = ok and P[i, k] >= 0.0  # false for NaN
                total += P[i, k]
            off = fabs(total - 1.0)
            if not (ok and off <= tolerance):
                bad = i
                break
            loose = loose or off > exact
    return bad, loose


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
        low = np.empty(top + 1)
        high = np.empty(top + 1)
        weights = np.empty((top + 1, 2))
        for i in range(top + 1):
            low[i] = stack[i].low
            high[i] = stack[i].high
            weights[i, 0] = stack[i].w0
            weights[i, 1] = stack[i].w1
    finally:
        free(stack)
    return low, high, weights


cdef inline double smoothed(const double[:, ::1] cumulative, Py_ssize_t start, Py_ssize_t stop,
                            double a0, double a1) noexcept nogil:
    cdef double w0 = cumulative[stop, 0] - cumulative[start, 0] + a0
    cdef double w1 = cumulative[stop, 1] - cumulative[start, 1] + a1
    return w1 / (w0 + w1)


def best_cut(const double[:, ::1] cumulative, Py_ssize_t before, Py_ssize_t start, Py_ssize_t stop,
             Py_ssize_t after, const double[::1] smoothing, double min_weight):
    """Best place to cut the isotonic blocks [start, stop) in two: (cut, height), or (-1, 0.0).

    Row b of `cumulative` holds the class weights of all blocks before b. The height is that of
    the chord above the cumulative sum diagram at the cut. The two parts weigh at least
    `min_weight`, and their smoothed values and those of the neighbours [before, start) and
    [stop, after), -1 where there is none, increase strictly.
    """
    cdef Py_ssize_t cut, best = -1
    cdef double height, highest = -1.0, left, right
    cdef double l0, l1, a0 = smoothing[0], a1 = smoothing[1]
    cdef double below = smoothed(cumulative, before, start, a0, a1) if before >= 0 else -INFINITY
    cdef double above = smoothed(cumulative, stop, after, a0, a1) if after >= 0 else INFINITY
    cdef double w0 = cumulative[stop, 0] - cumulative[start, 0]
    cdef double w1 = cumulative[stop, 1] - cumulative[start, 1]
    with nogil:
        for cut in range(start + 1, stop):
            l0 = cumulative[cut, 0] - cumulative[start, 0]
            l1 = cumulative[cut, 1] - cumulative[start, 1]
            height = (w1 * l0 - w0 * l1) / (w0 + w1)
            if height <= highest:
                continue
            if l0 + l1 < min_weight or w0 + w1 - l0 - l1 < min_weight:
                continue
            left = smoothed(cumulative, start, cut, a0, a1)
            right = smoothed(cumulative, cut, stop, a0, a1)
            if below < left < right < above:
                best = cut
                highest = height
    return best, highest if best >= 0 else 0.0


def locate(const double[::1] cuts, const double[::1] scores):
    """How many of the ascending cuts lie below each score: its bin, shape (n,)."""
    cdef Py_ssize_t i, first, length, half, n = scores.shape[0], m = cuts.shape[0]
    found = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = found
    with nogil:
        for i in range(n):
            # Invariant: the answer lies in [first, first + length]. The step is arithmetic, not a
            # branch, because its direction cannot be predicted.
            first, length = 0, m
            while length > 0:
                half = (length + 1) // 2
                first += half * (cuts[first + half - 1] < scores[i])
                length -= half
            out[i] = first
    return found


def route(const double[:, ::1] P, const double[:, ::1] thresholds,
          const Py_ssize_t[:, ::1] children, const Py_ssize_t[::1] split_of_node):
    """Leaf in which each forecast ends.

    At split s a forecast goes to the child k with the largest p[k] - thresholds[s, k] among those
    with children[s, k] >= 0, the lowest k on ties. `split_of_node` is -1 at leaves.
    """
    cdef Py_ssize_t i, k, s, best, n = P.shape[0], K = P.shape[1]
    cdef double margin, largest
    leaves = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = leaves
    with nogil:
        for i in range(n):
            out[i] = 0
            s = split_of_node[0]
            while s >= 0:
                best = -1
                largest = 0.0
                for k in range(K):
                    if children[s, k] >= 0:
                        margin = P[i, k] - thresholds[s, k]
                        if best < 0 or margin > largest:
                            best = k
                            largest = margin
                out[i] = children[s, best]
                s = split_of_node[out[i]]
    return leaves


cdef struct Point:
    double t     # where the point changes region
    int row
    int other    # the region that it is in when it is not in the moving one


cdef void sort_points(Point* points, Point* spare, Py_ssize_t n) noexcept nogil:
    """Sort by descending t, stably: insertion in short runs, then bottom-up merging."""
    cdef Py_ssize_t i, j, k, start, middle, stop, width = 16
    cdef Point moved
    cdef Point* source = points
    cdef Point* target = spare
    start = 0
    while start < n:
        for i in range(start + 1, min(start + width, n)):
            moved = points[i]
            j = i
            while j > start and points[j - 1].t < moved.t:
                points[j] = points[j - 1]
                j -= 1
            points[j] = moved
        start += width
    while width < n:
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if i < middle and (j == stop or source[i].t >= source[j].t):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
            start = stop
        source, target = target, source
        width *= 2
    if source != points:
        memcpy(points, source, n * sizeof(Point))


cdef bint has_cycle_below(double* W, Py_ssize_t K, double slack) noexcept nogil:
    """Whether the digraph W has a cycle with a mean weight below slack; W is overwritten."""
    cdef Py_ssize_t i, j, k
    cdef double walk
    for i in range(K * K):
        W[i] -= slack
    for k in range(K):
        for i in range(K):
            for j in range(K):
                walk = W[i * K + k] + W[k * K + j]
                if i != j and walk < W[i * K + j]:
                    W[i * K + j] = walk
                elif i == j and walk < 0:
                    return True
    return False


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


cdef struct Side:
    # One of the two kinds of values that must be in order: raw means, or smoothed values.
    const double* smoothing  # (K,)
    const double* bound      # (K, K): every child must have r[i] - r[j] >= bound[i, j]
    const double* straddled  # (S, K, K): W of the straddled splits without this bin
    const double* outside    # (B, K): values of the other bins
    double* values           # (K, K): scratch, values of the children


cdef bint keeps_order(Side* side, Py_ssize_t K, const double* weights, const double* totals,
                      double slack, Py_ssize_t S, const int* held, Py_ssize_t B, double t,
                      Py_ssize_t axis, const double* latest, const double* earliest,
                      double* W) noexcept nogil:
    """Whether the children with these class weights leave every split ROC monotone.

    `held` (K, S, K) counts the points of each child in each region of each straddled split.
    Another bin has points in the moving region iff latest[b] > t, and in another region j iff
    earliest[b, j] < t.
    """
    cdef Py_ssize_t b, c, i, j, s
    cdef double norm, difference
    cdef double* r
    for c in range(K):
        if totals[c] <= 0:
            continue
        r = side.values + c * K
        norm = totals[c]
        for i in range(K):
            norm += side.smoothing[i]
        for i in range(K):
            r[i] = (weights[c * K + i] + side.smoothing[i]) / norm
        for i in range(K):
            for j in range(K):
                if i != j and r[i] - r[j] < side.bound[i * K + j]:
                    return False
    # The new split itself.
    for i in range(K):
        for j in range(K):
            W[i * K + j] = INFINITY
            if i != j and totals[i] > 0:
                W[i * K + j] = side.values[i * K + i] - side.values[i * K + j]
    for b in range(B):
        for i in range(K):
            if (latest[b] > t) if i == axis else (earliest[b * K + i] < t):
                for j in range(K):
                    difference = side.outside[b * K + i] - side.outside[b * K + j]
                    if i != j and difference < W[i * K + j]:
                        W[i * K + j] = difference
    if has_cycle_below(W, K, slack):
        return False
    # Earlier splits on both sides of which this bin lies.
    for s in range(S):
        memcpy(W, side.straddled + s * K * K, K * K * sizeof(double))
        for c in range(K):
            if totals[c] <= 0:
                continue
            r = side.values + c * K
            for i in range(K):
                if held[(c * S + s) * K + i] > 0:
                    for j in range(K):
                        if i != j and r[i] - r[j] < W[i * K + j]:
                            W[i * K + j] = r[i] - r[j]
        if has_cycle_below(W, K, slack):
            return False
    return True


def climb(const double[:, ::1] P, const double[:, ::1] Y, double[::1] gamma,
          const double[:, ::1] smoothing, const double[:, :, ::1] bound, double slack,
          double min_weight, double min_gap,
          const double[:, :, :, ::1] straddled, const int[:, ::1] region,
          const double[:, :, ::1] outside, const double[:, ::1] P_out, const int[::1] bin_out,
          const int[::1] axes, int max_cycles, double[:, ::1] children):
    """Coordinate ascent of the gain over thresholds that keep every split ROC monotone.

    Each step moves one coordinate of gamma to its best feasible place, found exactly: with the
    others fixed, a point is in the moving region iff gamma[axis] is below the point's t, and
    otherwise in a region that does not depend on it. So one sort and one pass give the children's
    class weights, hence gain and feasibility, for every place between two points.

    P (n, K) and Y (n, K) are the bin's points and their class weights. Arrays with two entries
    along the first axis hold raw means and smoothed values: `smoothing` (2, K), `bound` (2, K, K),
    `straddled` (2, S, K, K), `outside` (2, B, K). `region` (n, S) tells the points' regions under
    the straddled splits; P_out (m, K) and bin_out (m,) are the points of the other bins. `axes` are
    the coordinates to move, in turn. gamma is changed in place to the middle of the gap found, and
    `children` (K, K) to the class weights there. Returns the gain, -1 if nothing is feasible.
    """
    cdef Py_ssize_t n = P.shape[0], K = P.shape[1], S = region.shape[1], B = outside.shape[1]
    cdef Py_ssize_t m = P_out.shape[0]
    cdef Py_ssize_t i, j, k, c, s, axis, kept, unchanged, sound, step
    cdef double gain, best, climbed = -1.0, t, best_t, margin, norm, highest, lowest, gap
    cdef bint light
    # One block of scratch memory: points twice, then doubles, then counts.
    cdef Py_ssize_t doubles = 5 * K * K + 3 * K + B + B * K
    cdef Point* points = <Point*> malloc(2 * n * sizeof(Point))
    cdef double* scratch = <double*> malloc(doubles * sizeof(double))
    cdef int* held = <int*> malloc((K * S * K + 1) * sizeof(int))
    cdef double* weights = scratch             # (K, K) class weights of the children
    cdef double* totals = weights + K * K      # (K,) their weights
    cdef double* share = totals + K            # (K,) mean label of the bin
    cdef double* parts = share + K             # (K,) the children's shares of the gain
    cdef double* found = parts + K             # (K, K) class weights at the best place
    cdef double* W = found + K * K             # (K, K)
    cdef double* values = W + K * K            # (2, K, K)
    cdef double* latest = values + 2 * K * K   # (B,)
    cdef double* earliest = latest + B         # (B, K)
    cdef Side[2] sides
    if points == NULL or scratch == NULL or held == NULL:
        free(points)
        free(scratch)
        free(held)
        raise MemoryError
    for s in range(2):
        sides[s].smoothing = &smoothing[s, 0]
        sides[s].bound = &bound[s, 0, 0]
        sides[s].straddled = &straddled[s, 0, 0, 0] if S else NULL
        sides[s].outside = &outside[s, 0, 0] if B else NULL
        sides[s].values = values + s * K * K
    with nogil:
        norm = 0.0
        for k in range(K):
            share[k] = 0.0
            for i in range(n):
                share[k] += Y[i, k]
            norm += share[k]
        for k in range(K):
            share[k] /= norm

        unchanged = 0
        sound = 0
        step = 0
        # An axis stays at its best place until another one moves, so an ascent ends when all
        # others have been tried in vain.
        while (unchanged < axes.shape[0] - 1 or step < axes.shape[0]) and (
            step < max_cycles * axes.shape[0]
        ):
            axis = axes[step % axes.shape[0]]
            step += 1
            for c in range(K):
                totals[c] = 0.0
                for k in range(K):
                    weights[c * K + k] = 0.0
            for i in range(K * S * K):
                held[i] = 0
            for i in range(n):
                j = best_other(P, i, gamma, axis, &margin)
                points[i].t = P[i, axis] - margin
                points[i].row = <int> i
                points[i].other = <int> j
                for k in range(K):
                    weights[j * K + k] += Y[i, k]
                    totals[j] += Y[i, k]
                for s in range(S):
                    held[(j * S + s) * K + region[i, s]] += 1
            for c in range(B):
                latest[c] = -INFINITY
                for k in range(K):
                    earliest[c * K + k] = INFINITY
            for i in range(m):
                j = best_other(P_out, i, gamma, axis, &margin)
                t = P_out[i, axis] - margin
                c = bin_out[i]
                latest[c] = max(latest[c], t)
                earliest[c * K + j] = min(earliest[c * K + j], t)
            sort_points(points, points + n, n)

            for c in range(K):
                parts[c] = 0.0
                for k in range(K):
                    parts[c] += fabs(totals[c] * share[k] - weights[c * K + k])
            best = -1.0
            best_t = gamma[axis]
            # Place i lies between point i - 1 and point i; the first i points are in the region.
            for i in range(n):
                if i:
                    j = points[i - 1].other
                    kept = points[i - 1].row
                    for k in range(K):
                        weights[axis * K + k] += Y[kept, k]
                        totals[axis] += Y[kept, k]
                        weights[j * K + k] -= Y[kept, k]
                        totals[j] -= Y[kept, k]
                    for s in range(S):
                        held[(axis * S + s) * K + region[kept, s]] += 1
                        held[(j * S + s) * K + region[kept, s]] -= 1
                    parts[axis] = 0.0
                    parts[j] = 0.0
                    for k in range(K):
                        parts[axis] += fabs(totals[axis] * share[k] - weights[axis * K + k])
                        parts[j] += fabs(totals[j] * share[k] - weights[j * K + k])
                    gap = points[i - 1].t - points[i].t
                    if gap <= min_gap:
                        continue
                gain = 0.0
                kept = 0
                light = False
                for c in range(K):
                    gain += parts[c]
                    if totals[c] > 1e-9 * norm:
                        kept += 1
                        light = light or totals[c] < min_weight
                    else:
                        totals[c] = 0.0  # what is left is rounding
                if kept < 2 or light or gain <= best:
                    continue
                if i:
                    t = points[i - 1].t / 2 + points[i].t / 2
                else:
                    t = points[0].t + 0.5
                if slack > -INFINITY and not (
                    keeps_order(&sides[0], K, weights, totals, slack, S, held, B, t, axis,
                                latest, earliest, W)
                    and keeps_order(&sides[1], K, weights, totals, slack, S, held, B, t, axis,
                                    latest, earliest, W)
                ):
                    continue
                best = gain
                best_t = t
                memcpy(found, weights, K * K * sizeof(double))
            # A start on a point, or among near ties, sorts points by differences too small to
            # trust. Such a state cannot be found again along some axis: it does not count.
            sound = sound + 1 if best >= 0 else 0
            unchanged = 0 if best > climbed + 1e-9 * fabs(climbed) else unchanged + 1
            climbed = best
            if best >= 0:
                gamma[axis] = best_t
                memcpy(&children[0, 0], found, K * K * sizeof(double))
    free(points)
    free(scratch)
    free(held)
    return climbed if sound >= axes.shape[0] else -1.0


def count_children(const double[:, ::1] P, const double[:, ::1] Y, const double[:, ::1] thresholds):
    """Class weights of the regions of the points P under each threshold, shape (C, K, K)."""
    cdef Py_ssize_t c, i, k, best, n = P.shape[0], K = P.shape[1], C = thresholds.shape[0]
    cdef double margin, largest
    children = np.zeros((C, K, K))
    cdef double[:, :, ::1] out = children
    with nogil:
        for c in range(C):
            for i in range(n):
                best = 0
                largest = P[i, 0] - thresholds[c, 0]
                for k in range(1, K):
                    margin = P[i, k] - thresholds[c, k]
                    if margin > largest:
                        best = k
                        largest = margin
                for k in range(K):
                    out[c, best, k] += Y[i, k]
    return children


def smallest_differences(const double[:, :, ::1] values, const Py_ssize_t[::1] nodes,
                         const unsigned char[:, ::1] held, const Py_ssize_t[::1] ends,
                         Py_ssize_t skipped):
    """W of splits for each kind of values, shape (M, S, K, K), +inf where nothing bounds.

    The bins that split s answers for are nodes[ends[s - 1]:ends[s]]. W[m, s, i, j] is the smallest
    values[m, v, i] - values[m, v, j] among those v, but for the skipped one, that have points in
    region i: held[b, i] != 0 for node b.
    """
    cdef Py_ssize_t m, s, b, i, j, v, M = values.shape[0], K = values.shape[2]
    cdef double difference
    bounds = np.full((M, ends.shape[0], K, K), np.inf)
    cdef double[:, :, :, ::1] W = bounds
    with nogil:
        for m in range(M):
            b = 0
            for s in range(ends.shape[0]):
                while b < ends[s]:
                    v = nodes[b]
                    if v != skipped:
                        for i in range(K):
                            if held[b, i]:
                                for j in range(K):
                                    difference = values[m, v, i] - values[m, v, j]
                                    if i != j and difference < W[m, s, i, j]:
                                        W[m, s, i, j] = difference
                    b += 1
    return bounds


def sort_into_regions(const double[:, ::1] P, const double[:, ::1] Y, const Py_ssize_t[::1] rows,
                      const double[::1] gamma):
    """Region under gamma of some rows of P, shape (n,), and class weights Y of each, (K, K).

    The rule of simplex.regions: the lowest k with the largest p_k - gamma_k, and for K = 2
    whether p_1 > gamma_1.
    """
    cdef Py_ssize_t i, k, row, best, K = P.shape[1]
    cdef double margin, largest
    region = np.empty(rows.shape[0], dtype=np.int32)  # of many millions of rows, half the memory
    weights = np.zeros((K, K))
    cdef int[::1] out = region
    cdef double[:, ::1] w = weights
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            best = 0
            if K == 2:
                best = P[row, 1] > gamma[1]
            else:
                largest = P[row, 0] - gamma[0]
                for k in range(1, K):
                    margin = P[row, k] - gamma[k]
                    if margin > largest:
                        best = k
                        largest = margin
            out[i] = <int>best
            for k in range(K):
                w[best, k] += Y[row, k]
    return region, weights


def keep_order(double[:, :, ::1] W, double slack):
    """Whether no digraph W, of shape (n, K, K), has a cycle of mean below slack; W is spent."""
    cdef Py_ssize_t s
    for s in range(W.shape[0]):
        if has_cycle_below(&W[s, 0, 0], W.shape[1], slack):
            return False
    return True


def lift(const double[:, ::1] children):
    """Sum of w log(w / row total) over the children minus that of their column sums."""
    cdef Py_ssize_t c, k, K = children.shape[1]
    cdef double row, column, total = 0.0, rise = 0.0
    for c in range(children.shape[0]):
        row = 0.0
        for k in range(K):
            row += children[c, k]
        total += row
        for k in range(K):
            if children[c, k] > 0:
                rise += children[c, k] * log(children[c, k] / row)
    for k in range(K):
        column = 0.0
        for c in range(children.shape[0]):
            column += children[c, k]
        if column > 0:
            rise -= column * log(column / total)
    return rise


def required_differences(const double[:, :, :, ::1] W, const Py_ssize_t[::1] region, double slack):
    """Least r_i - r_j of a bin's children, shape (M, K, K), -inf where anything goes.

    W (M, S, K, K) are the bounds of splits without the bin, and region (S,) is where each has it,
    -1 for several regions. A cycle through region i leaves by r_i - r_j and returns on the
    lightest walk from j to i.
    """
    cdef Py_ssize_t m, s, i, j, k, M = W.shape[0], K = W.shape[2]
    needed = np.full((M, K, K), -np.inf)
    cdef double[:, :, ::1] out = needed
    cdef double[:, ::1] D = np.empty((K, K))
    with nogil:
        for m in range(M):
            for s in range(W.shape[1]):
                if region[s] < 0:
                    continue
                D[:, :] = W[m, s]
                for k in range(K):
                    for i in range(K):
                        for j in range(K):
                            if D[i, k] + D[k, j] < D[i, j]:
                                D[i, j] = D[i, k] + D[k, j]
                i = region[s]
                for j in range(K):
                    if j != i and slack - D[j, i] > out[m, i, j]:
                        out[m, i, j] = slack - D[j, i]
    return needed


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
