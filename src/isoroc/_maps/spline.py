"""SplineMap: piecewise linear maps of every class's log odds plus a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._core import smooth
from isoroc._maps import written
from isoroc._maps.logs import LogForecasts
from isoroc._maps.scores import ProbabilityMap
from isoroc._persistence import states
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class SplineMap(ProbabilityMap):
    """What `SplineCalibrator` learns."""

    floor_: float
    knots_: Floats
    coef_: Floats
    slopes_: Floats
    intercept_: Floats
    smoothing_: float
    fitted_state: ClassVar[dict[str, states.Check]] = {
        "floor_": states.number(above=0.0, most=1.0),
        "knots_": states.coefficients("m"),
        "coef_": states.coefficients("K", "K"),
        "slopes_": states.coefficients("K", "m"),
        "intercept_": states.coefficients("K"),
        "smoothing_": states.number(most=1.0),
    }

    def calibrate_logs(self, forecasts: LogForecasts) -> Floats:
        """Calibrated forecasts, shape (n, K)."""
        return smooth.spline(
            np.ascontiguousarray(forecasts.probabilities(self.scores_)),
            forecasts.logs(self.scores_),
            self.floor_,
            self.coef_,
            self.knots_,
            self.slopes_,
            self.intercept_,
            self.smoothing_,
        )

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        logs = w.keep(self.write_log_forecasts(w, self.floor_, columns))
        odds = w.keep(written.log_odds(w, logs))
        intercept = self.intercept_ - self.slopes_ @ self.knots_
        logits = []
        for own, linear, b, slopes in zip(
            odds, w.linear(self.coef_, logs), intercept, self.slopes_, strict=True
        ):
            bends = [w.bend(own, self.knots_, slopes)] if len(self.knots_) else []
            logits.append(w.run([linear, w.number(b), *bends]))
        q = w.keep(w.softmax(logits))
        return written.mixed(w, q, self.smoothing_)
