"""Estimates and their intervals: means of weighted or clustered rows, shares, sums of squares.

An interval holds the values that a test does not reject.
"""

from math import inf, nan, sqrt
from typing import Any, NamedTuple, Self

import numpy as np

from isoroc._core.rows import power_sums
from isoroc._core.special import gammainc, normal_quantile, t_quantile
from isoroc._core.types import Floats, Ints


def half_width(confidence: float, df: float = inf) -> float:
    """Half-width of a normal interval, or of one by Student's distribution, in standard errors."""
    p = 0.5 + confidence / 2
    return float(normal_quantile(p) if df == inf else t_quantile(df, p))


def effective_rows(weight: Any, squares: Any) -> Any:
    """Kish's effective number of rows, from the sums of their weights and of squared weights."""
    return weight * (weight / squares)


def satterthwaite(squares: Any, fourth: Any) -> float:
    """Degrees of freedom of a variance, from sums of squared weights and of their fourth powers.

    This is Satterthwaite's approximation (1946), at least 2. If one row has nearly all weight,
    little is known about the variance, and with fewer degrees of freedom the quantiles of Student's
    distribution would grow without limit.
    """
    return max(float(squares**2 / fourth) - 1, 2.0)


def effective_weights(weights: Floats) -> Floats:
    """Weights scaled to sum to the effective number of rows."""
    total = weights.sum()
    return np.asarray(weights * (effective_rows(total, weights @ weights) / total))


class Estimate(NamedTuple):
    """A value and its interval from `low` to `high`, NaN where they are unknown.

    Examples
    --------
    >>> from isoroc import evaluate
    >>> estimate = evaluate([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.4]).measures["accuracy"]["before"]
    >>> estimate.value, round(estimate.low, 2), estimate.high
    (1.0, 0.51, 1.0)
    """

    value: float
    low: float
    high: float


#: An estimate that cannot be made.
UNKNOWN = Estimate(nan, nan, nan)


class Statistic(NamedTuple):
    """An estimate of a value T, with variance ``variance + slope * T``.

    If the slope is 0, the estimate is about normal. Otherwise it is an unbiased sum of squares,
    distributed as a multiple of a noncentral chi-square variable.
    """

    value: float
    variance: float
    slope: float = 0.0
    below: float = 0.0  # upper bound on how far T lies below the expectation of the estimate
    above: float = 0.0  # upper bound on how far T lies above it
    skewness: float = 0.0  # of the estimate, if the slope is 0
    df: float = inf  # degrees of freedom of the variance, if the slope is 0

    def of_events(self, events: float) -> Self:
        """The same if this number of rows, with rare outcomes, determines the variance."""
        return self._replace(df=min(self.df, max(events, 2.0)))

    def reaching(self, high: float, low: float = inf) -> Self:
        """The same with a 95 % interval that contains these values."""
        ends = self.interval(0.95)
        above = max(high - ends[1], 0.0)
        below = max(ends[0] - low, 0.0)
        return self._replace(below=self.below + below, above=self.above + above)

    @property
    def error(self) -> float:
        """Standard error."""
        return sqrt(self.variance + self.slope * max(self.value, 0.0))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the interval of T, widened by the bias, or NaN if unknown."""
        low, high = self.unbiased_interval(confidence)
        return low - self.below, high + self.above

    def unbiased_interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the interval if the estimate has no bias."""
        if not self.slope:
            square = half_width(confidence, self.df) ** 2
            shift = self.skewness * (2 * square + 1) / 6  # Johnson (1978)
            # As in a score interval, a larger T has a larger variance if the skewness is positive.
            half = self.error * sqrt(square + shift**2)
            centre = self.value + self.error * shift
            return centre - half, centre + half
        # The estimate is ``scale * (x - df)``, where x is a noncentral chi-square variable with df
        # degrees of freedom and the noncentrality T / scale. Its variance is
        # ``2 df scale**2 + 4 scale T``.
        scale = self.slope / 4
        df = max(self.variance / (2 * scale**2), 1e-6)

        def chance(value: float, t: float) -> float:
            """Chance of an estimate of at most this value if ``T = scale * t``."""
            # A gamma variable with the same mean and variance (Patnaik 1949).
            mean = df + t
            spread = (df + 2 * t) / (df + t)
            return gammainc(mean / spread / 2, max(value / scale + df, 0.0) / spread / 2)

        def solve(value: float, wanted: float) -> float:
            low = 0.0
            high = max(value / scale + df, 1.0)
            while chance(value, high) > wanted:
                low = high
                high = 2 * high
            for _ in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if chance(value, middle) > wanted else (low, middle)
            return scale * low

        tail = (1 - confidence) / 2
        # The estimate may be negative. The upper end is then the one of an estimate of 0: chance
        # below 0 is no evidence that T is smaller.
        return min(solve(self.value, 1 - tail), self.value), solve(max(self.value, 0.0), tail)


