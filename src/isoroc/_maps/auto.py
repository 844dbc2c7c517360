"""AutoMap: the weighted mean of other maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._core import smooth
from isoroc._maps.base import CalibrationMap
from isoroc._maps.logs import LogForecasts
from isoroc._maps.monotone_mixture import (
    MixtureCertificate,
    certify_mixture,
    increases_strictly,
)
from isoroc._maps.nested import by_place, check_nested
from isoroc._persistence import states
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class AutoMap(CalibrationMap):
    """What `AutoCalibrator` learns."""

    members_: Sequence[CalibrationMap]
    weights_: Floats
    monotone: bool

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "members_": states.list_of(states.anything, "M"),
        "weights_": states.probabilities("M"),
        "member_scores_": states.table,
        "cv_results_": states.table,
        "verdict_": states.sentence,
    }
    reads_logs: ClassVar[bool] = True
    parameters: ClassVar[tuple[str, ...]] = ("monotone",)

    def takes_probabilities(self) -> bool:
        """Whether scores of two classes outside [0, 1] are refused."""
        return any(member.takes_probabilities() for member in self.members_)

    def has_steps(self) -> bool:
        """Whether some member's map is not continuous."""
        return any(member.has_steps() for member in self.members_)

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, and those of the members."""
        super()._check_fitted(n_classes)
        check_nested(by_place("members_", self.members_), n_classes)

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        parts = [
            [w.multiply(w.number(weight), q) for q in w.keep(member.write(w, columns))]
            for weight, member in zip(self.weights_, self.members_, strict=True)
        ]
        return [w.run(of_members) for of_members in zip(*parts, strict=True)]

    def calibrate(self, forecasts: Floats) -> Floats:
        """Calibrated forecasts, shape (n, K), of a forecast array."""
        return self._calibrate(forecasts)  # members limit the threads of BLAS where they use it

    def _calibrate(self, forecasts: Floats) -> Floats:
        shared = LogForecasts(forecasts)
        total = np.zeros((len(forecasts), forecasts.shape[1] if forecasts.ndim == 2 else 2))
        for weight, member in zip(self.weights_, self.members_, strict=True):
            part = np.ascontiguousarray(member.calibrate_logs(shared))
            smooth.add_weighted(total, weight, part)
        return total

    @property
    def certificate_(self) -> MixtureCertificate | None:
        """The guarantee of a monotone mixture in words."""
        self.check_is_fitted("members_")
        K = len(self.classes_)
        return certify_mixture(self.members_, K) if self.monotone else None

    def is_increasing(self) -> bool:
        """Whether the map of two classes is strictly increasing.

        All members must be. Those of a monotone mixture are non-decreasing, so there one is enough.
        """
        if self.monotone:
            return increases_strictly(self.members_)
        return all(member.is_increasing() for member in self.members_)
