"""MatrixMap: structured matrix scaling of log forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from isoroc._maps.logs import LogForecasts
from isoroc._maps.scores import by_row, softmax
from isoroc._maps.tempered import TemperedMap
from isoroc._persistence import states
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class MatrixMap(TemperedMap):
    """What `MatrixCalibrator` learns."""

    coef_: Floats
    quadratic_: Floats
    intercept_: Floats

    fitted_state: ClassVar[dict[str, states.Check]] = TemperedMap.fitted_state | {
        "coef_": states.anything,
        "quadratic_": states.coefficients("K"),
        "intercept_": states.coefficients("K"),
        "penalty_": states.coefficients(4),
    }

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes; A is a matrix or its diagonal."""
        super()._check_fitted(n_classes)
        shape = ("K",) if np.ndim(self.coef_) == 1 else ("K", "K")
        states.coefficients(*shape)(self.coef_, "coef_", {"K": n_classes})

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        z = w.keep(self.write_tempered(w, columns))
        if self.coef_.ndim == 2:
            linear = w.linear(self.coef_, z)
        else:
            linear = [w.multiply(w.number(c), own) for c, own in zip(self.coef_, z, strict=True)]
        logits = []
        for own, term, a, b in zip(z, linear, self.quadratic_, self.intercept_, strict=True):
            square = w.multiply(w.number(a), w.multiply(own, own))
            logits.append(w.run([term, square, w.number(b)]))
        return w.softmax(logits)

    def _calibrate(self, forecasts: Floats) -> Floats:
        z = self.tempered(LogForecasts(forecasts))
        z = transform(z, self.coef_, self.quadratic_, self.intercept_)
        return by_row(softmax(z))


def transform(z: Floats, coef: Floats, quadratic: Floats, intercept: Floats) -> Floats:
    """``coef z + quadratic z**2 + intercept`` for z of shape (K, n).

    `coef` is a matrix, or a vector that stands for its diagonal; `quadratic` and `intercept` have
    one entry for each class.
    """
    linear = coef @ z if coef.ndim == 2 else coef[:, None] * z
    return np.asarray(linear + quadratic[:, None] * z**2 + intercept[:, None])
