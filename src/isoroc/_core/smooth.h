/* Arithmetic of the smooth maps, on tiles of ROWS rows that stay in the first-level cache.

A tile holds one run of ROWS numbers per class. Loops over the rows of a tile have a fixed length and
no branches, so compilers turn them into vector instructions, and a row is treated alike wherever it
stands: forecasts do not depend on the batch. */

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ROWS 8
#define EACH_ROW for (int r = 0; r < ROWS; r++)
#define EACH_OF_FOUR for (int q = 0; q < 4; q++)

/* Functions of a tile are not inlined: compilers keep more of each in registers then. Where the
   processor has wider vectors they are used, without fused products, so that all digits agree. */
#if defined(_MSC_VER)
#define TILE(name) static __declspec(noinline) void name##_tile
#define INLINE static __forceinline
#else
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define TILE(name) \
    static __attribute__((noinline, target_clones("avx512f", "avx2", "default"))) void name##_tile
#else
#define TILE(name) static __attribute__((noinline)) void name##_tile
#endif
#define INLINE static inline __attribute__((always_inline))
#endif

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)0)
#endif

/* fmax and fmin are one instruction on ARM, and calls elsewhere. */
#if defined(__aarch64__)
#define LARGER(a, b) fmax(a, b)
#define SMALLER(a, b) fmin(a, b)
#else
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) ? (a) : (b))
#endif

/* Knots of the piecewise linear ranks. */
#define KNOTS 9

/* Positions farther out count as this: the bumps are 0 there in any case, and products of four
   squares must not overflow. */
#define FARTHEST 1e18

/* log(2) in two parts. Multiples of the first by an exponent are exact. */
#define LOG2_HIGH 6.93147180369123816490e-01
#define LOG2_LOW 1.90821492927058770002e-10

INLINE uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE double from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* exp(x) of each row for x <= 0. What is below -708 counts as that. With x = n log(2) + y, the
   polynomial gives exp(y), |y| <= log(2) / 2, and n is added to its exponent. Adding 1.5 * 2**52
   rounds to integers and leaves n in the last bits.

   Here and below, each step is a loop of its own: steps of one row wait for each other. */
INLINE void exp_rows(double *__restrict x) {
    const double shift = 6755399441055744.0;
    double y[ROWS], n[ROWS], y2[ROWS], a[ROWS], b[ROWS];
    uint64_t power[ROWS];
    EACH_ROW y[r] = LARGER(x[r], -708.0);
    EACH_ROW n[r] = y[r] * 1.44269504088896340736 + shift;
    EACH_ROW power[r] = bits_of(n[r]) << 52;
    EACH_ROW n[r] -= shift;
    EACH_ROW y[r] -= n[r] * LOG2_HIGH;
    EACH_ROW y[r] -= n[r] * LOG2_LOW;
    EACH_ROW y2[r] = y[r] * y[r];
    EACH_ROW a[r] = 2.7620201591031547e-07 + y[r] * 2.5100472505694996e-08;
    EACH_ROW b[r] = 2.4801521057868204e-05 + y[r] * 2.7557268276905696e-06;
    EACH_ROW b[r] += y2[r] * a[r];
    EACH_ROW a[r] = 0.0013888888917367081 + y[r] * 0.00019841269863171557;
    EACH_ROW a[r] += y2[r] * b[r];
    EACH_ROW b[r] = 0.041666666666623824 + y[r] * 0.008333333333330039;
    EACH_ROW b[r] += y2[r] * a[r];
    EACH_ROW a[r] = 0.5000000000000001 + y[r] * 0.16666666666666669;
    EACH_ROW a[r] += y2[r] * b[r];
    EACH_ROW y[r] += y2[r] * a[r];
    EACH_ROW y[r] += 1.0;
    EACH_ROW x[r] = from_bits(bits_of(y[r]) + power[r]);
}

/* log(x) of each row for positive, finite x. What is below 2.3e-308 counts as that. With
   x = 2**n (1 + f), 1 + f between sqrt(1/2) and sqrt(2), and s = f / (2 + f), log(1 + f) =
   2 atanh(s) is a series in s**2 (coefficients of fdlibm). */
