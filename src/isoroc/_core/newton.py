"""Logistic regression by Newton's method."""

from collections.abc import Callable
from typing import Any

import numpy as np

from isoroc._core.special import expit
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
    z = np.zeros(len(X)) if offset is None else offset
    G, B = theta.shape
    i, j = np.triu_indices(B)
    chunks = [slice(first, first + 4096) for first in range(0, len(X), 4096)]

    def loss(theta: Floats) -> Floats:
        total = (prior * theta**2).sum(axis=1) / 2
        for rows in chunks:
            odds = z[rows, None] + X[rows] @ theta.T
            losses = np.maximum(odds, 0.0) - y[rows, None] * odds
            losses += np.log1p(np.exp(-np.abs(odds, out=odds)))
            total = total + weights[rows] @ losses
        return np.asarray(total)

    def derivatives(theta: Floats) -> tuple[Floats, Floats]:
        gradient, sums = np.zeros((B, G)), np.zeros((len(i), G))
        for rows in chunks:
            part, w = X[rows], weights[rows, None]
            q = expit(z[rows, None] + part @ theta.T)
            gradient += part.T @ (w * (q - y[rows, None]))
            sums += (part[:, i] * part[:, j]).T @ (w * q * (1 - q))
        H = np.zeros((G, B, B))
        H[:, i, j] = H[:, j, i] = sums.T
        H[:, np.arange(B), np.arange(B)] += prior
        return gradient.T + prior * theta, H

    value = loss(theta)
    for _ in range(100):
        gradient, H = derivatives(theta)
        if precision is None:
            change: Any = np.linalg.pinv(H, hermitian=True) @ gradient[..., None]
        else:
            change = np.asarray(np.linalg.solve(H, gradient[..., None]))
        step: Floats = -change[..., 0]
        step[-(gradient * step).sum(axis=1) / 2 <= least_gain] = 0.0
        if not step.any():
            break
        lower = _descend(loss, theta, step, value)
        if not (lower < value).any():
            break
        theta, value = theta + step, lower
    return theta, value, H


def _descend(
    loss: Callable[[Floats], Floats], theta: Floats, step: Floats, value: Floats
) -> Floats:
    """Halve the steps that do not lower the loss, in place; return the loss after them."""
    for _ in range(33):
        there = loss(theta + step)
        worse = ~(there <= value)
        if not worse.any():
            return there
        step[worse] /= 2
    step[worse] = 0.0
    return np.where(worse, value, there)
