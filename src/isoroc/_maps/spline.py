"""Piecewise linear maps of every class's log odds plus a matrix."""

from __future__ import annotations

from dataclasses import dataclass

from isoroc._backends import Ops, V
from isoroc._core import smooth
from isoroc._maps.base import Forecasts, Map, state
from isoroc._persistence import states
from isoroc._simplex import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class SplineMap(Map):
    """``softmax(coef log(p) + sum over m of slopes[:, m] max(odds - knots[m], 0) + intercept)``.

    Forecasts below the floor are raised to it; `smoothing` is the share of the uniform forecast.
    """

    floor: float = state(states.number(above=0.0, most=1.0))
    knots: Floats = state(states.coefficients("m"))
    coef: Floats = state(states.coefficients("K", "K"))
    slopes: Floats = state(states.coefficients("K", "m"))
    intercept: Floats = state(states.coefficients("K"))
    smoothing: float = state(states.number(most=1.0))

    def formula(self, ops: Ops[V], X: V) -> V:
        """The softmax of the sum."""
        logs = self.kind.logs(ops, X, self.floor)
        z = ops.linear(logs, self.coef, self.intercept)
        if len(self.knots):
            z = z + ops.bend(ops.log_odds(logs), self.knots, self.slopes)
        return ops.mix_uniform(ops.softmax(z), self.smoothing)

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The same by a compiled loop."""
        return smooth.spline(
            forecasts.probabilities(),
            forecasts.plain_logs(),
            self.floor,
            self.coef,
            self.knots,
            self.slopes,
            self.intercept,
            self.smoothing,
        )