INLINE void log_rows(double *__restrict x) {
    const uint64_t one = 0x3ff0000000000000u, root = 0x3fe6a09e667f3bcdu;
    const uint64_t mantissa = 0x000fffffffffffffu, shift = 0x4330000000000000u; /* 2**52 */
    double n[ROWS], f[ROWS], s[ROWS], w[ROWS], w2[ROWS], a[ROWS], b[ROWS];
    uint64_t bits[ROWS];
    EACH_ROW x[r] = LARGER(x[r], DBL_MIN);
    EACH_ROW bits[r] = bits_of(x[r]) + (one - root);
    EACH_ROW f[r] = from_bits((bits[r] & mantissa) + root) - 1.0;
    EACH_ROW s[r] = f[r] / (2.0 + f[r]);
    EACH_ROW n[r] = from_bits((bits[r] >> 52) | shift) - 4503599627371519.0; /* 2**52 + 1023 */
    EACH_ROW w[r] = s[r] * s[r];
    EACH_ROW w2[r] = w[r] * w[r];
    EACH_ROW a[r] = 1.818357216161805012e-01 + w[r] * 1.531383769920937332e-01;
    EACH_ROW a[r] += w2[r] * 1.479819860511658591e-01;
    EACH_ROW b[r] = 2.857142874366239149e-01 + w[r] * 2.222219843214978396e-01;
    EACH_ROW b[r] += w2[r] * a[r];
    EACH_ROW a[r] = 6.666666666666735130e-01 + w[r] * 3.999999999940941908e-01;
    EACH_ROW a[r] += w2[r] * b[r];
    EACH_ROW a[r] = f[r] - w[r] * a[r];
    EACH_ROW a[r] = s[r] * a[r] - n[r] * LOG2_LOW;
    EACH_ROW f[r] -= a[r];
    EACH_ROW x[r] = f[r] + n[r] * LOG2_HIGH;
}

/* Copy K runs of ROWS numbers. Columns of the source after the next one are fetched early: processors
   foresee few runs of numbers at a time. Vectors as wide as those of other tiles pass numbers on at once,
   narrower ones only through the cache. */
TILE(copy)(double *__restrict to, ptrdiff_t step, const double *__restrict from, ptrdiff_t from_step,
           ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++, to += step, from += from_step) {
        PREFETCH(from + 2 * ROWS);
        EACH_ROW to[r] = from[r];
    }
}

/* Read columns of an array of shape (K, n) into a tile. The first fills up what is missing. */
static inline void load(double *__restrict tile, const double *__restrict from, ptrdiff_t K,
                        ptrdiff_t n, int width) {
    if (width == ROWS)
        copy_tile(tile, ROWS, from, n, K);
    else
        for (ptrdiff_t k = 0; k < K; k++)
            EACH_ROW tile[k * ROWS + r] = from[k * n + (r < width ? r : 0)];
}

/* Write a tile into columns of an array of shape (K, n). */
static inline void store(const double *__restrict tile, double *__restrict to, ptrdiff_t K,
                         ptrdiff_t n, int width) {
    if (width == ROWS)
        copy_tile(to, n, tile, ROWS, K);
    else
        for (ptrdiff_t k = 0; k < K; k++)
            for (int r = 0; r < width; r++) to[k * n + r] = tile[k * ROWS + r];
}

/* Read rows of an array of shape (n, K) into a tile. The first fills up what is missing. */
static inline void load_rows(double *__restrict tile, const double *__restrict from, ptrdiff_t K,
                             int width) {
    for (int r = 0; r < ROWS; r++)
        for (ptrdiff_t k = 0; k < K; k++)
            tile[k * ROWS + r] = from[(r < width ? r : 0) * K + k];
}

/* Write a tile into rows of an array of shape (n, K). */
static inline void store_rows(const double *__restrict tile, double *__restrict to, ptrdiff_t K,
                              int width) {
    for (int r = 0; r < width; r++)
        for (ptrdiff_t k = 0; k < K; k++) to[r * K + k] = tile[k * ROWS + r];
}

TILE(raise)(double *__restrict z, double lowest, ptrdiff_t K) {
    for (ptrdiff_t i = 0; i < K * ROWS; i++) z[i] = LARGER(z[i], lowest);
}

/* 0 for each row whose numbers are finite, NaN for the others. */
TILE(check)(const double *__restrict z, double *__restrict checked, ptrdiff_t K) {
    EACH_ROW checked[r] = 0.0;
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW checked[r] += 0.0 * z[k * ROWS + r];
}

TILE(scale)(double *__restrict z, double factor, ptrdiff_t K) {
    for (ptrdiff_t i = 0; i < K * ROWS; i++) z[i] *= factor;
}

TILE(log)(double *__restrict z, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++) log_rows(z + k * ROWS);
}

TILE(exp)(double *__restrict z, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++) exp_rows(z + k * ROWS);
}

/* Subtract the largest number of each row. */
TILE(lower)(double *__restrict z, ptrdiff_t K) {
    double most[ROWS];
    EACH_ROW most[r] = z[r];
    for (ptrdiff_t k = 1; k < K; k++) EACH_ROW most[r] = LARGER(most[r], z[k * ROWS + r]);
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW z[k * ROWS + r] -= most[r];
}

/* Make each row sum to 1, with a share of the uniform forecast mixed in. */
TILE(normalise)(double *__restrict z, ptrdiff_t K, double share) {
    double total[ROWS];
    EACH_ROW total[r] = z[r];
    for (ptrdiff_t k = 1; k < K; k++) EACH_ROW total[r] += z[k * ROWS + r];
    EACH_ROW total[r] = (1.0 - share) / total[r];
    share /= (double)K;
    for (ptrdiff_t k = 0; k < K; k++)
        EACH_ROW z[k * ROWS + r] = z[k * ROWS + r] * total[r] + share;
}

