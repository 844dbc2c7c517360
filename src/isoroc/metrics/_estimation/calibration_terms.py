"""What must be calibrated, and estimates of calibration errors and of the parts of losses.

A part is a set of forecasts that must be calibrated together: whole forecasts, the probability of a
class, or the largest one. E[Y | forecast] is cross-fitted or, for squares and losses of forecasts
with few distinct values, counted. Mean labels of equal forecasts differ from the forecasts by
chance, which makes plain estimates too large. What chance adds is known, because the labels of rows
with the same forecast are a multinomial sample, and is subtracted.

Where a formula has constants that no theory gives, they were chosen on simulated designs so that
intervals cover. docs/evidence.md reports the coverage on other designs (`benchmarks/simulations.py
designs`).
"""

from functools import cache
from math import hypot, log, sqrt
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.special import digamma, exp1, gammaln, xlogy

from isoroc._core.intervals import (
    Share,
    Statistic,
    design_effect,
    effective_rows,
    half_width,
    mean,
    mean_of,
    variance_of_sum,
)
from isoroc._core.losses import (
    EPSILON,
    are_impossible,
    brier_losses,
    log_losses,
    unseen_loss,
)
from isoroc._core.simplex import as_matrix
from isoroc._core.types import Floats
from isoroc._input import Aspect, Sample, split_by_kind
from isoroc.metrics._estimation.crossfit import CrossFit
from isoroc.metrics._estimation.grouping import (
    fix_class_order,
    group_equal,
    is_discrete,
    sum_classes,
)

Bins = int | Literal["quantile", "exact", "ties", "irp"]
Loss = Literal["log", "brier"]
#: An estimate, and one term per row. The terms of two estimates correlate as the estimates do.
RowTerm = tuple[Statistic, Floats]
#: Ratio of the noise to the largest bias of a learned map, which may be too flat. Measured:
#: the bias was at most a quarter of the noise.
NOISE_PER_BIAS = 4.0


class Ties:
    """Rows of a sample, grouped by their forecasts.

    `P` has the probabilities of all classes, by default from the sample. Weighted rows
    count as Kish's effective number of rows in each group.
    """

    def __init__(self, sample: Sample, P: Floats | None = None) -> None:
        P = as_matrix(sample.forecasts if P is None else P)
        self.sample = sample
        self.group = group_equal(sample.forecasts)
        sums = sum_classes(self.group, sample.codes, P.shape[1], sample.weights)
        total = sums.sum(axis=1)
        n = effective_rows(total, np.bincount(self.group, sample.row_weights() ** 2))
        self.p = np.zeros_like(sums)  # shape (m, K), like `counts`
        self.p[self.group] = P
        self.counts = sums * (n / total)[:, None]
        self.n = n[:, None]  # shape (m, 1)
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
        p = self.p
        n = self.n[:, 0]
        g = self.counts / self.n
        # A variance takes two rows. Effective numbers of weighted rows are not whole: 1.5 is where
        # they round to 2. Smaller groups add 0, which is right on average if n - 1 is near 0.
        several = n > 1.5
        others = np.where(several, n - 1, np.inf)
        scale = 0.5 if p.shape[1] == 2 else 1.0
        square = scale * np.where(
            several, ((g - p) ** 2).sum(axis=1) - (1 - (g**2).sum(axis=1)) / others, 0.0
        )
        # 2 tr(S S) / (n (n - 1)), where S = diag(p) - p p' is the covariance of one label.
        second = (p**2).sum(axis=1)
        third = (p**3).sum(axis=1)
        variance = scale**2 * 2 * (second - 2 * third + second**2) / (n * others)
        return square, variance, np.zeros_like(n)

    def _divergence(self) -> tuple[Floats, Floats, Floats]:
        """Kullback-Leibler divergence of mean labels from forecasts.

        The entropy is estimated by ``sum_k c_k / n (psi(n) - psi(c_k))``, which is too low by
        ``sum_k g_k sum_v (1 - g_k)**v / v`` for v from n to infinity (Zhang 2012). This matters
        only if classes have few rows. It is subtracted for g equal to p times the ratio of outcomes
        and forecasts of such classes. The bias is how much it would change if g were half or twice
        as large.
        """
        p = self.p.clip(min=EPSILON)
        n = self.n
        c = self.counts
        x = n * p
        sparse = np.exp(-x)
        ratio = (1 + (sparse * c).sum()) / (1 + (sparse * x).sum())

        def missing_entropy(g: Floats) -> Floats:
            g = np.minimum(g, 1 - EPSILON)
            # The sum over v is about the integral from n - 1/2, the exponential integral E1.
            return np.asarray(g * exp1((0.5 - n) * np.log1p(-g)))

        missing, less, more = (missing_entropy(factor * ratio * p) for factor in (1.0, 0.5, 2.0))
        seen = c / n * (digamma(np.maximum(c, 1.0)) - digamma(n) - np.log(p))
        variance = ((1 - p) * np.interp(np.log(x), *_variances())).sum(axis=1)
        bias = np.abs(more - less).sum(axis=1) / 2
        return (seen - missing).sum(axis=1), variance / n[:, 0] ** 2, bias


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


