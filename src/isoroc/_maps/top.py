"""Many classes: forecasts reduced to their largest entries, and calibrated forecasts brought back.

A forecast becomes its m largest entries and the rest, a point of an (m+1)-simplex, and a label the
rank of its class, or "rest". After calibration the rest is shared among the other classes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isoroc._backends import NUMPY, Ops, Truth, V
from isoroc._core.types import Codes, Floats, Ints
from isoroc._input import Sample, slices


@dataclass(frozen=True)
class TopReduction:
    """Forecasts of K classes as forecasts of m ranks and a rest.

    Attributes
    ----------
    top : int
        m, at least 1 and at most K - 2.
    floor : float
        The rest is shared in proportion to ``forecast + floor``, so that no class gets 0.
    capped : bool
        Whether no class of the rest gets more than the least of the m ranks, as far as possible.
    """

    top: int
    floor: float
    capped: bool = False

    @classmethod
    def fit(cls, top: int, sample: Sample) -> Self:
        """Reduction with the floor that makes the ranks beyond the top likeliest."""
        beyond = sample.take(_rank(sample.forecasts, sample.codes) >= top)
        if not len(beyond):
            return cls(top, 1e-6)
        P = beyond.forecasts
        weights = beyond.row_weights()
        of_label = P[np.arange(len(P)), beyond.codes]
        total = cls(top, 0.0).reduce(P)[:, top]

        def loss(log_floor: float) -> float:
            floor = np.exp(log_floor)
            likelihood = (of_label + floor) / (total + (P.shape[1] - top) * floor)
            return float(-(weights * np.log(likelihood)).sum())

        from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to import, only for fits

        # From no share for ranks beyond the top to the same probability for all of them.
        minimum = minimize_scalar(loss, bounds=np.log([1e-6, 10.0]), method="bounded")
        return cls(top, float(np.exp(minimum.x)))

    def reduce(self, P: Floats) -> Floats:
        """The m largest entries of each row, descending, and the sum of the others."""
        return _by_parts(P, self.top + 1, lambda rows: self.of(NUMPY, P[rows])[0])

    def reduce_sample(self, sample: Sample) -> Sample:
        """The sample as forecasts of ranks and the rest. Labels are ranks, or m for the rest."""
        P = sample.forecasts
        ranks = np.minimum(_rank(P, sample.codes), self.top).astype(np.uint8)
        return replace(sample, forecasts=self.reduce(P), codes=ranks, classes=None)

    def expand(self, Q: Floats, P: Floats) -> Floats:
        """Forecasts of K classes from calibrated ones of m ranks and the rest."""
        return _by_parts(P, P.shape[1], lambda rows: self.of(NUMPY, P[rows])[1](Q[rows]))

    def through(self, P: Floats, calibrate: Callable[[Floats], Floats]) -> Floats:
        """Forecasts of K classes, given a function that calibrates m ranks and the rest."""

        def calibrated(rows: slice) -> Floats:
            points, expand = self.of(NUMPY, P[rows])
            return np.asarray(expand(calibrate(points)))

        return _by_parts(P, P.shape[1], calibrated)

    def of(self, ops: Ops[V], P: V) -> tuple[V, Callable[..., V]]:
        """What `reduce` returns, of width m + 1, and `expand` as a function of Q."""
        largest, places, left = ops.largest_few(P, self.top)
        tops = ops.concat(largest)
        points = ops.concat([tops, ops.maximum(1.0 - ops.total(tops), 0.0)])

        def expand(Q: V, *, capped: bool = self.capped) -> V:
            in_rest = left >= 0.0
            shares = ops.where(in_rest, P + self.floor, 0.0)
            of_ranks = ops.take(Q, range(self.top))
            values = shares * (ops.take(Q, [self.top]) / ops.total(shares))
            if capped:
                values = _cap(ops, values, ops.smallest(of_ranks), in_rest)
            for m, place in enumerate(places):
                values = ops.put(values, place, ops.take(of_ranks, [m]))
            return values

        return points, expand

    def settle(self, Q: Floats, sample: Sample) -> Self:
        """The reduction with the cap, unless it costs likelihood by two standard errors."""
        P = sample.forecasts
        codes = sample.codes[:, None]

        def likelihoods(rows: slice) -> Floats:
            _, expand = self.of(NUMPY, P[rows])
            both = (expand(Q[rows], capped=capped) for capped in (False, True))
            return np.hstack([np.take_along_axis(q, codes[rows], axis=1) for q in both])

        cost = -np.diff(np.log(_by_parts(P, 2, likelihoods) + 1e-300))[:, 0]
        weights = sample.row_weights()
        mean = float(weights @ cost)
        error = float(np.sqrt(weights**2 @ (cost - mean / weights.sum()) ** 2))
        return replace(self, capped=mean <= 2 * error)


def _cap(ops: Ops[V], values: V, most: V, in_rest: Truth) -> V:
    slack = ops.where(in_rest, ops.maximum(most - values, 0.0), 0.0)
    excess = ops.total(ops.maximum(values - most, 0.0))
    spare = ops.total(slack)
    ratio = excess / ops.where(spare <= 0.0, 1.0, spare)
    return ops.where(excess <= spare, ops.minimum(values, most) + slack * ratio, values)


def _by_parts(P: Floats, width: int, compute: Callable[[slice], Floats]) -> Floats:
    """Compute `width` results per row of P, half a million entries at a time, which is quicker."""
    result = np.empty((len(P), width))
    for rows in slices(len(P), max(1, 2**19 // P.shape[1])):
        result[rows] = compute(rows)
    return result


def _rank(P: Floats, codes: Codes) -> Ints:
    """Number of classes that rank before the label of each row."""
    of_label = P[np.arange(len(P)), codes][:, None]
    earlier = np.arange(P.shape[1]) < codes[:, None]
    return np.asarray(((of_label < P) | ((of_label == P) & earlier)).sum(axis=1))
