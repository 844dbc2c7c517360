"""Newton's method, and logistic regression by it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from isoroc._core.smooth import logistic_losses
from isoroc._core.types import Floats


class Evaluated(Protocol):
    """A function at a point: of one problem, or of several at once along a leading axis."""

    @property
    def theta(self) -> Floats: ...  # shape (..., B)
    @property
    def value(self) -> Any: ...  # what is minimised, shape (...)


E = TypeVar("E", bound=Evaluated)


def newton(
    start: E,
    evaluate: Callable[[Floats], E],
    direction: Callable[[E], Floats],
    *,
    n_steps: int = 100,
    n_halvings: int = 33,
) -> E:
    """The point of the lowest value along Newton steps.

    `direction` gives the step from a point, zeros at the minimum. A step that raises the value of
    its problem is halved until it does not.
    """
    point = start
    for _ in range(n_steps):
        step = direction(point)
        if not step.any():
            break
        for _ in range(n_halvings):
            lower = evaluate(point.theta + step)
            worse = np.logical_not(lower.value <= point.value)  # also where it is NaN
            if not worse.any():
                break
            step = np.where(worse[..., None], step / 2, step)
        else:  # these problems stay where they are
            step = np.where(worse[..., None], 0.0, step)
            lower = evaluate(point.theta + step)
        if not np.any(lower.value < point.value):
            break
        point = lower
    return point


class Regressions(NamedTuple):
    """Negative log posteriors of G logistic regressions, with their derivatives."""

    theta: Floats  # shape (G, B)
    value: Floats  # shape (G,)
    gradient: Floats  # shape (G, B)
    hessian: Floats  # shape (G, B, B)


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
    and `precision` (G, B) belong to the priors. By default there is one flat prior, and features
    may be linearly dependent. Steps end where they promise to lower the loss by less than
    `least_gain`. Returns theta (G, B), the negative log posterior (G,) and its Hessian (G, B, B).
    """
    theta = np.zeros((1, X.shape[1])) if start is None else start
    prior = np.zeros_like(theta) if precision is None else precision
    G, B = theta.shape
    i, j = np.triu_indices(B)
    columns = np.ascontiguousarray(X.T)
    chunk = max(1000, 40_000 // (B * (B + 1) // 2 + B + 2 * G))  # rows whose arrays fit the cache

    def evaluate(theta: Floats) -> Regressions:
        losses = (prior * theta**2).sum(axis=1) / 2
        gradient = prior * theta
        sums = np.zeros((G, len(i)))
        for first in range(0, len(X), chunk):
            rows = slice(first, first + chunk)
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
        return Regressions(theta, losses, gradient, H)

    def direction(point: Regressions) -> Floats:
        gradient = point.gradient
        if precision is None:
            step = -_least_solution(point.hessian, gradient)
        else:
            step = -np.asarray(np.linalg.solve(point.hessian, gradient[..., None]))[..., 0]
        step[-(gradient * step).sum(axis=1) / 2 <= least_gain] = 0.0
        return step

    best = newton(evaluate(theta), evaluate, direction)
    return best.theta, best.value, best.hessian


def _least_solution(H: Floats, b: Floats) -> Floats:
    """The shortest x with ``H x = b``, for positive semidefinite H, shape (G, B, B), and b (G, B).

    The same as ``pinv(H) @ b``, which takes five times as long for small matrices.
    """
    values, vectors = np.linalg.eigh(H)
    known = values > 1e-15 * values[:, -1:]
    along = np.einsum("gij,gi->gj", vectors, b) * known / np.where(known, values, 1.0)
    return np.asarray(np.einsum("gij,gj->gi", vectors, along))