class Parts(NamedTuple):
    """The parts of a sample that must be calibrated. Metrics of them share what is learned."""

    whole: Sample
    """The rows of positive weight. Forecasts are a matrix."""
    samples: list[Sample]
    bins: list[Bins]
    """How E[Y | forecast] is estimated in each part."""
    fits: list[CrossFit | Ties]
    """What is known about the rows of parts whose bins are "ties" or "irp"."""

    @classmethod
    def of(cls, sample: Sample, kind: Aspect, bins: Bins | None = None) -> Self:
        """Parts of a sample. By default bins are "ties" for few distinct values, or "irp"."""
        # Decided by all rows, also rows of weight 0: resampling must not change it.
        # Labels of a cluster are not a multinomial sample: what chance adds is not known.
        chosen: list[Bins] = [
            bins or ("ties" if is_discrete(part.forecasts) and part.clusters is None else "irp")
            for part in split_by_kind(sample, kind)
        ]
        whole = sample.positive()
        if kind != "top" and chosen in (["ties"], ["irp"], ["quantile"]):
            # The order of classes settles what is equal. Two classes are scores of the second.
            whole = fix_class_order(whole)
        samples = split_by_kind(whole, kind)
        of_whole = whole.forecasts if kind == "canonical" else None
        fits = [
            Ties(part, of_whole) if how == "ties" else CrossFit(part)
            for part, how in zip(samples, chosen, strict=True)
        ]
        return cls(whole, samples, chosen, fits)

    def variance(self, rows: Floats) -> float:
        """Variance of the weighted mean of terms of the rows."""
        return mean_of(rows, self.whole.weights, self.whole.clusters).variance

    def signed_rows(self) -> tuple[list[CrossFit], Floats]:
        """What is learned about each part, and terms of the rows whose mean is the norm "l1"."""
        fits = [CrossFit(fit.sample) if isinstance(fit, Ties) else fit for fit in self.fits]
        rows = [products(np.sign(fit.values - fit.sample.forecasts), fit.sample) for fit in fits]
        return fits, np.mean(rows, axis=0)

    def absolute(self) -> RowTerm:
        """Calibration error of the norm "l1"."""
        fits, rows = self.signed_rows()
        bias, unclear, least = np.mean([_uncertainty(fit) for fit in fits], axis=0).tolist()
        value = mean(rows, self.whole.weights)
        variance = self.variance(rows)
        # If rows i and j are in different folds, the sign of i was learned from j and the sign of j
        # from i. So terms of rows correlate where signs are mostly noise, and the variance of
        # their mean exceeds the variance of independent terms. Simulated with calibrated forecasts
        # of two classes it was 1.5 times as large with 1,000 rows, and 2.2 times with 200.
        uncertain = 1.5 * max(variance, least / len(fits))
        variance = (1 - unclear) * variance + unclear * uncertain
        half = half_width(0.95) * sqrt(variance)
        # Chance and the bias of what was learned rarely act in the same direction at full size. For
        # tied forecasts, chance is the reason for the bias.
        tied = any(isinstance(fit, Ties) for fit in self.fits)
        above = bias if tied else hypot(half, bias) - half
        return Statistic(max(value, 0.0), variance, above=above), rows

    def square(self) -> float:
        """Square of the calibration error of the norm "l2"."""
        squares = [
            fit.calibration("brier")[0] / (1 if fit.p.shape[1] == 2 else 2)
            if isinstance(fit, Ties)
            else _square(fit)
            for fit in self.fits
        ]
        return max(float(np.mean(squares)), 0.0)

    def split_loss(self, loss: Loss = "log") -> dict[str, RowTerm]:
        """A loss of whole forecasts and its parts, as in `isoroc.metrics.Decomposition`."""
        sample = self.whole
        weights = self.whole.weights
        (fit,) = self.fits
        g = fit.values() if isinstance(fit, Ties) else as_matrix(fit.values)
        shares = np.bincount(sample.codes, weights, sample.n_classes)
        constant = np.broadcast_to(shares / shares.sum(), sample.forecasts.shape)
        losses = log_losses if loss == "log" else brier_losses
        given, best, blind = (losses(q, sample.codes) for q in (sample.forecasts, g, constant))
        saved = mean(given - best, weights)
        variance = self.variance(given - best)
        P = sample.forecasts.clip(min=EPSILON)  # as in the log loss, which is then finite
        w = sample.row_weights()
        size = effective_rows(w.sum(), w @ w) / design_effect(
            w * (given - mean(given, weights)), sample.clusters
        )
        if loss == "log" and isinstance(fit, CrossFit):
            # Rare outcomes that were forecast with too small a probability may not be among the
            # rows. What was learned says how often to expect them.
            expected, square = (mean((g * np.log(g / P) ** k).sum(axis=1), weights) for k in (1, 2))
            variance = max(variance, (square - expected**2) / size)
        # The variance is poorly known if few rows lie outside the largest class. Student's
        # distribution would widen an interval for that, but the estimate is about a chi-square
        # variable. So the variance grows as the square of Student's 95 % quantile relative to the
        # normal one does, 1.7 with 5 degrees of freedom and 1.3 with 10: about 1 + 4 / events.
        events = float(size * (1 - shares.max() / shares.sum()))
        variance *= 1 + 4 / max(events, 1.0)
        if isinstance(fit, Ties):
            value, noise, bias = fit.calibration(loss)
            # Nothing to save: mean labels are the forecasts, as on the rows of a fit. With scale c
            # and one degree of freedom the variance is 2 c**2 and the slope 4 c.
            slope = variance / saved if saved > 1e-9 else sqrt(8 * noise)
            calibration = Statistic(value, noise, slope, bias, bias)
        else:
            factors = _secant(g, P) if loss == "log" else (g - P) / (2 if P.shape[1] == 2 else 1)
            value = mean((factors * sample.residuals()).sum(axis=1), weights)
            # A map with few parameters has a term with scale c and slope 4 c: c = 1 / (2 n) for a
            # likelihood ratio, and p (1 - p) / n for a mean of Y.
            unit = 2.0 if loss == "log" else 4 * float((P * (1 - P)).mean())
            least = variance_if_calibrated(factors, sample)
            calibration = _widen(_combine(value, saved, variance, least), unit / size)
        total = mean(given, weights)
        most = mean(blind, weights)
        rest = total - calibration.value
        exact = Statistic(0.0, 0.0)
        turned = calibration._replace(below=calibration.above, above=calibration.below)
        terms = {"calibration": (calibration, given - best)}
        for name, value, rows, other in (
            ("loss", total, given, exact),
            ("refinement", rest, best, turned),
            ("uncertainty", most, blind, exact),
            ("resolution", most - rest, blind - best, calibration),
        ):
            term = mean_of(rows, weights, sample.clusters).of_events(events)
            variance = term.variance + other.variance
            term = term._replace(value=value, variance=variance)
            terms[name] = term._replace(below=other.below, above=other.above), rows
        if loss == "log" and (sample.forecasts < EPSILON).any():
            # An outcome of probability 0 may be absent by chance, and each adds much.
            terms["calibration"] = _widen(calibration, -log(EPSILON) / size), given - best
            rows = are_impossible(sample.forecasts, sample.codes).astype(np.float64)
            unseen = unseen_loss(Share(mean(rows, weights), size))
            terms["loss"] = terms["loss"][0].reaching(total + unseen), given
        return terms


