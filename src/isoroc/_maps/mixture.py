"""The weighted mean of other maps, and what holds for means of monotone maps.

Let z be the coordinates of a `MonotoneMap`, an increasing function of each forecast. The map is the
gradient of a convex F(z). The identity is the gradient of a convex function of z too: of the sum
over the classes of G, with ``dG = p dz``. So their average is the gradient of the average. For two
classes, averages of non-decreasing maps are non-decreasing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isoroc._backends import Ops, V, added
from isoroc._core import smooth
from isoroc._maps.base import Forecasts, Map, check_nested, state
from isoroc._maps.monotone import MonotoneMap, MonotonicityCertificate
from isoroc._persistence import states
from isoroc._simplex import LEAST, Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureMap(Map):
    """The weighted mean of the forecasts of other maps; if `monotone`, all of them are."""

    members: Sequence[Map] = state(states.list_of(states.anything, "M"))
    weights: Floats = state(states.probabilities("M"))
    monotone: bool = state(states.boolean)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether some member has steps."""
        return any(member.exact for member in self.members)

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        check_nested(self.members, self.kind, n_classes)

    def formula(self, ops: Ops[V], X: V) -> V:
        parts = zip(self.members, self.weights, strict=True)
        return added(member.formula(ops, X) * float(weight) for member, weight in parts)

    def compiled(self, forecasts: Forecasts) -> Floats:
        total: Floats | None = None
        for weight, member in zip(self.weights, self.members, strict=True):
            part = np.ascontiguousarray(member.compiled(forecasts))
            total = np.zeros_like(part) if total is None else total
            smooth.add_weighted(total, weight, part)
        return np.asarray(total)

    def is_increasing(self) -> bool:
        """Whether all members are; of a monotone mixture, whose members are isotone, one."""
        found = [member.is_increasing() for member in self.members]
        return any(found) if self.monotone else all(found)

    def certificate(self, n_classes: int) -> MonotonicityCertificate | None:
        """The guarantee of a monotone mixture of K classes in words."""
        if not self.monotone:
            return None
        return MonotonicityCertificate(n_classes, self.floor, self.is_increasing())

    @property
    def floor(self) -> float:
        """Floor of the coordinates; without a `MonotoneMap` any will do."""
        return next((m.floor for m in self.members if isinstance(m, MonotoneMap)), LEAST)
