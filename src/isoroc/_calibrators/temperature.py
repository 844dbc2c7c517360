"""TemperatureCalibrator: one exponent for all forecasts."""

from __future__ import annotations

from typing import ClassVar, Literal

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.tempering import fit_part_tempering, fit_tempering
from isoroc._input import Sample
from isoroc._maps import TemperatureMap


class TemperatureCalibrator(Calibrator):
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
    scores_, summary_, map_, checksum
        Whether forecasts are probabilities or logits; rows and weights of the fit; the fitted map;
        the checksum of its model file.
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

    _share: ClassVar[float] = 2.0

    floor_ = FromMap()
    temperature_ = FromMap()
    smoothing_ = FromMap()

    def __init__(
        self, *, floor: float | Literal["auto"] = "auto", pseudocount: float = 1.0
    ) -> None:
        self.floor = floor
        self.pseudocount = pseudocount

    def _fit(self, sample: Sample) -> TemperatureMap:
        tempering = fit_tempering(sample, self.floor, self.pseudocount)
        return TemperatureMap(kind=sample.kind, **tempering._asdict())

    def _fit_part(self, sample: Sample, whole: TemperatureMap) -> TemperatureMap:
        tempering = fit_part_tempering(sample, whole, self.pseudocount)
        return TemperatureMap(kind=sample.kind, **tempering._asdict())
