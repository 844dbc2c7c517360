"""TemperatureCalibrator: one exponent for all forecasts."""

from __future__ import annotations

import numbers
from typing import Literal

import numpy as np

from isoroc._calibrators.scores import (
    ProbabilityCalibrator,
    exponentials,
    log_softmax,
    of_own_class,
)
from isoroc._input import Sample, check_number
from isoroc._simplex import Floats

#: What floor="auto" chooses from. The first leaves every forecast that is not 0 as it is.
FLOORS = 10.0 ** -np.array([300, 100, 30, 16, 8, 6, 4, 3, 2.5, 2, 1.5, 1])
#: Range of 1 / T. Forecasts that sort the outcomes perfectly would have it infinite, those that
#: say the opposite negative.
INVERSE_RANGE = (1e-6, 1e6)
#: What is chosen on a part of the rows, or started from one, takes so many numbers, and rows.
PART = 100_000
LEAST_ROWS = 1000


class TemperedCalibrator(ProbabilityCalibrator):
    """Base of the calibrators that begin with temperature scaling.

    A subclass has the parameters `floor` and `pseudocount`.
    """

    floor: float | Literal["auto"]
    pseudocount: float
    floor_: float
    temperature_: float
    smoothing_: float

    def _fit_temperature(self, sample: Sample) -> None:
        """Check the parameters and set the fitted attributes."""
        check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        if self.floor != "auto":
            check_number("floor", self.floor, numbers.Real, minimum=FLOORS[0])
            if self.floor >= 1:
                raise ValueError(f"floor: expected a number below 1, got {self.floor!r}.")
        total = float(sample.class_weights().sum())
        self._tell_scores(sample.forecasts)
        self.smoothing_ = self.pseudocount / (total + self.pseudocount)
        inverse = 1.0
        if self.floor == "auto":
            self.floor_, inverse = self._choose_floor(part_of(sample))
        else:
            self.floor_ = float(self.floor)
        z = self._log_forecasts(sample.forecasts, self.floor_)
        self.temperature_ = 1 / inverse_temperature(z, sample, start=inverse)

    def _choose_floor(self, sample: Sample) -> tuple[float, float]:
        """The floor with the likeliest outcomes, the lowest on ties, and 1 / T at it."""
        z = self._log_forecasts(sample.forecasts, FLOORS[0])
        # Below the smallest forecast nothing is raised: one such floor stands for all.
        floors = [FLOORS[0], *FLOORS[1:][np.log(FLOORS[1:]) > z.min()]]
        found = []
        inverse = 1.0
        for floor in floors:
            raised = np.maximum(z, np.log(floor))
            inverse = inverse_temperature(raised, sample, start=inverse, tolerance=1e-6)
            likelihood = of_own_class(self._smooth(log_softmax(inverse * raised)), sample.codes)
            loss = -float(np.average(likelihood, weights=sample.weights))
            found.append((loss, float(floor), inverse))
        _, floor, inverse = min(found)
        return floor, inverse

    def _smooth(self, z: Floats) -> Floats:
        """Logarithms of forecasts mixed with the uniform one."""
        if not self.smoothing_:
            return z
        return np.log((1 - self.smoothing_) * np.exp(z) + self.smoothing_ / len(z))

    def _tempered(self, forecasts: Floats) -> Floats:
        """Logarithms of the forecasts after temperature scaling and smoothing, shape (K, n)."""
        z = self._log_forecasts(forecasts, self.floor_)
        return self._smooth(log_softmax(z / self.temperature_))


class TemperatureCalibrator(TemperedCalibrator):
    """Temperature scaling: ``softmax(log(p) / T)``, with a floor under the forecasts.

    T > 1 draws forecasts to the middle, T < 1 to the vertices; the order of the classes stays.
    Logarithms give the smallest forecasts the loudest voice, and a forest that forecasts 0 has
    none at all. So forecasts are first raised to a floor, which is learned like T: then this is

        ``q = (1 - s) * softmax(log(max(p, floor)) / T) + s / K``,

    s the smoothing that a pseudocount gives. With ``floor=1e-300, pseudocount=0`` it is the
    temperature scaling of Guo et al. (2017).

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
    log_odds_ : bool
        Whether the scores of two classes are log odds: so if one was outside [0, 1] in `fit`.
    floor_, temperature_, smoothing_ : float
        floor, T and s.

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

    _fitted = ("log_odds_", "floor_", "temperature_", "smoothing_")

    def __init__(
        self, *, floor: float | Literal["auto"] = "auto", pseudocount: float = 1.0
    ) -> None:
        self.floor = floor
        self.pseudocount = pseudocount

    def _fit(self, sample: Sample) -> None:
        self._fit_temperature(sample)

    def _calibrate(self, forecasts: Floats) -> Floats:
        return exponentials(self._tempered(forecasts))


def part_of(sample: Sample) -> Sample:
    """The sample, or where it is large every so many rows of it."""
    n = len(sample.codes)
    most = max(LEAST_ROWS, PART // sample.n_classes)
    return sample if n <= most else sample.take(np.arange(0, n, -(-n // most)))


def inverse_temperature(
    z: Floats, sample: Sample, *, start: float = 1.0, tolerance: float = 1e-10
) -> float:
    """1 / T that makes the outcomes likeliest under softmax(z / T), for z of shape (K, n).

    The negative log likelihood is convex in it: Newton's method, kept between the last values on
    either side of the minimum. It ends where a change of 1 / T by a factor e would, by the slope,
    change the mean loss by less than the tolerance.
    """

    def mean(values: Floats) -> float:
        return float(np.average(values, weights=sample.weights))

    z = z - of_own_class(z, sample.codes)
    low, high = INVERSE_RANGE
    t = start
    for _ in range(100):
        q = np.exp(log_softmax(t * z))
        expected = (q * z).sum(axis=0)
        slope = mean(expected)
        if abs(slope) * t <= tolerance:
            break
        low, high = (low, t) if slope > 0 else (t, high)
        curvature = mean((q * (z - expected) ** 2).sum(axis=0))
        step = t - slope / curvature if curvature > 0 else 0.0
        t = step if low < step < high else float(np.sqrt(low * high))
    return t
