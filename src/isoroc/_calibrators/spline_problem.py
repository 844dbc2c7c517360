"""Problem: the penalised likelihood that a `SplineCalibrator` maximises."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from isoroc._calibrators.descent import TOLERANCE, Factor, descend
from isoroc._calibrators.matrix import MATRIX_CLASSES
from isoroc._maps.scores import log_softmax, of_own_class
from isoroc._simplex import Codes, Floats

#: Features of a larger standard deviation are shrunk to it, so that the penalty means the same.
SPREAD = 2.0
#: Up to so many entries of theta, those of 15 classes, the curvature is a full matrix, above it a
#: diagonal.
DENSE = 400
#: Numbers in the arrays of the rows for which the curvature is formed at a time.
NUMBERS = 2**20
#: Rounds of the descent, and steps of each, for a full curvature and for a diagonal.
ROUNDS, DENSE_STEPS, DIAGONAL_STEPS = 30, 10, 50
#: Rounds where the start and the curvature are those of almost the same problem.
NEAR_ROUNDS = 2


class Solution(NamedTuple):
    """Result of `Problem.solve`."""

    theta: Floats
    factor: Factor
    """Curvature at theta, or close to it."""
    converged: bool


class Problem(NamedTuple):
    """Penalised likelihood of the outcomes as a function of one vector theta.

    theta holds the shared coefficients (B,), each class's departures (K, B), intercepts (K,) and,
    up to 100 classes, a matrix (K, K) of the influence of others, whose diagonal stays zero. The
    likelihood is concave.
    """

    features: Floats
    """Log forecast and hinges of each class and row, centred and scaled, shape (K, n, B)."""
    centre: Floats
    scale: Floats
    others: Floats | None
    """Log forecasts, centred in each row, shape (K, n); None for many classes."""
    knots: Floats
    codes: Codes
    weights: Floats
    strengths: Floats
    """Weight of the square of each entry of theta's distance from the start."""

    @classmethod
    def of(
        cls,
        logs: Floats,
        odds: Floats,
        knots: Floats,
        codes: Codes,
        weights: Floats,
        *,
        penalty: float,
    ) -> Problem:
        """Problem of logarithms of forecasts and log odds, both of shape (K, n)."""
        K, n = logs.shape
        B = 1 + len(knots)
        features = np.empty((K, n, B))
        features[..., 0] = logs
        for b, knot in enumerate(knots, start=1):
            np.maximum(odds - knot, 0.0, out=features[..., b])
        share = weights / (K * weights.sum())
        centre = (share @ features).sum(axis=0)
        features -= centre
        spread = np.sqrt((share @ features**2).sum(axis=0))
        scale = np.maximum(spread / SPREAD, 1.0)
        features /= scale
        others = logs - logs.mean(axis=0) if K <= MATRIX_CLASSES else None
        shared = np.ones(B)
        shared[0] = 0.0
        matrix = [] if others is None else [np.full(K * K, K * (K - 1))]
        strengths = penalty * np.concatenate([shared, np.full(K * B + K, K), *matrix])
        return cls(features, centre, scale, others, knots, codes, weights, strengths)

    def start(self) -> Floats:
        """The theta of the map that changes nothing."""
        theta = np.zeros(len(self.strengths))
        theta[0] = self.scale[0]
        return theta

    def _split(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Coefficients (K, B), intercepts (K,) and matrix (K, K)."""
        K, _, B = self.features.shape
        own = theta[:B] + theta[B : B + K * B].reshape(K, B)
        end = B + K * B + K
        matrix = np.zeros((K, K)) if self.others is None else theta[end:].reshape(K, K)
        return own, theta[B + K * B : end], matrix

    def map_of(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Influence of log forecasts (K, K), of hinges (K, m), and intercepts (K,)."""
        own, intercept, matrix = self._split(theta)
        own = own / self.scale
        coef = np.diag(own[:, 0])
        intercept = intercept - own @ self.centre
        coef += matrix - matrix.mean(axis=1, keepdims=True)  # others are centred in each row
        return coef, own[:, 1:], intercept

    def log_forecasts(self, theta: Floats) -> Floats:
        """Logarithms of the calibrated forecasts, shape (K, n)."""
        own, intercept, matrix = self._split(theta)
        z = np.matmul(self.features, own[:, :, None])[..., 0]
        z += intercept[:, None]
        if self.others is not None:
            z += matrix @ self.others
        return log_softmax(z)

    def loss(self, weights: Floats, theta: Floats) -> tuple[float, Floats]:
        """Penalised loss under weights of the rows, and its gradient."""
        log_q = self.log_forecasts(theta)
        away = theta - self.start()
        value = self.strengths @ away**2 - weights @ of_own_class(log_q, self.codes)
        residual = np.exp(log_q)
        residual[self.codes, np.arange(len(self.codes))] -= 1
        residual *= weights
        departures = np.matmul(residual[:, None, :], self.features)[:, 0, :]
        parts = [departures.sum(axis=0), departures.ravel(), residual.sum(axis=1)]
        if self.others is not None:
            matrix = residual @ self.others.T
            np.fill_diagonal(matrix, 0.0)
            parts.append(matrix.ravel())
        return float(value), np.concatenate(parts) + 2 * self.strengths * away

    def factor(self, weights: Floats, theta: Floats) -> Factor:
        """Curvature of the loss."""
        dense = len(theta) <= DENSE
        H = self._hessian(weights, theta) if dense else self._diagonal(weights, theta)
        # The shared slope has no penalty, and its curvature vanishes where forecasts are certain.
        return Factor(H, 2 * self.strengths + 1e-12 * (1 + np.trace(H) if dense else 1.0))

    def _hessian(self, weights: Floats, theta: Floats) -> Floats:
        """Hessian of the likelihood.

        Let u_k be all features that act on class k: its own, one and the logarithms of all. Then
        its blocks are the sums over the rows of ``weight (1[j = k] q_k - q_j q_k) u_j u_k'``. The
        derivative in the shared coefficients is the sum of those in the departures.
        """
        K, n, B = self.features.shape
        q = np.exp(self.log_forecasts(theta))
        width = self._width()
        blocks = np.zeros((K * width, K * width))
        for rows in self._chunks(n):
            share, root = q[:, rows], np.sqrt(weights[rows])
            U = self._acting(rows) * root[:, None]
            V = (U * share[:, :, None]).transpose(1, 0, 2).reshape(U.shape[1], -1)
            blocks -= V.T @ V
            for k in range(K):
                own = slice(k * width, (k + 1) * width)
                blocks[own, own] += U[k].T @ V[:, own]
        # In theta the departures of all classes come first, then intercepts, then the matrix.
        kinds = np.split(np.arange(K * width).reshape(K, width), [B, B + 1], axis=1)
        order = np.concatenate([kind.ravel() for kind in kinds])
        H = np.empty((len(theta), len(theta)))
        H[B:, B:] = blocks[np.ix_(order, order)]
        H[:B, B:] = H[B : B + K * B, B:].reshape(K, B, -1).sum(axis=0)
        H[B:, :B] = H[:B, B:].T
        H[:B, :B] = H[:B, B : B + K * B].reshape(B, K, B).sum(axis=1)
        if self.others is not None:
            fixed = B + K * B + K + np.arange(K) * (K + 1)
            H[fixed] = H[:, fixed] = 0.0
        return H

    def _width(self) -> int:
        """Number of features that act on each class."""
        K, _, B = self.features.shape
        return int(B + 1 + (0 if self.others is None else K))

    def _chunks(self, n: int) -> Iterator[slice]:
        """Slices of rows."""
        step = max(NUMBERS // (len(self.features) * self._width()), 64)
        for first in range(0, n, step):
            yield slice(first, first + step)

    def _acting(self, rows: slice) -> Floats:
        """Features that act on each class, shape (K, n, width)."""
        own = self.features[:, rows]
        K, n, _ = own.shape
        parts = [own, np.ones((K, n, 1))]
        if self.others is not None:
            parts.append(np.broadcast_to(self.others[:, rows].T, (K, n, K)))
        return np.concatenate(parts, axis=2)

    def _diagonal(self, weights: Floats, theta: Floats) -> Floats:
        """Diagonal of the Hessian of the likelihood."""
        q = np.exp(self.log_forecasts(theta))
        spread = weights * q * (1 - q)
        own = np.matmul(spread[:, None, :], self.features**2)[:, 0, :]
        parts = [own.sum(axis=0), own.ravel(), spread.sum(axis=1)]
        if self.others is not None:
            parts.append((spread @ (self.others**2).T).ravel())
        return np.concatenate(parts)

    def solve(self, weights: Floats, start: Floats, near: Factor | None = None) -> Solution:
        """The theta of the lowest loss under weights of the rows.

        Parameters
        ----------
        weights : ndarray of shape (n,)
            Weights of the rows.
        start : ndarray of shape (P,)
            Theta to start from.
        near : Factor, default=None
            Curvature where the solution is expected, close to the start. It is trusted, and a few
            steps have to do.
        """
        theta, total = start, float(weights.sum())
        loss = partial(self.loss, weights)
        n_steps = DENSE_STEPS if near or len(theta) <= DENSE else DIAGONAL_STEPS
        factor = near or self.factor(weights, theta)
        for count in range(NEAR_ROUNDS if near else ROUNDS):
            if count and near is None:
                factor = self.factor(weights, theta)
            if factor.gain(loss(theta)[1]) <= TOLERANCE * total:
                return Solution(theta, factor, converged=True)
            theta = descend(loss, theta, factor, total=total, n_steps=n_steps)
        return Solution(theta, factor, converged=False)
