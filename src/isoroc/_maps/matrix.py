"""Structured matrix scaling of log forecasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isoroc._backends import NUMPY, Ops, V
from isoroc._core import smooth
from isoroc._maps.base import Forecasts, state
from isoroc._maps.temperature import TemperedMap
from isoroc._persistence import states
from isoroc._simplex import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class MatrixMap(TemperedMap):
    """``softmax(coef z + quadratic z**2 + intercept)`` of tempered log forecasts z."""

    coef: Floats = state(states.anything)
    quadratic: Floats = state(states.coefficients("K"))
    intercept: Floats = state(states.coefficients("K"))

    def check(self, n_classes: int) -> None:
        """Check the numbers; `coef` is a matrix or its diagonal."""
        super().check(n_classes)
        shape = ("K",) if np.ndim(self.coef) == 1 else ("K", "K")
        states.coefficients(*shape)(self.coef, "coef", {"K": n_classes})

    def formula(self, ops: Ops[V], X: V) -> V:
        """The softmax of a quadratic function."""
        z = self.log_tempered(ops, X)
        return ops.softmax(transform(ops, z, self.coef, self.quadratic, self.intercept))

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The same with compiled logarithms and exponentials."""
        z = self.log_tempered_rows(forecasts).T
        z = transform(NUMPY, z, self.coef, self.quadratic, self.intercept)
        q = np.ascontiguousarray(z.T)
        smooth.softmax(q)
        return smooth.by_row(q)


def transform(ops: Ops[V], z: V, coef: Floats, quadratic: Floats, intercept: Floats) -> V:
    """``coef z + quadratic z**2 + intercept``; a vector `coef` stands for a diagonal matrix."""
    linear = ops.linear(z, coef, intercept) if coef.ndim == 2 else coef * z + intercept
    return linear + quadratic * (z * z) if quadratic.any() else linear
