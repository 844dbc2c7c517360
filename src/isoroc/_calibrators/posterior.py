"""Posterior: how likely the outcomes and the prior make the parameters of a potential, and its fit.

The forecast q = sum of w_kl r_kl is a mixture of prototypes, so the likelihood of the outcome y is
that of a mixture: with e_kl = exp(s_kl), x and y as in `isoroc._calibrators.potential`, and
``v_k = sum over l of e_kl r_kl[outcome]``,

    loss = log(x' exp(J) x) - log(v' exp(J) x).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from isoroc._calibrators.departures import Departures
from isoroc._calibrators.potential import Potential
from isoroc._input import Sample
from isoroc._simplex import Floats, Ints

#: Up to so many parameters the curvature is a full matrix, above it a diagonal.
DENSE = 800
#: Rows for which gradients are formed at a time.
CHUNK = 4096
#: Converged: a Newton step promises to lower the loss by at most this per unit of weight.
TOLERANCE = 1e-6
#: Rounds of the fit, and of those in which precisions are learned; learning ends when the logarithm
#: of each changes by less than this.
ROUNDS, LEARNING_ROUNDS, LEARNED = 40, 8, 0.1
#: Mean loss of parameters for which it cannot be computed.
FAR = 1e10


class Slopes(NamedTuple):
    """Loss of some rows, and the derivatives of each row's loss."""

    loss: float
    scores: Floats
    """In s_kl, shape (K, L, n)."""
    own_entries: Floats
    """Minus that in r_kl[outcome], shape (K, L, n)."""
    sums: Floats
    """x, shape (K, n)."""
    mixed: Floats
    """In y = exp(J) x, shape (K, n)."""


class Posterior:
    """Negative log posterior of the departures as a function of one vector theta.

    Parameters
    ----------
    departures : Departures
        What theta means, and its prior.
    z : ndarray of shape (K, n)
        Log forecasts.
    sample : Sample
        The rows that they belong to.
    """

    def __init__(self, departures: Departures, z: Floats, sample: Sample) -> None:
        K = departures.n_classes
        # Sorted by outcome, the rows of one class share the entries r_kl[outcome].
        order = np.argsort(sample.codes, kind="stable")
        self.departures = departures
        self.z = np.ascontiguousarray((z - z.mean(axis=0))[:, order])
        self.weights = sample.row_weights()[order]
        self.codes = sample.codes[order].astype(np.intp)
        self.total = float(self.weights.sum())
        self.starts: Ints = np.searchsorted(self.codes, np.arange(K + 1))

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Negative log posterior and its gradient."""
        F = self.departures.potential(theta)
        a, soft, t = F.scale, F.softness, F.full_directions()
        K, L = soft.shape
        slopes = _slopes(F, self.z, self.starts, self.weights)
        rises = F.rises(self.z)
        entries = np.empty((K, L, K))  # derivatives in r_kl from the likelihood of the outcome
        for k in range(K):
            rows = slice(self.starts[k], self.starts[k + 1])
            entries[:, :, k] = slopes.own_entries[:, :, rows].sum(axis=2)
        by_level = np.einsum("kln,kn->kl", slopes.scores, rises)
        dscale = a * (np.einsum("kln,kn->", slopes.scores, self.z) + (soft * by_level).sum())
        dsoft = a * by_level - np.einsum("klj,kj->kl", entries, t - np.eye(K))
        dsoft *= soft * (1 - soft)
        dbias = slopes.scores.sum(axis=2)
        parts = [[dscale], dsoft.sum(axis=0), dbias.sum(axis=0), dbias.sum(axis=1)]
        parts += [dbias.ravel(), dsoft.ravel()]
        if F.interactions is not None:
            dJ = (slopes.mixed @ slopes.sums.T) * np.exp(F.interactions)
            dt = a * np.einsum("kln,kl->kn", slopes.scores, soft) @ self.z.T
            dt -= np.einsum("klj,kl->kj", entries, soft)
            dt = t * (dt - (t * dt).sum(axis=1, keepdims=True))
            parts += [(dJ + dJ.T)[self.departures.pairs], dt[self.departures.others]]
        precision = self.departures.precision()
        value = slopes.loss + float(precision @ theta**2) / 2
        return value, np.concatenate(parts) + precision * theta

    def curvature(self, theta: Floats) -> Floats:
        """Sum of the outer products of the gradients of each row's loss, or its diagonal.

        Its expectation under the forecasts is that of the Hessian, and it is never indefinite.
        """
        P = self.departures.n_parameters
        H = np.zeros((P, P)) if P <= DENSE else np.zeros(P)
        F = self.departures.potential(theta)
        for first in range(0, len(self.codes), CHUNK):
            G = self._gradients(F, slice(first, first + CHUNK))
            H += G @ G.T if P <= DENSE else np.einsum("pn,pn->p", G, G)
        return H

    def _gradients(self, F: Potential, rows: slice) -> Floats:
        """Gradient of each row's loss, times the root of its weight, shape (n_parameters, n)."""
        z, codes = self.z[:, rows], self.codes[rows]
        a, soft, t = F.scale, F.softness, F.full_directions()
        K, L = soft.shape
        n = len(codes)
        starts: Ints = np.searchsorted(codes, np.arange(K + 1))
        slopes = _slopes(F, z, starts, np.sqrt(self.weights[rows]))
        rises = F.rises(z)
        own, towards = np.eye(K)[:, codes], t[:, codes]
        dsoft = a * slopes.scores * rises[:, None] - slopes.own_entries * (towards - own)[:, None]
        dsoft *= (soft * (1 - soft))[:, :, None]
        along = z[:, None] + soft[:, :, None] * rises[:, None]
        G = np.empty((self.departures.n_parameters, n))
        places = self.departures.places
        G[places["scale"]] = a * np.einsum("kln,kln->n", slopes.scores, along)
        G[places["softness"]] = dsoft.sum(axis=0)
        G[places["level"]] = slopes.scores.sum(axis=0)
        G[places["bias"]] = slopes.scores.sum(axis=1)
        G[places["prototype_bias"]] = slopes.scores.reshape(K * L, n)
        G[places["prototype_softness"]] = dsoft.reshape(K * L, n)
        if F.interactions is not None:
            i, j = self.departures.pairs
            x, dy = slopes.sums, slopes.mixed
            G[places["interaction"]] = dy[i] * x[j] + dy[j] * x[i]
            G[places["interaction"]] *= np.exp(F.interactions[i, j])[:, None]
            k, j = self.departures.others
            scores = a * np.einsum("kln,kl->kn", slopes.scores, soft)
            entries = np.einsum("kln,kl->kn", slopes.own_entries, soft)
            G[places["direction"]] = scores[k] * (z[j] - (rises + z)[k])
            G[places["direction"]] -= entries[k] * (own[j] - towards[k])
            G[places["direction"]] *= t[k, j][:, None]
        return G

    def maximise(self, theta: Floats, *, learn: bool) -> tuple[Floats, bool]:
        """Parameters of the largest posterior from a start on, and whether the fit converged.

        Each round forms the curvature at the current parameters, learns the precisions of the
        priors, and goes on with L-BFGS in coordinates in which the curvature is the identity. Half
        the squared length of the gradient in these is what a Newton step would gain.
        """
        for count in range(ROUNDS):
            H = self.curvature(theta)
            factor = Factor(H, self.departures.precision())
            if learn and count:
                change = self.departures.learn(theta, factor.variances())
                learn = change > LEARNED and count < LEARNING_ROUNDS
                factor = Factor(H, self.departures.precision())
            _, gradient = self.loss(theta)
            gain = float((factor.gradient(gradient) ** 2).sum()) / (2 * self.total)
            if not learn and gain <= TOLERANCE:
                return theta, True
            theta = self._descend(theta, factor, rough=learn)
        return theta, False

    def _descend(self, start: Floats, factor: Factor, *, rough: bool) -> Floats:
        """Parameters of smaller loss; a rough search ends early."""

        def objective(steps: Floats) -> tuple[float, Floats]:
            with np.errstate(all="ignore"):
                value, gradient = self.loss(start + factor.step(steps))
            if not (np.isfinite(value) and np.isfinite(gradient).all()):
                return FAR, np.zeros(len(steps))  # the line search tried too long a step
            return value / self.total, factor.gradient(gradient) / self.total

        options = {
            "maxiter": 15 if rough else 100,
            "maxcor": 20,
            "ftol": 1e-5 if rough else 1e-9,
            "gtol": 0.5 * np.sqrt(2 * TOLERANCE / self.total / len(start)),
        }
        found = minimize(
            objective, np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options
        )
        return np.asarray(start + factor.step(found.x))


