"""SplineMap: piecewise linear maps of every class's log odds plus a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._maps import written
from isoroc._maps.scores import ProbabilityMap, by_row, mix_uniform, softmax
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

    def _calibrate(self, forecasts: Floats) -> Floats:
        if self.scores_ == "probability":
            P = self.floored_forecasts(forecasts, self.floor_)
            logs = np.log(P)
        else:
            logs = self.log_forecasts(forecasts, self.floor_)
            P = np.exp(logs)
        odds = log_odds(logs, P)
        # max(odds - knot, 0) = max(odds, knot) - knot
        z = self.coef_ @ logs + (self.intercept_ - self.slopes_ @ self.knots_)[:, None]
        raised = np.empty_like(odds)
        for knot, slopes in zip(self.knots_, self.slopes_.T, strict=True):
            np.maximum(odds, knot, out=raised)
            raised *= slopes[:, None]
            z += raised
        return by_row(mix_uniform(softmax(z), self.smoothing_))

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
        q = w.keep(written.softmax(w, logits))
        return written.mixed(w, q, self.smoothing_)


def log_odds(logs: Floats, P: Floats) -> Floats:
    """Log odds of each class against the others, from forecasts P, shape (K, n), and their logs.

    The odds are taken against the sum of the other classes, those before and those after it: one
    minus the probability would lose everything when that is close to one.
    """
    others = np.zeros_like(P)
    np.cumsum(P[:-1], axis=0, out=others[1:])
    after = np.zeros(P.shape[1])
    for k in range(len(P) - 1, 0, -1):
        after += P[k]
        others[k - 1] += after
    np.log(others, out=others)
    return np.subtract(logs, others, out=others)