class Difference(NamedTuple):
    """The difference of two estimates from the same rows."""

    first: Statistic
    second: Statistic
    correlation: float

    @property
    def value(self) -> float:
        """The second minus the first."""
        return self.second.value - self.first.value

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the interval: distances combine like standard errors, and biases add up."""
        first = self.first
        second = self.second
        (low, high), (low2, high2) = (e.unbiased_interval(confidence) for e in (first, second))
        less = self._combine(second.value - low2, high - first.value)
        more = self._combine(high2 - second.value, first.value - low)
        less = less + second.below + first.above
        more = more + second.above + first.below
        return self.value - less, self.value + more

    def _combine(self, a: float, b: float) -> float:
        return sqrt(max(a * a + b * b - 2 * self.correlation * a * b, 0.0))


class Share(NamedTuple):
    """A share, estimated as precisely as from `size` independent rows."""

    value: float
    size: float
    df: float = inf  # degrees of freedom of the size

    @classmethod
    def of(cls, value: float, variance: float, size: float, events: float, prior: float) -> Self:
        """Share whose variance was estimated from `events` rows, which have the rarer outcome.

        `size` is the expected size, with the weight of `prior` rows.
        """
        spread = value * (1 - value)
        ratio = variance / spread if spread > 1e-12 else 1 / size
        return cls(value, (events + prior) / (events * ratio + prior / size))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends of Wilson's interval, or NaN if unknown."""
        low, high = wilson(np.array(self.value), np.array(self.size), confidence, self.df)
        return min(float(low), self.value), max(float(high), self.value)  # not off by rounding


def wilson(
    rate: Floats, weight: Floats, confidence: float = 0.95, df: float = inf
) -> tuple[Floats, Floats]:
    """Score interval of a binomial rate (Wilson 1927), weights taken as counts of rows."""
    z = half_width(confidence, df)
    shrink = 1 / (1 + z**2 / weight)
    centre = shrink * (rate + z**2 / (2 * weight))
    half = shrink * z * np.sqrt(rate * (1 - rate) / weight + (z / (2 * weight)) ** 2)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def mean(values: Floats, weights: Floats | None) -> float:
    """Weighted mean over the rows."""
    if weights is None:
        return float(values.mean())
    return float(weights @ values / weights.sum())


