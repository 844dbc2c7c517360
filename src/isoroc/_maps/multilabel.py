"""MultiLabelMap: a map of two classes for each of several labels, close to a common one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isoroc._backends import Ops, V
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats
from isoroc._input.kinds import LOG_ODDS, kind_of
from isoroc._maps.base import Map, check_nested, state
from isoroc._maps.modelfile import Fault, checks
from isoroc._maps.segments import LEAST_SCALE


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MultiLabelMap(Map):
    """For each label ``(1 - w) * expit(a * logit(common(p)) + b) + w * own(p)``.

    Each label has its scale a, shift b and weight w, and those of positive weight an `own` map.
    """

    common: Map = state(checks.anything)
    scales: Floats = state(checks.coefficients("K", largest=1e3))
    shifts: Floats = state(checks.coefficients("K", largest=1e3))
    weights: Floats = state(checks.coefficients("K", largest=1.0))
    own: Sequence[Map] = state(checks.list_of(checks.anything, least=0))

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether one of the maps has steps."""
        return any(each.exact for each in (self.common, *self.own))

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if (self.scales < LEAST_SCALE).any():
            raise Fault("scales", f"expected numbers of at least {LEAST_SCALE}")
        if (self.weights < 0).any() or np.count_nonzero(self.weights) != len(self.own):
            raise Fault("weights", f"expected {len(self.own)} numbers above 0, and none below")
        others = {f"own[{i}]": own for i, own in enumerate(self.own)}
        check_nested([], kind_of(1, self.kind.unit), 2, common=self.common, **others)

    def formula(self, ops: Ops[V], X: V) -> V:
        columns, own = [], iter(self.own)
        numbers = np.column_stack([self.scales, self.shifts, self.weights]).tolist()
        for (a, b, w), x in zip(numbers, ops.split(X, [1] * len(numbers)), strict=True):
            q = self.common.formula(ops, x)
            if (a, b) != (1.0, 0.0):
                z = ops.log(ops.maximum(q, LEAST))
                q = LOG_ODDS.probabilities(ops, (ops.take(z, [1]) - ops.take(z, [0])) * a + b)
            q = (1 - w) * q + w * next(own).formula(ops, x) if w else q
            columns.append(ops.take(q, [1]))
        return ops.concat(columns)