def products(factors: Floats, sample: Sample) -> Floats:
    """Products of factors and residuals, summed over the classes."""
    return over_classes(factors * sample.residuals())


def over_classes(terms: Floats) -> Floats:
    """Half the sum over several classes."""
    return terms if terms.ndim == 1 else np.asarray(terms.sum(axis=1) / 2)


def variance_if_calibrated(factors: Floats, sample: Sample) -> float:
    """Variance of the mean product of factors and residuals, summed over the classes.

    Residuals of a cluster may be correlated, so the products of clusters are added up.
    """
    P = sample.forecasts
    weights = sample.row_weights()
    if sample.clusters is not None:
        rows = factors * sample.residuals()
        rows = rows if P.ndim == 1 else rows.sum(axis=1)
        return float(variance_of_sum(weights * rows / weights.sum(), sample.clusters))
    variances = factors**2 * P
    variances = (
        variances * (1 - P)
        if P.ndim == 1
        else variances.sum(axis=1) - (factors * P).sum(axis=1) ** 2
    )
    return float(weights**2 @ variances / weights.sum() ** 2)


def _combine(value: float, saved: float, variance: float, least: float) -> Statistic:
    """Estimate of a calibration term from what was learned from other rows.

    `value` is a mean product of residuals, 0 on average for calibrated forecasts, and `least` is
    its variance in that case. `saved` is what recalibration saves, with its variance. On average it
    is below the term, by the errors of what was learned, but it is the better estimate for very
    wrong forecasts, where noise matters less than bias. As in `Ties`, the variance is proportional
    to the sum of term and noise, and half as large for calibrated forecasts. Rows also learn from
    one another, so it is twice as large as for products with fixed factors.
    """
    noise = max(value - saved, 0.0)
    value = max(value, saved)
    slope = variance / (value + noise) if value + noise > 0 else 0.0
    least = max(slope * noise / 2, 2 * least)
    if value > 0:
        slope = min(slope, max(variance - least, 0.0) / value)
    return Statistic(value, least, slope, above=noise / NOISE_PER_BIAS)


