"""What calibrators of each class against the rest have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._core.rows import locate
from isoroc._counts import BinaryCounts
from isoroc._input import Sample
from isoroc._simplex import Floats, binary_scores


class OneVsRestCalibrator(Calibrator):
    """Base of the calibrators that map the forecast of each class by a step function of its own.

    Of three classes or more, rows are then divided by their sum. Two classes have one map, that of
    the second. A map is ``values[i]`` for forecasts with i of its ascending cuts below them.
    """

    cuts_: list[Floats]

    @abstractmethod
    def _step_values(self) -> list[Floats]:
        """Values of each map."""

    def _counts(self, sample: Sample) -> Iterator[BinaryCounts]:
        """What each map is learned from."""
        if sample.n_classes == 2:
            yield BinaryCounts.from_sample(sample)
            return
        for k, scores in enumerate(np.ascontiguousarray(sample.forecasts.T)):
            is_k = (sample.codes == k).view(np.uint8)
            yield BinaryCounts.from_arrays(scores, is_k, sample.weights)

    def _map(self, forecasts: Floats, values: list[Floats]) -> Floats:
        """What the maps say of each forecast, one column each, with the given values."""
        if len(values) == 1:
            columns = [binary_scores(forecasts)]
        else:
            columns = list(np.ascontiguousarray(forecasts.T))
        triples = zip(self.cuts_, values, columns, strict=True)
        return np.column_stack([v[locate(cuts, p)] for cuts, v, p in triples])

    def _calibrate(self, forecasts: Floats) -> Floats:
        Q = self._map(forecasts, self._step_values())
        if Q.shape[1] == 1:
            return np.column_stack([1 - Q, Q])
        return np.asarray(Q / Q.sum(axis=1, keepdims=True))
