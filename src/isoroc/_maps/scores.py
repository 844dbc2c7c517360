"""ProbabilityMap: base of the maps of logarithms of forecasts.

Logarithms stand in arrays of shape (K, n), one row per class: sums over a few classes are then sums
of long rows, several times faster than many sums of short ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._maps.base import CalibrationMap
from isoroc._simplex import LEAST, Codes, Floats
from isoroc._special import expit, log_expit
from isoroc._writer import C, Writer

#: Logarithms of forecasts below this count as this: their squares must not overflow.
LOWEST_LOG = -1e100


class ProbabilityMap(CalibrationMap):
    """Base of the maps for which the size of a score matters, not only its rank."""

    reads_logs: ClassVar[bool] = True

    def takes_probabilities(self) -> bool:
        """Whether scores of two classes outside [0, 1] are refused."""
        return self.scores_ == "probability"

    def probabilities(self, forecasts: Floats) -> Floats:
        """Forecasts as probabilities, shape (n, K)."""
        if forecasts.ndim == 2:
            return np.exp(forecasts) if self.scores_ == "logit" else forecasts
        if self.scores_ == "logit":
            return np.column_stack([expit(-forecasts), expit(forecasts)])
        return np.column_stack([1 - forecasts, forecasts])

    def floored_forecasts(self, forecasts: Floats, floor: float) -> Floats:
        """Probabilities, those below a floor raised to it, shape (K, n)."""
        return np.maximum(np.ascontiguousarray(self.probabilities(forecasts).T), floor)

    def log_forecasts(self, forecasts: Floats, floor: float) -> Floats:
        """Logarithms of the probabilities, those below a floor raised to it, shape (K, n)."""
        if self.scores_ == "probability":
            return np.log(self.floored_forecasts(forecasts, floor))
        if forecasts.ndim == 2:
            z = np.ascontiguousarray(forecasts.T)
        else:
            z = np.stack([log_expit(-forecasts), log_expit(forecasts)])
        return np.asarray(np.maximum(z, np.log(floor) if floor else LOWEST_LOG))

    def write_log_forecasts(self, w: Writer[C], floor: float, columns: Sequence[C]) -> list[C]:
        """What `log_forecasts` returns, as columns."""
        if self.scores_ == "probability":
            if len(columns) == 1:
                columns = [w.subtract(w.number(1.0), columns[0]), *columns]
            # The logarithm first: maps with other floors use the same.
            logs = w.keep(w.log(w.maximum(column, w.number(LEAST))) for column in columns)
            if floor <= LEAST:
                return logs
            return [w.maximum(column, w.number(math.log(floor))) for column in logs]
        logs = list(columns)
        if len(columns) == 1:
            [score] = columns
            zero, one = w.number(0.0), w.number(1.0)
            # log(1 / (1 + exp(-score))) = min(score, 0) - log(1 + exp(-|score|))
            size = w.absolute(score)
            [spread] = w.keep([w.log(w.add(one, w.exp(w.negative(size))))])
            sides = w.keep([w.maximum(score, zero), w.maximum(w.negative(score), zero)])
            logs = [w.subtract(w.negative(side), spread) for side in sides]
        if not floor:
            return logs
        return [w.maximum(column, w.number(math.log(floor))) for column in logs]


def softmax(z: Floats) -> Floats:
    """Softmax of each column of z, shape (K, n), in its place."""
    z -= z.max(axis=0)
    np.exp(z, out=z)
    z /= z.sum(axis=0)
    return z


def log_softmax(z: Floats) -> Floats:
    """Logarithm of the softmax of each column of z, shape (K, n)."""
    z = z - z.max(axis=0)
    return np.asarray(z - np.log(np.exp(z).sum(axis=0)))


def mix_uniform(q: Floats, share: float) -> Floats:
    """Forecasts, shape (K, n), with a share of the uniform one mixed in, in their place."""
    q *= 1 - share
    q += share / len(q)
    return q


def by_row(q: Floats) -> Floats:
    """Forecasts, shape (n, K), from those of shape (K, n)."""
    return np.ascontiguousarray(q.T)


def of_own_class(z: Floats, codes: Codes) -> Floats:
    """Entry of z, shape (K, n), for the class of each row, shape (n,)."""
    return np.asarray(z[codes, np.arange(len(codes))])
