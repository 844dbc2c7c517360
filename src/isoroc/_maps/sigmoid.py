"""A logistic function of the forecast of each class."""

from __future__ import annotations

from dataclasses import dataclass

from isoroc._backends import Ops, V
from isoroc._maps.base import Map, state
from isoroc._persistence import states
from isoroc._simplex import Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class SigmoidMap(Map):
    """``sigmoid(coef log(p) - rest log(1 - p) + intercept)`` of each class, divided by their sum.

    For two classes the function of the first mirrors that of the second, and the sum is 1.

    Attributes
    ----------
    floor : float
        Forecasts below it are raised to it.
    coef, rest, intercept : ndarray of shape (K,)
    """

    floor: float = state(states.number(above=0.0, most=1.0))
    coef: Floats = state(states.coefficients("K"))
    rest: Floats = state(states.coefficients("K"))
    intercept: Floats = state(states.coefficients("K"))

    def formula(self, ops: Ops[V], X: V) -> V:
        """The softmax of logarithms of sigmoids, which divides by the sum without underflow."""
        logs = self.kind.logs(ops, X, self.floor)
        log_rest = logs - ops.log_odds(logs)
        z = self.coef * logs - self.rest * log_rest + self.intercept
        return ops.softmax(ops.minimum(z, 0.0) - ops.log(1.0 + ops.exp(-ops.absolute(z))))

    def is_increasing(self) -> bool:
        """If neither coefficient is negative."""
        rates = self.coef[-1], self.rest[-1]
        return self.floor <= 0.5 and min(rates) >= 0 and max(rates) > 0
