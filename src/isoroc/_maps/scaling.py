"""Scaling: a softmax of functions of log forecasts, most of them after temperature scaling."""

from functools import cached_property
from typing import ClassVar

import numpy as np

from isoroc._backends import Ops, V
from isoroc._core import smooth
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats
from isoroc._maps.base import Forecasts, Frozen, Map, Places, in_chunks, state
from isoroc._maps.modelfile import Fault, checks


class TemperedMap(Map):
    """Base of the maps that begin with temperature scaling, with a floor and smoothing."""

    floor: float = state(checks.number(most=1.0))
    temperature: float = state(checks.number(above=1e-100, most=1e100))
    smoothing: float = state(checks.number(most=1.0))

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if self.kind.scores == "probability" and not self.floor:
            raise Fault("floor", "expected a number > 0")

    def tempered(self, ops: Ops[V], X: V) -> V:
        """Forecasts after temperature scaling and smoothing."""
        return ops.mix_uniform(ops.softmax(self._scaled(ops, X)), self.smoothing)

    def log_tempered(self, ops: Ops[V], X: V) -> V:
        """Logarithms of the tempered forecasts."""
        if self.smoothing:
            return ops.log(self.tempered(ops, X))
        return ops.log_softmax(self._scaled(ops, X))

    def _scaled(self, ops: Ops[V], X: V) -> V:
        return self.kind.logs(ops, X, self.floor) / self.temperature

    def log_tempered_rows(self, forecasts: Forecasts) -> Floats:
        """What `log_tempered` returns, by a compiled loop, shape (K, n)."""
        return forecasts.log_tempered(self.floor, self.temperature, self.smoothing)


class TemperatureMap(TemperedMap):
    """Temperature scaling: ``softmax(log(p) / T)``, with a floor and a share of the uniform."""

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        return self.tempered(ops, X)

    def compiled(self, forecasts: Forecasts) -> Floats:
        return forecasts.tempered(self.floor, self.temperature, self.smoothing)

    def is_increasing(self) -> bool:
        """True unless a floor above 1/2 flattens the map."""
        return self.floor <= 0.5


class MatrixMap(TemperedMap):
    """``softmax(coef z + quadratic z**2 + intercept)`` of tempered log forecasts z."""

    coef: Floats = state(checks.anything)
    quadratic: Floats = state(checks.coefficients("K"))
    intercept: Floats = state(checks.coefficients("K"))

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        shape = ("K",) if np.ndim(self.coef) == 1 else ("K", "K")
        checks.coefficients(*shape)(self.coef, "coef", {"K": n_classes})

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        z = self.log_tempered(ops, X)
        return ops.softmax(transform(ops, z, self.coef, self.quadratic, self.intercept))

    def compiled(self, forecasts: Forecasts) -> Floats:
        return in_chunks(self._transformed, forecasts)

    def _transformed(self, forecasts: Forecasts) -> Floats:
        z = self.log_tempered_rows(forecasts)
        return smooth.matrix(z, *self._linear, self.quadratic, self.intercept)

    @cached_property
    def _linear(self) -> tuple[Floats | None, Floats]:
        """`coef` as the compiled loop takes it: a matrix in groups of rows, and a diagonal."""
        if self.coef.ndim == 1:
            return None, self.coef
        return smooth.in_groups(self.coef), np.zeros(len(self.coef))


def transform(ops: Ops[V], z: V, coef: Floats, quadratic: Floats, intercept: Floats) -> V:
    """``coef z + quadratic z**2 + intercept``. A vector `coef` stands for a diagonal matrix."""
    if coef.ndim == 1:
        return (quadratic * z + coef) * z + intercept if quadratic.any() else coef * z + intercept
    linear = ops.linear(z, coef, intercept)
    return linear + quadratic * (z * z) if quadratic.any() else linear


class Positions(Frozen):
    """Where rows lie among each other: centred log forecasts, and their ranks in each class."""

    knots: Floats  # ascending log forecasts of each class, between which ranks are linear: (K, m)
    origin: Floats  # the place of zero, shape (2, K)
    stretch: Floats  # factors of log forecasts and of ranks, shape (2,)

    def of(self, ops: Ops[V], z: V, logs: V) -> V:
        """Positions, of width 2 K, from tempered and from plain log forecasts."""
        K = len(self.knots)
        of_logs, of_ranks = self.stretch.tolist()
        places = ops.linear(z, of_logs * (np.eye(K) - 1 / K), -of_logs * self.origin[0])
        ranks = of_ranks * ops.fraction_between(logs, self.knots) - of_ranks * self.origin[1]
        return ops.concat([places, ranks])


