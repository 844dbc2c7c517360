"""Ordered classes: an increasing map of the log odds of each ``Y <= k``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isoroc._backends import Ops, V
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats
from isoroc._maps.base import state
from isoroc._maps.modelfile import Fault, checks
from isoroc._maps.scaling import TemperedMap


@dataclass(frozen=True, eq=False, kw_only=True)
class CumulativeMap(TemperedMap):
    """Log odds ``u_k = rates[0] log(F_k) - rates[1] log(1 - F_k) + <location, z> + shifts[k]``.

    Here z are tempered log forecasts, and F_k is the probability of the first k classes under
    ``softmax(z + tilt)``. It increases in k and so do the shifts, so u_k increases in k too.
    """

    tilt: Floats = state(checks.coefficients("K"))
    rates: Floats = state(checks.coefficients(2))
    location: Floats = state(checks.coefficients("K"))
    shifts: Floats = state(checks.coefficients("T"))

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if not (self.rates > 0).all():
            raise Fault("rates", "expected numbers > 0")
        if len(self.shifts) != n_classes - 1 or (np.diff(self.shifts) < 0).any():
            raise Fault("shifts", f"expected {n_classes - 1} ascending numbers")

    def formula(self, ops: Ops[V], X: V) -> V:
        z, K = self.log_tempered(ops, X), len(self.tilt)
        p, first = ops.softmax(z + self.tilt), np.tri(K - 1, K)
        below, above = (ops.maximum(ops.linear(p, part), LEAST) for part in (first, 1 - first))
        u = self.rates[0] * ops.log(below) - self.rates[1] * ops.log(above) + self.shifts
        u = u + ops.linear(z, self.location[None])
        # Logarithms of sigmoid(u) and of sigmoid(-u); their products have no cancellation.
        log_below = ops.minimum(u, 0.0) - ops.log(1.0 + ops.exp(-ops.absolute(u)))
        log_above = log_below - u
        parts = [ops.exp(ops.take(log_below, [0])), ops.exp(ops.take(log_above, [K - 2]))]
        if K > 2:
            high, low = range(1, K - 1), range(K - 2)
            gap = 1.0 - ops.exp(ops.take(u, low) - ops.take(u, high))
            joint = ops.take(log_below, high) + ops.take(log_above, low)
            parts.insert(1, ops.exp(joint) * gap)
        return ops.concat(parts)

    def is_increasing(self) -> bool:
        """Unless a floor above 1/2 flattens it, or the location outweighs the rates."""
        slowest = self.rates.min() + min(self.location[0], -self.location[-1])
        return self.floor <= 0.5 and bool(slowest > 0)
