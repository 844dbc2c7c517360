"""Forecasts less outcomes, added up: which way forecasts are wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.intervals import Mean, by_cluster, half_width
from isoroc._core.types import Floats
from isoroc._input import Sample, slices
from isoroc._support.table import Table

#: With more classes, only the direction of the most probable one is known.
MOST_CLASSES = 50


class Residuals:
    """Sums of forecasts less outcomes, to which batches of rows are added."""

    def __init__(self) -> None:
        self._differences: list[Mean] = []
        self._sums, self._weight = np.zeros((2, 0)), 0.0

    def add(self, sample: Sample, squares: Floats) -> None:
        """Add rows and the squares of their weights; a cluster must not span several batches."""
        if sample.clusters is not None:
            self._add(sample, squares)
            return
        for rows in slices(len(sample)):
            self._add(sample.take(rows), squares[rows])

    def _add(self, sample: Sample, squares: Floats) -> None:
        P, codes, weights = sample.forecasts, sample.codes, sample.row_weights()
        events = [None, *(range(P.shape[1]) if P.shape[1] <= MOST_CLASSES else ())]
        if not self._differences:
            self._differences = [Mean() for _ in events]
            self._sums = np.zeros((2, len(events)))
        self._weight += float(weights.sum())
        best = P.argmax(axis=1)
        for i, k in enumerate(events):
            p = P[np.arange(len(P)), best] if k is None else P[:, k]
            residual = p - (codes == (best if k is None else k))
            total, means = by_cluster(sample.clusters, weights, residual)
            self._differences[i].add(means, total, None if sample.clusters is not None else squares)
            # The last one is the variance if the forecasts are calibrated and rows independent.
            self._sums[:, i] += [weights @ p, squares @ (p * (1 - p))]

    def table(self, classes: NDArray[Any], confidence: float) -> Table:
        """Mean forecasts, frequencies and differences with intervals."""
        found = [each.statistic() for each in self._differences]
        difference = np.array([each.value for each in found])
        forecast, least = self._sums / np.array([[self._weight], [self._weight**2]])
        # Without an event among the rows there is hardly a spread.
        spread = np.array([each.variance for each in found])
        half = half_width(confidence) * np.sqrt(np.fmax(spread, least))
        events = ["top", *map(str, classes.tolist())][: len(forecast)]
        return Table(
            event=np.array(events),
            forecast=forecast,
            observed=forecast - difference,
            difference=difference,
            low=difference - half,
            high=difference + half,
        )
