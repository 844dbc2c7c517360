"""The one kind of interval, and the score interval of a rate.

An interval holds the values that a test does not reject: values from which the estimate, given its
variance if they were true, does not differ by more than chance.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from isoroc._core.special import gammainc, normal_quantile
from isoroc._core.types import Floats


def half_width(confidence: float) -> float:
    """Half the width of a normal interval, in standard errors."""
    return normal_quantile(0.5 + confidence / 2)


class Estimate(NamedTuple):
    """An estimate of a value T, with variance ``variance + slope * T``.

    If the slope is 0, the estimate is normal. Otherwise it estimates a sum of squares without bias:
    it is distributed as a multiple of a noncentral chi-square variable minus its mean at T = 0.
    """

    value: float
    variance: float
    slope: float = 0.0
    below: float = 0.0
    """By how much T may be smaller than the expected value of the estimate,"""
    above: float = 0.0
    """and by how much larger."""

    @property
    def error(self) -> float:
        """Standard error."""
        return sqrt(self.variance + self.slope * max(self.value, 0.0))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the interval of T, widened by the bias; NaN stands for what is unknown."""
        low, high = self.unbiased_interval(confidence)
        return low - self.below, high + self.above

    def unbiased_interval(self, confidence: float) -> tuple[float, float]:
        """Ends of the interval if the estimate has no bias."""
        if not self.slope:
            half = half_width(confidence) * self.error
            return self.value - half, self.value + half
        scale = self.slope / 4
        df = max(self.variance / (2 * scale**2), 1e-6)

        def chance(value: float, t: float) -> float:
            """Chance of an estimate of at most this value if ``T = scale * t``."""
            # A gamma variable with the same mean and variance (Patnaik 1949).
            mean, spread = df + t, (df + 2 * t) / (df + t)
            return gammainc(mean / spread / 2, max(value / scale + df, 0.0) / spread / 2)

        def solve(value: float, wanted: float) -> float:
            low, high = 0.0, max(value / scale + df, 1.0)
            while chance(value, high) > wanted:
                low, high = high, 2 * high
            for _ in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if chance(value, middle) > wanted else (low, middle)
            return scale * low

        tail = (1 - confidence) / 2
        # The estimate may be negative. Then the upper end is that of 0: no sample is evidence that
        # T is smaller than what can be told from 0.
        return min(solve(self.value, 1 - tail), self.value), solve(max(self.value, 0.0), tail)


class Difference(NamedTuple):
    """The difference of two estimates from the same rows."""

    first: Estimate
    second: Estimate
    correlation: float

    @property
    def value(self) -> float:
        """The second minus the first."""
        return self.second.value - self.first.value

    def interval(self, confidence: float) -> tuple[float, float]:
        """Distances of both intervals from the estimates, combined as standard errors are.

        Biases are added.
        """
        first, second = self.first, self.second
        (low, high), (low2, high2) = (e.unbiased_interval(confidence) for e in (first, second))
        less = self._combine(second.value - low2, high - first.value)
        more = self._combine(high2 - second.value, first.value - low)
        less, more = less + second.below + first.above, more + second.above + first.below
        return self.value - less, self.value + more

    def _combine(self, a: float, b: float) -> float:
        return sqrt(max(a * a + b * b - 2 * self.correlation * a * b, 0.0))


def wilson(rate: Floats, weight: Floats, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Score interval of a binomial rate (Wilson 1927), weights taken as counts of rows."""
    z = half_width(confidence)
    shrink = 1 / (1 + z**2 / weight)
    centre = shrink * (rate + z**2 / (2 * weight))
    half = shrink * z * np.sqrt(rate * (1 - rate) / weight + (z / (2 * weight)) ** 2)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
