"""Many classes: forecasts reduced to their largest entries, and calibrated forecasts brought back.

The more classes, the more every split has to answer for and the fewer rows a bin has. The top-m
reduction asks for calibration of the m largest probabilities, whichever classes they belong to: a
forecast becomes its m largest entries and the rest, a point of an (m+1)-simplex, and a label the
rank of its class, or "rest". After calibration the rest is shared among the other classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import minimize_scalar

from isoroc._input import Sample
from isoroc._simplex import Codes, Floats, Ints
from isoroc._writer import C, Writer


@dataclass(frozen=True)
class TopReduction:
    """Forecasts of K classes as forecasts of m ranks and a rest.

    Attributes
    ----------
    top : int
        m, at least 1 and at most K - 2.
    floor : float
        The rest is shared in proportion to ``forecast + floor``. Sharing in proportion to the
        forecasts alone would take the model's word for exactly those probabilities that nobody
        has calibrated: a class that it gives 0 could never come true.

    Examples
    --------
    >>> import numpy as np
    >>> reduction = TopReduction(top=1, floor=0.0)
    >>> P = np.array([[0.1, 0.6, 0.3]])
    >>> reduction.reduce(P)
    array([[0.6, 0.4]])
    >>> reduction.expand(np.array([[0.5, 0.5]]), P)
    array([[0.125, 0.5  , 0.375]])
    """

    top: int
    floor: float

    @classmethod
    def fit(cls, top: int, sample: Sample) -> Self:
        """Reduction with the floor that makes the ranks beyond the top likeliest."""
        P, codes, weights = sample.arrays
        beyond = _rank(P, codes) >= top
        if not beyond.any():
            return cls(top, 1e-6)
        P, codes = P[beyond], codes[beyond]
        n_rest = P.shape[1] - top
        own = P[np.arange(len(P)), codes]
        total = cls(top, 0.0).reduce(P)[:, top]
        weight = np.ones(len(own)) if weights is None else weights[beyond]

        def loss(log_floor: float) -> float:
            floor = np.exp(log_floor)
            likelihood = (own + floor) / (total + n_rest * floor)
            return float(-(weight * np.log(likelihood)).sum())

        found = minimize_scalar(loss, bounds=np.log([1e-6, 10.0]), method="bounded")
        return cls(top, float(np.exp(found.x)))

    def reduce(self, P: Floats) -> Floats:
        """The m largest entries of each row, descending, and the sum of the others."""
        largest = np.take_along_axis(P, _largest(P, self.top), axis=1)
        return np.column_stack([largest, (1 - largest.sum(axis=1)).clip(min=0)])

    def labels(self, P: Floats, codes: Codes) -> Ints:
        """Rank of each row's class, m for the rest."""
        return np.minimum(_rank(P, codes), self.top)

    def reduce_sample(self, sample: Sample) -> Sample:
        """The sample as forecasts of ranks and the rest."""
        ranks = self.labels(sample.forecasts, sample.codes).astype(np.uint8)
        return Sample(self.reduce(sample.forecasts), ranks, sample.weights)

    def write(
        self, w: Writer[C], columns: Sequence[C]
    ) -> tuple[list[C], Callable[[list[C]], list[C]]]:
        """What `reduce` returns, as columns, and `expand` as a function of columns."""
        zero, left = w.number(0.0), list(columns)
        largest, places = [], []
        for _ in range(self.top):
            value, place = w.keep(w.largest(left))
            largest.append(value)
            places.append(place)
            left = w.keep(w.where(w.is_at(place, k), w.number(-1.0), c) for k, c in enumerate(left))
        rest = w.maximum(w.subtract(w.number(1.0), w.total(largest)), zero)
        floor = w.number(self.floor)
        shares = w.keep(
            w.where(w.at_most(zero, c), w.add(p, floor), zero)
            for c, p in zip(left, columns, strict=True)
        )
        [total] = w.keep([w.total(shares)])

        def expand(Q: list[C]) -> list[C]:
            *of_ranks, of_rest = w.keep(Q)
            [ratio] = w.keep([w.divide(of_rest, total)])
            expanded = []
            for k, share in enumerate(shares):
                value = w.multiply(share, ratio)
                for place, q in zip(places, of_ranks, strict=True):
                    value = w.where(w.is_at(place, k), q, value)
                expanded.append(value)
            return expanded

        return w.keep([*largest, rest]), expand

    def expand(self, Q: Floats, P: Floats) -> Floats:
        """Forecasts of K classes from calibrated ones of m ranks and the rest."""
        classes = _largest(P, self.top)
        expanded = P + self.floor
        np.put_along_axis(expanded, classes, 0.0, axis=1)
        expanded *= Q[:, [self.top]] / expanded.sum(axis=1, keepdims=True)
        np.put_along_axis(expanded, classes, Q[:, : self.top], axis=1)
        return expanded


def _largest(P: Floats, top: int) -> Ints:
    """Classes of the largest entries of each row, descending, the lower index first on ties."""
    left = P.copy()
    classes = np.empty((len(P), top), dtype=np.intp)
    for m in range(top):
        classes[:, m] = left.argmax(axis=1)
        np.put_along_axis(left, classes[:, [m]], -1.0, axis=1)
    return classes


def _rank(P: Floats, codes: Codes) -> Ints:
    """How many classes come before each row's own."""
    own = P[np.arange(len(P)), codes][:, None]
    earlier = np.arange(P.shape[1]) < codes[:, None]
    return np.asarray(((own < P) | ((own == P) & earlier)).sum(axis=1))
