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
from isoroc._maps.monotone import TRACE, MonotoneMap
from isoroc._persistence import states
from isoroc._simplex import LEAST, Floats
from isoroc._table import Table


@dataclass(frozen=True, eq=False, kw_only=True)
class MixtureMap(Map):
    """The weighted mean of the forecasts of other maps.

    Attributes
    ----------
    members : sequence of Map
    weights : ndarray of shape (M,)
        They sum to one.
    monotone : bool
        Whether all members are monotone, and what they share is guaranteed.
    """

    members: Sequence[Map] = state(states.list_of(states.anything, "M"))
    weights: Floats = state(states.probabilities("M"))
    monotone: bool = state(states.boolean)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether some member has steps."""
        return any(member.exact for member in self.members)

    def check(self, n_classes: int) -> None:
        """Check the numbers, and the members."""
        super().check(n_classes)
        members = {f"members[{m}]": member for m, member in enumerate(self.members)}
        check_nested(members, self.kind, n_classes)

    def formula(self, ops: Ops[V], X: V) -> V:
        """The weighted mean."""
        parts = zip(self.members, self.weights, strict=True)
        return added(member.formula(ops, X) * float(weight) for member, weight in parts)

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The same by the compiled loops of the members, which share logarithms."""
        total: Floats | None = None
        for weight, member in zip(self.weights, self.members, strict=True):
            part = np.ascontiguousarray(member.compiled(forecasts))
            total = np.zeros_like(part) if total is None else total
            smooth.add_weighted(total, weight, part)
        return np.asarray(total)

    def is_increasing(self) -> bool:
        """Whether all members are.

        Those of a monotone mixture are non-decreasing, so there one is enough.
        """
        found = [member.is_increasing() for member in self.members]
        return any(found) if self.monotone else all(found)

    def certificate(self, n_classes: int) -> MixtureCertificate | None:
        """The guarantee of a monotone mixture of K classes in words."""
        if not self.monotone:
            return None
        return MixtureCertificate(n_classes, self.floor, self.is_increasing())

    @property
    def floor(self) -> float:
        """Floor of the coordinates; without a `MonotoneMap` any will do."""
        return next((m.floor for m in self.members if isinstance(m, MonotoneMap)), LEAST)


@dataclass(frozen=True)
class MixtureCertificate:
    """The guarantee of a monotone mixture, in words.

    Attributes
    ----------
    n_classes : int
        K.
    floor : float
        For three classes or more, the floor of the coordinates z in which the mixture is cyclically
        monotone; see `MonotoneCalibrator`.
    strict : bool
        For two classes, whether the mixture is strictly increasing.
    """

    n_classes: int
    floor: float
    strict: bool

    def table(self) -> Table:
        """One row: the floor and the guarantee in words."""
        return Table(floor=np.array([self.floor]), guarantee=np.array([str(self)]))

    def __str__(self) -> str:
        if self.n_classes > 2:
            return (
                "Cyclically monotone: a mixture of maps that on all rows, new ones included, are "
                f"gradients of convex potentials of z, where z = {1 - TRACE:g} log(p + "
                f"{self.floor:g}) + {TRACE:g} log(p) in each class (forecasts below {LEAST:g} "
                f"count as {LEAST:g}). The most probable class may change."
            )
        if self.strict:
            return (
                "Strictly increasing: on all rows, new ones included, the calibrated probability "
                "of each class is a strictly increasing function of its forecast. The ROC curve is "
                "unchanged and no ties arise, up to rounding."
            )
        return (
            "Non-decreasing: on all rows, new ones included, the calibrated probability of each "
            "class is a non-decreasing function of its forecast. Different forecasts may become "
            "ties."
        )
