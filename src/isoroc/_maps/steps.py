"""Step functions of the forecast of each class."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._backends import NUMPY, Ops, V
from isoroc._core.types import Floats
from isoroc._input.kinds import columns_of
from isoroc._maps.base import Map, Places, state
from isoroc._maps.modelfile import Fault, checks


class OneVsRestMap(Map):
    """Step functions of the forecast of each class, or of the second of two classes."""

    #: Ascending, shape (m,). A forecast above i of them has the value ``step_values()[i]``.
    cuts: Sequence[Floats] = state(checks.list_of(checks.ascending))
    exact: ClassVar[bool] = True

    @abstractmethod
    def step_values(self) -> Sequence[Floats]:
        """Values of each function, shape (m + 1,)."""

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        n_maps = 1 if n_classes == 2 else n_classes
        for name in self.states():
            if len(numbers := getattr(self, name)) != n_maps:
                raise Fault(name, f"expected a list of {n_maps}")
            for m, values in enumerate(numbers if name != "cuts" else ()):
                n_values = len(self.cuts[m]) + 1
                checks.coefficients(n_values, least=0, most=1)(values, f"{name}[{m}]", {})

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        q = self.steps(ops, X, self.step_values())
        if len(self.cuts) == 1:
            return ops.concat([1.0 - q, q])
        return q / ops.total(q)

    def steps(self, ops: Ops[V], X: V, values: Sequence[Floats]) -> V:
        """The step functions with these values, one column each."""
        read = self.kind.score if len(self.cuts) == 1 else self.kind.probabilities
        return ops.steps(self.cuts, values, read(ops, X))


class StepMap(OneVsRestMap):
    """Step functions with given values, shape (m + 1,)."""

    values: Sequence[Floats] = state(checks.list_of(checks.anything))

    def step_values(self) -> Sequence[Floats]:
        return self.values


class VennAbersMap(OneVsRestMap):
    """Step functions whose values combine lower and upper probabilities, shape (m + 1,)."""

    lower: Sequence[Floats] = state(checks.list_of(checks.anything))
    upper: Sequence[Floats] = state(checks.list_of(checks.anything))

    def step_values(self) -> Sequence[Floats]:
        """``p1 / (1 - p0 + p1)``."""
        return [p1 / (1 - p0 + p1) for p0, p1 in zip(self.lower, self.upper, strict=True)]

    def intervals(self, values: Floats) -> tuple[Floats, Floats]:
        """Lower and upper probabilities of a forecast array, shape (n, K) each."""
        X = columns_of(values)
        low, high = (self.steps(NUMPY, X, bound) for bound in (self.lower, self.upper))
        if len(self.cuts) == 1:
            return np.hstack([1 - high, low]), np.hstack([1 - low, high])
        return low, high
