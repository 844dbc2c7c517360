"""Matrix scaling plus bumps around forecasts of all classes together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isoroc._backends import Ops, V
from isoroc._core import smooth
from isoroc._maps.base import Forecasts, state
from isoroc._maps.temperature import TemperedMap
from isoroc._persistence import Fault, states
from isoroc._simplex import LEAST, Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Positions:
    """Where rows lie among each other: centred log forecasts, and their ranks in each class."""

    knots: Floats  # ascending log forecasts of each class, between which ranks are linear: (K, m)
    origin: Floats  # the place of zero, shape (2, K)
    stretch: Floats  # factors of log forecasts and of ranks, shape (2,)

    def of(self, ops: Ops[V], z: V, logs: V) -> V:
        """Positions, of width 2 K, from tempered and from plain log forecasts."""
        K = len(self.knots)
        of_logs, of_ranks = self.stretch.tolist()
        centring = of_logs * (np.eye(K) - 1 / K)
        places = ops.linear(z, centring, -of_logs * self.origin[0])
        ranks = of_ranks * ops.along(logs, self.knots) - of_ranks * self.origin[1]
        return ops.concat([places, ranks])


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelMap(TemperedMap):
    """``softmax(z + t (weights bumps(x) + coef z + intercept))`` of tempered log forecasts z.

    `knots`, `origin` and `stretch` define the positions x. The trust t is 1 where the bump of some
    centre has the height `reach`, and 0 where none has half of it.
    """

    knots: Floats = state(states.coefficients("K", smooth.N_KNOTS))
    origin: Floats = state(states.coefficients(2, "K"))
    stretch: Floats = state(states.coefficients(2))
    centres: Floats = state(states.coefficients("m", 2, "K"))
    weights: Floats = state(states.coefficients("K", "m"))
    coef: Floats = state(states.coefficients("K", "K"))
    intercept: Floats = state(states.coefficients("K"))
    reach: float = state(states.number(above=0.0, most=1.0))

    def check(self, n_classes: int) -> None:
        """Check the numbers; knots ascend."""
        super().check(n_classes)
        if not (np.diff(self.knots, axis=1) > 0).all():
            raise Fault("knots", "expected ascending numbers")

    def formula(self, ops: Ops[V], X: V) -> V:
        """The softmax of the sum."""
        z, logs = self.log_tempered(ops, X), self.kind.logs(ops, X, LEAST)
        positions = Positions(knots=self.knots, origin=self.origin, stretch=self.stretch)
        x = positions.of(ops, z, logs)
        heights = ops.bumps(x, self.centres.reshape(len(self.centres), -1))
        joint = np.hstack([self.weights, self.coef])
        correction = ops.linear(ops.concat([heights, z]), joint, self.intercept)
        return ops.softmax(z + trust(ops, heights, self.reach) * correction)

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The same by a compiled loop."""
        return smooth.kernel(
            self.log_tempered_rows(forecasts),
            forecasts.plain_logs(),
            self.knots,
            self.origin,
            self.stretch,
            self.centres,
            self.weights,
            self.coef,
            self.intercept,
            self.reach,
        )


def trust(ops: Ops[V], heights: V, reach: float) -> V:
    """How far the correction of a row holds, from the heights of its bumps: 1 near some centre."""
    near = ops.largest_value(heights) * (2 / reach) - 1.0
    return ops.minimum(ops.maximum(near, 0.0), 1.0)
