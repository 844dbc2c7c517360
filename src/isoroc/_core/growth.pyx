"""What ROC monotonicity asks of bins and of the rows in them, and thresholds that keep it, by line searches.

Array arguments are C-contiguous.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy, memset

import numpy as np

from isoroc._core.lines cimport Point, best_other, sort_points


cdef bint has_cycle_below(double* W, Py_ssize_t K, double slack) noexcept nogil:
    """Whether the digraph W has a cycle with a mean weight below slack. W is overwritten."""
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


cdef inline void lower_row(double* W, const double* r, Py_ssize_t i, Py_ssize_t K) noexcept nogil:
    """Lower row i of W to the r_i - r_j of a bin that has points in region i."""
    cdef Py_ssize_t j
    for j in range(K):
        if i != j and r[i] - r[j] < W[i * K + j]:
            W[i * K + j] = r[i] - r[j]


cdef class Wards:
    """Nodes (B,) of the bins that a split covers, and whether they reach each region (B, K)."""

    cdef readonly Py_ssize_t n_bins
    cdef Py_ssize_t[::1] nodes
    cdef unsigned char[:, ::1] held

    def __init__(self, const Py_ssize_t[::1] nodes, const unsigned char[:, ::1] held):
        self.n_bins = 0
        self.nodes = np.empty(0, dtype=np.intp)
        self.held = np.empty((0, held.shape[1]), dtype=np.uint8)
        self._add(nodes, held)

    cdef _add(self, const Py_ssize_t[::1] nodes, const unsigned char[:, :] held):
        cdef Py_ssize_t needed = self.n_bins + nodes.shape[0]
        if needed > self.nodes.shape[0]:
            before = self.nodes
            before_held = self.held
            self.nodes = np.empty(2 * needed, dtype=np.intp)
            self.held = np.empty((2 * needed, held.shape[1]), dtype=np.uint8)
            self.nodes[:self.n_bins] = before[:self.n_bins]
            self.held[:self.n_bins] = before_held[:self.n_bins]
        self.nodes[self.n_bins:needed] = nodes
        self.held[self.n_bins:needed] = held
        self.n_bins = needed

    def replace(self, Py_ssize_t node, const Py_ssize_t[::1] children,
                const unsigned char[:, :] held):
        """Put the children of a bin in its place."""
        cdef Py_ssize_t b = 0
        while self.nodes[b] != node:
            b += 1
        self.nodes[b] = children[0]
        self.held[b] = held[0]
        self._add(children[1:], held[1:])


def keep_order(double[:, :, :, ::1] W, const double[:, :, ::1] values,
               const unsigned char[:, :, ::1] held, double slack):
    """Whether no split has a cycle of mean below slack once a bin has been replaced. W is spent.

    W (M, S, K, K) are the bounds of splits without the bin. Its children have values (M, c, K), and
    points in region i of split s where held[c, s, i] != 0.
    """
    cdef Py_ssize_t m, s, c, i, K = W.shape[2]
    for m in range(W.shape[0]):
        for s in range(W.shape[1]):
            for c in range(held.shape[0]):
                for i in range(K):
                    if held[c, s, i]:
                        lower_row(&W[m, s, 0, 0], &values[m, c, 0], i, K)
            if has_cycle_below(&W[m, s, 0, 0], K, slack):
                return False
    return True


def smallest_differences(const double[:, :, ::1] values, list wards, Py_ssize_t skipped):
    """W of splits for each kind of values, shape (M, S, K, K), +inf where nothing bounds.

    W[m, s, i, j] is the smallest values[m, v, i] - values[m, v, j] among the bins v, but for the
    skipped one, that split s covers and that have points in region i. In the list of wards
    None stands for a split without any.
    """
    cdef Py_ssize_t m, s, b, i, v, M = values.shape[0], K = values.shape[2]
    cdef Wards bins
    bounds = np.full((M, len(wards), K, K), np.inf)
    cdef double[:, :, :, ::1] W = bounds
    for s in range(len(wards)):
        bins = wards[s]
        if bins is None:
            continue
        for b in range(bins.n_bins):
            v = bins.nodes[b]
            if v == skipped:
                continue
            for i in range(K):
                if bins.held[b, i]:
                    for m in range(M):
                        lower_row(&W[m, s, 0, 0], &values[m, v, 0], i, K)
    return bounds


def required_differences(const double[:, :, :, ::1] W, const unsigned char[:, ::1] held,
                         double slack):
    """Least r_i - r_j of a bin's children, shape (M, K, K), -inf where anything goes.

    W (M, S, K, K) are the bounds of splits without the bin, which has points in region i of split s
    where held[s, i] != 0. Splits that have it in several regions are left out. A cycle through
    region i leaves by r_i - r_j and returns on the lightest walk from j to i.
    """
    cdef Py_ssize_t m, s, i, j, k, n_held, M = W.shape[0], K = W.shape[2]
    needed = np.full((M, K, K), -np.inf)
    cdef double[:, :, ::1] out = needed
    cdef double[:, ::1] D = np.empty((K, K))
    with nogil:
        for m in range(M):
            for s in range(W.shape[1]):
                n_held = 0
                for i in range(K):
                    n_held += held[s, i]
                if n_held != 1:
                    continue
                D[:, :] = W[m, s]
                for k in range(K):
                    for i in range(K):
                        for j in range(K):
                            if D[i, k] + D[k, j] < D[i, j]:
                                D[i, j] = D[i, k] + D[k, j]
                for i in range(K):
                    if held[s, i]:
                        for j in range(K):
                            if j != i and slack - D[j, i] > out[m, i, j]:
                                out[m, i, j] = slack - D[j, i]
    return needed


def leaves(const Py_ssize_t[:, ::1] children, const Py_ssize_t[::1] split_of_node):
    """Nodes that are not divided, depth first and by region."""
    cdef Py_ssize_t c, node, m = 0, top = 0, n = split_of_node.shape[0], K = children.shape[1]
    nodes = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = nodes, stack = np.zeros(n, dtype=np.intp)
    while top >= 0:
        node = stack[top]
        top -= 1
        if split_of_node[node] < 0:
            out[m] = node
            m += 1
            continue
        for c in range(K - 1, -1, -1):
            if children[split_of_node[node], c] >= 0:
                top += 1
                stack[top] = children[split_of_node[node], c]
    return nodes[:m]


def add_up(double[:, ::1] sums, const Py_ssize_t[:, ::1] children,
           const Py_ssize_t[::1] split_nodes):
    """Add the sums of children to their parents' sums, the last split first."""
    cdef Py_ssize_t s, c, k
    for s in range(split_nodes.shape[0] - 1, -1, -1):
        for c in range(children.shape[1]):
            if children[s, c] >= 0:
                for k in range(sums.shape[1]):
                    sums[split_nodes[s], k] += sums[children[s, c], k]


