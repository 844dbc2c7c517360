"""Two classes: piecewise linear maps of the log odds, averaged by their evidence.

A map adds ``features @ theta`` to the log odds z: a constant, z, and hinges that rise from their
knots outwards, away from the median. The prior of theta is normal around 0, where nothing changes,
with a width for each of the three kinds of entries. For each of a grid of widths theta is the most
probable one, and its weight is the evidence of the widths in Laplace's approximation (MacKay, The
evidence framework applied to classification networks, 1992). Means of such maps are such maps.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from isoroc._backends import NUMPY
from isoroc._input import Sample
from isoroc._kinds import columns_of
from isoroc._maps import SplineMap
from isoroc._simplex import Floats

#: Forecasts below the smallest positive one of the calibration set are raised to it, within these.
FLOOR_RANGE = (1e-30, 1e-3)
#: Widths of the priors of the constant, the slope and the hinges.
WIDTHS = (0.15, 0.8, 3.0), (0.15, 0.6, 4.0), (0.03, 0.3, 1.0)
#: Widths of a smaller share of the evidence than this are left out of the average.
LEAST_SHARE = 1e-3
#: With more rows, some of them are drawn at random; rows that are taken at a time.
MOST_ROWS, CHUNK = 200_000, 4096
#: Steps of Newton's method at most, how often one may be halved, and the gain, in nats, at which
#: they end.
STEPS, HALVINGS, LEAST_GAIN = 50, 30, 1e-3


class Fits(NamedTuple):
    """The most probable theta for each choice of widths, shape (G, B), and its log evidence."""

    theta: Floats
    evidence: Floats
    precision: Floats

    def shares(self) -> Floats:
        """Share of each in the average, shape (G,)."""
        shares = np.exp(self.evidence - self.evidence.max())
        return np.asarray(shares / shares.sum())

    def kept(self) -> Fits:
        """Those that count."""
        kept = self.shares() >= LEAST_SHARE
        return Fits(self.theta[kept], self.evidence[kept], self.precision[kept])


class Problem:
    """Posterior of theta under each choice of widths, as a function of the weights of the rows."""

    def __init__(self, sample: Sample, n_knots: int, pseudocount: float) -> None:
        total = float(sample.row_weights().sum())
        self.rows = sample.drawn_rows(MOST_ROWS)
        sample = sample.draw(MOST_ROWS)
        self.kind, self.floor = sample.kind, choose_floor(sample)
        self.smoothing = float(pseudocount / (total + pseudocount))
        logs = sample.kind.log_rows(sample.forecasts, self.floor)
        z = self.z = logs[1] - logs[0]
        self.knots = place_knots(z, n_knots)
        weights = sample.row_weights()
        self.weights = weights * (total / weights.sum())
        self.outcome = sample.codes.astype(np.float64)
        self.side = np.where(self.knots >= np.median(np.unique(z)), 1.0, -1.0)
        hinges = np.maximum(self.side * (z[:, None] - self.knots), 0.0)
        self.features = np.column_stack([np.ones_like(z), z, hinges])

    def map_of(self, fits: Fits) -> SplineMap:
        """The average of the fits."""
        constant, slope, *hinges = fits.shares() @ fits.theta
        left = np.array(hinges) * (self.side < 0)  # max(knot - z, 0) = max(z - knot, 0) - z + knot
        slope += 1 - left.sum()
        return SplineMap(
            kind=self.kind,
            floor=self.floor,
            knots=self.knots,
            coef=np.array([[0.0, 0.0], [-slope, slope]]),
            slopes=np.stack([np.zeros(len(hinges)), hinges]),
            intercept=np.array([0.0, constant + left @ self.knots]),
            smoothing=self.smoothing,
        )

    def solve(self) -> Fits:
        """The fits to all rows."""
        widths = np.array(list(product(*WIDTHS)))
        each = np.concatenate([widths[:, :2], np.repeat(widths[:, 2:], len(self.knots), axis=1)], 1)
        return self._newton(self.weights, np.zeros_like(each), each**-2.0).kept()

    def solve_near(self, weights: Floats, whole: Fits) -> Fits:
        """The fits under other weights of the rows, close to those to all."""
        return self._newton(weights, whole.theta, whole.precision)

    def _newton(self, weights: Floats, theta: Floats, precision: Floats) -> Fits:
        """Newton's method with step halving, for all widths at once."""
        value = self._loss(weights, theta, precision)
        for _ in range(STEPS):
            gradient, H = self._derivatives(weights, theta, precision)
            step = -np.linalg.solve(H, gradient[..., None])[..., 0]
            if -(gradient * step).sum(axis=1).min() / 2 <= LEAST_GAIN:
                break
            for _ in range(HALVINGS):
                there = self._loss(weights, theta + step, precision)
                worse = ~(there <= value)
                if not worse.any():
                    break
                step[worse] /= 2
            theta, value = theta + step, there
        spread = np.log(precision).sum(axis=1) - np.linalg.slogdet(H)[1]
        return Fits(theta, spread / 2 - value, precision)

    def _loss(self, weights: Floats, theta: Floats, precision: Floats) -> Floats:
        """Negative log posterior for each row of theta, shape (G,)."""
        value = (precision * theta**2).sum(axis=1) / 2
        for rows in self._chunks():
            odds = self.z[rows, None] + self.features[rows] @ theta.T
            losses = np.logaddexp(0.0, odds) - self.outcome[rows, None] * odds
            value = value + weights[rows] @ losses
        return np.asarray(value)

    def _derivatives(
        self, weights: Floats, theta: Floats, precision: Floats
    ) -> tuple[Floats, Floats]:
        """Gradients (G, B) and Hessians (G, B, B) of the loss."""
        G, B = theta.shape
        i, j = np.triu_indices(B)
        gradient, sums = np.zeros((B, G)), np.zeros((len(i), G))
        for rows in self._chunks():
            X, w = self.features[rows], weights[rows, None]
            q = expit(self.z[rows, None] + X @ theta.T)
            gradient += X.T @ (w * (q - self.outcome[rows, None]))
            sums += (X[:, i] * X[:, j]).T @ (w * q * (1 - q))
        H = np.zeros((G, B, B))
        H[:, i, j] = H[:, j, i] = sums.T
        H[:, np.arange(B), np.arange(B)] += precision
        return gradient.T + precision * theta, H

    def _chunks(self) -> list[slice]:
        return [slice(first, first + CHUNK) for first in range(0, len(self.z), CHUNK)]


def choose_floor(sample: Sample) -> float:
    """The smallest positive forecast, within `FLOOR_RANGE`; logits need none."""
    if sample.scores != "probability":
        return FLOOR_RANGE[0]
    P = sample.kind.probabilities(NUMPY, columns_of(sample.forecasts))
    return float(np.clip(P[P > 0].min(), *FLOOR_RANGE))


def place_knots(odds: Floats, n_knots: int) -> Floats:
    """Quantiles of the distinct log odds."""
    inner = np.linspace(0, 1, n_knots + 2)[1:-1]
    # Rounded, since ties that rounding errors separate would count several times.
    return np.unique(np.quantile(np.unique(odds.round(9)), inner))
