"""Potential: a convex function of log forecasts whose gradient is a calibration map.

Log forecasts z stand in arrays of shape (K, n), one row per class. Each class k has L prototypes,
points of the simplex between its vertex e_k and a point t_k of the opposite face:

    r_kl = (1 - softness_kl) e_k + softness_kl t_k.

With scores ``s_kl = scale <z, r_kl> + biases_kl`` and ``x_k = sum over l of exp(s_kl)``, the
potential is

    F(z) = log(x' exp(J) x) / (2 scale),

where J holds the interactions between classes. It is the logarithm of a sum of exponentials of
functions that are affine in z, and so convex. Its gradient is a weighted mean of prototypes,

    q(z) = sum over k, l of w_kl r_kl,    w_kl proportional to exp(s_kl) y_k,    y = exp(J) x,

and so a point of the simplex. A gradient of a convex function is cyclically monotone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoroc._simplex import LEAST, Floats
from isoroc._table import Table
from isoroc._writer import C, Writer

#: Weight of log p beside log(p + floor).
TRACE = 1e-4


@dataclass(frozen=True, eq=False)
class Potential:
    """The convex function and its gradient.

    Attributes
    ----------
    scale : float
        The factor of the log forecasts, > 0.
    softness : ndarray of shape (K, L)
        Mass of each prototype that is not on its own class, in (0, 1).
    biases : ndarray of shape (K, L)
        Logarithm of the weight of each prototype.
    directions : ndarray of shape (K, K), or None
        How each class (row) distributes the mass that its prototypes give to the others: t_k. None
        if it is distributed equally.
    interactions : ndarray of shape (K, K), or None
        J, symmetric with a diagonal of 0. None stands for 0.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.log([[0.7], [0.2], [0.1]])
    >>> F = Potential(0.5, np.zeros((3, 1)), np.zeros((3, 1)))     # prototypes at the vertices:
    >>> F.gradient(z).round(3)                                     # temperature scaling, T = 2
    array([[0.523, 0.279, 0.198]])
    """

    scale: float
    softness: Floats
    biases: Floats
    directions: Floats | None = None
    interactions: Floats | None = None

    def full_directions(self) -> Floats:
        """The points t_k, shape (K, K), also where they are uniform."""
        if self.directions is not None:
            return self.directions
        K = len(self.softness)
        return np.asarray((1 - np.eye(K)) / (K - 1))

    def prototypes(self) -> Floats:
        """The points r_kl, shape (K, L, K)."""
        K = len(self.softness)
        r = self.softness[:, :, None] * self.full_directions()[:, None, :]
        r[np.arange(K), :, np.arange(K)] += 1 - self.softness
        return np.asarray(r)

    def rises(self, z: Floats) -> Floats:
        """``<z, t_k - e_k>`` for each class, shape (K, n)."""
        if self.directions is not None:
            return np.asarray(self.directions @ z - z)
        K = len(z)
        return np.asarray((z.sum(axis=0) - K * z) / (K - 1))

    def interact(self, x: Floats) -> Floats:
        """``exp(J) x`` for x of shape (K, n)."""
        if self.interactions is not None:
            return np.asarray(np.exp(self.interactions) @ x)
        return np.broadcast_to(x.sum(axis=0), x.shape)

    def exponentials(self, z: Floats) -> tuple[Floats, Floats]:
        """``exp(s_kl)``, shape (K, L, n), divided by the largest of each row, and its logarithm."""
        s = self.softness[:, :, None] * (self.scale * self.rises(z))[:, None, :]
        s += (self.scale * z)[:, None, :]
        s += self.biases[:, :, None]
        largest = s.max(axis=(0, 1))
        s -= largest
        return np.exp(s, out=s), largest

    def value(self, z: Floats) -> Floats:
        """F of each row, shape (n,)."""
        e, largest = self.exponentials(z)
        x = e.sum(axis=1)
        squares = np.einsum("kn,kn->n", x, self.interact(x))
        return np.asarray((np.log(squares) + 2 * largest) / (2 * self.scale))

    def gradient(self, z: Floats) -> Floats:
        """The calibrated forecasts, shape (n, K)."""
        e, _ = self.exponentials(z)
        x = e.sum(axis=1)
        y = self.interact(x)
        share = y / np.einsum("kn,kn->n", x, y)
        own = np.einsum("kln,kl->kn", e, 1 - self.softness) * share
        soft = np.einsum("kln,kl->kn", e, self.softness) * share
        if self.directions is not None:
            return np.ascontiguousarray((own + self.directions.T @ soft).T)
        return np.ascontiguousarray((own + (soft.sum(axis=0) - soft) / (len(z) - 1)).T)

    def write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """What `gradient` returns, as columns, from columns of log forecasts."""
        z = w.keep(columns)
        K, L = self.softness.shape
        scale = w.number(self.scale)
        scores = []
        for k, (own, towards) in enumerate(zip(z, self._write_means(w, z), strict=True)):
            rise = w.multiply(scale, w.subtract(towards, own))
            rise, level = w.keep([rise, w.multiply(scale, own)])
            for soft, bias in zip(self.softness[k], self.biases[k], strict=True):
                scores.append(w.run([w.multiply(w.number(soft), rise), level, w.number(bias)]))
        scores = w.keep(scores)
        [largest] = w.keep([w.largest(scores)[0]])
        e = w.keep(w.exp(w.subtract(score, largest)) for score in scores)
        levels = [e[k * L : (k + 1) * L] for k in range(K)]
        x = w.keep(w.sum(level) for level in levels)
        if self.interactions is None:
            y = w.keep([w.sum(x)]) * K
        else:
            y = w.keep(w.linear(np.exp(self.interactions), x))
        [total] = w.keep([w.sum([w.multiply(a, b) for a, b in zip(x, y, strict=True)])])
        share = w.keep(w.divide(column, total) for column in y)

        def mass(of_level: Floats) -> list[C]:
            sums = [w.linear(m[None], e_k)[0] for m, e_k in zip(of_level, levels, strict=True)]
            return w.keep(w.multiply(*pair) for pair in zip(share, sums, strict=True))

        received = self._write_means(w, mass(self.softness), transposed=True)
        return [w.add(*pair) for pair in zip(mass(1 - self.softness), received, strict=True)]

    def _write_means(
        self, w: Writer[C], columns: Sequence[C], *, transposed: bool = False
    ) -> list[C]:
        """The product of the directions, or of their transpose, and columns."""
        if self.directions is not None:
            t = self.directions.T if transposed else self.directions
            return w.linear(t, columns)
        [total] = w.keep([w.sum(columns)])
        others = w.number(len(columns) - 1)
        return [w.divide(w.subtract(total, column), others) for column in columns]


def with_floor(logs: Floats, floor: float) -> Floats:
    """``log(p + floor)`` with a trace of ``log(p)``, from logarithms of forecasts.

    Forecasts far below the floor do not change ``p + floor`` in floating point. The trace keeps
    them apart, so that no ties arise.
    """
    return np.asarray((1 - TRACE) * np.logaddexp(logs, np.log(floor)) + TRACE * logs)


@dataclass(frozen=True, eq=False)
class GradientCertificate:
    """The guarantee of a `MonotoneCalibrator`, in words, and the potential that proves it.

    Attributes
    ----------
    n_classes : int
        K.
    floor : float
        The floor in z, the coordinates in which the potential is convex; see
        `MonotoneCalibrator.coordinates`.
    """

    n_classes: int
    floor: float
    _convex: Potential

    def potential(self, z: Any) -> Floats:
        """The convex function F at points z of shape (n, K), shape (n,)."""
        return self._convex.value(np.asarray(z, dtype=np.float64).T)

    def gradient(self, z: Any) -> Floats:
        """The gradient of F at points z, shape (n, K): the calibrated forecasts."""
        return self._convex.gradient(np.asarray(z, dtype=np.float64).T)

    def table(self) -> Table:
        """One row: the floor and the guarantee in words."""
        return Table(floor=np.array([self.floor]), guarantee=np.array([str(self)]))

    def __str__(self) -> str:
        counted = f"forecasts below {LEAST:g} count as {LEAST:g}"
        if self.n_classes == 2:
            return (
                "Strictly increasing: on all rows, new ones included, the calibrated probability "
                "of each class is a strictly increasing function of its forecast odds "
                f"({counted}). The ROC curve is unchanged and no ties arise, up to rounding."
            )
        return (
            "Cyclically monotone: on all rows, new ones included, the calibrated forecast q is the "
            "gradient of a convex potential of z, where z = "
            f"{1 - TRACE:g} log(p + {self.floor:g}) + {TRACE:g} log(p) in each class ({counted}). "
            "For any two rows <z - z', q - q'> >= 0. If z of one class rises and z of another "
            "falls by the same amount, the difference of their calibrated probabilities does not "
            "fall. The most probable class may change."
        )