def hand_down(double[:, ::1] values, const double[::1] share, const Py_ssize_t[:, ::1] children,
              const Py_ssize_t[::1] split_nodes):
    """Add to the values of children a share of their parent's values."""
    cdef Py_ssize_t s, c, k, child
    for s in range(split_nodes.shape[0]):
        for c in range(children.shape[1]):
            child = children[s, c]
            if child >= 0:
                for k in range(values.shape[1]):
                    values[child, k] += share[child] * values[split_nodes[s], k]


cdef inline void tilt_row(const double* p, const double* tilt, double* q, Py_ssize_t K) noexcept nogil:
    """Make q proportional to p * tilt, with sum 1."""
    cdef Py_ssize_t k
    cdef double total = 0.0
    for k in range(K):
        q[k] = p[k] * tilt[k]
        total += q[k]
    for k in range(K):
        q[k] /= total


def tilted_sums(const double[:, ::1] P, const Py_ssize_t[::1] bin_of, const double[::1] weights,
                const double[:, ::1] tilts, const unsigned char[::1] wanted):
    """Weighted sums of q, proportional to P * tilt, in each bin, and of the products of its entries.

    They have shapes (B, K) and (B, K, K), and are zeros for bins that are not wanted.
    """
    cdef Py_ssize_t i, j, k, b, B = tilts.shape[0], K = tilts.shape[1]
    cdef double part
    sums = np.zeros((B, K))
    products = np.zeros((B, K, K))
    cdef double[:, ::1] first = sums
    cdef double[:, :, ::1] second = products
    cdef double[::1] q = np.empty(K)
    with nogil:
        for i in range(P.shape[0]):
            b = bin_of[i]
            if not wanted[b]:
                continue
            tilt_row(&P[i, 0], &tilts[b, 0], &q[0], K)
            for k in range(K):
                part = weights[i] * q[k]
                first[b, k] += part
                for j in range(K):
                    second[b, k, j] += part * q[j]
    return sums, products


