"""Problem: the penalised likelihood that a `KernelCalibrator` maximises."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from isoroc._calibrators.descent import TOLERANCE, Factor, descend
from isoroc._maps.scores import of_own_class, softmax
from isoroc._simplex import Codes, Floats, Ints

#: A row whose bump the bumps of the centres so far explain up to this needs no centre of its own.
EXPLAINED = 1e-4
#: Rounds of the fit, and of those in which the penalty is learned; learning ends when its logarithm
#: changes by less than this.
ROUNDS, LEARNING_ROUNDS, LEARNED = 20, 4, 0.2
#: Steps of each round: when the penalty is learned, afterwards, and where the start is close.
LEARNING_STEPS, STEPS, NEAR_STEPS = 15, 60, 25
#: The penalty as a multiple of the one of largest evidence. The approximation of the evidence
#: favours smooth maps; with this the forecasts of unseen rows are better.
EASE = 0.1


class Solution(NamedTuple):
    """Result of `Problem.solve`."""

    theta: Floats
    factor: Factor
    """Curvature at theta, or close to it."""
    penalty: float
    converged: bool


class Problem:
    """Penalised likelihood of the outcomes as a function of theta, of shape (K, M).

    The log forecasts of class k are ``z[k] + theta[k] @ features``, up to a constant of each row.
    Features are principal components of the inputs, weighted by how uncertain the outcome of each
    row is. So the curvature of the loss is nearly diagonal, and few steps of L-BFGS reach its
    minimum.

    Parameters
    ----------
    inputs : ndarray of shape (M, n)
        Features before the change of basis.
    whiten : ndarray of shape (M, M)
        Makes inputs such that one penalty suits all.
    z : ndarray of shape (K, n)
        Log forecasts.
    codes, weights : ndarray of shape (n,)
        Outcomes, and weights of the rows.
    """

    def __init__(
        self, inputs: Floats, whiten: Floats, z: Floats, codes: Codes, weights: Floats
    ) -> None:
        white = whiten @ inputs
        q = np.exp(z)
        uncertainty = weights * (q * (1 - q)).sum(axis=0)
        _, rotation = np.linalg.eigh((white * uncertainty) @ white.T)
        self.basis = rotation.T @ whiten
        self.features = np.ascontiguousarray(rotation.T @ white)
        self.z, self.codes, self.weights = z, codes, weights

    def start(self) -> Floats:
        """The theta that changes nothing."""
        return np.zeros((len(self.z), len(self.features)))

    def loss(self, theta: Floats, penalty: float, weights: Floats) -> tuple[float, Floats]:
        """Penalised loss under weights of the rows, and its gradient."""
        z = theta @ self.features
        z += self.z
        z -= z.max(axis=0)
        own = of_own_class(z, self.codes)
        residual = np.exp(z, out=z)
        total = residual.sum(axis=0)
        value = penalty / 2 * (theta**2).sum() - weights @ (own - np.log(total))
        residual *= weights / total
        residual[self.codes, np.arange(len(self.codes))] -= weights
        return float(value), residual @ self.features.T + penalty * theta

    def curvature(self, theta: Floats) -> Floats:
        """Diagonal of the Hessian of the loss without its penalty, shape (K, M)."""
        q = softmax(self.z + theta @ self.features)
        return np.asarray((self.weights * q * (1 - q)) @ (self.features**2).T)

    def solve(self, penalty: float | None) -> Solution:
        """The theta of the lowest loss; without a penalty, one is learned.

        The penalty is learned as in MacKay's evidence framework: it becomes the inverse of the mean
        square of theta, where an entry counts by how far the data and not the penalty determine
        it.
        """
        learn, used, theta = penalty is None, penalty or 1.0, self.start()
        total = float(self.weights.sum())
        for count in range(ROUNDS):
            H = self.curvature(theta)
            if learn and count:
                determined = float((H / (H + used)).sum())
                learned = (determined + 1) / (float((theta**2).sum()) + 1)
                learn = abs(np.log(learned / used)) > LEARNED and count < LEARNING_ROUNDS
                used = learned if learn else EASE * learned
            factor = Factor(H.ravel(), np.full(H.size, used))
            if not learn:
                _, gradient = self.loss(theta, used, self.weights)
                if factor.gain(gradient.ravel()) <= TOLERANCE * total:
                    return Solution(theta, factor, used, converged=True)
            n_steps = LEARNING_STEPS if learn else STEPS
            theta = self._descend(theta, factor, used, self.weights, n_steps)
        return Solution(theta, factor, used, converged=False)

    def solve_near(self, weights: Floats, whole: Solution) -> Floats:
        """The theta of the lowest loss under other weights of the rows, close to a solution."""
        return self._descend(whole.theta, whole.factor, whole.penalty, weights, NEAR_STEPS)

    def _descend(
        self, theta: Floats, factor: Factor, penalty: float, weights: Floats, n_steps: int
    ) -> Floats:
        def loss(flat: Floats) -> tuple[float, Floats]:
            value, gradient = self.loss(flat.reshape(theta.shape), penalty, weights)
            return value, gradient.ravel()

        total = float(weights.sum())
        found = descend(
            loss, theta.ravel(), factor, total=total, n_steps=n_steps, least_change=1e-6
        )
        return found.reshape(theta.shape)


def bumps(centres: Floats, x: Floats) -> Floats:
    """Bumps around centres c, shape (m, D), at positions x, shape (D, n): 1 / (1 + |x - c|^2 / 2).

    As a kernel this is the rational quadratic one. Forecasts are as good as with Gaussian bumps,
    and a quotient is faster than an exponential.
    """
    ends = [np.ones(x.shape[1]), (x**2).sum(axis=0) / 2]
    offsets = 1 + (centres**2).sum(axis=1, keepdims=True) / 2
    below = np.hstack([-centres, offsets, np.ones_like(offsets)]) @ np.vstack([x, *ends])
    np.maximum(below, 1.0, out=below)  # rounding errors
    return np.asarray(np.reciprocal(below, out=below))


def choose_centres(x: Floats, n_centres: int) -> Ints:
    """Rows whose bumps explain those of the others well: pivots of an incomplete Cholesky factor.

    The first is the row closest to the origin, each further one the row that is explained worst.
    """
    n = x.shape[1]
    L = np.empty((n_centres, n))
    left = np.ones(n)
    pivots: list[int] = []
    pivot = int((x**2).sum(axis=0).argmin())
    while len(pivots) < n_centres and left[pivot] > EXPLAINED:
        i = len(pivots)
        L[i] = bumps(x[:, [pivot]].T, x)[0] - L[:i, pivot] @ L[:i]
        L[i] /= np.sqrt(left[pivot])
        left -= L[i] ** 2
        pivots.append(pivot)
        left[pivots] = 0.0
        pivot = int(left.argmax())
    return np.array(pivots)


def whitening(centres: Floats, n_others: int) -> Floats:
    """Matrix that makes bumps uncorrelated under their kernel, and leaves other inputs as they are.

    Then the squared length of theta is the norm of the map in the kernel's space of functions.
    """
    m = len(centres)
    L = np.linalg.cholesky(bumps(centres, centres.T) + 1e-10 * np.eye(m))
    whiten = np.eye(m + n_others)
    whiten[:m, :m] = solve_triangular(L, np.eye(m), lower=True)
    return whiten
