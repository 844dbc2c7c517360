"""TemperatureCalibrator: one exponent for all forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.leave_one_out import left_out, score_gradients, with_changes
from isoroc._calibrators.tempering import fit_tempering, temper
from isoroc._core.smooth import softmax
from isoroc._core.types import Floats, Ints
from isoroc._input import Sample, check_option
from isoroc._maps import TemperatureMap


@dataclass(eq=False, repr=False, kw_only=True)
class TemperatureCalibrator(Calibrator):
    """Temperature scaling: ``softmax(log(p) / T)``, with a floor under the forecasts.

    T > 1 moves forecasts to the middle of the simplex, T < 1 to its vertices. The order of the
    classes in each row is kept, except that classes below the floor tie. The order of the rows is
    kept for two classes (with a floor of at most 1/2), but not for more.

    Parameters
    ----------
    floor : float or "auto", default="auto"
        Smaller forecasts are raised to this value. "auto" chooses the lowest of twelve values
        between 1e-300 and 0.1 with a likelihood within 2 nats of the largest.
    pseudocount : float, default=0.1
        Weight of the uniform forecast in every calibrated one, against the total weight of the
        calibration rows. Above 0 no forecast is ever certain.
    compatible : bool, default=False
        Fit the map of Guo et al. (2017) and scikit-learn, whatever `floor` and `pseudocount` are:
        no bound on T, no uniform forecast, and a floor of 1e-12 under probabilities.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    floor_ : float
        Forecasts below this are raised to it.
    temperature_ : float
        T.
    smoothing_ : float
        s, the share of the uniform forecast.

    See Also
    --------
    MatrixCalibrator : A matrix and intercepts in place of one number.
    MonotoneCalibrator : A smooth monotone map that contains temperature scaling.

    Notes
    -----
    With the share s = pseudocount / (weight of the rows + pseudocount), the calibrated forecast is
    ``(1 - s) * softmax(log(max(p, floor)) / T) + s / K``. T has a lower bound: if the most probable
    class always comes true, the likelihood grows until T = 0.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import TemperatureCalibrator
    >>> rng = np.random.default_rng(0)
    >>> logits = rng.normal(scale=3, size=2000)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-logits / 2))  # twice too confident
    >>> cal = TemperatureCalibrator().fit(logits, y)
    >>> round(cal.temperature_, 2)
    2.0
    """

    floor: float | Literal["auto"] = "auto"
    pseudocount: float = 0.1
    compatible: bool = False

    _shares: ClassVar[tuple[float, float]] = (2.0, 4.0)

    floor_ = FromMap()
    temperature_ = FromMap()
    smoothing_ = FromMap()

    def _fit(self, sample: Sample) -> TemperatureMap:
        check_option("compatible", self.compatible, (True, False))
        if self.compatible:
            floor = 1e-12 if sample.kind.scores == "probability" else 0.0
            return temper(sample, floor, 0.0, bounded=False)
        return fit_tempering(sample, self.floor, self.pseudocount)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> tuple[Any, Floats]:
        left = left_out(sample)
        if left is None:
            return super()._fit_out_of_fold(sample, fold)
        fitted: Any = self._fit(sample)
        Q = fitted.apply(sample.forecasts)
        z = sample.kind.log_rows(sample.forecasts, fitted.floor)
        q = softmax(z / fitted.temperature)
        slopes = (score_gradients(q, sample.codes) * z).sum(axis=0)  # in 1 / T
        curvature = (q * z**2).sum(axis=0) - (q * z).sum(axis=0) ** 2
        others = sample.row_weights() @ curvature - left.total(curvature)
        steps = left.total(slopes) / np.maximum(others, 1e-9)
        return fitted, with_changes(Q, z * steps, fitted.smoothing)

    def _fit_part(self, sample: Sample, whole: TemperatureMap) -> TemperatureMap:
        if self.compatible:
            return self._fit(sample)
        start = 1 / whole.temperature
        return temper(sample, whole.floor, self.pseudocount, start=start, tolerance=1e-6)