def smallest_leads(const double[:, ::1] P, const Py_ssize_t[::1] bin_of,
                   const double[:, ::1] tilts, const Py_ssize_t[::1] region):
    """Smallest q_i - q_j of the rows of each bin, q proportional to P * tilt, shape (B, K, K).

    Given the region of each row, only rows in region i count.
    """
    cdef Py_ssize_t i, k, b, B = tilts.shape[0], K = tilts.shape[1]
    cdef bint everywhere = region is None
    leads = np.full((B, K, K), np.inf)
    leads[:, *np.diag_indices(K)] = 0.0
    cdef double[:, :, ::1] out = leads
    cdef double[::1] q = np.empty(K)
    with nogil:
        for i in range(P.shape[0]):
            b = bin_of[i]
            tilt_row(&P[i, 0], &tilts[b, 0], &q[0], K)
            for k in range(K):
                if everywhere or region[i] == k:
                    lower_row(&out[b, 0, 0], &q[0], k, K)
    return leads


def largest_cap(const Py_ssize_t[::1] regions, const Py_ssize_t[::1] bins,
                const double[:, ::1] constant, const double[:, ::1] varying,
                const double[::1] shares, double slack, Py_ssize_t n_caps):
    """Largest multiple of 1 / n_caps at which capped shares leave no cycle of mean below slack.

    Bin bins[e] bounds row regions[e] of W by constant[e] + share * (varying[e] - constant[e]).
    """
    cdef Py_ssize_t e, i, j, middle, low = 0, high = n_caps, K = constant.shape[1]
    cdef double share, lead
    cdef double[:, ::1] W = np.empty((K, K))
    with nogil:
        while high - low > 1:
            middle = (low + high) // 2
            W[:, :] = INFINITY
            for e in range(regions.shape[0]):
                i = regions[e]
                share = min(shares[bins[e]], middle / <double>n_caps)
                for j in range(K):
                    lead = constant[e, j] + share * (varying[e, j] - constant[e, j])
                    if i != j and lead < W[i, j]:
                        W[i, j] = lead
            if has_cycle_below(&W[0, 0], K, slack):
                high = middle
            else:
                low = middle
    return low / <double>n_caps


cdef struct Side:
    # One of the two kinds of values that must be in order: raw means, or smoothed values.
    const double* pseudocounts  # (K,)
    const double* bound      # (K, K): every child must have r[i] - r[j] >= bound[i, j]
    const double* straddled  # (S, K, K): W of the straddled splits without this bin
    const double* outside    # (B, K): values of the other bins
    double* values           # (K, K): scratch, values of the children


