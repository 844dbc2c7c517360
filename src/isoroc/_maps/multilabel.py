"""MultiLabelMap: a map of two classes for each of several labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from isoroc._backends import Ops, V
from isoroc._input.kinds import kind_of
from isoroc._maps.base import Map, check_nested, state
from isoroc._maps.modelfile import checks


@dataclass(frozen=True, eq=False, kw_only=True)
class MultiLabelMap(Map):
    """The probability of each label, by its own map of two classes."""

    maps: Sequence[Map] = state(checks.list_of(checks.anything, "K"))

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether one of the maps has steps."""
        return any(each.exact for each in self.maps)

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        named = {f"maps[{k}]": each for k, each in enumerate(self.maps)}
        check_nested([], kind_of(1, self.kind.unit), 2, **named)

    def formula(self, ops: Ops[V], X: V) -> V:
        columns = zip(self.maps, ops.split(X, [1] * len(self.maps)), strict=True)
        return ops.concat([ops.take(each.formula(ops, x), [1]) for each, x in columns])
