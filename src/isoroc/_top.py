"""Many classes: forecasts reduced to their largest entries, and calibrated forecasts brought back.

The more classes, the more every split has to answer for and the fewer rows a bin has. The top-m
reduction asks for calibration of the m largest probabilities, whichever classes they belong to: a
forecast becomes its m largest entries and the rest, a point of an (m+1)-simplex, and a label the
rank of its class, or "rest". After calibration the rest is shared among the other classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from isoroc._input import Sample
from isoroc._simplex import Codes, Floats, Ints
from isoroc._writer import C, Writer

#: Standard errors by which the cap must cost likelihood before it is lifted.
MANY_ERRORS = 2.0
#: Added to likelihoods, so that they have a logarithm.
TINY = 1e-300


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
    capped : bool
        Whether no class of the rest gets more than the least of the m ranks, as long as the rest
        can be shared so: what is too much goes to the others, in proportion to what they may still
        get. Otherwise a class that was not calibrated may overtake those that were. `settle`
        decides.

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
    capped: bool = False

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

        from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to import, only for fits

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
        return Sample(self.reduce(sample.forecasts), ranks, sample.weights, fold=sample.fold)

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
            values = w.keep(w.multiply(share, ratio) for share in shares)
            if self.capped:
                values = self._write_cap(w, values, left, of_ranks)
            for place, q in zip(places, of_ranks, strict=True):
                values = [w.where(w.is_at(place, k), q, value) for k, value in enumerate(values)]
            return values

        return w.keep([*largest, rest]), expand

    def _write_cap(
        self, w: Writer[C], shares: Sequence[C], left: Sequence[C], of_ranks: Sequence[C]
    ) -> list[C]:
        zero = w.number(0.0)
        most = of_ranks[0]
        for q in of_ranks[1:]:
            most = w.where(w.at_most(q, most), q, most)
        [most] = w.keep([most])
        slacks = w.keep(
            w.where(w.at_most(zero, c), w.maximum(w.subtract(most, share), zero), zero)
            for c, share in zip(left, shares, strict=True)
        )
        excess, total = w.keep(
            [
                w.total([w.maximum(w.subtract(share, most), zero) for share in shares]),
                w.total(slacks),
            ]
        )
        [fits] = w.keep([w.at_most(excess, total)])
        divisor = w.where(w.at_most(total, zero), w.number(1.0), total)
        [ratio] = w.keep([w.divide(excess, divisor)])
        return [
            w.where(
                fits,
                w.add(w.where(w.at_most(share, most), share, most), w.multiply(slack, ratio)),
                share,
            )
            for share, slack in zip(shares, slacks, strict=True)
        ]

    def expand(self, Q: Floats, P: Floats) -> Floats:
        """Forecasts of K classes from calibrated ones of m ranks and the rest."""
        classes = _largest(P, self.top)
        shares = P + self.floor
        np.put_along_axis(shares, classes, 0.0, axis=1)
        shares *= Q[:, [self.top]] / shares.sum(axis=1, keepdims=True)
        if self.capped:
            most = Q[:, : self.top].min(axis=1, keepdims=True)
            slack = np.maximum(most - shares, 0.0)
            np.put_along_axis(slack, classes, 0.0, axis=1)
            excess = np.maximum(shares - most, 0.0).sum(axis=1, keepdims=True)
            total = slack.sum(axis=1, keepdims=True)
            ratio = excess / np.where(total > 0, total, 1.0)
            shares = np.where(excess <= total, np.minimum(shares, most) + slack * ratio, shares)
        np.put_along_axis(shares, classes, Q[:, : self.top], axis=1)
        return shares

    def settle(self, Q: Floats, sample: Sample) -> Self:
        """The reduction with the cap, unless the labels of a sample speak against it.

        Parameters
        ----------
        Q : ndarray of shape (n, m + 1)
            Calibrated forecasts of the ranks and the rest.
        sample : Sample
            The rows, with forecasts of all classes.
        """
        rows = np.arange(len(sample))
        losses = [
            -np.log(replace(self, capped=c).expand(Q, sample.forecasts)[rows, sample.codes] + TINY)
            for c in (True, False)
        ]
        cost = losses[0] - losses[1]
        weights = sample.row_weights()
        mean = float(weights @ cost)
        error = float(np.sqrt(weights**2 @ (cost - mean / weights.sum()) ** 2))
        return replace(self, capped=mean <= MANY_ERRORS * error)


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