/* Softmax of each row of a tile, with a share of the uniform forecast mixed in. */
static inline void softmax_tile(double *z, ptrdiff_t K, double share) {
    lower_tile(z, K);
    exp_tile(z, K);
    normalise_tile(z, K, share);
}

/* Logarithm of the softmax of each row of a tile. */
TILE(log_softmax)(double *__restrict z, ptrdiff_t K) {
    double most[ROWS], total[ROWS], e[ROWS];
    EACH_ROW most[r] = z[r];
    EACH_ROW total[r] = 0.0;
    for (ptrdiff_t k = 1; k < K; k++) EACH_ROW most[r] = LARGER(most[r], z[k * ROWS + r]);
    for (ptrdiff_t k = 0; k < K; k++) {
        EACH_ROW z[k * ROWS + r] -= most[r];
        EACH_ROW e[r] = z[k * ROWS + r];
        exp_rows(e);
        EACH_ROW total[r] += e[r];
    }
    log_rows(total);
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW z[k * ROWS + r] -= total[r];
}

/* Mean and variance of each row of max(z, lowest) under the probabilities softmax(t z). The largest
   number, from which others are measured, has a probability of at least 1 / K, so the square of the
   mean is at most 1 - 1 / K of the mean square, and their difference keeps its digits. */
TILE(moments)(const double *__restrict z, double t, double lowest, double *__restrict mean,
              double *__restrict variance, ptrdiff_t K) {
    double most[ROWS], total[ROWS], first[ROWS], second[ROWS], off[ROWS], e[ROWS];
    EACH_ROW most[r] = lowest;
    EACH_ROW total[r] = first[r] = second[r] = 0.0;
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW most[r] = LARGER(most[r], z[k * ROWS + r]);
    for (ptrdiff_t k = 0; k < K; k++) {
        EACH_ROW off[r] = LARGER(z[k * ROWS + r], lowest) - most[r];
        EACH_ROW e[r] = t * off[r];
        exp_rows(e);
        EACH_ROW total[r] += e[r];
        EACH_ROW e[r] *= off[r];
        EACH_ROW first[r] += e[r];
        EACH_ROW second[r] += e[r] * off[r];
    }
    EACH_ROW first[r] /= total[r];
    EACH_ROW mean[r] = most[r] + first[r];
    EACH_ROW variance[r] = second[r] / total[r] - first[r] * first[r];
}

/* Exponentials z of each row, divided by their sum and times a weight, and the logarithm of the sum. */
TILE(share)(double *__restrict z, const double *__restrict weights, double *__restrict logs,
            ptrdiff_t K) {
    double factor[ROWS];
    EACH_ROW logs[r] = z[r];
    for (ptrdiff_t k = 1; k < K; k++) EACH_ROW logs[r] += z[k * ROWS + r];
    EACH_ROW factor[r] = weights[r] / logs[r];
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW z[k * ROWS + r] *= factor[r];
    log_rows(logs);
}

/* Rows of a block: four tiles, so that their steps do not wait for each other. */
#define BLOCK (4 * ROWS)
#define EACH_OF_BLOCK EACH_OF_FOUR EACH_ROW

/* Products of all pairs of B features of a block. */
TILE(pair)(const double *__restrict x, double *__restrict products, ptrdiff_t B) {
    for (ptrdiff_t a = 0; a < B; a++)
        for (ptrdiff_t b = a; b < B; b++, products += BLOCK)
            for (int i = 0; i < BLOCK; i++) products[i] = x[a * BLOCK + i] * x[b * BLOCK + i];
}

/* Add products of factors and each of m runs of a block to m sums of tiles. */
INLINE void add_products(double (*__restrict factors)[ROWS], const double *__restrict x,
                         double *__restrict sums, ptrdiff_t m) {
    for (ptrdiff_t j = 0; j < m; j++, x += BLOCK, sums += ROWS) {
        EACH_ROW {
            double sum = sums[r];
            EACH_OF_FOUR sum += factors[q][r] * x[q * ROWS + r];
            sums[r] = sum;
        }
    }
}

/* Losses of a block of rows with log odds z = offset + theta'x and outcomes y in [0, 1], their
   derivatives in theta and their curvature, times the weights and added to `sums`, shape
   (1 + B + P, ROWS). P products of pairs follow the B features x. */
