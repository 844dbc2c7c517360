"""Loops over rows: checking forecasts, routing them through trees, counting what is where.

Array arguments are C-contiguous unless a function says otherwise.
"""

from libc.math cimport INFINITY, fabs, log, sqrt

import numpy as np

from isoroc._core.lines cimport region_of


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    static const int isoroc_checked = ISOROC_CHECKED;
    #if defined(__GNUC__)
    #define isoroc_prefetch(address) __builtin_prefetch(address, 1)
    #else
    #define isoroc_prefetch(address) ((void)(address))
    #endif
    /* Rounded even if the compiler may fuse products and sums. */
    static double isoroc_product(double a, double b) {
        volatile double product = a * b;
        return product;
    }
    static inline uint64_t isoroc_bits(double x) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    """
    const int isoroc_checked
    void isoroc_prefetch(const void* address) nogil
    double isoroc_product(double a, double b) nogil
    unsigned long long isoroc_bits(double x) nogil

cdef enum:
    AHEAD = 16  # rows between a request for memory and its use
    LANES = 8  # rows that are hashed side by side: steps of one row wait for each other
    CELLS = 320  # of positive numbers, and of negative ones
    _PRIME = 67108859
    _FACTOR = 44485709  # multiplies the hash before each further number
    _LIMB = 1 << 26  # larger numbers are hashed in parts below this

#: Hashes of forecasts are remainders of a prime. Products of two fit the 53 bits of a double.
PRIME = _PRIME
FACTOR = _FACTOR
LIMB = _LIMB

#: Whether this build has bounds checks and sanitizers on (``make sanitize``).
CHECKED = bool(isoroc_checked)


def are_within(const double[:, ::1] X, double low, double high, double off):
    """Whether all entries lie between low and high, and the rows sum to 1 up to `off`."""
    cdef Py_ssize_t i, k, q, K = X.shape[1], in_fours = X.shape[1] // 4 * 4
    cdef double x
    cdef double[4] sums  # additions to one sum would wait for each other
    cdef bint within = True
    with nogil:
        for i in range(X.shape[0]):
            for q in range(4):
                sums[q] = 0.0
            for k in range(0, in_fours, 4):
                for q in range(4):
                    x = X[i, k + q]
                    within &= (low <= x) & (x <= high)  # false for NaN
                    sums[q] += x
            for k in range(in_fours, K):
                x = X[i, k]
                within &= (low <= x) & (x <= high)
                sums[0] += x
            within &= fabs((sums[0] + sums[1]) + (sums[2] + sums[3]) - 1.0) <= off
            if not within:
                break
    return within


def smallest_above(const double[:, ::1] X, double bound):
    """The smallest entry above a bound, infinity if there is none."""
    cdef Py_ssize_t i, n = X.shape[0] * X.shape[1]
    cdef const double* x = &X[0, 0] if n else NULL
    cdef double smallest = INFINITY
    with nogil:
        for i in range(n):
            if x[i] < smallest and x[i] > bound:
                smallest = x[i]
    return smallest


def look_up(const long long[::1] values, long long low, const Py_ssize_t[::1] table,
            Py_ssize_t unknown):
    """Entries of a table that begins at the value `low`, or `unknown` outside of it, shape (n,)."""
    cdef Py_ssize_t i, n = values.shape[0]
    cdef unsigned long long place, m = table.shape[0]
    found = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = found
    with nogil:
        for i in range(n):
            place = <unsigned long long>values[i] - <unsigned long long>low
            out[i] = table[place] if place < m else unknown
    return found


def pick(const double[:, :] P, const Py_ssize_t[::1] codes):
    """The number of each row in the column of its code, shape (n,). P may have any layout."""
    cdef Py_ssize_t i, n = codes.shape[0]
    picked = np.empty(n)
    cdef double[::1] out = picked
    with nogil:
        for i in range(n):
            out[i] = P[i, codes[i]]
    return picked


def square_distances(const double[:, :] P, const Py_ssize_t[::1] codes):
    """Squared distance of each row from the vertex of its code, shape (n,). P has any layout."""
    cdef Py_ssize_t i, k, n = codes.shape[0]
    cdef double d, total
    distances = np.empty(n)
    cdef double[::1] out = distances
    with nogil:
        for i in range(n):
            total = 0.0
            for k in range(P.shape[1]):
                d = P[i, k] - (k == codes[i])
                total += d * d
            out[i] = total
    return distances


def find_largest(const double[:, :] P):
    """The largest number of each row and its column, the first on ties: two arrays, shape (n,).

    P may have any layout, and holds no NaN.
    """
    cdef Py_ssize_t i, k, best, n = P.shape[0]
    cdef double x, most
    values = np.empty(n)
    places = np.empty(n, dtype=np.intp)
    cdef double[::1] out = values
    cdef Py_ssize_t[::1] at = places
    with nogil:
        for i in range(n):
            best = 0
            most = P[i, 0]
            for k in range(1, P.shape[1]):  # without branches, which cannot be predicted
                x = P[i, k]
                best = k if x > most else best
                most = x if x > most else most
            out[i] = most
            at[i] = best
    return values, places


cdef inline Py_ssize_t cell_of(double x) noexcept nogil:
    """Cell of a finite number, in their order: eight for each power of two from 2**-32 to 2**8."""
    cdef Py_ssize_t cell = <Py_ssize_t>((isoroc_bits(x) << 1) >> 50) - 8 * (1023 - 32)
    cell = min(max(cell, <Py_ssize_t>0), <Py_ssize_t>CELLS - 1)
    return CELLS - 1 - cell if x < 0 else CELLS + cell


def least_concordance(const double[:, ::1] X, const Py_ssize_t[::1] columns,
                      const Py_ssize_t[::1] codes, const Py_ssize_t[::1] classes):
    """Pairs of a row of each class and one of the rest, and how many of them are in order.

    The second is a lower bound of `isoroc._core.pav.concordance` with the scores in a column: rows
    are counted in cells, without a sort, and pairs in one cell do not count. The shape is (2, m).
    """
    cdef Py_ssize_t i, j, cell, n = X.shape[0], m = classes.shape[0]
    cdef unsigned int[:, :, ::1] counts = np.zeros((m, 2 * CELLS, 2), dtype=np.uintc)
    cdef double below, total
    result = np.zeros((2, m))
    cdef double[:, ::1] out = result
    with nogil:
        for i in range(n):
            for j in range(m):
                counts[j, cell_of(X[i, columns[j]]), codes[i] == classes[j]] += 1
        for j in range(m):
            below = 0.0
            total = 0.0
            for cell in range(2 * CELLS):
                out[1, j] += below * counts[j, cell, 1]
                below += counts[j, cell, 0]
                total += counts[j, cell, 1]
            out[0, j] = below * total
    return result


def locate(const double[::1] cuts, const double[::1] scores):
    """How many of the ascending cuts lie below each score: its bin, shape (n,)."""
    cdef Py_ssize_t i, first, length, half, n = scores.shape[0], m = cuts.shape[0]
    positions = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] out = positions
    with nogil:
        for i in range(n):
            # Invariant: the answer lies in [first, first + length]. The step is arithmetic, not a
            # branch, because its direction cannot be predicted.
            first = 0
            length = m
            while length > 0:
                half = (length + 1) // 2
                first += half * (cuts[first + half - 1] < scores[i])
                length -= half
            out[i] = first
    return positions


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


def count_children(const double[:, ::1] P, const double[:, ::1] Y, const double[:, ::1] thresholds):
    """Class weights of the regions of the points P under each threshold, shape (C, K, K)."""
    cdef Py_ssize_t c, i, k, best, n = P.shape[0], K = P.shape[1], C = thresholds.shape[0]
    children = np.zeros((C, K, K))
    cdef double[:, :, ::1] out = children
    with nogil:
        for c in range(C):
            for i in range(n):
                best = region_of(&P[i, 0], &thresholds[c, 0], K)
                for k in range(K):
                    out[c, best, k] += Y[i, k]
    return children


def sort_into_regions(const double[:, ::1] P, const double[:, ::1] Y, const Py_ssize_t[::1] rows,
                      const double[::1] gamma):
    """Region under gamma of some rows of P, shape (n,), and class weights Y of each, (K, K).

    The rule of simplex.regions: for K = 2 whether p_1 > gamma_1.
    """
    cdef Py_ssize_t i, k, row, best, K = P.shape[1]
    region = np.empty(rows.shape[0], dtype=np.int32)  # of many millions of rows, half the memory
    weights = np.zeros((K, K))
    cdef int[::1] out = region
    cdef double[:, ::1] w = weights
    with nogil:
        for i in range(rows.shape[0]):
            row = rows[i]
            best = P[row, 1] > gamma[1] if K == 2 else region_of(&P[row, 0], &gamma[0], K)
            out[i] = <int>best
            for k in range(K):
                w[best, k] += Y[row, k]
    return region, weights


def find_cells(const double[:, ::1] P, double N):
    """Cells of forecasts of which each class has a coordinate: see `isoroc._counts.grid.cells`.

    Scores of two classes are one column. The shape is (n, K) for two classes, otherwise (n, K + 1).
    """
    cdef Py_ssize_t i, k, n = P.shape[0], C = P.shape[1], J = C + 1 if C > 2 else 2
    cdef double most
    cells = np.empty((n, J), dtype=np.int32)
    cdef int[:, ::1] out = cells
    with nogil:
        for i in range(n):
            if C == 1:
                out[i, 0] = <int>(N * sqrt(max(1.0 - P[i, 0], 0.0)))
                out[i, 1] = <int>(N * sqrt(P[i, 0]))
                continue
            most = 0.0
            for k in range(C):
                out[i, k] = <int>(N * sqrt(P[i, k]))
                most = P[i, k] if P[i, k] > most else most
            if C > 2:
                out[i, C] = <int>(N * sqrt(sqrt(max(1.0 - most, 0.0))))
    return cells


def find_folds(const double[:, ::1] P, const double[::1] weights, unsigned int n_folds):
    """Fold of each forecast by a hash of it, shape (n,): see `isoroc._counts.grid.fold`.

    Limbs of the weighted sum of roots are digits of a number in the base FACTOR, in integers. Sums
    are rounded as everywhere, because other engines must find the same folds.
    """
    cdef Py_ssize_t i, k, n = P.shape[0]
    cdef double total
    cdef unsigned long long whole, fraction, state
    cdef unsigned long long two = <unsigned long long>_FACTOR * _FACTOR % _PRIME
    cdef unsigned long long three = two * _FACTOR % _PRIME, four = three * _FACTOR % _PRIME
    folds = np.empty(n, dtype=np.int16)
    cdef short[::1] out = folds
    with nogil:
        for i in range(n):
            total = isoroc_product(weights[0], sqrt(P[i, 0]))
            for k in range(1, P.shape[1]):
                total += isoroc_product(weights[k], sqrt(P[i, k]))
            total *= <double>_LIMB
            whole = <unsigned long long>total
            fraction = <unsigned long long>((total - <double>whole) * (<double>_LIMB * _LIMB))
            state = whole * three + four + fraction // _LIMB * two + fraction % _LIMB * _FACTOR
            out[i] = <short>(<unsigned int>(state % _PRIME) % n_folds)
    return folds


cdef inline unsigned long long scramble(unsigned long long x) noexcept nogil:
    """A permutation of 64 bits in which each bit depends on all others (SplitMix64)."""
    x += 0x9E3779B97F4A7C15u
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu
    return x ^ (x >> 31)


def hash_words(const unsigned long long[:, ::1] words, Py_ssize_t first):
    """Sum of the SplitMix64 hashes of the words of each row, numbered from `first`, shape (n,)."""
    cdef Py_ssize_t i, j, n = words.shape[0]
    cdef unsigned long long total, step = 0x9E3779B97F4A7C15u
    hashes = np.empty(n, dtype=np.uint64)
    cdef unsigned long long[::1] out = hashes
    with nogil:
        for i in range(n):
            total = 0
            for j in range(words.shape[1]):
                total += scramble(words[i, j] + <unsigned long long>(first + j - 1) * step)
            out[i] = total
    return hashes


cdef inline void hash_lanes(const double* x, Py_ssize_t K, Py_ssize_t first, int width,
                            unsigned long long* hashes) noexcept nogil:
    """Hashes of `width` neighbouring rows of K numbers."""
    cdef Py_ssize_t j, k
    for j in range(width):
        hashes[j] = 1
    for k in range(first, K):
        for j in range(width):
            hashes[j] = scramble(hashes[j] + ((isoroc_bits(x[j * K + k] + 0.0) + 2048) >> 12))


def hash_forecasts(const double[:, ::1] X, Py_ssize_t first, unsigned int last):
    """Hashes of 32 bits of the rows, of their numbers from the column `first` on, up to `last`.

    Numbers count with 40 significant bits, because rounding may change the last ones. Zeros have no
    sign. Returns the hashes, shape (m,), and their rows.
    """
    cdef Py_ssize_t i = 0, j, width, m = 0, n = X.shape[0], K = X.shape[1]
    cdef unsigned long long[LANES] lanes
    hashes = np.empty(n, dtype=np.uint64)
    rows = np.empty(n, dtype=np.intp)
    cdef unsigned long long[::1] out = hashes
    cdef Py_ssize_t[::1] at = rows
    with nogil:
        while i < n:
            width = LANES if i + LANES <= n else 1
            if width == LANES:
                hash_lanes(&X[i, 0], K, first, LANES, lanes)
            else:
                hash_lanes(&X[i, 0], K, first, 1, lanes)
            for j in range(width):
                if lanes[j] >> 32 <= last:
                    out[m] = lanes[j] >> 32
                    at[m] = i + j
                    m += 1
            i += width
    return hashes[:m].copy(), rows[:m].copy()


def find_groups(const unsigned long long[::1] hashes, unsigned long long[:, ::1] slots,
                Py_ssize_t m):
    """Number of each row's hash, shape (n,), and the rows of hashes that are new, in their order.

    `slots`, shape (size, 2), is a table of the m hashes so far: each slot holds a hash and one more
    than its number, or 0 if it is empty. Its size is a power of two, above m + n.
    """
    cdef Py_ssize_t i, at, new = 0, n = hashes.shape[0], last = slots.shape[0] - 1
    groups = np.empty(n, dtype=np.intp)
    first = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] group = groups, start = first
    with nogil:
        for i in range(n):
            if i + AHEAD < n:
                isoroc_prefetch(&slots[hashes[i + AHEAD] & <unsigned long long>last, 0])
            at = <Py_ssize_t>(hashes[i] & <unsigned long long>last)
            while slots[at, 1] and slots[at, 0] != hashes[i]:
                at = (at + 1) & last
            if slots[at, 1] == 0:
                start[new] = i
                new += 1
                slots[at, 0] = hashes[i]
                slots[at, 1] = <unsigned long long>(m + new)
            group[i] = <Py_ssize_t>slots[at, 1] - 1
    return groups, first[:new].copy()


def move_slots(const unsigned long long[:, ::1] slots, unsigned long long[:, ::1] larger):
    """Copy a table of `find_groups` to a larger, empty one."""
    cdef Py_ssize_t i, at, last = larger.shape[0] - 1
    with nogil:
        for i in range(slots.shape[0]):
            if slots[i, 1]:
                at = <Py_ssize_t>(slots[i, 0] & <unsigned long long>last)
                while larger[at, 1]:
                    at = (at + 1) & last
                larger[at, 0] = slots[i, 0]
                larger[at, 1] = slots[i, 1]


def add_rows(const Py_ssize_t[::1] group, const Py_ssize_t[::1] codes, const double[:, ::1] sums,
             const double[::1] weights, const double[::1] squares, const double[::1] rows,
             double[:, ::1] totals, Py_ssize_t K):
    """Add rows of K classes to the totals of their groups: rows, weights, squares and sums.

    A row counts in the columns 0, 1 + code and 1 + K + code, and its sums from 1 + 2 K on. Empty
    `weights`, `squares` or `rows` are ones.
    """
    cdef Py_ssize_t i, k, at, n = group.shape[0], C = sums.shape[1]
    cdef bint weighted = weights.shape[0] > 0, squared = squares.shape[0] > 0
    cdef bint counted = rows.shape[0] > 0
    with nogil:
        for i in range(n):
            if i + AHEAD < n:
                isoroc_prefetch(&totals[group[i + AHEAD], 0])
            at = group[i]
            totals[at, 0] += rows[i] if counted else 1.0
            totals[at, 1 + codes[i]] += weights[i] if weighted else 1.0
            totals[at, 1 + K + codes[i]] += squares[i] if squared else 1.0
            for k in range(C):
                totals[at, 1 + 2 * K + k] += sums[i, k]


def add_totals(const Py_ssize_t[::1] group, const double[:, ::1] values, double[:, ::1] totals):
    """Add rows of numbers to the totals of their groups."""
    cdef Py_ssize_t i, k
    with nogil:
        for i in range(group.shape[0]):
            for k in range(values.shape[1]):
                totals[group[i], k] += values[i, k]


def power_sums(const double[::1] values, const double[::1] weights, const double[::1] squares,
               double shift):
    """Sums of powers 1 to 4 of the weights of rows, times powers 0 to 3 of values - shift, (4, 4).

    An entry of weight w may stand for several equal rows, with squared weights that sum to s. Each
    has the weight s / w. Weights that are not given, as an empty array, are 1, and squared weights
    are w * w. Blocks are summed apart, so that rounding errors stay small.
    """
    cdef Py_ssize_t i, start, stop, j, k, n = values.shape[0]
    cdef double x, w, s, each
    cdef bint weighted = weights.shape[0] > 0, squared = squares.shape[0] > 0
    cdef double part[4][4]
    cdef double power[4]
    result = np.zeros((4, 4))
    cdef double[:, ::1] out = result
    with nogil:
        for start in range(0, n, 512):
            stop = min(start + 512, n)
            for j in range(4):
                for k in range(4):
                    part[j][k] = 0.0
            if not weighted:  # all powers of the weights are 1
                for i in range(start, stop):
                    x = values[i] - shift
                    part[0][1] += x
                    part[0][2] += x * x
                    part[0][3] += x * x * x
                part[0][0] = stop - start
                for j in range(1, 4):
                    for k in range(4):
                        part[j][k] = part[0][k]
            else:
                for i in range(start, stop):
                    x = values[i] - shift
                    w = weights[i]
                    s = squares[i] if squared else w * w
                    each = s / w if w > 0.0 else 0.0
                    power[0] = w
                    power[1] = s
                    power[2] = s * each
                    power[3] = s * each * each
                    for j in range(4):
                        part[j][0] += power[j]
                        part[j][1] += power[j] * x
                        part[j][2] += power[j] * (x * x)
                        part[j][3] += power[j] * (x * x * x)
            for j in range(4):
                for k in range(4):
                    out[j, k] += part[j][k]
    return result


def lift(const double[:, ::1] children):
    """Sum of w log(w / row total) over the children, minus the same for their column sums."""
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


def weigh_reversed(const Py_ssize_t[::1] rank, const double[::1] weights):
    """Weight of the rows before each row that have a higher rank, and after it a lower one, (n,).

    Binary indexed trees add up the weights of ranks, from the highest down and from the lowest up.
    """
    cdef Py_ssize_t i, j, at, after, q, n = rank.shape[0], m = np.max(rank, initial=0) + 1
    cdef double[:, ::1] sums = np.zeros((2, m + 1))
    result = np.zeros(n)
    cdef double[::1] out = result
    with nogil:
        for after in range(2):
            for q in range(n):
                i = n - 1 - q if after else q
                j = rank[i] + 1 if after else m - rank[i]  # places count from 1
                at = j - 1
                while at > 0:
                    out[i] += sums[after, at]
                    at -= at & -at
                while j <= m:
                    sums[after, j] += weights[i]
                    j += j & -j
    return result
