"""Step functions of the forecast of each class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._core.rows import locate
from isoroc._maps.base import CalibrationMap
from isoroc._persistence import Fault, check_array, states
from isoroc._simplex import Floats, binary_scores
from isoroc._writer import C, Writer


class OneVsRestMap(CalibrationMap):
    """Base of the maps that apply a step function of its own to the forecast of each class.

    With three classes or more, rows are then divided by their sum. Two classes have one function,
    that of the second. A function is ``values[i]`` for forecasts with i of its ascending cuts below
    them.
    """

    cuts_: list[Floats]

    @abstractmethod
    def step_values(self) -> list[Floats]:
        """Values of each map."""

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


class IsotonicMap(OneVsRestMap):
    """What `IsotonicCalibrator` learns."""

    values_: list[Floats]
    fitted_state: ClassVar[dict[str, states.Check]] = dict.fromkeys(
        ("cuts_", "values_"), states.anything
    )

    def step_values(self) -> list[Floats]:
        """Values of each map."""
        return self.values_


class VennAbersMap(OneVsRestMap):
    """What `VennAbersCalibrator` learns."""

    lower_: list[Floats]
    upper_: list[Floats]
    fitted_state: ClassVar[dict[str, states.Check]] = dict.fromkeys(
        ("cuts_", "lower_", "upper_"), states.anything
    )

    def step_values(self) -> list[Floats]:
        """Values of each map."""
        pairs = zip(self.lower_, self.upper_, strict=True)
        return [p1 / (1 - p0 + p1) for p0, p1 in pairs]
