"""E[Y | forecast] of forecasts with few distinct values: counts of the rows that share one.

Mean labels of equal forecasts differ from the forecasts by chance, which makes plain estimates of
calibration errors too large. What chance adds is known, because the labels of rows with the same
forecast are a multinomial sample, and is subtracted.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from scipy.special import digamma, exp1, gammaln, xlogy

from isoroc._estimation.grouping import group_equal, sum_classes
from isoroc._input import Sample
from isoroc._losses import EPSILON
from isoroc._simplex import Floats, as_matrix

#: By how much the estimate of an absolute value can be too low, in standard deviations.
LARGEST_LOSS = 0.39


class Ties:
    """Rows of a sample, grouped by their forecasts.

    `P` has the probabilities of all classes; by default they are those of the sample. Weighted rows
    count as Kish's effective number of rows in each group.
    """

    def __init__(self, sample: Sample, P: Floats | None = None) -> None:
        P = as_matrix(sample.forecasts if P is None else P)
        self.sample = sample
        self.group = group_equal(sample.forecasts)
        sums = sum_classes(self.group, sample.codes, P.shape[1], sample.weights)
        total = sums.sum(axis=1)
        kish = total / np.bincount(self.group, sample.row_weights() ** 2)
        self.p = np.zeros_like(sums)  # shape (m, K), as that of
        self.p[self.group] = P
        self.counts = sums * kish[:, None]
        self.n = (total * kish)[:, None]  # shape (m, 1)
        self.shares = total / total.sum()

    def values(self) -> Floats:
        """Mean label of the rows with the same forecast, for each row, shape (n, K)."""
        return np.asarray((self.counts / self.n)[self.group])

    def calibration(self, loss: Literal["log", "brier"]) -> tuple[float, float, float]:
        """Calibration term of a loss, its variance for calibrated forecasts, and its largest bias.

        For calibrated forecasts its expectation is 0.
        """
        value, variance, bias = self._divergence() if loss == "log" else self._square()
        shares = self.shares
        return float(shares @ value), float(shares**2 @ variance), float(shares @ bias)

    def _square(self) -> tuple[Floats, Floats, Floats]:
        """Squared distance of mean labels and forecasts less what chance adds: unbiased."""
        p, n = self.p, self.n[:, 0]
        g = self.counts / self.n
        several = n > 1.5
        others = np.where(several, n - 1, np.inf)
        scale = 0.5 if p.shape[1] == 2 else 1.0
        square = scale * np.where(
            several, ((g - p) ** 2).sum(axis=1) - (1 - (g**2).sum(axis=1)) / others, 0.0
        )
        second, third = (p**2).sum(axis=1), (p**3).sum(axis=1)
        variance = scale**2 * 2 * (second - 2 * third + second**2) / (n * others)
        return square, variance, np.zeros_like(n)

    def _divergence(self) -> tuple[Floats, Floats, Floats]:
        """Kullback-Leibler divergence of mean labels from forecasts.

        The entropy is estimated by ``sum_k c_k / n (psi(n) - psi(c_k))``, which is too low by
        ``sum_k g_k E1(n g_k)`` (Zhang 2012), which is next to nothing unless classes have few rows.
        That is subtracted for g equal to p times the ratio of outcomes and forecasts of such
        classes. The bias is how it would change if g were half or twice as large.
        """
        p, n, c = self.p.clip(min=EPSILON), self.n, self.counts
        x = n * p
        sparse = np.exp(-x)
        ratio = (1 + (sparse * c).sum()) / (1 + (sparse * x).sum())
        missing, less, more = (_missing(factor * ratio * p, n) for factor in (1.0, 0.5, 2.0))
        seen = c / n * (digamma(np.maximum(c, 1.0)) - digamma(n) - np.log(p))
        variance = ((1 - p) * np.interp(np.log(x), *_variances())).sum(axis=1)
        bias = np.abs(more - less).sum(axis=1) / 2
        return (seen - missing).sum(axis=1), variance / n[:, 0] ** 2, bias

    def absolute(self) -> tuple[float, float, Floats]:
        """Mean absolute difference of E[Y | forecast] and forecast, half the sum over classes.

        Returns an estimate, how much too low it may be, and the signs of the differences for each
        row, shaped as the forecasts. As in cross-fitting, the residual of each row is multiplied
        with what other rows tell about its sign: their sum of residuals in standard deviations, at
        most 1. So the expectation is 0 for calibrated forecasts, and too low where differences are
        about as large as their standard deviations.
        """
        p, n, c = self.p, self.n, self.counts
        deviation = np.sqrt(n * p * (1 - p) + 0.25)
        own = np.clip((c - 1 - (n - 1) * p) / deviation, -1, 1)
        other = np.clip((c - (n - 1) * p) / deviation, -1, 1)
        value = c * (1 - p) * own - (n - c) * p * other
        z = (c - n * p) / deviation
        # Differences of more than some standard deviations have the right sign.
        lost = LARGEST_LOSS * deviation * np.exp(-(np.maximum(np.abs(z) - 1.75, 0.0) ** 2) / 2)
        share = self.shares / self.n[:, 0] / 2
        signs = np.sign(z)[self.group]
        signs = signs if self.sample.forecasts.ndim == 2 else signs[:, 1]
        return float(share @ value.sum(axis=1)), float(share @ lost.sum(axis=1)), signs


def _missing(g: Floats, n: Floats) -> Floats:
    """By how much the entropy of a class is estimated too low from n rows."""
    g = np.minimum(g, 1 - EPSILON)
    return np.asarray(g * exp1((0.5 - n) * np.log1p(-g)))


@cache
def _variances() -> tuple[Floats, Floats]:
    """Variance of ``c psi(c) - c log(x) - c`` for c from a Poisson distribution of mean x.

    Returns logarithms of x and the variances. They tend to 1/2 as x grows.
    """
    x = np.geomspace(1e-8, 100, 400)[:, None]
    c = np.arange(250.0)
    chance = np.exp(xlogy(c, x) - x - gammaln(c + 1))
    values = c * (digamma(np.maximum(c, 1)) - np.log(x) - 1)
    mean = (chance * values).sum(axis=1, keepdims=True)
    return np.log(x[:, 0]), (chance * (values - mean) ** 2).sum(axis=1)