class Factor:
    """Cholesky factor C of the posterior's curvature ``C C'``, or the root of its diagonal.

    Parameters
    ----------
    H : ndarray of shape (P, P) or (P,)
        Curvature of the likelihood, or its diagonal.
    precision : ndarray of shape (P,)
        Curvature of the prior.
    """

    def __init__(self, H: Floats, precision: Floats) -> None:
        self._dense = H.ndim == 2
        full = H + np.diag(precision) if self._dense else H + precision
        self._root = np.linalg.cholesky(full) if self._dense else np.sqrt(full)

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


def _slopes(F: Potential, z: Floats, starts: Ints, weights: Floats) -> Slopes:
    """Loss of rows sorted by outcome, of which class k has ``starts[k]:starts[k + 1]``.

    Derivatives are multiplied by the weights.
    """
    e, _ = F.exponentials(z)
    r = F.prototypes()
    likely = np.empty_like(e)
    for k in range(len(z)):
        rows = slice(starts[k], starts[k + 1])
        np.multiply(e[:, :, rows], r[:, :, k, None], out=likely[:, :, rows])
    x, v = e.sum(axis=1), likely.sum(axis=1)
    y = F.interact(x)
    total, outcome = np.einsum("kn,kn->n", x, y), np.einsum("kn,kn->n", v, y)
    loss = float(weights @ (np.log(total) - np.log(outcome)))
    of_total, of_outcome = weights / total, weights / outcome
    mixed = x * of_total - v * of_outcome
    outcome_pull = (y * of_outcome)[:, None]
    likely *= outcome_pull
    scores = e * (y * of_total + F.interact(mixed))[:, None]
    scores -= likely
    e *= outcome_pull
    return Slopes(loss, scores, e, x, mixed)
