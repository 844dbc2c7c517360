"""Newton's method, and logistic regression by it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from isoroc._core.smooth import logistic_sums
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
    """Coefficients theta of log odds ``offset + theta @ X``, for G regressions at once.

    Features X and outcomes y in [0, 1] have the shapes (B, n) and (n,), or (G, B, n) and (G, n) if
    each regression has its own. All share the weights of the rows and the offset. `start` and
    `precision` (G, B) belong to normal priors. By default priors are flat, and features may be
    linearly dependent. Steps end where they promise to lower the loss by less than `least_gain`.
    Returns theta (G, B), the negative log posteriors (G,) and their Hessians (G, B, B).
    """
    *_, B, n = X.shape
    features = np.ascontiguousarray(X).reshape(-1, B, n)
    outcomes = np.ascontiguousarray(y, dtype=np.float64).reshape(-1, n)
    known = np.zeros(n) if offset is None else offset
    theta = np.zeros((len(features), B)) if start is None else start
    # Place in the sums of each entry of the Hessian, of which they have the upper triangle.
    place = np.empty((B, B), np.intp)
    i, j = np.triu_indices(B)
    place[i, j] = place[j, i] = 1 + B + np.arange(len(i))

    def evaluate(theta: Floats) -> Regressions:
        sums = logistic_sums(features, outcomes, weights, known, np.ascontiguousarray(theta))
        losses = sums[:, 0]
        gradient = sums[:, 1 : 1 + B]
        H = sums[:, place]
        if precision is not None:
            losses = losses + (precision * theta**2).sum(axis=1) / 2
            gradient = gradient + precision * theta
            H[:, np.arange(B), np.arange(B)] += precision
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
    along = (b[:, None] @ vectors)[:, 0] * known / np.where(known, values, 1.0)
    return np.asarray((vectors @ along[..., None])[..., 0])
