"""KernelMap: matrix scaling plus bumps around forecasts of all classes together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._maps import written
from isoroc._maps.scores import by_row, softmax
from isoroc._maps.tempered import TemperedMap
from isoroc._persistence import Fault, states
from isoroc._simplex import LEAST, Floats
from isoroc._writer import C, Writer

#: Places at which the ranks of log forecasts bend.
N_KNOTS = 9


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
        "knots_": states.coefficients("K", N_KNOTS),
        "origin_": states.coefficients(2, "K"),
        "stretch_": states.coefficients(2),
        "centres_": states.coefficients("m", 2, "K"),
        "weights_": states.coefficients("K", "m"),
        "coef_": states.coefficients("K", "K"),
        "intercept_": states.coefficients("K"),
        "penalty_": states.number(most=1e100),
    }

    def _positions(self, z: Floats, logs: Floats) -> Floats:
        """Position of each row, shape (2 K, n), from its tempered and its plain log forecasts."""
        K, n = z.shape
        x = np.empty((2, K, n))
        np.subtract(z, z.mean(axis=0), out=x[0])
        levels = np.linspace(0, 1, N_KNOTS)
        for k in range(K):
            x[1, k] = np.interp(logs[k], self.knots_[k], levels)
        x -= self.origin_[:, :, None]
        x *= self.stretch_[:, None, None]
        return x.reshape(2 * K, n)

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
        return written.softmax(w, logits)

    def _write_positions(self, w: Writer[C], z: Sequence[C], logs: Sequence[C]) -> list[C]:
        """What `_positions` returns, as columns."""
        share = w.number(1 / len(z))
        [mean] = w.keep([w.multiply(share, w.sum(z))])
        stretch = [w.number(s) for s in self.stretch_]
        ranks = [w.along(log, knots) for log, knots in zip(logs, self.knots_, strict=True)]
        centred = [w.subtract(column, mean) for column in z]
        places = zip([*centred, *ranks], self.origin_.ravel(), strict=True)
        away = [w.subtract(column, w.number(origin)) for column, origin in places]
        K = len(z)
        return [w.multiply(stretch[i // K], column) for i, column in enumerate(away)]

    def _calibrate(self, forecasts: Floats) -> Floats:
        z = self.tempered(forecasts)
        logs = self.log_forecasts(forecasts, LEAST)
        x = self._positions(z, logs)
        heights = bumps(self.centres_.reshape(len(self.centres_), -1), x)
        z += self.coef_ @ z + self.weights_ @ heights + self.intercept_[:, None]
        return by_row(softmax(z))


def bumps(centres: Floats, x: Floats) -> Floats:
    """Bumps around centres c, shape (m, D), at positions x, shape (D, n): 1 / (1 + |x - c|^2 / 2).

    As a kernel this is the rational quadratic one. Forecasts are as good as with Gaussian bumps,
    and a quotient is faster than an exponential.
    """
    ends = [np.ones(x.shape[1]), (x**2).sum(axis=0) / 2]
    offsets = 1 + (centres**2).sum(axis=1, keepdims=True) / 2
    below = np.hstack([-centres, offsets, np.ones_like(offsets)]) @ np.vstack([x, *ends])
    np.maximum(below, 1.0, out=below)  # rounding errors
    return np.asarray(np.reciprocal(below, out=below))
