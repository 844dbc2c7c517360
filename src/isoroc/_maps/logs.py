"""LogForecasts: a forecast array with its logarithms, which several maps may use."""

from __future__ import annotations

import math

import numpy as np

from isoroc._core import smooth
from isoroc._simplex import LEAST, Floats
from isoroc._special import expit, log_expit

#: Logarithms of forecasts below this count as this: their squares must not overflow.
LOWEST_LOG = -1e100


class LogForecasts:
    """A forecast array, and what maps compute from it first. Each of these is computed once.

    A mixture passes one to all of its members. Arrays of shape (K, n) hold one row per class: sums
    over a few classes are then sums of long rows, several times faster than many sums of short
    ones.

    Parameters
    ----------
    forecasts : forecast array
    """

    def __init__(self, forecasts: Floats) -> None:
        self.forecasts = forecasts
        self._logs: dict[str, Floats] = {}
        self._tempered: dict[tuple[str, float, float, float], Floats] = {}

    def probabilities(self, scores: str) -> Floats:
        """Forecasts as probabilities, shape (n, K)."""
        return probabilities(self.forecasts, scores)

    def logs(self, scores: str) -> Floats:
        """Logarithms of the probabilities, shape (K, n); probabilities below LEAST count as that.

        The array belongs to all who ask for it.
        """
        if scores not in self._logs:
            lowest = LEAST if scores == "probability" else 0.0
            self._logs[scores] = log_forecasts(self.forecasts, scores, lowest)
        return self._logs[scores]

    def tempered(self, scores: str, floor: float, temperature: float, share: float) -> Floats:
        """Forecasts after temperature scaling, with a share of the uniform one, shape (K, n).

        The array belongs to all who ask for it.
        """
        key = scores, floor, temperature, share
        if key not in self._tempered:
            lowest = math.log(floor) if floor else LOWEST_LOG
            self._tempered[key] = smooth.tempered(self.logs(scores), lowest, temperature, share)
        return self._tempered[key]


def probabilities(forecasts: Floats, scores: str) -> Floats:
    """A forecast array as probabilities, shape (n, K)."""
    if forecasts.ndim == 2:
        return np.exp(forecasts) if scores == "logit" else forecasts
    if scores == "logit":
        return np.column_stack([expit(-forecasts), expit(forecasts)])
    return np.column_stack([1 - forecasts, forecasts])


def log_forecasts(forecasts: Floats, scores: str, floor: float) -> Floats:
    """Logarithms of the probabilities, those below a floor raised to it, shape (K, n)."""
    if scores == "probability":
        P = np.ascontiguousarray(probabilities(forecasts, scores))
        return smooth.log_forecasts(P, floor)
    if forecasts.ndim == 2:
        z = np.ascontiguousarray(forecasts.T)
    else:
        z = np.stack([log_expit(-forecasts), log_expit(forecasts)])
    return np.asarray(np.maximum(z, math.log(floor) if floor else LOWEST_LOG))