def _widen(term: Statistic, unit: float) -> Statistic:
    """A calibration term of which little was learned, which says little about its variance.

    `unit` is the variance per unit of the term for a map with few parameters, as far as it is known
    without labels: the slope of a `Statistic`. Four parameters of this slope are a sum of squares
    with scale ``unit / 4``, mean `unit` and variance ``2 * 4 * (unit / 4)**2 = unit**2 / 2``. That
    variance and twice the slope are assumed. They count less the clearer the term is, and half at
    1.5 times the mean that chance alone gives to four parameters.
    """
    unclear = 1 / (1 + max(term.value, 0.0) / (1.5 * unit))
    variance = unclear * unit**2 / 2
    slope = unclear * 2 * unit
    return term._replace(variance=max(term.variance, variance), slope=max(term.slope, slope))


def _square(fit: CrossFit) -> float:
    """Square of the calibration error of one part of the norm "l2". See `_combine`."""
    sample = fit.sample
    weights = fit.sample.weights
    h = fit.values - sample.forecasts
    value = mean(products(h, sample), weights)
    return max(value, 2 * value - mean(over_classes(h * h), weights))


def _uncertainty(fit: CrossFit) -> tuple[float, float, float]:
    """How uncertain the norm "l1" of one part is, which takes signs from what was learned.

    Returns how much too low it may be, the share of uncertain signs, and the variance for
    calibrated forecasts. Signs may be wrong where what is learned is not much larger than its
    error, which makes the estimate too low.
    """
    sample = fit.sample
    weights = fit.sample.weights
    h = fit.values - sample.forecasts
    signs = np.sign(h)
    noise = mean_of(over_classes(h * (h - sample.residuals())), weights, sample.clusters)
    # What is clear of the noise in the differences, and the error of a mean.
    left = max(noise.value - noise.error, 0.0)
    left += mean_of(products(signs, sample), weights, sample.clusters).variance
    n_parts = 1 if h.ndim == 1 else h.shape[1] / 2
    error = sqrt(left / n_parts) or EPSILON
    # Let the truth be t errors from 0, and h differ from it by a normal error. The sign of h then
    # makes an absolute value too low by 2 |t| Phi(-|t|) errors on average: 0.34 at t = 0.75, and
    # less elsewhere. The bound below is a function of h, which is known. Its mean exceeds that for
    # every t, by at least a tenth.
    uncertain = np.exp(-(np.maximum(np.abs(h / error) - 1.75, 0.0) ** 2) / 2)
    lost = mean(over_classes(uncertain), weights)
    least = variance_if_calibrated(signs if h.ndim == 1 else signs / 2, sample)
    return 0.39 * error * lost, lost / n_parts, least


def _secant(g: Floats, p: Floats) -> Floats:
    """``(g log(g / p) - g + p) / (g - p)``: divergence of one class over the difference."""
    x = g / p - 1
    small = np.abs(x) < 1e-4
    near = np.where(small, x, 0.0)
    far = np.where(small, 1.0, x)
    series = near / 2 - near**2 / 6 + near**3 / 12
    return np.where(small, series, (1 + 1 / far) * np.log1p(far) - 1)
