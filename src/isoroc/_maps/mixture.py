"""Maps made of maps: their mean, or one for each label."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._backends import Ops, V, added
from isoroc._core import smooth
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats
from isoroc._input.kinds import columns_of, kind_of
from isoroc._maps.base import Forecasts, Map, Places, check_nested, in_chunks, state
from isoroc._maps.modelfile import Fault, checks
from isoroc._maps.monotone import MonotoneMap, MonotonicityCertificate


class MixtureMap(Map):
    """The weighted mean of the forecasts of other maps. If `monotone`, all members are monotone.

    A mean of calibrated forecasts is underconfident (Ranjan and Gneiting 2010), so it is raised to
    the power `exponent` and normalised. A monotone mixture has the exponent 1. The identity, like a
    `MonotoneMap`, is the gradient of a convex function of z, so averages of both are gradients too.
    """

    members: Sequence[Map] = state(checks.list_of(checks.anything, "M"))
    weights: Floats = state(checks.probabilities("M"))
    monotone: bool = state(checks.boolean)
    exponent: float = state(checks.number(above=0.0, most=100.0), default=1.0)

    least_part: ClassVar[int] = 2**14

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return any(member.exact for member in self.members)

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        check_nested(self.members, "members", self.kind, n_classes)
        if self.monotone and self.exponent != 1:
            raise Fault("exponent", "a monotone mixture has exponent 1")

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        parts = zip(self.members, self.weights, strict=True)
        mean = added(member.formula(ops, X) * float(weight) for member, weight in parts)
        if self.exponent == 1:
            return mean
        return ops.softmax(ops.log(ops.maximum(mean, LEAST)) * self.exponent)

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The formula by the compiled loops of the members, which share logarithms."""
        return in_chunks(self._mixed, forecasts)

    def _mixed(self, forecasts: Forecasts) -> Floats:
        weights = self.weights.tolist()
        mean = np.ascontiguousarray(self.members[0].compiled(forecasts) * weights[0])
        for member, weight in zip(self.members[1:], weights[1:], strict=True):
            mean += member.compiled(forecasts) * weight
        return mean if self.exponent == 1 else smooth.powered(mean, LEAST, self.exponent)

    def is_increasing(self) -> bool:
        """Whether all members are increasing. In a monotone mixture, one is enough."""
        increasing = [member.is_increasing() for member in self.members]
        return any(increasing) if self.monotone else all(increasing)

    def certificate(self, n_classes: int) -> MonotonicityCertificate | None:
        strict = self.is_increasing()
        return MonotonicityCertificate(n_classes, self.floor, strict) if self.monotone else None

    @property
    def floor(self) -> float:
        """Floor of the coordinates. Without a `MonotoneMap`, any floor will do."""
        return next((m.floor for m in self.members if isinstance(m, MonotoneMap)), LEAST)


class MultiLabelMap(Map):
    """The probability of each label, by its own map of two classes."""

    maps: Sequence[Map] = state(checks.list_of(checks.anything, "K"))

    @property
    def exact(self) -> bool:  # type: ignore[override]
        return any(each.exact for each in self.maps)

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        check_nested(self.maps, "maps", kind_of(1, self.kind.unit), 2)

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        columns = zip(self.maps, ops.split(X, [1] * len(self.maps)), strict=True)
        return ops.concat([ops.take(each.formula(ops, x), [1]) for each, x in columns])

    def compiled(self, forecasts: Forecasts) -> Floats:
        columns = zip(self.maps, np.ascontiguousarray(columns_of(forecasts.values).T), strict=True)
        labels = [each.compiled(Forecasts(x, each.kind))[:, 1] for each, x in columns]
        return np.stack(labels, axis=1)
