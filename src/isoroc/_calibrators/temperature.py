"""TemperatureCalibrator: one exponent for all forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from isoroc._calibrators.logs import LogForecasts
from isoroc._calibrators.scores import by_row
from isoroc._calibrators.tempered import TemperedCalibrator
from isoroc._input import Sample
from isoroc._simplex import Floats
from isoroc._writer import C, Writer


class TemperatureCalibrator(TemperedCalibrator):
    """Temperature scaling: ``softmax(log(p) / T)``, with a floor under the forecasts.

    T > 1 pulls forecasts to the middle, T < 1 to the vertices. The order of the classes within each
    row stays, except that classes below the floor tie. The order of the rows stays for two classes
    (with a floor of at most 1/2), but not for more.

    Parameters
    ----------
    floor : float or "auto", default="auto"
        Smaller forecasts are raised to this. "auto" takes the one of twelve values between 1e-300
        and 0.1 under which the outcomes are likeliest; with many rows it looks at a part of them.
    pseudocount : float, default=1.0
        Weight of the uniform forecast in every calibrated one, against the total weight of the
        calibration rows. Above 0 no forecast is ever certain.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    scores_ : {"probability", "logit"}
        What the forecasts are.
    floor_, temperature_, smoothing_ : float
        floor, T and s.

    See Also
    --------
    MatrixCalibrator : A matrix and intercepts in place of one number.
    MonotoneCalibrator : A smooth monotone map that contains temperature scaling.

    Notes
    -----
    With logarithms, the smallest forecasts dominate the loss, and the logarithm of 0 is not finite.
    So forecasts are first raised to a floor, which is learned like T:

        ``q = (1 - s) * softmax(log(max(p, floor)) / T) + s / K``,

    where s is the pseudocount divided by the sum of the weights of the rows and the pseudocount.
    With ``floor=1e-300, pseudocount=0`` it is the temperature scaling of Guo et al. (2017).

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, On calibration of modern neural networks, ICML 2017.

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
    >>> cal.predict_proba([-4.0, 0.0]).round(3)
    array([[0.88, 0.12],
           [0.5 , 0.5 ]])
    """

    prior_share: ClassVar[float] = 2.0

    def __init__(
        self, *, floor: float | Literal["auto"] = "auto", pseudocount: float = 1.0
    ) -> None:
        self.floor = floor
        self.pseudocount = pseudocount

    def is_increasing(self) -> bool:
        """Whether the map of two classes is strictly increasing: a floor above 1/2 flattens it."""
        return self.floor_ <= 0.5

    def _fit(self, sample: Sample) -> None:
        self.fit_temperature(sample)

    def fit_part(self, sample: Sample, whole: Self) -> None:
        """Learn the temperature from some of the rows to which `whole` was fitted."""
        self.fit_part_temperature(sample, whole)

    def calibrate_logs(self, forecasts: LogForecasts) -> Floats:
        """Calibrated forecasts, shape (n, K)."""
        return by_row(self.tempered_forecasts(forecasts))

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        return self.write_tempered_forecasts(w, columns)
