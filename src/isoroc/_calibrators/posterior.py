"""Posterior: how likely the outcomes and the prior make the parameters of a potential, and its fit.

The forecast q = sum of w_kl r_kl is a mixture of prototypes, so the likelihood of the outcome y is
that of a mixture: with e_kl = exp(s_kl), x and y as in `isoroc._maps.potential`, and
``v_k = sum over l of e_kl r_kl[outcome]``,

    loss = log(x' exp(J) x) - log(v' exp(J) x).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from isoroc._calibrators.departures import Departures
from isoroc._calibrators.descent import TOLERANCE, Factor, descend
from isoroc._maps.potential import Potential
from isoroc._simplex import Codes, Floats, Ints

#: Up to so many parameters the curvature is a full matrix, above it a diagonal.
DENSE = 800
#: Numbers in the arrays of the rows that are taken at a time, so that they stay in the cache: for
#: the loss, and for the gradients of single rows; but at least so many rows.
NUMBERS, GRADIENT_NUMBERS, LEAST_ROWS = 2**18, 2**21, 64
#: Rounds of the fit, and of those in which precisions are learned; learning ends when the logarithm
#: of each changes by less than this.
ROUNDS, LEARNING_ROUNDS, LEARNED = 40, 8, 0.1


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
    codes : ndarray of shape (n,)
        The outcomes.
    weights : ndarray of shape (n,)
        Weights of the rows.
    """

    def __init__(self, departures: Departures, z: Floats, codes: Codes, weights: Floats) -> None:
        # Sorted by outcome, the rows of one class share the entries r_kl[outcome].
        order = np.argsort(codes, kind="stable")
        self.departures = departures
        self.z = np.ascontiguousarray((z - z.mean(axis=0))[:, order])
        self.weights = weights[order]
        self.codes = codes[order].astype(np.intp)
        self.total = float(self.weights.sum())

    def loss(self, theta: Floats) -> tuple[float, Floats]:
        """Negative log posterior and its gradient."""
        F = self.departures.potential(theta)
        a, soft, t = F.scale, F.softness, F.full_directions()
        K, L = soft.shape
        loss = along = 0.0
        biases, rises = np.zeros((K, L)), np.zeros((K, L))
        entries = np.zeros((K, L, K))  # minus the derivatives in r_kl
        matrices = np.zeros((2, K, K))  # derivatives in exp(J), and in t through the scores
        for rows in self._chunks(NUMBERS // (K * L)):
            z, codes = self.z[:, rows], self.codes[rows]
            slopes = _slopes(F, z, codes, self.weights[rows])
            loss += slopes.loss
            biases += slopes.scores.sum(axis=2)
            along += float(np.einsum("kln,kn->", slopes.scores, z))
            rises += np.einsum("kln,kn->kl", slopes.scores, F.rises(z))
            for k, own in _by_class(codes):
                entries[:, :, k] += slopes.own_entries[:, :, own].sum(axis=2)
            if F.interactions is not None:
                matrices[0] += slopes.mixed @ slopes.sums.T
                matrices[1] += np.einsum("kln,kl->kn", slopes.scores, soft) @ z.T
        dsoft = a * rises - np.einsum("klj,kj->kl", entries, t - np.eye(K))
        dsoft *= soft * (1 - soft)
        parts = [[a * (along + (soft * rises).sum())], dsoft.sum(axis=0), biases.sum(axis=0)]
        parts += [biases.sum(axis=1), biases.ravel(), dsoft.ravel()]
        if F.interactions is not None:
            dJ = matrices[0] * np.exp(F.interactions)
            dt = a * matrices[1] - np.einsum("klj,kl->kj", entries, soft)
            dt = t * (dt - (t * dt).sum(axis=1, keepdims=True))
            parts += [(dJ + dJ.T)[self.departures.pairs], dt[self.departures.others]]
        precision = self.departures.precision()
        gradient = np.concatenate(parts) + precision * theta
        return loss + float(precision @ theta**2) / 2, gradient

    def _chunks(self, n_rows: int) -> Iterator[slice]:
        """Slices of about so many rows."""
        step = max(n_rows, LEAST_ROWS)
        for first in range(0, len(self.codes), step):
            yield slice(first, first + step)

    def curvature(self, theta: Floats) -> Floats:
        """Sum of the outer products of the gradients of each row's loss, or its diagonal.

        Its expectation under the forecasts is that of the Hessian, and it is never indefinite.
        """
        P = self.departures.n_parameters
        H = np.zeros((P, P)) if P <= DENSE else np.zeros(P)
        F = self.departures.potential(theta)
        for rows in self._chunks(GRADIENT_NUMBERS // P):
            G = self._gradients(F, rows)
            H += G @ G.T if P <= DENSE else np.einsum("pn,pn->p", G, G)
        return H

    def _gradients(self, F: Potential, rows: slice) -> Floats:
        """Gradient of each row's loss, times the root of its weight, shape (n_parameters, n)."""
        z, codes = self.z[:, rows], self.codes[rows]
        a, soft, t = F.scale, F.softness, F.full_directions()
        K, L = soft.shape
        n = len(codes)
        slopes = _slopes(F, z, codes, np.sqrt(self.weights[rows]))
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
        priors, and goes on with L-BFGS in coordinates in which the curvature is the identity.
        """
        for count in range(ROUNDS):
            H = self.curvature(theta)
            factor = Factor(H, self.departures.precision())
            if learn and count:
                change = self.departures.learn(theta, factor.variances())
                learn = change > LEARNED and count < LEARNING_ROUNDS
                factor = Factor(H, self.departures.precision())
            _, gradient = self.loss(theta)
            if not learn and factor.gain(gradient) <= TOLERANCE * self.total:
                return theta, True
            n_steps, least_change = (15, 1e-5) if learn else (100, 1e-9)
            theta = descend(
                self.loss,
                theta,
                factor,
                total=self.total,
                n_steps=n_steps,
                least_change=least_change,
            )
        return theta, False


def _slopes(F: Potential, z: Floats, codes: Ints, weights: Floats) -> Slopes:
    """Loss of rows sorted by outcome, and its derivatives, multiplied by the weights."""
    e, _ = F.exponentials(z)
    r = F.prototypes()
    likely = np.empty_like(e)
    for k, own in _by_class(codes):
        np.multiply(e[:, :, own], r[:, :, k, None], out=likely[:, :, own])
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


def _by_class(codes: Ints) -> Iterator[tuple[int, slice]]:
    """Each class that occurs in sorted codes, and where."""
    present, starts = np.unique(codes, return_index=True)
    ends = [*starts[1:].tolist(), len(codes)]
    for k, first, end in zip(present.tolist(), starts.tolist(), ends, strict=True):
        yield k, slice(first, end)
