"""What calibrators of each class against the rest have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._counts import BinaryCounts
from isoroc._growth import compress_steps
from isoroc._input import Sample
from isoroc._maps.one_vs_rest import OneVsRestMap
from isoroc._simplex import Floats

#: Maps have at most so many steps, and all maps of a calibrator together at most so many, so that
#: every fit fits into a model file. Steps are merged in `fit`, not in `save`: a saved calibrator
#: predicts what the fitted one does.
MOST_STEPS = 4096
MOST_STEPS_OF_ALL = 250_000


class OneVsRestCalibrator(OneVsRestMap, Calibrator):
    """Base of the calibrators that map the forecast of each class by a step function of its own."""

    prior_share: ClassVar[float] = 0.3

    def _counts(self, sample: Sample) -> Iterator[BinaryCounts]:
        """What each map is learned from."""
        if sample.n_classes == 2:
            yield BinaryCounts.from_sample(sample)
            return
        for k, scores in enumerate(np.ascontiguousarray(sample.forecasts.T)):
            is_k = (sample.codes == k).view(np.uint8)
            yield BinaryCounts.from_arrays(scores, is_k, sample.weights)

    def _bounded(self, n_classes: int, steps: Sequence[Floats]) -> tuple[Floats, ...]:
        """Cuts and values of a map that is small enough for a model file."""
        n_maps = 1 if n_classes == 2 else n_classes
        cuts, *values = steps
        most = max(min(MOST_STEPS, MOST_STEPS_OF_ALL // n_maps), len(values))
        return compress_steps(cuts, *values, most=most)
