"""Logistic regression by Newton's method."""

from typing import Any

import numpy as np

from isoroc._core.smooth import logistic_losses
from isoroc._core.types import Floats


def logistic_regression(
    X: Floats,
    y: Floats,
    weights: Floats,
    *,
    offset: Floats | None = None,
    start: Floats | None = None,
    precision: Floats | None = None,
    least_gain: float = 0.0,
) -> tuple[Floats, Floats, Floats]:
    """Coefficients theta of log odds ``offset + X @ theta`` under G normal priors at once.

    X (n, B), y (n,) in [0, 1] and `weights` are features, outcomes and weights of the rows. `start`
    and `precision` (G, B) belong to the priors. By default there is one flat prior; then features
    may depend on each other. Steps end where they promise to lower the loss by less than
    `least_gain`. Returns theta (G, B), the negative log posterior (G,) and its Hessian (G, B, B).
    """
    theta = np.zeros((1, X.shape[1])) if start is None else start
    prior = np.zeros_like(theta) if precision is None else precision
    G, B = theta.shape
    i, j = np.triu_indices(B)
    columns = np.ascontiguousarray(X.T)

    def evaluate(theta: Floats) -> tuple[Floats, Floats, Floats]:
        losses = (prior * theta**2).sum(axis=1) / 2
        gradient = prior * theta
        sums = np.zeros((G, len(i)))
        for first in range(0, len(X), 1000):
            rows = slice(first, first + 1000)
            part = columns[:, rows]
            odds = theta @ part
            if offset is not None:
                odds += offset[rows]
            part_losses, curvature = logistic_losses(odds, y[rows], weights[rows])
            losses += part_losses
            gradient += odds @ part.T  # `odds` now holds the derivatives
            sums += curvature @ (part[i] * part[j]).T
        H = np.zeros((G, B, B))
        H[:, i, j] = H[:, j, i] = sums
        H[:, np.arange(B), np.arange(B)] += prior
        return losses, gradient, H

    value, gradient, H = evaluate(theta)
    for _ in range(100):
        if precision is None:
            change: Any = np.linalg.pinv(H, hermitian=True) @ gradient[..., None]
        else:
            change = np.asarray(np.linalg.solve(H, gradient[..., None]))
        step: Floats = -change[..., 0]
        step[-(gradient * step).sum(axis=1) / 2 <= least_gain] = 0.0
        if not step.any():
            break
        for _ in range(33):  # halve the steps that do not lower the loss
            lower, slope, curvature = evaluate(theta + step)
            worse = ~(lower <= value)
            if not worse.any():
                break
            step[worse] /= 2
        if not (lower < value).any():
            break
        step[worse] = 0.0
        theta = theta + step
        value = np.where(worse, value, lower)
        gradient = slope
        H = curvature
    return theta, value, H
