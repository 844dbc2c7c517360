"""TemperedCalibrator: base of the calibrators that begin with temperature scaling."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np

from isoroc._calibrators import written
from isoroc._calibrators.logs import LogForecasts
from isoroc._calibrators.scores import (
    ProbabilityCalibrator,
    log_softmax,
    of_own_class,
    softmax,
)
from isoroc._core import smooth
from isoroc._input import InputError, Sample, check_number
from isoroc._persistence import Fault, states
from isoroc._simplex import Floats
from isoroc._writer import C, Writer

#: What floor="auto" chooses from. The first leaves every forecast that is not 0 as it is.
FLOORS = 10.0 ** -np.array([300, 100, 30, 16, 8, 6, 4, 3, 2.5, 2, 1.5, 1])
#: Mean losses that differ by less are equal.
TIE = 1e-9
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

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "floor_": states.number(most=1.0),
        "temperature_": states.number(above=1e-100, most=1e100),
        "smoothing_": states.number(most=1.0),
    }

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes; only logits need no floor."""
        super()._check_fitted(n_classes)
        if self.scores_ == "probability" and not self.floor_:
            raise Fault("floor_", "expected a number > 0")

    def fit_temperature(self, sample: Sample) -> None:
        """Check the parameters and set the fitted attributes."""
        check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        if self.floor != "auto":
            check_number("floor", self.floor, numbers.Real, minimum=FLOORS[0])
            if self.floor >= 1:
                raise InputError("floor", None, f"is {self.floor!r}", "expected a number below 1")
        self.smoothing_ = self._smoothing(sample)
        inverse = 1.0
        if self.floor == "auto":
            self.floor_, inverse = self._choose_floor(draw_part(sample))
        else:
            self.floor_ = float(self.floor)
        z = self.log_forecasts(sample.forecasts, self.floor_)
        self.temperature_ = 1 / inverse_temperature(z, sample, start=inverse)

    def fit_part_temperature(self, sample: Sample, whole: Self) -> None:
        """Set the fitted attributes for some of the rows to which `whole` was fitted.

        The floor is that of all rows: a choice among twelve is no reason to search again.
        """
        self.smoothing_ = self._smoothing(sample)
        self.floor_ = whole.floor_
        z = self.log_forecasts(sample.forecasts, self.floor_)
        start = 1 / whole.temperature_
        self.temperature_ = 1 / inverse_temperature(z, sample, start=start, tolerance=1e-6)

    def _smoothing(self, sample: Sample) -> float:
        """Share of the uniform forecast that the pseudocount gives."""
        total = float(sample.class_weights().sum())
        return float(self.pseudocount / (total + self.pseudocount))

    def _choose_floor(self, sample: Sample) -> tuple[float, float]:
        """The floor with the likeliest outcomes, the lowest on ties, and 1 / T at it."""
        lowest = FLOORS[0] if self.scores_ == "probability" else 0.0  # logits need no floor
        z = self.log_forecasts(sample.forecasts, lowest)
        # Below the smallest forecast nothing is raised: one such floor stands for all.
        floors = [lowest, *FLOORS[1:][np.log(FLOORS[1:]) > z.min()]]
        found: list[tuple[float, float, float]] = []
        inverse = 1.0
        for floor in floors:
            raised = np.maximum(z, np.log(floor)) if floor else z
            inverse = inverse_temperature(raised, sample, start=inverse, tolerance=1e-5)
            likelihood = self._likelihood(inverse * raised, sample)
            loss = -float(np.average(np.log(likelihood), weights=sample.weights))
            found.append((loss, float(floor), inverse))
        return likeliest(found)

    def _likelihood(self, z: Floats, sample: Sample) -> Floats:
        """What the smoothed softmax of z, shape (K, n), gives the outcome of each row."""
        own = of_own_class(z, sample.codes)
        with np.errstate(over="ignore"):  # what has no chance has likelihood 0
            q = 1 / np.exp(z - own).sum(axis=0)
        return np.asarray((1 - self.smoothing_) * q + self.smoothing_ / len(z))

    def tempered_forecasts(self, forecasts: LogForecasts) -> Floats:
        """Forecasts after temperature scaling and smoothing, shape (K, n)."""
        return forecasts.tempered(self.scores_, self.floor_, self.temperature_, self.smoothing_)

    def tempered(self, forecasts: LogForecasts) -> Floats:
        """Logarithms of the forecasts after temperature scaling and smoothing, shape (K, n)."""
        if self.smoothing_:
            return smooth.logs_of(self.tempered_forecasts(forecasts))
        z = self.log_forecasts(forecasts.forecasts, self.floor_)
        return log_softmax(z / self.temperature_)

    def write_tempered(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """What `tempered` returns, as columns."""
        if self.smoothing_:
            return [w.log(q) for q in w.keep(self.write_tempered_forecasts(w, columns))]
        return written.log_softmax(w, self._write_scaled(w, columns))

    def write_tempered_forecasts(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        """What `tempered_forecasts` returns, as columns."""
        q = w.keep(written.softmax(w, self._write_scaled(w, columns)))
        return written.mixed(w, q, self.smoothing_) if self.smoothing_ else q

    def _write_scaled(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        logs = self.write_log_forecasts(w, self.floor_, columns)
        return [w.divide(column, w.number(self.temperature_)) for column in logs]


def likeliest(found: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Floor and 1 / T of the least loss, given as (loss, floor, 1 / T); the first on ties.

    Where a temperature makes up for any floor, losses differ by rounding errors only.
    """
    least = min(loss for loss, _, _ in found)
    return next((floor, inverse) for loss, floor, inverse in found if loss <= least + TIE)


def draw_part(sample: Sample) -> Sample:
    """The sample, or random rows of it where it is large."""
    return sample.draw(max(LEAST_ROWS, PART // sample.n_classes))


def inverse_temperature(
    z: Floats, sample: Sample, *, start: float = 1.0, tolerance: float = 1e-10
) -> float:
    """1 / T that makes the outcomes likeliest under softmax(z / T), for z of shape (K, n).

    The negative log likelihood is convex in it: Newton's method, kept between the last values on
    either side of the minimum, and after 50 steps bisection, which cannot fail. It ends where a
    change of 1 / T by a factor e would, by the slope, change the mean loss by less than the
    tolerance.
    """
    share = sample.row_weights()
    share = share / share.sum()
    z = z - of_own_class(z, sample.codes)
    low, high = INVERSE_RANGE
    low /= max(1.0, float(np.abs(z).max()))  # large logits may need a large temperature
    t = start
    for count in range(100):
        q = softmax(t * z)
        expected = np.einsum("kn,kn->n", q, z)
        slope = float(share @ expected)
        if abs(slope) * t <= tolerance:
            break
        low, high = (low, t) if slope > 0 else (t, high)
        q *= (z - expected) ** 2
        curvature = float(share @ q.sum(axis=0))
        step = t - slope / curvature if curvature > 0 else 0.0
        newton = low < step < high and count < 50
        t = step if newton else float(np.sqrt(low * high))
    return t