TILE(logistic)(const double *__restrict offset, const double *__restrict x,
               const double *__restrict theta, const double *__restrict y,
               const double *__restrict weights, double *__restrict sums, ptrdiff_t B,
               ptrdiff_t P) {
    double z[4][ROWS], e[4][ROWS], inverse[4][ROWS], loss[4][ROWS], curvature[4][ROWS];
    EACH_OF_BLOCK z[q][r] = offset[q * ROWS + r];
    for (ptrdiff_t b = 0; b < B; b++)
        EACH_OF_BLOCK z[q][r] += theta[b] * x[b * BLOCK + q * ROWS + r];
    EACH_OF_BLOCK e[q][r] = LARGER(-fabs(z[q][r]), -300.0); /* sums of subnormal numbers are slow */
    EACH_OF_FOUR exp_rows(e[q]);
    EACH_OF_BLOCK loss[q][r] = 1.0 + e[q][r];
    EACH_OF_BLOCK inverse[q][r] = 1.0 / loss[q][r];
    EACH_OF_BLOCK e[q][r] *= inverse[q][r];
    EACH_OF_FOUR log_rows(loss[q]);
    EACH_OF_BLOCK loss[q][r] += LARGER(z[q][r], 0.0) - y[q * ROWS + r] * z[q][r];
    EACH_OF_BLOCK sums[r] += weights[q * ROWS + r] * loss[q][r];
    EACH_OF_BLOCK curvature[q][r] = weights[q * ROWS + r] * (inverse[q][r] * e[q][r]);
    EACH_OF_BLOCK z[q][r] = (z[q][r] > 0.0 ? inverse[q][r] : e[q][r]) - y[q * ROWS + r];
    EACH_OF_BLOCK z[q][r] *= weights[q * ROWS + r];
    add_products(z, x, sums + ROWS, B);
    add_products(curvature, x + B * BLOCK, sums + (1 + B) * ROWS, P);
}

/* Log odds of each class against the sum of the others, from forecasts and their logarithms.
   One minus the probability would lose everything where that is close to one. */
TILE(odds)(const double *__restrict p, const double *__restrict logs,
                             double *__restrict odds, ptrdiff_t K) {
    double others[ROWS];
    EACH_ROW odds[r] = others[r] = 0.0;
    for (ptrdiff_t k = 1; k < K; k++)
        EACH_ROW odds[k * ROWS + r] = odds[(k - 1) * ROWS + r] + p[(k - 1) * ROWS + r];
    for (ptrdiff_t k = K - 1; k > 0; k--)
        EACH_ROW {
            others[r] += p[k * ROWS + r];
            odds[(k - 1) * ROWS + r] += others[r];
        }
    for (ptrdiff_t k = 0; k < K; k++) {
        log_rows(odds + k * ROWS);
        EACH_ROW odds[k * ROWS + r] = logs[k * ROWS + r] - odds[k * ROWS + r];
    }
}

/* The logarithm of the logistic function of coef log(p) - rest log(1 - p) + intercept, into odds. */
TILE(sigmoid)(const double *__restrict logs, double *__restrict odds,
              const double *__restrict coef, const double *__restrict rest,
              const double *__restrict intercept, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++, logs += ROWS, odds += ROWS) {
        double z[ROWS], e[ROWS];
        EACH_ROW z[r] = coef[k] * logs[r] - rest[k] * (logs[r] - odds[r]) + intercept[k];
        EACH_ROW e[r] = -fabs(z[r]);
        exp_rows(e);
        EACH_ROW e[r] += 1.0;
        log_rows(e);
        EACH_ROW odds[r] = SMALLER(z[r], 0.0) - e[r];
    }
}

/* The logistic function, of K runs of ROWS numbers. */
TILE(expit)(double *__restrict z, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++, z += ROWS) {
        double e[ROWS], q[ROWS];
        EACH_ROW e[r] = -fabs(z[r]);
        exp_rows(e);
        EACH_ROW q[r] = 1.0 / (1.0 + e[r]);
        EACH_ROW z[r] = z[r] > 0.0 ? q[r] : e[r] * q[r];
    }
}

/* Log odds u, shape (K - 1, ROWS), of the first k + 1 of K ordered classes (`CumulativeMap`), from the
   tempered log forecasts z and p = softmax(z + tilt). Probabilities below `least` count as this. */
TILE(accumulate)(const double *__restrict z, const double *__restrict p,
                 const double *__restrict location, const double *__restrict shifts, double a,
                 double b, double least, double *__restrict u, ptrdiff_t K) {
    double along[ROWS], below[ROWS], above[ROWS], x[ROWS];
    EACH_ROW along[r] = below[r] = above[r] = 0.0;
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW along[r] += location[k] * z[k * ROWS + r];
    for (ptrdiff_t k = 0; k < K - 1; k++) {
        EACH_ROW below[r] += p[k * ROWS + r];
        EACH_ROW x[r] = LARGER(below[r], least);
        log_rows(x);
        EACH_ROW u[k * ROWS + r] = a * x[r] + shifts[k] + along[r];
    }
    for (ptrdiff_t k = K - 1; k > 0; k--) {
        EACH_ROW above[r] += p[k * ROWS + r];
        EACH_ROW x[r] = LARGER(above[r], least);
        log_rows(x);
        EACH_ROW u[(k - 1) * ROWS + r] -= b * x[r];
    }
}

/* Probabilities of K ordered classes from the log odds u of the first k + 1. Products of sigmoid(u) and
   sigmoid(-u), in logarithms, have no cancellation. */