class KernelMap(TemperedMap):
    """``softmax(z + t (weights bumps(x) + coef z + intercept))`` of tempered log forecasts z.

    `knots`, `origin` and `stretch` define the positions x, and the function `trust` defines t.
    """

    knots: Floats = state(checks.coefficients("K", smooth.N_KNOTS))
    origin: Floats = state(checks.coefficients(2, "K"))
    stretch: Floats = state(checks.coefficients(2))
    centres: Floats = state(checks.coefficients("m", 2, "K"))
    weights: Floats = state(checks.coefficients("K", "m"))
    coef: Floats = state(checks.coefficients("K", "K"))
    intercept: Floats = state(checks.coefficients("K"))
    reach: float = state(checks.number(above=0.0, most=1.0))

    least_part: ClassVar[int] = 2**15

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if not (np.diff(self.knots, axis=1) > 0).all():
            raise Fault("knots", "expected ascending numbers")

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        z = self.log_tempered(ops, X)
        logs = self.kind.logs(ops, X, LEAST)
        positions = Positions(knots=self.knots, origin=self.origin, stretch=self.stretch)
        x = positions.of(ops, z, logs)
        heights = ops.cauchy_kernel(x, self.centres.reshape(len(self.centres), -1))
        joint = np.hstack([self.weights, self.coef])
        correction = ops.linear(ops.concat([heights, z]), joint, self.intercept)
        return ops.softmax(z + trust(ops, heights, self.reach) * correction)

    def compiled(self, forecasts: Forecasts) -> Floats:
        z = self.log_tempered_rows(forecasts)
        return smooth.kernel(z, forecasts.plain_logs(), *self._prepared, self.reach)

    @cached_property
    def _prepared(self) -> tuple[float, int, Floats, Floats, Floats, Floats, Floats]:
        """The numbers as the compiled loop takes them."""
        positions = self.knots, self.origin, self.stretch
        correction = self.weights, self.coef, self.intercept
        return smooth.kernel_numbers(*positions, self.centres, *correction)


def trust(ops: Ops[V], heights: V, reach: float) -> V:
    """How far the correction of a row holds, from the heights of its bumps: 1 near some centre."""
    near = ops.largest_value(heights) * (2 / reach) - 1.0
    return ops.minimum(ops.maximum(near, 0.0), 1.0)


class CumulativeMap(TemperedMap):
    """Log odds ``u_k = rates[0] log(F_k) - rates[1] log(1 - F_k) + <location, z> + shifts[k]``.

    Here z are tempered log forecasts, and F_k is the probability of the first k classes under
    ``softmax(z + tilt)``. It increases in k and so do the shifts, so u_k increases in k too.
    """

    tilt: Floats = state(checks.coefficients("K"))
    rates: Floats = state(checks.coefficients(2))
    location: Floats = state(checks.coefficients("K"))
    shifts: Floats = state(checks.coefficients("T"))

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        if not (self.rates > 0).all():
            raise Fault("rates", "expected numbers > 0")
        if len(self.shifts) != n_classes - 1 or (np.diff(self.shifts) < 0).any():
            raise Fault("shifts", f"expected {n_classes - 1} ascending numbers")

    @cached_property
    def _sides(self) -> tuple[Floats, Floats]:
        """Which classes are among the first k and which are not, for k from 1 to K - 1."""
        first = np.tri(len(self.shifts), len(self.tilt))
        return first, 1 - first

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        z = self.log_tempered(ops, X)
        K = len(self.tilt)
        p = ops.softmax(z + self.tilt)
        below, above = (ops.maximum(ops.linear(p, side), LEAST) for side in self._sides)
        u = self.rates[0] * ops.log(below) - self.rates[1] * ops.log(above) + self.shifts
        u = u + ops.linear(z, self.location[None])
        # Products of sigmoid(u) and sigmoid(-u), in logarithms, have no cancellation.
        log_below = ops.log_sigmoid(u)
        log_above = log_below - u
        ends = ops.take(log_below, range(1)), ops.take(log_above, range(K - 2, K - 1))
        parts = [ops.exp(end) for end in ends]
        if K > 2:
            high = range(1, K - 1)
            low = range(K - 2)
            gap = 1.0 - ops.exp(ops.take(u, low) - ops.take(u, high))
            joint = ops.take(log_below, high) + ops.take(log_above, low)
            parts.insert(1, ops.exp(joint) * gap)
        return ops.concat(parts)

    def compiled(self, forecasts: Forecasts) -> Floats:
        z = self.log_tempered_rows(forecasts)
        return smooth.cumulative(z, self.tilt, self.rates, self.location, self.shifts, LEAST)

    def is_increasing(self) -> bool:
        """True unless a floor above 1/2 flattens the map or the location outweighs the rates."""
        slowest = self.rates.min() + min(self.location[0], -self.location[-1])
        return self.floor <= 0.5 and bool(slowest > 0)


