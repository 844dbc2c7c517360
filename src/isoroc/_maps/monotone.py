"""MonotoneMap: the gradient of a convex potential of log forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._maps.potential import TRACE, GradientCertificate, Potential, with_floor
from isoroc._maps.scores import ProbabilityMap
from isoroc._persistence import Fault, states
from isoroc._simplex import LEAST, Floats
from isoroc._writer import C, Writer


class MonotoneMap(ProbabilityMap):
    """What `MonotoneCalibrator` learns."""

    floor_: float
    scale_: float
    softness_: Floats
    directions_: Floats | None
    biases_: Floats
    interactions_: Floats | None
    fitted_state: ClassVar[dict[str, states.Check]] = {
        "floor_": states.number(above=0.0, most=1.0),
        "scale_": states.number(above=0.0, most=states.LARGEST_COEFFICIENT),
        "softness_": states.coefficients("K", "L"),
        "directions_": states.anything,
        "biases_": states.coefficients("K", "L"),
        "interactions_": states.anything,
    }

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, and that prototypes lie on the simplex."""
        super()._check_fitted(n_classes)
        sizes = {"K": n_classes}
        if not ((self.softness_ >= 0) & (self.softness_ <= 1)).all():
            raise Fault("softness_", "expected numbers in [0, 1]")
        if self.directions_ is not None:
            states.coefficients("K", "K")(self.directions_, "directions_", sizes)
            sums = self.directions_.sum(axis=1)
            if (self.directions_ < 0).any() or (np.abs(sums - 1) > states.ROUNDING).any():
                raise Fault("directions_", "expected rows of numbers >= 0 that sum to 1")
        if self.interactions_ is not None:
            states.coefficients("K", "K")(self.interactions_, "interactions_", sizes)
            if not np.array_equal(self.interactions_, self.interactions_.T):
                raise Fault("interactions_", "expected a symmetric matrix")

    def is_increasing(self) -> bool:
        """Whether the map of two classes is strictly increasing: unless prototypes coincide."""
        return bool(np.ptp(self.prototypes_[..., -1]) > 0)

    def floored(self, forecasts: Floats) -> Floats:
        """The points z of a forecast array, shape (K, n)."""
        return with_floor(self.log_forecasts(forecasts, LEAST), self.floor_)

    def _potential(self) -> Potential:
        return Potential(
            self.scale_, self.softness_, self.biases_, self.directions_, self.interactions_
        )

    def _calibrate(self, forecasts: Floats) -> Floats:
        return self._potential().gradient(self.floored(forecasts))

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        return self._potential().write(w, self._write_floored(w, columns))

    def _write_floored(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """What `floored` returns, as columns."""
        floor, one = w.number(float(np.log(self.floor_))), w.number(1.0)
        z = []
        for log in w.keep(self.write_log_forecasts(w, LEAST, columns)):
            gap = w.negative(w.absolute(w.subtract(log, floor)))
            raised = w.add(w.maximum(log, floor), w.log(w.add(one, w.exp(gap))))
            trace = w.multiply(w.number(TRACE), log)
            z.append(w.add(w.multiply(w.number(1 - TRACE), raised), trace))
        return z

    @property
    def prototypes_(self) -> Floats:
        """The points r_kl, shape (K, L, K)."""
        self.check_is_fitted("softness_")
        return self._potential().prototypes()

    @property
    def certificate_(self) -> GradientCertificate:
        """The guarantee in words, and the potential."""
        self.check_is_fitted("softness_")
        return GradientCertificate(len(self.softness_), self.floor_, self._potential())