TILE(separate)(const double *__restrict u, double *__restrict q, ptrdiff_t K) {
    double x[ROWS], high[ROWS], low[ROWS];
    EACH_ROW low[r] = 0.0;
    for (ptrdiff_t k = 0; k < K; k++, u += ROWS, q += ROWS) {
        EACH_ROW high[r] = 0.0;
        if (k < K - 1) {
            EACH_ROW x[r] = -fabs(u[r]);
            exp_rows(x);
            EACH_ROW x[r] += 1.0;
            log_rows(x);
            EACH_ROW high[r] = SMALLER(u[r], 0.0) - x[r];
        }
        EACH_ROW q[r] = high[r] + low[r];
        exp_rows(q);
        if (k == K - 1) break;
        EACH_ROW low[r] = high[r] - u[r];
        if (k == 0) continue;
        EACH_ROW x[r] = SMALLER(u[r - ROWS] - u[r], 0.0); /* they ascend, up to rounding */
        exp_rows(x);
        EACH_ROW q[r] *= 1.0 - x[r];
    }
}

/* Add slopes[k, m] * max(odds, knots[m]) to z. */
TILE(bend)(const double *__restrict odds, const double *__restrict knots,
                             const double *__restrict slopes, double *__restrict z, ptrdiff_t K,
                             ptrdiff_t n_knots) {
    for (ptrdiff_t k = 0; k < K; k++) {
        double total[ROWS], x[ROWS];
        EACH_ROW total[r] = z[k * ROWS + r];
        EACH_ROW x[r] = odds[k * ROWS + r];
        for (ptrdiff_t m = 0; m < n_knots; m++) {
            double knot = knots[m], slope = slopes[k * n_knots + m];
            EACH_ROW total[r] += slope * LARGER(x[r], knot);
        }
        EACH_ROW z[k * ROWS + r] = total[r];
    }
}

/* Piecewise linear function of each row between ascending knots, constant outside. `levels` are its
   values at the knots, `slopes` its slopes to their right. */
INLINE void rank_rows(const double *__restrict at, const double *__restrict knots,
                             const double *__restrict levels, const double *__restrict slopes,
                             double *__restrict x) {
    int64_t segment[ROWS];
    EACH_ROW segment[r] = 0;
    EACH_ROW x[r] = LARGER(at[r], knots[0]);
    EACH_ROW x[r] = SMALLER(x[r], knots[KNOTS - 1]);
    for (int j = 1; j < KNOTS - 1; j++) EACH_ROW segment[r] += x[r] >= knots[j];
    EACH_ROW {
        int64_t j = segment[r];
        x[r] = levels[j] + slopes[j] * (x[r] - knots[j]);
    }
}

/* The kernel map (`KernelMap`): a row has a position x, and m centres c_j have weights w_kj. A class
   k < K gets the score

       t(x) sum_j w_kj h_j + log p_k - log p_K,   h_j = 1 / (1 + |x - c_j|^2 / 2),

   where t falls from 1 to 0 as the nearest centre gets farther away, so that far from all centres the
   forecast stays unchanged. `position`, `distance`, `invert`, `product` and `trust` compute x, 1 / h,
   h, the sum and the score. Squared distances are |x|^2 + |c|^2 - 2 x'c, because a product of matrices
   is faster than a sum of squared differences.

   Positions of a tile, shape (2 K, ROWS), and half of their squared lengths. K positions come from the
   tempered log forecasts z: z less the mean of the row and less the origin, stretched. Their sum is
   the same for all rows, so the position of the last class stands last, where distances can leave it
   out. Between them are K ranks of the plain log forecasts: `knots`, `levels` and `slopes` have shape
   (K, KNOTS). */
TILE(position)(const double *__restrict z, const double *__restrict logs,
               const double *__restrict origin, double stretch, const double *__restrict knots,
               const double *__restrict levels, const double *__restrict slopes,
               double *__restrict x, double *__restrict square, ptrdiff_t K) {
    double mean[ROWS];
    EACH_ROW mean[r] = square[r] = 0.0;
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW mean[r] += z[k * ROWS + r];
    EACH_ROW mean[r] /= (double)K;
    for (ptrdiff_t k = 0; k < K; k++) {
        double *to = x + (k < K - 1 ? k : 2 * K - 1) * ROWS;
        EACH_ROW to[r] = (z[k * ROWS + r] - mean[r] - origin[k]) * stretch;
        EACH_ROW to[r] = LARGER(to[r], -FARTHEST);
        EACH_ROW to[r] = SMALLER(to[r], FARTHEST);
        rank_rows(logs + k * ROWS, knots + k * KNOTS, levels + k * KNOTS, slopes + k * KNOTS,
                  x + (K - 1 + k) * ROWS);
    }
    for (ptrdiff_t d = 0; d < 2 * K; d++)
        EACH_ROW square[r] += 0.5 * x[d * ROWS + r] * x[d * ROWS + r];
}

/* 1 + |x - c|**2 / 2 of rows x, shape (D, ROWS), and m centres c, into h. Centres come in groups of
   four, shape (m / 4, D, 4); `offsets` are 1 + |c|**2 / 2. */
