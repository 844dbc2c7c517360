"""The gradient of a convex potential of log forecasts: see Notes of `MonotoneCalibrator`.

With scores ``s_kl = scale <z, r_kl> + biases_kl`` of the prototypes r_kl, the potential is the
logarithm of a sum of exponentials of functions that are affine in z, and so convex. Its gradient is
a weighted mean of prototypes,

    q(z) = sum over k, l of w_kl r_kl,    w_kl proportional to exp(s_kl) y_k,    y = exp(J) x,

and so a point of the simplex. A gradient of a convex function is cyclically monotone.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from isoroc._backends import Ops, V
from isoroc._core import smooth
from isoroc._core.simplex import LEAST
from isoroc._core.types import Floats, Ints
from isoroc._maps.base import Forecasts, Map, Places, state
from isoroc._maps.modelfile import Fault, checks
from isoroc._support.table import Table

TRACE = 1e-4  # weight of log p beside log(p + floor)


def with_floor(ops: Ops[V], logs: V, floor: float) -> V:
    """``log(p + floor)`` with a trace of ``log(p)``, which keeps forecasts below it apart."""
    lowest = float(np.log(floor))
    gap = -ops.absolute(logs - lowest)
    raised = ops.maximum(logs, lowest) + ops.log(1.0 + ops.exp(gap))
    return (1 - TRACE) * raised + TRACE * logs


@dataclass(frozen=True, eq=False)
class MonotonicityCertificate:
    """What holds for a monotone map of K classes on all rows: ``print`` shows it in words.

    Attributes
    ----------
    n_classes : int
        K.
    floor : float
        The floor in z, the coordinates of a map of three classes or more.
    strict : bool
        For two classes, whether the map is strictly increasing.
    """

    n_classes: int
    floor: float
    strict: bool

    def table(self) -> Table:
        """One row: the floor and the guarantee in words."""
        return Table(floor=np.array([self.floor]), guarantee=np.array([str(self)]))

    def __str__(self) -> str:
        counted = f"forecasts below {LEAST:g} count as {LEAST:g}"
        if self.n_classes > 2:
            return (
                "Cyclically monotone: on all rows, new ones included, the calibrated forecast q is "
                f"the gradient of a convex potential of z, where z = {1 - TRACE:g} log(p + "
                f"{self.floor:g}) + {TRACE:g} log(p) in each class ({counted}). For any two rows "
                "<z - z', q - q'> >= 0. If z of one class rises and z of another falls by the same "
                "amount, the difference of their calibrated probabilities does not fall. The most "
                "probable class may change."
            )
        if self.strict:
            return (
                "Strictly increasing: on all rows, new ones included, the calibrated probability "
                "of each class is a strictly increasing function of its forecast odds "
                f"({counted}). The ROC curve is unchanged and no ties arise, up to rounding."
            )
        return (
            "Non-decreasing: on all rows, new ones included, the calibrated probability of each "
            "class is a non-decreasing function of its forecast. Different forecasts may become "
            "ties."
        )


class MonotoneMap(Map):
    """The gradient of a convex potential of z, log forecasts with a floor: see `with_floor`.

    Directions are the points t_k, or None if uniform. Interactions are J, or None for 0.
    """

    floor: float = state(checks.number(above=0.0, most=1.0))
    scale: float = state(checks.number(above=0.0, most=1e100))
    softness: Floats = state(checks.coefficients("K", "L", least=0, most=1))
    directions: Floats | None = state(checks.anything)
    biases: Floats = state(checks.coefficients("K", "L"))
    interactions: Floats | None = state(checks.anything)

    least_part: ClassVar[int] = 2**15

    def check(self, n_classes: int) -> None:
        super().check(n_classes)
        K = n_classes
        if self.directions is not None:
            checks.coefficients(K, K)(self.directions, "directions", {})
            checks.probabilities("K", or_matrix=True)(self.directions, "directions", {"K": K})
        if self.interactions is not None:
            checks.coefficients(K, K)(self.interactions, "interactions", {})
            if not np.array_equal(self.interactions, self.interactions.T):
                raise Fault("interactions", "expected a symmetric matrix")

    def certificate(self, n_classes: int) -> MonotonicityCertificate:
        return MonotonicityCertificate(n_classes, self.floor, self.is_increasing())

    def coordinates(self, ops: Ops[V], X: V) -> V:
        """The points z in which the map is the gradient."""
        return with_floor(ops, self.kind.logs(ops, X, LEAST), self.floor)

    def formula(self, ops: Ops[V], X: V, places: Places[V] = ()) -> V:
        return self.gradient(ops, self.coordinates(ops, X))

    def compiled(self, forecasts: Forecasts) -> Floats:
        """The formula with logarithms that members of a mixture share."""
        logs = forecasts.logs(LEAST)
        if len(self.softness) == 2 and self.interactions is None:
            return smooth.blend(logs, self.floor, TRACE, *self._blended)
        return smooth.gradient(
            logs,
            self.floor,
            TRACE,
            self.scale,
            self.softness,
            self.biases,
            *self._prepared,
        )

    @cached_property
    def _blended(self) -> tuple[Floats, Floats, Floats]:
        """Slopes, biases and points of the prototypes of two classes, for the compiled loop."""
        points = self.prototypes.reshape(-1, 2)
        return self.scale * points, self.biases.ravel(), points

    @cached_property
    def _prepared(self) -> tuple[Floats | None, ...]:
        """Directions, their transpose and ``exp(J)`` as the compiled loop takes them."""
        down = None if self.directions is None else self.directions.T
        matrices = self.directions, down, self._factors
        return tuple(None if matrix is None else smooth.in_groups(matrix) for matrix in matrices)

    @cached_property
    def _factors(self) -> Floats | None:
        """``exp(J)``, or None for ones."""
        return None if self.interactions is None else np.asarray(np.exp(self.interactions))

    def is_increasing(self) -> bool:
        """True unless all prototypes coincide."""
        return bool(np.ptp(self.prototypes[..., -1]) > 0)

    def full_directions(self) -> Floats:
        """The points t_k, shape (K, K), also where they are uniform."""
        K = len(self.softness)
        uniform = (1 - np.eye(K)) / (K - 1)
        return np.asarray(uniform if self.directions is None else self.directions)

    @cached_property
    def prototypes(self) -> Floats:
        """The points r_kl, shape (K, L, K)."""
        K = len(self.softness)
        r = self.softness[:, :, None] * self.full_directions()[:, None, :]
        r[np.arange(K), :, np.arange(K)] += 1 - self.softness
        r.setflags(write=False)
        return np.asarray(r)

    def rises(self, z: Floats) -> Floats:
        """``<z, t_k - e_k>`` for each class, shape (K, n), from z of shape (K, n)."""
        if self.directions is not None:
            return np.asarray(self.directions @ z - z)
        K = len(z)
        return np.asarray((z.sum(axis=0) - K * z) / (K - 1))

    def gradient(self, ops: Ops[V], z: V) -> V:
        """The calibrated forecasts, of width K, from log forecasts."""
        scores = self._scores(ops, z)
        if len(self.softness) == 2 and self.interactions is None:
            return self._mean_of_two(ops, scores)
        e = ops.exp(scores - ops.largest_value(scores))
        hard = ops.segment_sums(e, 1 - self.softness)
        soft = ops.segment_sums(e, self.softness)
        if self._factors is not None:
            x = ops.segment_sums(e, np.ones_like(self.softness))
            y = ops.linear(x, self._factors)
            hard = hard * y
            soft = soft * y
        if self.directions is not None:
            weighted = hard + ops.linear(soft, self.directions.T)
        else:
            weighted = hard + (ops.sum(soft) - soft) / float(len(self.softness) - 1)
        return weighted / ops.sum(weighted)  # prototypes sum to one

    def _mean_of_two(self, ops: Ops[V], scores: V) -> V:
        """Two classes: the heaviest prototype, and what the others add to it.

        A quotient of sums would rise and fall by rounding where one prototype dominates.
        """
        r = self.prototypes.reshape(-1, 2)
        largest, place = ops.largest(scores)
        e = ops.exp(scores - largest)
        heaviest = ops.look_up(r, place)
        total = ops.sum(e)
        most = ops.split(heaviest, [1, 1])
        return ops.concat([most[k] + ops.sum(e * (r[:, k] - most[k])) / total for k in range(2)])

    def _scores(self, ops: Ops[V], z: V) -> V:
        """``s_kl``, of width K L."""
        K, L = self.softness.shape
        if self.directions is not None:
            prototypes = self.prototypes.reshape(K * L, K)
            return ops.linear(z, self.scale * prototypes, self.biases.ravel())
        towards_class, towards_all, place = self._slopes
        each = ops.take(z, place)
        return each * towards_class + ops.sum(z) * towards_all + self.biases.ravel()

    @cached_property
    def _slopes(self) -> tuple[Floats, Floats, Ints]:
        """For each score its slope in the log forecast of its class and in all, and the class."""
        K, L = self.softness.shape
        softness = self.softness.ravel()
        towards_all = np.asarray(self.scale / (K - 1) * softness)
        towards_class = np.asarray(self.scale * (1 - softness) - towards_all)
        return towards_class, towards_all, np.repeat(np.arange(K), L)
