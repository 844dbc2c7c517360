"""Forecasts less outcomes, added up: which way forecasts are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.intervals import half_width
from isoroc._core.types import Floats
from isoroc._input import slices
from isoroc._support.table import Table

#: With more classes, only the direction of the most probable one is known.
MOST_CLASSES = 50


class Residuals:
    """Sums of forecasts less outcomes, to which batches of rows are added."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._weight = np.zeros(2)  # sums of the weights and of their squares
        self._sums = np.zeros((0, 5))

    def add(
        self, P: Floats, codes: NDArray[Any], weights: Floats, squares: Floats, n_rows: int
    ) -> None:
        """Add rows with their weights, and the squares of the weights."""
        events = [None, *(range(P.shape[1]) if P.shape[1] <= MOST_CLASSES else ())]
        if not self._n_rows:
            self._sums = np.zeros((len(events), 5))
        self._n_rows += n_rows
        for rows in slices(len(P)):
            w, s, part = weights[rows], squares[rows], P[rows]
            self._weight += [w.sum(), s.sum()]
            for i, k in enumerate(events):
                best = part.argmax(axis=1) if k is None else np.full(len(part), k)
                p = part[np.arange(len(part)), best]
                residual = p - (best == codes[rows])
                self._sums[i, :2] += [w @ p, w @ residual]
                # The last one is the variance if the forecasts are calibrated.
                self._sums[i, 2:] += [s @ residual, s @ residual**2, s @ (p * (1 - p))]

    def table(self, classes: NDArray[Any], confidence: float) -> Table:
        """Mean forecasts, frequencies and differences with intervals."""
        (total, squares), n = self._weight, self._n_rows
        forecast, difference = self._sums[:, :2].T / total
        first, second, least = self._sums[:, 2:].T
        spread = second - 2 * difference * first + difference**2 * squares
        # Without an event among the rows there is hardly a spread.
        variance = np.maximum(spread * n / max(n - 1, 1), least) / total**2
        half = half_width(confidence) * np.sqrt(variance)
        events = ["top", *map(str, classes.tolist())][: len(forecast)]
        return Table(
            event=np.array(events),
            forecast=forecast,
            observed=forecast - difference,
            difference=difference,
            low=difference - half,
            high=difference + half,
        )
