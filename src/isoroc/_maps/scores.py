"""ProbabilityMap: base of the maps of logarithms of forecasts.

Logarithms stand in arrays of shape (K, n), one row per class: sums over a few classes are then sums
of long rows, several times faster than many sums of short ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._core import smooth
from isoroc._maps import logs
from isoroc._maps.base import CalibrationMap
from isoroc._maps.logs import LogForecasts
from isoroc._simplex import LEAST, Codes, Floats
from isoroc._writer import C, Writer


class ProbabilityMap(CalibrationMap):
    """Base of the maps for which the size of a score matters, not only its rank."""

    reads_logs: ClassVar[bool] = True

    def takes_probabilities(self) -> bool:
        """Whether scores of two classes outside [0, 1] are refused."""
        return self.scores_ == "probability"

    def _calibrate(self, forecasts: Floats) -> Floats:
        return self.calibrate_logs(LogForecasts(forecasts))

    def probabilities(self, forecasts: Floats) -> Floats:
        """Forecasts as probabilities, shape (n, K)."""
        return logs.probabilities(forecasts, self.scores_)

    def log_forecasts(self, forecasts: Floats, floor: float) -> Floats:
        """Logarithms of the probabilities, those below a floor raised to it, shape (K, n)."""
        return logs.log_forecasts(forecasts, self.scores_, floor)

    def write_log_forecasts(self, w: Writer[C], floor: float, columns: Sequence[C]) -> list[C]:
        """What `log_forecasts` returns, as columns."""
        if self.scores_ == "probability":
            if len(columns) == 1:
                columns = [w.subtract(w.number(1.0), columns[0]), *columns]
            # The logarithm first: maps with other floors use the same.
            z = w.keep(w.log(w.maximum(column, w.number(LEAST))) for column in columns)
            if floor <= LEAST:
                return z
            return [w.maximum(column, w.number(math.log(floor))) for column in z]
        z = list(columns)
        if len(columns) == 1:
            [score] = columns
            zero, one = w.number(0.0), w.number(1.0)
            # log(1 / (1 + exp(-score))) = min(score, 0) - log(1 + exp(-|score|))
            size = w.absolute(score)
            [spread] = w.keep([w.log(w.add(one, w.exp(w.negative(size))))])
            sides = w.keep([w.maximum(score, zero), w.maximum(w.negative(score), zero)])
            z = [w.subtract(w.negative(side), spread) for side in sides]
        lowest = math.log(floor) if floor else logs.LOWEST_LOG
        return [w.maximum(column, w.number(lowest)) for column in z]


def softmax(z: Floats) -> Floats:
    """Softmax of each column of z, shape (K, n), in its place."""
    smooth.softmax(z)
    return z


def log_softmax(z: Floats) -> Floats:
    """Logarithm of the softmax of each column of z, shape (K, n)."""
    z = z - z.max(axis=0)
    return np.asarray(z - np.log(np.exp(z).sum(axis=0)))


def by_row(q: Floats) -> Floats:
    """Forecasts, shape (n, K), from those of shape (K, n)."""
    return smooth.by_row(q)


def of_own_class(z: Floats, codes: Codes) -> Floats:
    """Entry of z, shape (K, n), for the class of each row, shape (n,)."""
    return np.asarray(z[codes, np.arange(len(codes))])