class Mean:
    """Weighted mean of rows that are added in batches, with its variance and skewness."""

    def __init__(self) -> None:
        self._shift = 0.0  # near the mean, so that differences of sums are precise
        # Sums of powers 1 to 4 of the weights (rows), times powers 0 to 3 of shifted values.
        self._sums = np.zeros((4, 4))

    def add(self, values: Floats, weights: Floats | None, squares: Floats | None = None) -> None:
        """Add rows, each of which may stand for several. Without weights, each has weight 1.

        `squares` are the sums of the squared weights of the rows that each stands for.
        """
        if not self._sums[0, 0]:
            self._shift = mean(values, weights)
        columns = (() if column is None else column for column in (values, weights, squares))
        x, w, s = (np.ascontiguousarray(column, dtype=np.float64) for column in columns)
        self._sums += power_sums(x, w, s, self._shift)

    @property
    def value(self) -> float:
        """The mean."""
        return self._shift + float(self._sums[0, 1] / self._sums[0, 0])

    @property
    def weight(self) -> float:
        """Total weight of the rows."""
        return float(self._sums[0, 0])

    @property
    def size(self) -> float:
        """Effective number of rows."""
        return float(effective_rows(self._sums[0, 0], self._sums[1, 0]))

    def statistic(self) -> Statistic:
        """The mean with its variance, which a single row does not have."""
        if self.size < 1 + 1e-9:
            return Statistic(self.value, nan)
        (total, first, *_), second, third, (fourth, *_) = self._sums
        m = first / total
        square = max(float(second[:3] @ np.array([m**2, -2 * m, 1.0])), 0.0)
        cube = float(third @ np.array([-(m**3), 3 * m**2, -3 * m, 1.0]))
        skewness = cube / square**1.5 if square > 1e-12 * second[2] else 0.0
        # Expected square of rows with equal variances, relative to their variance. It is
        # (n - 1) / n for equal weights.
        expected = 1 - 2 * third[0] / (total * second[0]) + second[0] / total**2
        variance = square / total**2 / expected
        df = satterthwaite(second[0], fourth)
        return Statistic(self.value, float(variance), skewness=float(skewness), df=df)

    def share(self) -> Share:
        """The mean of zeros and ones as a share."""
        value = self.value
        n = self.size
        return Share.of(value, self.statistic().variance, n, n * min(value, 1 - value), prior=1.0)


def by_cluster(clusters: Ints | None, weights: Floats | None, *columns: Floats) -> tuple[Any, ...]:
    """Weights and columns of rows, or total weights and means of clusters, which stand for rows.

    Without clusters, weights may be None: then each row has weight 1.
    """
    if clusters is None:
        return weights, *columns
    weights = np.ones(len(clusters)) if weights is None else weights
    total = np.bincount(clusters, weights)
    kept = total > 0
    means = (np.bincount(clusters, weights * x)[kept] / total[kept] for x in columns)
    return np.asarray(total[kept], dtype=np.float64), *means


def df_of_clusters(clusters: Ints | None, weights: Floats) -> float:
    """Degrees of freedom of a variance between clusters, infinite for independent rows."""
    if clusters is None:
        return inf
    total = np.bincount(clusters, weights)
    return satterthwaite((total**2).sum(), (total**4).sum())


def mean_of(values: Floats, weights: Floats | None, clusters: Ints | None = None) -> Statistic:
    """Weighted mean over the rows, which may depend on each other within clusters."""
    total, means = by_cluster(clusters, weights, values)
    mean = Mean()
    mean.add(means, total)
    return mean.statistic()


def variance_of_sum(terms: Floats, clusters: Ints | None = None) -> Any:
    """Variance of sums of terms of mean 0, shape (..., n), that only depend within clusters."""
    if clusters is None:
        return (terms**2).sum(axis=-1)
    sums = np.apply_along_axis(lambda row: np.bincount(clusters, row), -1, terms)
    n = len(np.unique(clusters))
    return (sums**2).sum(axis=-1) * (n / max(n - 1, 1))


def covariance_of_means(
    first: Floats, second: Floats, shares: Floats, clusters: Ints | None = None
) -> Floats:
    """Covariance of the means of two values of each row, shape (2, 2), as `variance_of_sum`.

    `shares` are the weights of the rows, of sum 1.
    """
    a, b = (shares * (values - shares @ values) for values in (first, second))
    both, of_first, of_second = variance_of_sum(np.array([a + b, a, b]), clusters)
    shared = (both - of_first - of_second) / 2
    return np.array([[of_first, shared], [shared, of_second]])


def design_effect(terms: Floats, clusters: Ints | None) -> Any:
    """Factor by which clusters increase the variance of sums of terms, at least 1."""
    independent = variance_of_sum(terms)
    ratio = variance_of_sum(terms, clusters) / np.where(independent > 0, independent, 1.0)
    return np.maximum(ratio, 1.0)