TILE(distance)(const double *__restrict centres, const double *__restrict offsets,
               const double *__restrict x, const double *__restrict square, double *__restrict h,
               ptrdiff_t m, ptrdiff_t D) {
    for (ptrdiff_t j = 0; j < m; j += 4) {
        double b[4][ROWS];
        EACH_OF_FOUR EACH_ROW b[q][r] = offsets[j + q] + square[r];
        for (ptrdiff_t d = 0; d < D; d++) {
            const double *c = centres + j * D + 4 * d, *v = x + d * ROWS;
            EACH_OF_FOUR EACH_ROW b[q][r] -= c[q] * v[r];
        }
        EACH_OF_FOUR EACH_ROW h[(j + q) * ROWS + r] = b[q][r];
    }
}

/* 1 / h in place of h, which is at least 1 but for rounding errors. Four share one division, which
   takes as long as ten products. */
TILE(invert)(double *__restrict h, ptrdiff_t m) {
    ptrdiff_t quarter = m / 4 * ROWS;
    double *__restrict h0 = h, *__restrict h1 = h + quarter;
    double *__restrict h2 = h + 2 * quarter, *__restrict h3 = h + 3 * quarter;
    for (ptrdiff_t i = 0; i < quarter; i++) {
        double a = LARGER(h0[i], 1.0), b = LARGER(h1[i], 1.0);
        double c = LARGER(h2[i], 1.0), d = LARGER(h3[i], 1.0);
        double ab = a * b, cd = c * d, all = 1.0 / (ab * cd);
        double of_ab = all * cd, of_cd = all * ab;
        h0[i] = of_ab * b;
        h1[i] = of_ab * a;
        h2[i] = of_cd * d;
        h3[i] = of_cd * c;
    }
}

/* Corrections z of all classes but the last, times t, which says how close a row is to the nearest of
   m centres, plus the log forecasts relative to the last class. */
TILE(trust)(const double *__restrict h, const double *__restrict logs, double *__restrict z,
            double reach, ptrdiff_t m, ptrdiff_t last) {
    double t[ROWS];
    EACH_ROW t[r] = 0.0;
    for (ptrdiff_t j = 0; j < m; j++) EACH_ROW t[r] = LARGER(t[r], h[j * ROWS + r]);
    EACH_ROW t[r] = LARGER(t[r] * (2.0 / reach) - 1.0, 0.0);
    EACH_ROW t[r] = SMALLER(t[r], 1.0);
    for (ptrdiff_t k = 0; k < last; k++)
        EACH_ROW z[k * ROWS + r] =
            t[r] * z[k * ROWS + r] + (logs[k * ROWS + r] - logs[last * ROWS + r]);
}

/* weights @ h into z, for h of shape (m, ROWS) and weights in groups of four classes, shape
   (K / 4, m, 4): K is a multiple of four here. */
TILE(product)(const double *__restrict weights, const double *__restrict h, double *__restrict z,
              ptrdiff_t m, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k += 4) {
        double s[4][ROWS];
        EACH_OF_FOUR EACH_ROW s[q][r] = 0.0;
        for (ptrdiff_t j = 0; j < m; j++) {
            const double *w = weights + k * m + 4 * j, *v = h + j * ROWS;
            EACH_OF_FOUR EACH_ROW s[q][r] += w[q] * v[r];
        }
        EACH_OF_FOUR EACH_ROW z[(k + q) * ROWS + r] = s[q][r];
    }
}

/* slopes[k] * x + intercepts[k] of each class k. */
TILE(line)(const double *__restrict x, const double *__restrict slopes,
           const double *__restrict intercepts, double *__restrict z, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++)
        EACH_ROW z[k * ROWS + r] = slopes[k] * x[k * ROWS + r] + intercepts[k];
}

/* (quadratic[k] * x + slopes[k]) * x + intercepts[k] of each class k, added to z or in its place. */
TILE(curve)(const double *__restrict x, const double *__restrict slopes,
            const double *__restrict quadratic, const double *__restrict intercepts,
            double *__restrict z, int adds, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++, x += ROWS, z += ROWS)
        EACH_ROW z[r] =
            (quadratic[k] * x[r] + slopes[k]) * x[r] + intercepts[k] + (adds ? z[r] : 0.0);
}

/* The monotone map (`MonotoneMap`) and the derivatives of its log loss. Class k has L prototypes
   r_kl = (1 - s_kl) e_k + s_kl t_k, on the way from the vertex e_k to a point t_k of the simplex; s is
   the softness. With e_kl = exp(score_kl), x_k = sum_l e_kl and y = exp(J) x (y = sum x without
   interactions J), the forecast is

       q = sum_kl e_kl y_k r_kl / sum_k x_k y_k,

   so the probability of the outcome is (v'y) / (x'y) with v_k = sum_l e_kl r_kl[outcome]. The loss is
   log(x'y) - log(v'y). Its derivatives, by the chain rule:

       in y_k:             x_k / x'y - v_k / v'y                                       (`mix`)
       in the score kl:    e_kl (y_k / x'y - r_kl[outcome] y_k / v'y + pull_k)         (`slope`)
       in r_kl[outcome]:   -e_kl y_k / v'y                                             (`slope`)

   with pull = exp(J)' times the derivatives in y, since x enters y as well. A score is linear in the
   scale, the softness and the biases, so the caller needs the derivatives in the scores alone, times
   `rises` = <z, t_k - e_k>, and times z.

   Scores a (z_k + softness_kl rises_k) + biases_kl, shape (K, L, ROWS). */
