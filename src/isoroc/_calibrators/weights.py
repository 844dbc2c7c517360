"""Weights of the members of a mixture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isoroc._simplex import Floats

#: Strength of the prior, in nats: members whose total log likelihood differs by less than about
#: this share the weight almost as the prior does.
STRENGTH = 2.0
#: Members of less weight are dropped, of many members those with less than half an equal share.
#: That costs nothing measurable and makes forecasts faster.
LEAST_WEIGHT = 0.1
#: Steps of Newton's method and how often one may be halved, the longest step of a log weight, its
#: lowest value, and the slope, in nats per unit of log weight, at which the search ends.
STEPS, HALVINGS, LONGEST, LOWEST, FLAT = 100, 50, 5.0, -200.0, 1e-3
#: A likelihood below this counts as this.
TINY = 1e-300


def mixture_weights(likelihood: Floats, row_weights: Floats, prior: Floats) -> Floats:
    """Weights under which the mixture makes the outcomes likely and stays close to the prior.

    They maximise the log likelihood of the rows minus `STRENGTH` times the relative entropy of the
    weights to the prior, a strictly concave function. Unlike prior counts, relative entropy does
    not keep a bad member alive: its weight falls exponentially with the likelihood that it costs.
    What the prior decides is how members share that do equally well, and with few rows all do.

    Parameters
    ----------
    likelihood : ndarray of shape (n, M)
        What each member gave the label that came true.
    row_weights : ndarray of shape (n,)
        Weight of each row, as a count.
    prior : ndarray of shape (M,)
        Positive; in any unit.

    Returns
    -------
    ndarray of shape (M,)
        They sum to one; small ones are zero.

    Examples
    --------
    >>> import numpy as np
    >>> few = np.array([[0.9, 0.5], [0.8, 0.5], [0.1, 0.5]])
    >>> mixture_weights(few, np.ones(3), np.array([1.0, 3.0])).round(2)
    array([0.27, 0.73])
    >>> mixture_weights(few, np.full(3, 1000.0), np.array([1.0, 3.0])).round(2)
    array([0.35, 0.65])
    """
    objective = Objective(likelihood.clip(min=TINY), row_weights, np.log(prior / prior.sum()))
    point = objective.at(objective.log_prior)
    for _ in range(STEPS):
        slope, curvature = objective.derivatives(point)
        if np.abs(slope).max() <= FLAT:
            break
        step = np.linalg.solve(curvature, slope)
        point = objective.climb(point, step * min(1.0, LONGEST / np.abs(step).max()))
    least = min(LEAST_WEIGHT, 0.5 / len(prior))
    weights = np.where(point.weights < least, 0.0, point.weights)
    return np.asarray(weights / weights.sum())


class Point(NamedTuple):
    """Where the objective has been evaluated."""

    u: Floats
    """Logarithms of the weights, up to a constant."""
    weights: Floats
    mixed: Floats
    """Likelihood of each row under the mixture."""
    value: float


class Objective(NamedTuple):
    """Log likelihood minus `STRENGTH` times the relative entropy, as a function of u."""

    L: Floats
    row_weights: Floats
    log_prior: Floats

    def at(self, u: Floats) -> Point:
        """Evaluate at log weights u."""
        u = np.maximum(u - u.max(), LOWEST)
        weights = np.exp(u)
        weights /= weights.sum()
        mixed = self.L @ weights
        entropy = weights @ (np.log(weights) - self.log_prior)
        value = float(self.row_weights @ np.log(mixed) - STRENGTH * entropy)
        return Point(u, weights, mixed, value)

    def derivatives(self, point: Point) -> tuple[Floats, Floats]:
        """Gradient in u, and minus the Hessian without the terms that vanish at the maximum."""
        w = point.weights
        ratio = self.L / point.mixed[:, None]
        gradient = self.row_weights @ ratio - STRENGTH * (np.log(w) - self.log_prior)
        D = ratio * w - w  # derivatives of each row's log likelihood in u
        curvature = (D * self.row_weights[:, None]).T @ D
        curvature += STRENGTH * (np.diag(w) - np.outer(w, w))
        # A shift of all u changes nothing, and members without weight change little.
        curvature += STRENGTH / len(w) + 1e-9 * STRENGTH * np.eye(len(w))
        return w * (gradient - w @ gradient), curvature

    def climb(self, point: Point, step: Floats) -> Point:
        """A point of no lower value along a step, which is halved until there is one."""
        for _ in range(HALVINGS):
            found = self.at(point.u + step)
            if found.value >= point.value:
                return found
            step = step / 2
        return point
