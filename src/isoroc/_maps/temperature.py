"""Temperature scaling, alone and as the first stage of other maps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isoroc._backends import NUMPY, Ops, V
from isoroc._core import smooth
from isoroc._maps.base import Forecasts, Map, state
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class TemperedMap(Map):
    """Base of the maps that begin with temperature scaling.

    Forecasts below the floor are raised to it, 0 for none; their logarithms are divided by the
    temperature; `smoothing` is the share of the uniform forecast.
    """

    floor: float = state(states.number(most=1.0))
    temperature: float = state(states.number(above=1e-100, most=1e100))
    smoothing: float = state(states.number(most=1.0))

    def check(self, n_classes: int) -> None:
        """Check the numbers; only logits need no floor."""
        super().check(n_classes)
        if self.kind.scores == "probability" and not self.floor:
            raise Fault("floor", "expected a number > 0")

    def tempered(self, ops: Ops[V], X: V) -> V:
        """Forecasts after temperature scaling and smoothing."""
        return ops.mix_uniform(ops.softmax(self._scaled(ops, X)), self.smoothing)

    def log_tempered(self, ops: Ops[V], X: V) -> V:
        """Their logarithms."""
        if self.smoothing:
            return ops.log(self.tempered(ops, X))
        return ops.log_softmax(self._scaled(ops, X))

    def _scaled(self, ops: Ops[V], X: V) -> V:
        return self.kind.logs(ops, X, self.floor) / self.temperature

    def tempered_rows(self, forecasts: Forecasts) -> Floats:
        """What `tempered` returns, by a compiled loop, shape (K, n)."""
        return forecasts.tempered(self.floor, self.temperature, self.smoothing)

    def log_tempered_rows(self, forecasts: Forecasts) -> Floats:
        """What `log_tempered` returns, shape (K, n)."""
        if self.smoothing:
            return smooth.logs_of(self.tempered_rows(forecasts))
        return np.ascontiguousarray(
            NUMPY.log_softmax(forecasts.logs(self.floor).T / self.temperature).T
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class TemperatureMap(TemperedMap):
    """Temperature scaling: ``softmax(log(p) / T)``, with a floor and a share of the uniform."""

    def formula(self, ops: Ops[V], X: V) -> V:
        """The tempered forecasts."""
        return self.tempered(ops, X)

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The same by a compiled loop."""
        return smooth.by_row(self.tempered_rows(forecasts))

    def is_increasing(self) -> bool:
        """Unless a floor above 1/2 flattens it."""
        return self.floor <= 0.5