TILE(score)(const double *__restrict z, const double *__restrict rises, double a,
            const double *__restrict softness, const double *__restrict biases,
            double *__restrict s, ptrdiff_t K, ptrdiff_t L) {
    for (ptrdiff_t k = 0; k < K; k++)
        for (ptrdiff_t i = k * L; i < k * L + L; i++)
            EACH_ROW s[i * ROWS + r] =
                softness[i] * (a * rises[k * ROWS + r]) + a * z[k * ROWS + r] + biases[i];
}

/* log(p + floor) with a trace of log p, from log p, of the rows of a tile. */
TILE(soften)(double *__restrict z, double log_floor, double trace, ptrdiff_t K) {
    for (ptrdiff_t k = 0; k < K; k++, z += ROWS) {
        double e[ROWS], raised[ROWS];
        EACH_ROW e[r] = -fabs(z[r] - log_floor);
        exp_rows(e);
        EACH_ROW e[r] += 1.0;
        log_rows(e);
        EACH_ROW raised[r] = LARGER(z[r], log_floor) + e[r];
        EACH_ROW z[r] = (1.0 - trace) * raised[r] + trace * z[r];
    }
}

/* Mean of M points of the segment, shape (M, 2), weighted by the exponentials of scores, which are
   linear in z. It is the point of the largest score and what the others add to it: a quotient of
   sums would rise and fall by rounding where one point dominates. */
TILE(blend)(const double *__restrict z, const double *__restrict slopes,
            const double *__restrict biases, const double *__restrict points,
            double *__restrict s, double *__restrict out, ptrdiff_t M) {
    double most[ROWS], total[ROWS];
    double *__restrict first = out, *__restrict second = out + ROWS;
    double added[2][ROWS];
    for (ptrdiff_t m = 0; m < M; m++)
        EACH_ROW s[m * ROWS + r] =
            slopes[2 * m] * z[r] + slopes[2 * m + 1] * z[ROWS + r] + biases[m];
    EACH_ROW most[r] = s[r];
    EACH_ROW first[r] = points[0];
    EACH_ROW second[r] = points[1];
    for (ptrdiff_t m = 1; m < M; m++) {
        EACH_ROW first[r] = s[m * ROWS + r] > most[r] ? points[2 * m] : first[r];
        EACH_ROW second[r] = s[m * ROWS + r] > most[r] ? points[2 * m + 1] : second[r];
        EACH_ROW most[r] = LARGER(s[m * ROWS + r], most[r]);
    }
    EACH_ROW total[r] = added[0][r] = added[1][r] = 0.0;
    for (ptrdiff_t m = 0; m < M; m++) {
        double *__restrict e = s + m * ROWS;
        EACH_ROW e[r] -= most[r];
        exp_rows(e);
        EACH_ROW total[r] += e[r];
        EACH_ROW added[0][r] += e[r] * (points[2 * m] - first[r]);
        EACH_ROW added[1][r] += e[r] * (points[2 * m + 1] - second[r]);
    }
    EACH_ROW first[r] += added[0][r] / total[r];
    EACH_ROW second[r] += added[1][r] / total[r];
}

/* Sums over the levels of e, shape (K, L, ROWS), and of e times each prototype's entry r_kl[outcome],
   which goes to `entries`. `towards` are t_k[outcome], `outcome` is 1 for that class, else 0. */
TILE(level)(const double *__restrict e, const double *__restrict towards,
            const double *__restrict outcome, const double *__restrict softness,
            double *__restrict entries, double *__restrict x, double *__restrict v, ptrdiff_t K,
            ptrdiff_t L) {
    for (ptrdiff_t k = 0; k < K; k++, towards += ROWS, outcome += ROWS, x += ROWS, v += ROWS) {
        EACH_ROW x[r] = v[r] = 0.0;
        for (ptrdiff_t i = k * L; i < k * L + L; i++) {
            EACH_ROW entries[i * ROWS + r] =
                softness[i] * towards[r] + (1.0 - softness[i]) * outcome[r];
            EACH_ROW x[r] += e[i * ROWS + r];
            EACH_ROW v[r] += e[i * ROWS + r] * entries[i * ROWS + r];
        }
    }
}

/* Sums over the levels of e, shape (K, L, ROWS), and of e times 1 - softness and softness. */
TILE(part)(const double *__restrict e, const double *__restrict softness, double *__restrict x,
           double *__restrict hard, double *__restrict soft, ptrdiff_t K, ptrdiff_t L) {
    for (ptrdiff_t k = 0; k < K; k++, x += ROWS, hard += ROWS, soft += ROWS) {
        EACH_ROW x[r] = hard[r] = soft[r] = 0.0;
        for (ptrdiff_t i = k * L; i < k * L + L; i++) {
            EACH_ROW x[r] += e[i * ROWS + r];
            EACH_ROW hard[r] += e[i * ROWS + r] * (1.0 - softness[i]);
            EACH_ROW soft[r] += e[i * ROWS + r] * softness[i];
        }
    }
}