class SplineMap(Map):
    """``softmax(coef log(p) + sum over m of slopes[:, m] max(odds - knots[m], 0) + intercept)``."""

    floor: float = state(checks.number(above=0.0, most=1.0))
    knots: Floats = state(checks.coefficients("m"))
    coef: Floats = state(checks.coefficients("K", "K"))
    slopes: Floats = state(checks.coefficients("K", "m"))
    intercept: Floats = state(checks.coefficients("K"))
    smoothing: float = state(checks.number(most=1.0))

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        logs = self.kind.logs(ops, X, self.floor)
        z = ops.linear(logs, self.coef, self.intercept)
        if len(self.knots):
            z = z + ops.hinges(ops.log_odds(logs), self.knots, self.slopes)
        return ops.mix_uniform(ops.softmax(z), self.smoothing)

    def compiled(self, forecasts: Forecasts) -> Floats:
        inputs = forecasts.probabilities(), forecasts.plain_logs(), self.floor
        return smooth.spline(*inputs, *self._prepared, self.smoothing)

    @cached_property
    def _prepared(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The numbers as the compiled loop takes them: of a diagonal matrix, only the diagonal."""
        diagonal = np.diag(self.coef)[:, None]
        is_diagonal = np.count_nonzero(self.coef) == np.count_nonzero(diagonal)
        coef = diagonal if is_diagonal else self.coef
        return smooth.spline_numbers(coef, self.knots, self.slopes, self.intercept)


class SigmoidMap(Map):
    """``sigmoid(coef log(p) - rest log(1 - p) + intercept)`` of each class, divided by their sum.

    If `linear`, it is ``sigmoid(coef p + intercept)``.
    """

    floor: float = state(checks.number(above=0.0, most=1.0))
    coef: Floats = state(checks.coefficients("K"))
    rest: Floats = state(checks.coefficients("K"))
    intercept: Floats = state(checks.coefficients("K"))
    linear: bool = state(checks.boolean)

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        """The softmax of logarithms of sigmoids, which divides by the sum without underflow."""
        if self.linear:
            z = self.coef * self.kind.probabilities(ops, X) + self.intercept
        else:
            logs = self.kind.logs(ops, X, self.floor)
            log_rest = logs - ops.log_odds(logs)
            z = self.coef * logs - self.rest * log_rest + self.intercept
        return ops.softmax(ops.log_sigmoid(z))

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The formula with logarithms that the members of a mixture share."""
        if self.linear:
            return super().compiled(forecasts)
        logs = forecasts.plain_logs()
        if self._of_second is not None:
            return smooth.logistic(logs, self.floor, *self._of_second)
        return smooth.sigmoid(logs, self.floor, self.coef, self.rest, self.intercept)

    @cached_property
    def _of_second(self) -> tuple[float, float, float] | None:
        """The numbers of the second of two classes with opposite log odds, as fits have them."""
        numbers = np.stack([self.coef, self.rest, -self.intercept])
        opposite = np.stack([self.rest, self.coef, self.intercept])[:, ::-1]
        if len(self.coef) > 2 or not np.array_equal(numbers, opposite):
            return None
        return float(self.coef[1]), float(self.rest[1]), float(self.intercept[1])

    def is_increasing(self) -> bool:
        """True if neither coefficient is negative and one is positive, with a floor up to 1/2."""
        rates = self.coef[-1], self.rest[-1]
        return self.floor <= 0.5 and min(rates) >= 0 and max(rates) > 0
