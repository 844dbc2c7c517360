"""Logistic regression of outcomes on functions of forecasts, and restricted cubic splines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from isoroc._simplex import Floats

#: Newton steps, after which outcomes count as separable, and the change that ends them.
MOST_STEPS, TOLERANCE = 50, 1e-10
#: Quantiles of knots (Harrell 2015), by the least number of rows of either outcome.
KNOTS = {100: (0.05, 0.275, 0.5, 0.725, 0.95), 20: (0.1, 0.5, 0.9), 0: ()}


class LogisticFit(NamedTuple):
    """Coefficients and their covariances; NaN if outcomes are separable."""

    coefficients: Floats
    covariance: Floats
    """If the model holds."""
    robust: Floats
    """Whether or not it holds."""


def fit_logistic(X: Floats, y: Any, weights: Floats) -> LogisticFit:
    """Maximum likelihood by Newton's method, with steps halved while the likelihood falls."""
    d = X.shape[1]
    beta, best, change = np.zeros(d), -np.inf, np.inf
    step = np.zeros(d)
    for _ in range(MOST_STEPS):
        eta = X @ beta
        likelihood = float(weights @ (y * eta - np.logaddexp(0.0, eta)))
        if likelihood < best - 1e-9 * abs(best):
            step = step / 2
            beta = beta - step
            continue
        q = expit(eta)
        information = (X.T * (weights * q * (1 - q))) @ X
        if np.linalg.cond(information) > 1e14:
            break
        change = abs(likelihood - best)
        best = likelihood
        step = np.linalg.solve(information, X.T @ (weights * (y - q)))
        if change <= TOLERANCE * (1 + abs(best)):
            inverse = np.linalg.inv(information)
            meats = [weights**2 * q * (1 - q), weights**2 * (y - q) ** 2]
            ends = [inverse @ ((X.T * meat) @ X) @ inverse for meat in meats]
            return LogisticFit(beta + step, *ends)
        beta = beta + step
    unknown = np.full((d, d), np.nan)
    return LogisticFit(np.full(d, np.nan), unknown, unknown)


def spline_basis(z: Floats, knots: Floats) -> Floats:
    """Columns 1 and z, and of a cubic spline that is linear beyond its knots (Harrell 2015)."""
    columns = [np.ones_like(z), z]
    if len(knots) < 3:
        return np.column_stack(columns[: 1 + (np.ptp(z) > 0)])
    *inner, before, last = knots.tolist()
    scale = (last - inner[0]) ** 2

    def cube(knot: float) -> Floats:
        return np.asarray(np.maximum(z - knot, 0.0) ** 3)

    for knot in inner:
        share = (last - knot) / (last - before)
        tail = share * cube(before) - (share - 1) * cube(last)
        columns.append((cube(knot) - tail) / scale)
    return np.column_stack(columns)


def choose_knots(z: Floats, y: Any) -> Floats:
    """Knots at quantiles of z, none if there are few rows of one outcome or few values."""
    fewest = min(np.count_nonzero(y), len(y) - np.count_nonzero(y))
    quantiles = next(q for least, q in KNOTS.items() if fewest >= least)
    return np.unique(np.quantile(z, quantiles)) if quantiles else np.zeros(0)