/* The mean of x over the other classes, for each class. */
TILE(spread)(const double *__restrict x, double *__restrict y, ptrdiff_t K) {
    const double share = 1.0 / (double)(K - 1);
    double total[ROWS];
    EACH_ROW total[r] = x[r];
    for (ptrdiff_t k = 1; k < K; k++) EACH_ROW total[r] += x[k * ROWS + r];
    for (ptrdiff_t k = 0; k < K; k++)
        EACH_ROW y[k * ROWS + r] = (total[r] - x[k * ROWS + r]) * share;
}

/* The sum of x over the classes, for each class. */
TILE(sum)(const double *__restrict x, double *__restrict y, ptrdiff_t K) {
    double total[ROWS];
    EACH_ROW total[r] = x[r];
    for (ptrdiff_t k = 1; k < K; k++) EACH_ROW total[r] += x[k * ROWS + r];
    for (ptrdiff_t k = 0; k < K; k++) EACH_ROW y[k * ROWS + r] = total[r];
}

/* x'y and v'y of each row, and the derivatives of their log ratio, times a weight, in y. */
TILE(mix)(const double *__restrict x, const double *__restrict v, const double *__restrict y,
          const double *__restrict weights, double *__restrict all, double *__restrict outcome,
          double *__restrict mixed, ptrdiff_t K) {
    double up[ROWS], down[ROWS];
    EACH_ROW all[r] = outcome[r] = 0.0;
    for (ptrdiff_t k = 0; k < K; k++) {
        EACH_ROW all[r] += x[k * ROWS + r] * y[k * ROWS + r];
        EACH_ROW outcome[r] += v[k * ROWS + r] * y[k * ROWS + r];
    }
    EACH_ROW up[r] = weights[r] / all[r];
    EACH_ROW down[r] = weights[r] / outcome[r];
    for (ptrdiff_t k = 0; k < K; k++)
        EACH_ROW mixed[k * ROWS + r] = x[k * ROWS + r] * up[r] - v[k * ROWS + r] * down[r];
}

/* Derivatives of the log ratio, times a weight: in the scores into e, and minus that in the entries
   into `entries`. `pull` is exp(J) times the derivatives in y. Derivatives in the scores, these times
   the rises and times z, and `entries` times (t_k - e_k)[outcome] are added to `sums`, shape
   (4, K, L, ROWS / 2), where each entry has two rows of the tile; the sums over the levels of the
   first times the softness go to `soft`. */
TILE(slope)(double *__restrict e, double *__restrict entries, const double *__restrict y,
            const double *__restrict pull, const double *__restrict weights,
            const double *__restrict all, const double *__restrict likely,
            const double *__restrict rises, const double *__restrict z,
            const double *__restrict towards, const double *__restrict outcome,
            const double *__restrict softness, double *__restrict sums, double *__restrict soft,
            ptrdiff_t K, ptrdiff_t L) {
    const ptrdiff_t KL = K * L * ROWS;
    double each[ROWS], one[ROWS];
    EACH_ROW each[r] = weights[r] / all[r];
    EACH_ROW one[r] = weights[r] / likely[r];
    for (ptrdiff_t k = 0; k < K * ROWS; k += ROWS) {
        double up[ROWS], down[ROWS], taken[ROWS], turn[ROWS];
        double risen[ROWS], along[ROWS], turned[ROWS];
        EACH_ROW up[r] = y[k + r] * each[r] + pull[k + r];
        EACH_ROW down[r] = y[k + r] * one[r];
        EACH_ROW turn[r] = towards[k + r] - outcome[k + r];
        EACH_ROW soft[k + r] = 0.0;
        for (ptrdiff_t i = k * L; i < (k + ROWS) * L; i += ROWS) {
            EACH_ROW taken[r] = e[i + r] * down[r];
            EACH_ROW e[i + r] = e[i + r] * up[r] - taken[r] * entries[i + r];
            EACH_ROW entries[i + r] = taken[r];
            EACH_ROW turned[r] = taken[r] * turn[r];
            EACH_ROW risen[r] = e[i + r] * rises[k + r];
            EACH_ROW along[r] = e[i + r] * z[k + r];
            EACH_OF_FOUR sums[i / 2 + q] += e[i + q] + e[i + q + 4];
            EACH_OF_FOUR sums[(KL + i) / 2 + q] += risen[q] + risen[q + 4];
            EACH_OF_FOUR sums[(2 * KL + i) / 2 + q] += along[q] + along[q + 4];
            EACH_OF_FOUR sums[(3 * KL + i) / 2 + q] += turned[q] + turned[q + 4];
            EACH_ROW soft[k + r] += softness[i / ROWS] * e[i + r];
        }
    }
}
