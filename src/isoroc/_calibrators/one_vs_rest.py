"""What calibrators of each class against the rest have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._core.rows import locate
from isoroc._counts import BinaryCounts
from isoroc._growth import compress_steps
from isoroc._input import Sample
from isoroc._persistence import Fault, check_array, states
from isoroc._simplex import Floats, binary_scores
from isoroc._writer import C, Writer

#: Maps have at most so many steps, and all maps of a calibrator together at most so many, so that
#: every fit fits into a model file. Steps are merged in `fit`, not in `save`: a saved calibrator
#: predicts what the fitted one does.
MOST_STEPS = 4096
MOST_STEPS_OF_ALL = 250_000


class OneVsRestCalibrator(Calibrator):
    """Base of the calibrators that map the forecast of each class by a step function of its own.

    With three classes or more, rows are then divided by their sum. Two classes have one map, that
    of the second. A map is ``values[i]`` for forecasts with i of its ascending cuts below them.
    """

    prior_share: ClassVar[float] = 0.3

    cuts_: list[Floats]

    @abstractmethod
    def step_values(self) -> list[Floats]:
        """Values of each map."""

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

    def _map(self, forecasts: Floats, values: list[Floats]) -> Floats:
        """What the maps say of each forecast, one column each, with the given values."""
        if len(values) == 1:
            columns = [binary_scores(forecasts)]
        else:
            columns = list(np.ascontiguousarray(forecasts.T))
        triples = zip(self.cuts_, values, columns, strict=True)
        return np.column_stack([v[locate(cuts, p)] for cuts, v, p in triples])

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        steps = list(zip(self.cuts_, self.step_values(), strict=True))
        own = columns if len(steps) > 1 else columns[-1:]
        Q = [
            q
            for (cuts, values), column in zip(steps, own, strict=True)
            for q in w.look_up(values[:, None], w.locate(cuts, column))
        ]
        Q = w.keep(Q)
        if len(Q) == 1:
            return [w.subtract(w.number(1.0), *Q), *Q]
        [total] = w.keep([w.total(Q)])
        return [w.divide(q, total) for q in Q]

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, the values of each map against its cuts."""
        sizes = {"maps": 1 if n_classes == 2 else n_classes}
        for name in self.fitted_state:
            each = states.ascending if name == "cuts_" else states.anything
            states.list_of(each, "maps")(getattr(self, name), name, sizes)
        for name in self.fitted_state.keys() - {"cuts_"}:
            for m, values in enumerate(getattr(self, name)):
                check_array(values, f"{name}[{m}]", shape=(len(self.cuts_[m]) + 1,))
                if not ((values >= 0) & (values <= 1)).all():
                    raise Fault(f"{name}[{m}]", "expected numbers between 0 and 1")

    def _calibrate(self, forecasts: Floats) -> Floats:
        Q = self._map(forecasts, self.step_values())
        if Q.shape[1] == 1:
            return np.column_stack([1 - Q, Q])
        return np.asarray(Q / Q.sum(axis=1, keepdims=True))
