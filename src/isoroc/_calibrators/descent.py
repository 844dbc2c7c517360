"""L-BFGS in coordinates in which the curvature is the identity, where it needs few steps."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from isoroc._input import Sample
from isoroc._simplex import Floats, Ints

#: Converged: a Newton step promises to lower the loss by at most this per unit of weight.
TOLERANCE = 1e-6
#: Mean loss of parameters for which it cannot be computed.
FAR = 1e10


class Factor:
    """Cholesky factor C of the curvature ``C C'`` of a loss (H, or its diagonal) plus a penalty."""

    def __init__(self, H: Floats, precision: Floats) -> None:
        self._dense = H.ndim == 2
        full = H + np.diag(precision) if self._dense else H + precision
        self._root = cholesky(full) if self._dense else np.sqrt(full)

    def variances(self) -> Floats:
        """Diagonal of the inverse of the curvature."""
        if not self._dense:
            return np.asarray(1 / self._root**2)
        inverse = solve_triangular(self._root, np.eye(len(self._root)), lower=True)
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse))

    def step(self, steps: Floats) -> Floats:
        """Change of theta for steps in coordinates in which the curvature is the identity."""
        if not self._dense:
            return np.asarray(steps / self._root)
        return np.asarray(solve_triangular(self._root, steps, lower=True, trans=1))

    def gradient(self, gradient: Floats) -> Floats:
        """Gradient in these coordinates."""
        if not self._dense:
            return np.asarray(gradient / self._root)
        return np.asarray(solve_triangular(self._root, gradient, lower=True))

    def gain(self, gradient: Floats) -> float:
        """What a Newton step promises: half the squared length of the gradient."""
        return float((self.gradient(gradient) ** 2).sum()) / 2


def cholesky(H: Floats) -> Floats:
    """Lower Cholesky factor of a curvature that is positive definite but for rounding errors.

    Where forecasts are certain or few distinct values occur, the curvature of some parameters is
    zero and that of others is huge. Then each parameter is measured in units of its own curvature,
    and as little is added to all as makes the matrix definite.
    """
    try:
        return np.asarray(np.linalg.cholesky(H), dtype=np.float64)
    except np.linalg.LinAlgError:
        pass
    diagonal = np.diag(H)
    units = np.sqrt(np.maximum(diagonal, 1e-9 * diagonal.max()))  # but for rounding errors >= 0
    scaled = H / units / units[:, None]
    for jitter in 10.0 ** np.arange(-12, 1):
        try:
            root = np.linalg.cholesky(scaled + jitter * np.eye(len(H)))
        except np.linalg.LinAlgError:
            continue
        return np.asarray(root * units[:, None])
    raise np.linalg.LinAlgError("the curvature is not a finite matrix")


def descend(
    loss: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    factor: Factor,
    total: float,
    *,
    n_steps: int,
    ftol: float = 1e-9,
) -> Floats:
    """Parameters of smaller loss than at the start, near which the loss has a curvature.

    The descent ends after `n_steps`, or when one changes the loss by less than a factor. `total`
    is the weight of the rows.
    """

    def objective(steps: Floats) -> tuple[float, Floats]:
        with np.errstate(all="ignore"):
            value, gradient = loss(start + factor.step(steps))
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return FAR, np.zeros(len(steps))  # the line search tried too long a step
        return value / total, factor.gradient(gradient) / total

    options = {
        "maxiter": n_steps,
        "maxcor": 20,
        "ftol": ftol,
        "gtol": 0.5 * np.sqrt(2 * TOLERANCE / total / len(start)),
    }
    found = minimize(objective, np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(start + factor.step(found.x))


def cross_fit(problem: Any, whole: Any, sample: Sample, fold: Ints) -> Floats:
    """Forecasts of rows by maps that have not seen their fold.

    Features hardly depend on the labels, so all folds share them: a row that is held out has weight
    zero, and the solution for all rows, `whole`, is close to that for most of them.
    """
    Q = np.empty((len(fold), sample.n_classes))
    for held_out in range(fold.max() + 1):
        weights = problem.weights * (fold[problem.rows] != held_out)
        fitted = problem.map_of(problem.solve_near(weights, whole))
        Q[fold == held_out] = fitted.apply(sample.forecasts[fold == held_out])
    return Q


def warn_unconverged(calibrator: object) -> None:
    """Warn that a calibrator's fit ended before it reached the optimum."""
    warnings.warn(
        f"{type(calibrator).__name__}: the fit did not converge. Its forecasts are valid, but "
        "others may fit the calibration rows better.",
        ConvergenceWarning,
        stacklevel=6,
    )