cdef class Ascent:
    """Coordinate ascent of the gain over thresholds of one bin that keep the tree ROC monotone.

    Each step moves one coordinate of gamma to its best feasible place, found exactly: with the
    others fixed, a point is in the moving region iff gamma[axis] is below the point's t, and
    otherwise in a region that does not depend on it. So one sort and one pass give the children's
    class weights, hence gain and feasibility, for every place between two points.

    `points` and `weights` (n, K) are the bin's points and their class weights, `around` what the
    rest of the tree demands (`Surroundings`), `pseudocounts` (2, K) what is added to class weights
    for raw means and for smoothed values, `slack` the least mean weight of a cycle, `min_weight`
    the least weight of a child. Points closer than `min_gap` along an axis are ties.
    """

    cdef const double[:, ::1] P, Y, P_out
    cdef const int[:, ::1] region
    cdef const int[::1] bin_out
    cdef const double[:, ::1] pseudocounts
    cdef const double[:, :, ::1] bound, outside
    cdef const double[:, :, :, ::1] straddled
    cdef double slack, min_weight, min_gap, total
    cdef Py_ssize_t n, K, S, B
    cdef Side[2] sides
    cdef char[::1] memory
    cdef double[::1] scratch
    cdef int[::1] counts
    cdef Point* sorted_points  # (n,) and as much again for sorting
    cdef double* weights       # (K, K) class weights of the children
    cdef double* totals        # (K,) weights of the children. Two copies of both arrays follow.
    cdef double[::1] share     # (K,) mean label of the bin
    cdef double* parts         # (K,) the children's shares of the gain
    cdef double* W             # (K, K)
    cdef double[::1] point_weights  # (n,)
    # Another bin has points in the moving region iff `latest` (B,) is above t, and in another
    # region iff `earliest` (B, K) is below t.
    cdef double* latest
    cdef double* earliest
    # Points of each child in each region of each split, (K, S, K). Two copies follow.
    cdef int* held

    def __cinit__(self, points, weights, around, *, const double[:, ::1] pseudocounts,
                  double slack, double min_weight, double min_gap):
        cdef Py_ssize_t s, K
        self.P = points
        self.Y = weights
        self.pseudocounts = pseudocounts
        self.bound = around.bound
        self.straddled = around.straddled
        self.region = around.region
        self.outside = around.outside
        self.P_out = around.outside_points
        self.bin_out = around.outside_bins
        self.slack = slack
        self.min_weight = min_weight
        self.min_gap = min_gap
        self.n = self.P.shape[0]
        self.K = self.P.shape[1]
        self.S = self.region.shape[1]
        self.B = self.outside.shape[1]
        K = self.K
        self.memory = np.empty(2 * self.n * sizeof(Point), dtype=np.int8)
        self.scratch = np.empty(6 * K * K + 4 * K + self.B * (K + 1))
        self.counts = np.empty(3 * K * self.S * K + 1, dtype=np.intc)
        self.sorted_points = <Point*> &self.memory[0]
        self.held = &self.counts[0]
        self.weights = &self.scratch[0]
        self.totals = self.weights + K * K
        self.parts = self.totals + K + 2 * (K * K + K)
        self.W = self.parts + K
        self.latest = self.W + 3 * K * K  # behind the values of the two sides
        self.earliest = self.latest + self.B
        for s in range(2):
            self.sides[s].pseudocounts = &pseudocounts[s, 0]
            self.sides[s].bound = &self.bound[s, 0, 0]
            self.sides[s].straddled = &self.straddled[s, 0, 0, 0] if self.S else NULL
            self.sides[s].outside = &self.outside[s, 0, 0] if self.B else NULL
            self.sides[s].values = self.W + (1 + s) * K * K
        self.point_weights = weights.sum(axis=1)
        share = weights.sum(axis=0)
        self.total = share.sum()
        self.share = share / self.total

    def climb(self, double[:, ::1] gammas, const int[:, ::1] axes, int max_cycles):
        """Move the coordinates axes[a] of each gammas[a] in turn, until none gains.

        Axes after the first of -1 are left out. gammas are changed in place to the middle of the
        gaps found. Returns gains, -1 where nothing is feasible, and the class weights of the
        children there, shape (A, K, K).
        """
        cdef Py_ssize_t a
        gains = np.empty(gammas.shape[0])
        children = np.zeros((gammas.shape[0], self.K, self.K))
        cdef double[::1] gain = gains
        cdef double[:, :, ::1] out = children
        with nogil:
            for a in range(gammas.shape[0]):
                gain[a] = self._climb(gammas[a], axes[a], max_cycles, &out[a, 0, 0])
        return gains, children

    cdef double _climb(self, double[::1] gamma, const int[::1] axes, int max_cycles,
                       double* children) noexcept nogil:
        cdef Py_ssize_t axis, unchanged = 0, sound = 0, step = 0, n_axes = 0
        cdef double best, climbed = -1.0
        while n_axes < axes.shape[0] and axes[n_axes] >= 0:
            n_axes += 1
        # An axis stays at its best place until another one moves, so an ascent ends when all others
        # have been tried in vain.
        while (unchanged < n_axes - 1 or step < n_axes) and step < max_cycles * n_axes:
            axis = axes[step % n_axes]
            step += 1
            self._line_up(gamma, axis)
            best = self._best_place(gamma, axis)
            # A start on a point, or among near ties, sorts points by differences too small to
            # trust. Such a state cannot be found again along some axis: it does not count.
            sound = sound + 1 if best >= 0 else 0
            unchanged = 0 if best > climbed + 1e-9 * fabs(climbed) else unchanged + 1
            climbed = best
            if best >= 0:
                memcpy(children, self.weights, self.K * self.K * sizeof(double))
        return climbed if sound >= n_axes else -1.0

    cdef void _line_up(self, double[::1] gamma, Py_ssize_t axis) noexcept nogil:
        """Sort the points by where they change region. None is in the moving one yet."""
        cdef Py_ssize_t i, j, k, s, b, K = self.K, S = self.S
        cdef double t, margin
        cdef Point* points = self.sorted_points
        cdef double* weights = self.weights
        cdef double* totals = self.totals
        memset(totals, 0, K * sizeof(double))
        memset(weights, 0, K * K * sizeof(double))
        memset(self.held, 0, K * S * K * sizeof(int))
        for i in range(self.n):
            j = best_other(self.P, i, gamma, axis, &margin)
            points[i].t = self.P[i, axis] - margin
            points[i].row = <int> i
            points[i].other = <int> j
            totals[j] += self.point_weights[i]
            for k in range(K):
                weights[j * K + k] += self.Y[i, k]
            for s in range(S):
                self.held[(j * S + s) * K + self.region[i, s]] += 1
        for b in range(self.B):
            self.latest[b] = -INFINITY
            for k in range(K):
                self.earliest[b * K + k] = INFINITY
        for i in range(self.P_out.shape[0]):
            j = best_other(self.P_out, i, gamma, axis, &margin)
            t = self.P_out[i, axis] - margin
            b = self.bin_out[i]
            self.latest[b] = max(self.latest[b], t)
            self.earliest[b * K + j] = min(self.earliest[b * K + j], t)
        sort_points(points, points + self.n, self.n)
        for k in range(K):
            self._measure(k)

    cdef inline void _measure(self, Py_ssize_t child) noexcept nogil:
        """Set a child's share of the gain."""
        cdef Py_ssize_t k
        cdef double part = 0.0
        for k in range(self.K):
            part += fabs(self.totals[child] * self.share[k] - self.weights[child * self.K + k])
        self.parts[child] = part

    cdef inline void _move(self, Point* point, Py_ssize_t axis) noexcept nogil:
        """Bring a point into the moving region."""
        cdef Py_ssize_t k, s, K = self.K, S = self.S, j = point.other, row = point.row
        cdef double w
        self.totals[axis] += self.point_weights[row]
        self.totals[j] -= self.point_weights[row]
        for k in range(K):
            w = self.Y[row, k]
            self.weights[axis * K + k] += w
            self.weights[j * K + k] -= w
        for s in range(S):
            self.held[(axis * S + s) * K + self.region[row, s]] += 1
            self.held[(j * S + s) * K + self.region[row, s]] -= 1
        self._measure(axis)
        self._measure(j)

    cdef inline void _copy(self, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
        """Copy what belongs to a place: 0 is the present one, 1 and 2 are copies."""
        cdef Py_ssize_t size = self.K * self.K + self.K, n_held = self.K * self.S * self.K
        memcpy(self.weights + target * size, self.weights + source * size, size * sizeof(double))
        memcpy(self.held + target * n_held, self.held + source * n_held, n_held * sizeof(int))

    cdef double _best_place(self, double[::1] gamma, Py_ssize_t axis) noexcept nogil:
        """Go with gamma[axis] to the best feasible place. Returns its gain, -1 if there is none."""
        cdef Py_ssize_t k
        cdef double best, start = gamma[axis]
        self._copy(0, 1)
        best = self._sweep(gamma, axis, False)
        # As a rule the best place is feasible, so no other needs to be checked.
        if best >= 0 and not self._is_feasible(gamma[axis], axis):
            gamma[axis] = start
            self._copy(1, 0)
            for k in range(self.K):
                self._measure(k)
            best = self._sweep(gamma, axis, True)
        return best

    cdef double _sweep(self, double[::1] gamma, Py_ssize_t axis, bint checked) noexcept nogil:
        """Go with gamma[axis] to the best place. Returns its gain, -1 if there is none."""
        cdef Py_ssize_t i
        cdef double gain, t, best = -1.0
        cdef Point* points = self.sorted_points
        # Place i lies between point i - 1 and point i. The first i points are in the region.
        for i in range(self.n):
            if i:
                self._move(&points[i - 1], axis)
                if points[i - 1].t - points[i].t <= self.min_gap:
                    continue
            gain = self._gain()
            # Equal gains differ by rounding, which depends on the order of the classes.
            if gain <= best + 1e-12 * self.total:
                continue
            t = points[i - 1].t / 2 + points[i].t / 2 if i else points[0].t + 0.5
            if checked and not self._is_feasible(t, axis):
                continue
            best = gain
            gamma[axis] = t
            self._copy(0, 2)
        if best >= 0:
            self._copy(2, 0)
        return best

    cdef double _gain(self) noexcept nogil:
        """Gain of the children, -1 if fewer than two have points or one is too light."""
        cdef Py_ssize_t c, kept = 0
        cdef double gain = 0.0
        cdef bint light = False
        for c in range(self.K):
            gain += self.parts[c]
            if self.totals[c] > 1e-9 * self.total:
                kept += 1
                light = light or self.totals[c] < self.min_weight
            else:
                self.totals[c] = 0.0  # what is left is rounding
        return -1.0 if kept < 2 or light else gain

    cdef bint _is_feasible(self, double t, Py_ssize_t axis) noexcept nogil:
        """Whether the children, with gamma[axis] at t, leave every split ROC monotone."""
        cdef Side* side
        cdef int s
        for s in range(2 if self.slack > -INFINITY else 0):
            side = &self.sides[s]
            if not (self._keeps_bound(side) and self._keeps_own_order(side, t, axis)
                    and self._keeps_straddled(side)):
                return False
        return True

    cdef bint _keeps_bound(self, Side* side) noexcept nogil:
        """Set the values of the children, as `bin_values` does. Returns whether they may stay."""
        cdef Py_ssize_t c, i, j, K = self.K
        cdef double norm
        cdef double* r
        for c in range(K):
            if self.totals[c] <= 0:
                continue
            r = side.values + c * K
            norm = self.totals[c]
            for i in range(K):
                norm += side.pseudocounts[i]
            for i in range(K):
                r[i] = (self.weights[c * K + i] + side.pseudocounts[i]) / norm
            for i in range(K):
                for j in range(K):
                    if i != j and r[i] - r[j] < side.bound[i * K + j]:
                        return False
        return True

    cdef bint _keeps_own_order(self, Side* side, double t, Py_ssize_t axis) noexcept nogil:
        """Whether the new split is ROC monotone."""
        cdef Py_ssize_t b, i, K = self.K
        cdef double* W = self.W
        for i in range(K * K):
            W[i] = INFINITY
        for i in range(K):
            if self.totals[i] > 0:
                lower_row(W, side.values + i * K, i, K)
        for b in range(self.B):
            for i in range(K):
                if (self.latest[b] > t) if i == axis else (self.earliest[b * K + i] < t):
                    lower_row(W, side.outside + b * K, i, K)
        return not has_cycle_below(W, K, self.slack)

    cdef bint _keeps_straddled(self, Side* side) noexcept nogil:
        """Whether earlier splits that divide the bin stay ROC monotone."""
        cdef Py_ssize_t c, i, s, K = self.K, S = self.S
        cdef double* W = self.W
        for s in range(S):
            memcpy(W, side.straddled + s * K * K, K * K * sizeof(double))
            for c in range(K):
                for i in range(K):
                    if self.totals[c] > 0 and self.held[(c * S + s) * K + i] > 0:
                        lower_row(W, side.values + c * K, i, K)
            if has_cycle_below(W, K, self.slack):
                return False
        return True
