"""KernelMap: matrix scaling plus bumps around forecasts of all classes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._core import smooth
from isoroc._maps.logs import LogForecasts
from isoroc._maps.tempered import TemperedMap
from isoroc._persistence import Fault, states
from isoroc._simplex import LEAST, Floats
from isoroc._writer import C, Writer


class KernelMap(TemperedMap):
    """What `KernelCalibrator` learns."""

    knots_: Floats
    origin_: Floats
    stretch_: Floats
    centres_: Floats
    weights_: Floats
    coef_: Floats
    intercept_: Floats

    fitted_state: ClassVar[dict[str, states.Check]] = TemperedMap.fitted_state | {
        "knots_": states.coefficients("K", smooth.N_KNOTS),
        "origin_": states.coefficients(2, "K"),
        "stretch_": states.coefficients(2),
        "centres_": states.coefficients("m", 2, "K"),
        "weights_": states.coefficients("K", "m"),
        "coef_": states.coefficients("K", "K"),
        "intercept_": states.coefficients("K"),
        "penalty_": states.number(most=1e100),
    }

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes; knots ascend."""
        super()._check_fitted(n_classes)
        if not (np.diff(self.knots_, axis=1) > 0).all():
            raise Fault("knots_", "expected ascending numbers")

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        z = w.keep(self.write_tempered(w, columns))
        logs = w.keep(self.write_log_forecasts(w, LEAST, columns))
        x = w.keep(self._write_positions(w, z, logs))
        centres = self.centres_.reshape(len(self.centres_), -1)
        bumps = w.bumps(centres, self.weights_, x)
        linear = w.linear(np.eye(len(z)) + self.coef_, z)
        terms = zip(linear, bumps, self.intercept_, strict=True)
        logits = [w.run([own, change, w.number(b)]) for own, change, b in terms]
        return w.softmax(logits)

    def _write_positions(self, w: Writer[C], z: Sequence[C], logs: Sequence[C]) -> list[C]:
        """Position of each row, as columns."""
        share = w.number(1 / len(z))
        [mean] = w.keep([w.multiply(share, w.sum(z))])
        centred = [w.subtract(column, mean) for column in z]
        ranks = [w.along(log, knots) for log, knots in zip(logs, self.knots_, strict=True)]
        positions = []
        for columns, stretch, origin in zip(
            (centred, ranks), self.stretch_, self.origin_, strict=True
        ):
            scaled = [w.multiply(w.number(stretch), column) for column in columns]
            moves = [w.number(-stretch * own) for own in origin]
            positions += [w.add(*pair) for pair in zip(scaled, moves, strict=True)]
        return positions

    def calibrate_logs(self, forecasts: LogForecasts) -> Floats:
        """Calibrated forecasts, shape (n, K)."""
        return smooth.kernel(
            self.tempered(forecasts),
            forecasts.logs(self.scores_),
            self.knots_,
            self.origin_,
            self.stretch_,
            self.centres_,
            self.weights_,
            self.coef_,
            self.intercept_,
        )
