"""What must be calibrated, and the terms of calibration errors and losses of each row.

A part is a set of forecasts that must be calibrated together: whole forecasts, the probability of a
class, or the largest one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from isoroc._estimation.crossfit import CrossFit
from isoroc._estimation.grouping import group_equal, is_discrete, sum_classes, sum_rows
from isoroc._estimation.ordering import fix_class_order
from isoroc._input import Kind, Sample, split_by_kind
from isoroc._losses import EPSILON, brier_losses, log_losses, mean
from isoroc._simplex import Floats

Bins = int | Literal["quantile", "exact", "irp"]
Loss = Literal["log", "brier"]


class Parts(NamedTuple):
    """The parts of a sample that must be calibrated.

    Metrics of the same parts share what is learned by cross-fitting.
    """

    whole: Sample
    """The rows of positive weight; forecasts are a matrix."""
    fits: list[CrossFit]
    """One per part; ``fit.sample`` is the part."""
    bins: list[Bins]
    """How E[Y | forecast] is estimated in each part."""

    @classmethod
    def of(
        cls, sample: Sample, kind: Kind, bins: Bins | None = None, continuous: Bins = "irp"
    ) -> Parts:
        """Parts of a sample, whose forecasts are a matrix.

        With ``bins=None``, the estimate is "exact" if forecasts have few distinct values and
        `continuous` otherwise.
        """
        # Decided by all rows, also those of weight 0: resampling must not change it.
        chosen = [
            (("exact" if is_discrete(part.forecasts) else continuous) if bins is None else bins)
            for part in split_by_kind(sample, kind)
        ]
        whole = sample.positive()
        if kind != "top" and chosen in (["irp"], ["quantile"]):
            # The order of classes breaks ties; scores of two classes are those of the second one.
            whole = fix_class_order(whole)
        return cls(whole, [CrossFit(part) for part in split_by_kind(whole, kind)], chosen)

    def error_terms(self) -> Floats:
        """Terms of the rows whose weighted mean is the calibration error, if it is not negative.

        The error is that of the norm "l1". A term is the residual of a row times the sign of what
        is known about it, so the deviation of the terms gives a standard error.
        """
        terms = [
            products(_signs_of_bins(fit.sample) if bins == "exact" else fit.signs(), fit.sample)
            for fit, bins in zip(self.fits, self.bins, strict=True)
        ]
        return np.asarray(np.mean(terms, axis=0))

    def loss_terms(self, loss: Loss = "log") -> LossTerms:
        """Losses of the rows of whole forecasts, and of calibrated and constant ones in place."""
        sample, (fit,), (bins,) = self
        g = _exact(sample, fit.sample) if bins == "exact" else _cross_fitted(fit)
        shares = np.bincount(sample.codes, sample.weights, sample.n_classes)
        constant = np.broadcast_to(shares / shares.sum(), sample.forecasts.shape)
        losses = log_losses if loss == "log" else brier_losses
        own, best, blind = (losses(q, sample.codes) for q in (sample.forecasts, g, constant))
        refinement = mean(best, sample.weights)
        if bins == "irp":
            refinement = min(refinement, mean(_refinement(sample, g, loss), sample.weights))
        return LossTerms(own, best, blind, refinement)


class LossTerms(NamedTuple):
    """Losses of rows of shape (n,)."""

    own: Floats
    """Of the forecasts."""
    best: Floats
    """Of E[Y | forecast] in place of the forecasts."""
    blind: Floats
    """Of the class frequencies in place of the forecasts."""
    refinement: float
    """Estimate of the mean of `best`, without what the errors of E[Y | forecast] add to it."""


def products(factors: Floats, sample: Sample) -> Floats:
    """Products of factors and residuals, summed over the classes."""
    return over_classes(factors * sample.residuals())


def over_classes(terms: Floats) -> Floats:
    """Half the sum over several classes."""
    return terms if terms.ndim == 1 else np.asarray(terms.sum(axis=1) / 2)


def _signs_of_bins(sample: Sample) -> Floats:
    """Sign of the mean residual of the rows with the same forecast, for each row and class."""
    group = group_equal(sample.forecasts)
    return np.asarray(np.sign(sum_rows(group, sample.residuals(), sample.weights))[group])


def _exact(sample: Sample, canonical: Sample) -> Floats:
    """Mean label of equal forecasts, for each row."""
    group = group_equal(canonical.forecasts)
    sums = sum_classes(group, sample.codes, sample.n_classes, sample.weights)
    return np.asarray((sums / sums.sum(axis=1, keepdims=True))[group])


def _cross_fitted(fit: CrossFit) -> Floats:
    """E[Y | p] estimated from other rows, for each row and class."""
    g = fit.values()
    return g if g.ndim == 2 else np.column_stack([1 - g, g])


def _refinement(sample: Sample, g: Floats, loss: Loss) -> Floats:
    """Loss of each row minus its contribution to the calibration term."""
    P, codes = sample.forecasts, sample.codes
    residual = Sample(P, codes, None).residuals()
    if loss == "brier":
        half = 2 if P.shape[1] == 2 else 1
        return np.asarray(brier_losses(P, codes) - ((g - P) * residual).sum(axis=1) / half)
    P = P.clip(min=EPSILON)  # as in the log loss, which is then finite
    return np.asarray(log_losses(P, codes) - (_secant(g, P) * residual).sum(axis=1))


def _secant(g: Floats, p: Floats) -> Floats:
    """``(g log(g / p) - g + p) / (g - p)``: divergence of one class over the difference."""
    x = g / p - 1
    small = np.abs(x) < 1e-4
    near, far = np.where(small, x, 0.0), np.where(small, 1.0, x)
    series = near / 2 - near**2 / 6 + near**3 / 12
    return np.where(small, series, (1 + 1 / far) * np.log1p(far) - 1)
