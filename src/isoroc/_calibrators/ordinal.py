"""OrdinalCalibrator and CumulativeCalibrator: forecasts of ordered classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isoroc._backends import NUMPY
from isoroc._calibrators.auto import AutoCalibrator
from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.descent import DescentCalibrator, EvidenceLoss, Solution
from isoroc._calibrators.precisions import Priors
from isoroc._calibrators.tempering import fit_tempering
from isoroc._core.smooth import expit
from isoroc._core.types import Floats
from isoroc._input import InputError, Sample
from isoroc._maps import CumulativeMap, Forecasts


class CumulativeCalibrator(DescentCalibrator):
    """One increasing map of the cumulative probabilities P(Y <= k) of ordered classes.

    All thresholds k share the map, and their shifts increase with k, so calibrated cumulative
    probabilities are in order for every forecast. Parameters are shrunk to the map that changes
    nothing, with strengths learned by evidence, so there is nothing to tune.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`. The classes are in ascending order.
    floor_, temperature_, smoothing_ : float
        As in `TemperatureCalibrator`, whose map comes first.
    tilt_ : ndarray of shape (K,)
        t.
    location_ : ndarray of shape (K,)
        c.
    rates_ : ndarray of shape (2,)
        a and b.
    shifts_ : ndarray of shape (K - 1,)
        s.

    See Also
    --------
    OrdinalCalibrator : Mixes this map with the members of `AutoCalibrator`.

    Notes
    -----
    Let z be the logarithms of the tempered forecasts, and F_k the probability of the first k
    classes under ``softmax(z + t)``. The calibrated log odds of ``Y <= k`` are ``a log(F_k) -
    b log(1 - F_k) + <c, z> + s_k`` with positive a and b. With equal s and t = 0, all thresholds
    are shifted alike.

    Examples
    --------
    >>> from isoroc import CumulativeCalibrator
    >>> P, y = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]], [1, 2, 3, 1]
    >>> CumulativeCalibrator().fit(P, y).predict([[0.5, 0.3, 0.2]])
    array([1])
    """

    _orders_classes: ClassVar[bool] = True

    floor_ = FromMap()
    temperature_ = FromMap()
    smoothing_ = FromMap()
    tilt_ = FromMap()
    rates_ = FromMap()
    location_ = FromMap()
    shifts_ = FromMap()

    def _solve(self, sample: Sample) -> tuple[CumulativeLoss, Solution]:
        problem = CumulativeLoss(sample)
        return problem, problem.maximise(np.zeros(problem.ends[-1]), learn=True)


@dataclass(eq=False, repr=False, kw_only=True)
class OrdinalCalibrator(AutoCalibrator):
    """`AutoCalibrator` for ordered classes, such as ratings, grades or degrees of severity.

    A `CumulativeCalibrator`, which uses the order, joins the members of the mixture. The order is
    given by `labels` in `fit`, by an ordered categorical, or by labels that are numbers. Three or
    more classes with names need one of the first two.

    Parameters
    ----------
    members : "auto" or list of calibrators, default="auto"
        As in `AutoCalibrator`. "auto" adds a `CumulativeCalibrator`.
    monotone : bool, default=False
        Must be False: maps of cumulative probabilities are not cyclically monotone.
    caution, cv, max_cells, random_state, n_jobs, verbose
        As in `AutoCalibrator`.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    members_, weights_, member_scores_, cv_results_, verdict_, certificate_
        As in `AutoCalibrator`.

    See Also
    --------
    isoroc.metrics.ranked_probability_score : A proper score of ordered classes.

    Notes
    -----
    The weights of the mixture maximise the likelihood, not the ranked probability score.

    Examples
    --------
    >>> from isoroc import OrdinalCalibrator
    >>> P, y = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], ["poor", "fair", "good"]
    >>> OrdinalCalibrator().fit(P, y, labels=y).predict([[0.1, 0.7, 0.2]])
    array(['fair'], dtype='<U4')
    """

    _orders_classes: ClassVar[bool] = True

    def _default_members(self, n_classes: int) -> list[Calibrator]:
        if self.monotone:
            problem = "is True, but maps of cumulative probabilities are not cyclically monotone"
            raise InputError("monotone", None, problem, "use AutoCalibrator(monotone=True)")
        return [*super()._default_members(n_classes), CumulativeCalibrator()]


class CumulativeLoss(EvidenceLoss):
    """Negative log posterior of the parameters theta of a `CumulativeMap`.

    theta holds half the sum and half the difference of the logs of the rates, a shift, the log of a
    common factor of the differences between shifts, the log of a factor of each one (K - 2,), tilts
    and locations. At 0 the differences are a twentieth of the differences between the log odds of
    the observed shares.
    """

    near_steps = 10
    rounds = 40
    dense = 800
    by_row = ("z", "features")

    def __init__(self, sample: Sample, most_rows: int = 100_000) -> None:
        K = sample.n_classes
        sample = self._draw(sample, most_rows)
        self.stage = fit_tempering(sample, "auto", 1.0)
        z = self.z = self.stage.log_tempered_rows(Forecasts(sample.forecasts, sample.kind))
        centred = z - z.mean(axis=0)
        spread = np.average(centred**2, axis=1, weights=self.weights).mean()
        self.scale = max(float(np.sqrt(spread)), 0.01)  # a smaller one would magnify rounding
        self.features = centred / self.scale
        below = np.cumsum(np.bincount(self.codes, self.weights, K) + 1)
        self.steps = 0.05 * np.diff(np.log(below[:-1] / (below[-1] - below[:-1])))
        rises = np.tri(K - 1, K - 2, -1)  # the differences below each shift
        self.rises = rises - rises.mean(axis=0)
        # Precisions of normal priors around "nothing changes", where the rates are 1: 4 lets rates
        # differ by a factor of exp(1/2) in one standard deviation, 20 by exp(0.22), 0.3 the factor
        # of the differences by exp(1.8). Those of groups of parameters are learned from there.
        single = {"rates": 4.0, "skew": 20.0, "shift": 1.0, "step": 0.3}
        sizes = dict.fromkeys(single, 1) | {"steps": K - 2, "tilt": K, "location": K}
        prior = single | {"steps": 2.0, "tilt": 20.0, "location": 10.0}
        self.priors = Priors(sizes, prior, set(single))
        self.ends = np.cumsum(list(sizes.values()))

    def map_of(self, theta: Floats) -> CumulativeMap:
        """The map with the parameters theta."""
        rate, skew, shift, _, _, tilt, location = np.split(theta, self.ends[:-1])
        location = location / self.scale
        return CumulativeMap(
            kind=self.stage.kind,
            floor=self.stage.floor,
            temperature=self.stage.temperature,
            smoothing=self.stage.smoothing,
            tilt=tilt,
            rates=np.exp(np.concatenate([rate + skew, rate - skew])),
            location=location - location.mean(),
            shifts=shift + self.rises @ self._differences(theta),
        )

    def _differences(self, theta: Floats) -> Floats:
        """Differences between the shifts of neighbouring thresholds, shape (K - 2,)."""
        return np.asarray(self.steps * np.exp(theta[3] + theta[4 : self.ends[4]]))

    def _rows(self, theta: Floats) -> tuple[Floats, Floats]:
        """Loss of each row, and its gradient, shape (len(theta), n)."""
        F = self.map_of(theta)
        K, n = self.z.shape
        a, b = F.rates.tolist()
        first = np.tri(K - 1, K)
        p = np.exp(self.z + F.tilt[:, None])
        p /= p.sum(axis=0)
        below = first @ p
        above = (1 - first) @ p
        logs = a * np.log(below), b * np.log(above)
        u = logs[0] - logs[1] + F.location @ self.z + F.shifts[:, None]
        # Below the first class and above the last: as good as infinite, but with a finite exp.
        u = np.vstack([np.full(n, -700.0), u, np.full(n, 700.0)])
        # An outcome has the probability sigmoid(high) - sigmoid(low).
        at = self.codes.astype(np.intp), np.arange(n)
        low = u[at]
        high = u[1:][at]
        gap = -np.expm1(low - high)
        losses = -NUMPY.log_sigmoid(high) - NUMPY.log_sigmoid(-low) - np.log(gap)
        slope = np.zeros_like(u)  # of the losses in u
        slope[at] = expit(low) / expit(high) / gap
        slope[1:][at] = -expit(-high) / expit(-low) / gap
        slope = slope[1:-1]
        total = slope.sum(axis=0)
        along = [(slope * part).sum(axis=0) for part in logs]
        in_steps = self._differences(theta)[:, None] * (self.rises.T @ slope)
        inside = first.T @ (a * slope / below) - (1 - first).T @ (b * slope / above)
        parts = [along[0] - along[1], along[0] + along[1], total, in_steps.sum(axis=0), *in_steps]
        return losses, np.vstack([*parts, p * (inside - (a - b) * total), self.features * total])

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Negative log posterior and its gradient."""
        losses, G = self._rows(theta)
        precision = self.priors.precision()
        value = self.weights @ losses + precision @ theta**2 / 2
        return float(value), G @ self.weights + precision * theta

    def curvature(self, theta: Floats) -> Floats:
        """Sum of the outer products of the rows' gradients, or its diagonal."""
        _, G = self._rows(theta)
        if len(theta) > self.dense:
            return np.asarray(G**2 @ self.weights)
        return np.asarray((G * self.weights) @ G.T)
