"""A common map, and maps of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isoroc._backends import Ops, V
from isoroc._input import Names, rows_by_group
from isoroc._maps.base import Forecasts, Map, check_nested, state
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class GroupedMap(Map):
    """A common map, and for some groups its mean with a map of the group.

    `grouped` says whether rows have groups; weights are those of the groups' own maps.
    """

    common: Map = state(states.anything)
    grouped: bool = state(states.boolean)
    groups: Names = state(states.names("G"))
    members: Sequence[Map] = state(states.list_of(states.anything, least=0))
    weights: Floats = state(states.coefficients("G"))

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether the common map or that of a group has steps."""
        return any(member.exact for member in (self.common, *self.members))

    def check(self, n_classes: int) -> None:
        """Check the numbers, and the maps."""
        super().check(n_classes)
        if ((self.weights < 0) | (self.weights > 1)).any():
            raise Fault("weights", "expected numbers between 0 and 1")
        if len(self.members) != len(self.groups):
            raise Fault("members", f"expected {len(self.groups)} maps")
        check_nested(self.members, self.kind, n_classes, common=self.common)

    def formula(self, ops: Ops[V], X: V) -> V:
        """The common map."""
        return self.common.formula(ops, X)

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The common map."""
        return self.common.compiled(forecasts)

    def formula_of_groups(self, ops: Ops[V], X: V, place: V) -> V:
        """As `formula`, for rows whose place among `groups` is known; others have another."""
        common = self.common.formula(ops, X)
        result = common
        for g, member in reversed(list(enumerate(self.members))):
            weight = float(self.weights[g])
            mixed = (1 - weight) * common + weight * member.formula(ops, X)
            result = ops.where(ops.is_at(place, g), mixed, result)
        return result

    def apply_to_groups(self, values: Floats, names: Names) -> Floats:
        """Calibrated forecasts of a forecast array whose rows belong to groups."""
        Q = self.apply(values)
        place = {str(name): g for g, name in enumerate(self.groups)}
        for name, rows in rows_by_group(names):
            if (g := place.get(name)) is not None:
                weight, own = self.weights[g], self.members[g].apply(values[rows])
                Q[rows] = (1 - weight) * Q[rows] + weight * own
        return Q
