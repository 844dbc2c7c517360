"""TemperatureCalibrator: one exponent for all forecasts, alone or before another correction."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._calibrators.leave_one_out import left_out_weights, residuals, with_changes
from isoroc._core.losses import likeliest_power
from isoroc._core.smooth import softmax
from isoroc._core.types import Codes, Floats, Ints
from isoroc._input import InputError, Sample, check_number, check_option
from isoroc._maps import TemperatureMap

#: What floor="auto" chooses from. The first leaves every positive forecast unchanged.
FLOORS = 10.0 ** -np.array([300, 100, 30, 16, 8, 6, 4, 3, 2.5, 2, 1.5, 1])
PART = 100_000  # numbers in the part of the rows on which a floor is chosen,
LEAST_ROWS = 1000  # and its least number of rows


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
    floor_, temperature_, smoothing_ : float
        floor, T and s.

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
        removed = left_out_weights(sample)
        if removed is None:
            return super()._fit_out_of_fold(sample, fold)
        fitted: Any = self._fit(sample)
        Q = fitted.apply(sample.forecasts)
        z = sample.kind.log_rows(sample.forecasts, fitted.floor)
        q = softmax(z / fitted.temperature)
        slopes = (residuals(q, sample.codes) * z).sum(axis=0)  # in 1 / T
        curvature = (q * z**2).sum(axis=0) - (q * z).sum(axis=0) ** 2
        others = sample.row_weights() @ curvature - removed * curvature
        steps = removed * slopes / np.maximum(others, 1e-9)
        return fitted, with_changes(Q, z * steps)

    def _fit_part(self, sample: Sample, whole: TemperatureMap) -> TemperatureMap:
        if self.compatible:
            return self._fit(sample)
        search: Any = {"start": 1 / whole.temperature, "tolerance": 1e-6}
        return temper(sample, whole.floor, self.pseudocount, **search)


def fit_tempering(
    sample: Sample, floor: float | Literal["auto"], pseudocount: float
) -> TemperatureMap:
    """Check the parameters of temperature scaling, and fit it."""
    check_number("pseudocount", pseudocount, minimum=0)
    check_number("floor", floor, minimum=FLOORS[0], others=("auto",))
    inverse = 1.0
    if floor == "auto":
        share = uniform_share(sample, pseudocount)
        floor, inverse = _choose_floor(draw_part(sample), share)
    elif floor >= 1:
        raise InputError("floor", None, f"is {floor!r}", "expected a number below 1")
    return temper(sample, float(floor), pseudocount, start=inverse)


def temper(sample: Sample, floor: float, pseudocount: float, **search: Any) -> TemperatureMap:
    """Temperature scaling with a given floor; `search` has options of `inverse_temperature`."""
    z = sample.kind.log_rows(sample.forecasts, floor)
    temperature = 1 / inverse_temperature(z, sample, floor, **search)
    share = uniform_share(sample, pseudocount)
    return TemperatureMap(kind=sample.kind, floor=floor, temperature=temperature, smoothing=share)


def uniform_share(sample: Sample, pseudocount: float) -> float:
    """Share of the uniform forecast that stands for `pseudocount` rows beside the sample."""
    total = float(sample.class_weights().sum())
    return float(pseudocount / (total + pseudocount))


def _choose_floor(sample: Sample, smoothing: float) -> tuple[float, float]:
    """The lowest floor within 2 nats of the largest likelihood, and its 1 / T."""
    lowest = FLOORS[0] if sample.kind.scores == "probability" else 0.0  # logits need no floor
    z = sample.kind.log_rows(sample.forecasts, lowest)
    # Below the smallest forecast nothing is raised: one such floor stands for all.
    floors = [lowest, *FLOORS[1:][np.log(FLOORS[1:]) > z.min()]]
    candidates: list[tuple[float, float, float]] = []
    inverse = 1.0
    for floor in floors:
        raised = np.maximum(z, np.log(floor)) if floor else z
        inverse = inverse_temperature(raised, sample, floor, start=inverse, tolerance=1e-5)
        q = of_own_class(softmax(inverse * raised), sample.codes)
        smoothed = (1 - smoothing) * q + smoothing / len(z)
        loss = -float(np.average(np.log(smoothed), weights=sample.weights))
        candidates.append((loss, float(floor), inverse))
    return likeliest(candidates, 2 / float(sample.class_weights().sum()))[1:]


def of_own_class(z: Floats, codes: Codes) -> Floats:
    """Entry of z, shape (K, n), for the class of each row, shape (n,)."""
    return np.asarray(z[codes, np.arange(len(codes))])


def softmax_losses(z: Floats, codes: Codes) -> tuple[Floats, Floats]:
    """Log loss of each row under the softmax of z, shape (K, n), and the softmax, in its place."""
    behind = z.max(axis=0) - of_own_class(z, codes)
    q = softmax(z)
    return behind - np.log(q.max(axis=0)), q


def likeliest(candidates: Sequence[tuple[Any, ...]], tie: float = 1e-9) -> tuple[Any, ...]:
    """The tuple that begins with the least mean loss, the first of those that tie."""
    least = min(each[0] for each in candidates)
    return next(each for each in candidates if each[0] <= least + tie)


def draw_part(sample: Sample) -> Sample:
    """The sample, or random rows of it where it is large."""
    return sample.draw(max(LEAST_ROWS, PART // sample.n_classes))


def _steepest(z: Floats, sample: Sample, floor: float) -> float:
    """Largest 1 / T: forecasts are made no surer than the rows can support.

    Half of the rows keep log odds between their two most probable classes of at most
    2 log(K (n + 1)), twice those of a class that was not seen in n rows. Odds against the floor say
    nothing, so such rows count only if there are no others.
    """
    second, first = np.partition(z, -2, axis=0)[-2:]
    weights = sample.row_weights()
    most = 2 * float(np.log(len(z) * (weights.sum() + 1)))
    above = second > np.log(floor) if floor else np.ones(len(weights), dtype=bool)
    rows = np.flatnonzero(above if above.any() else ~above)
    gap = (first - second)[rows]
    weights = weights[rows]
    order = np.argsort(gap)
    below = np.cumsum(weights[order])
    middle = float(gap[order[np.searchsorted(below, below[-1] / 2)]])
    return max(1.0, most / middle) if middle > 0 else np.inf


def inverse_temperature(
    z: Floats,
    sample: Sample,
    floor: float = 0.0,
    *,
    bounded: bool = True,
    start: float = 1.0,
    tolerance: float = 1e-10,
) -> float:
    """Maximum likelihood estimate of 1 / T in softmax(z / T), up to an upper bound.

    z, of shape (K, n), is nowhere below the logarithm of the floor.
    """
    # Forecasts that sort the outcomes perfectly would have an infinite 1 / T.
    high = min(1e6, _steepest(z, sample, floor)) if bounded else 1e6
    z = z - of_own_class(z, sample.codes)
    # Large logits may need a large temperature. A larger one would leave rounding errors only.
    low = 1e-4 / max(1.0, float(np.abs(z).max()))
    weights = sample.row_weights()
    return likeliest_power(z, weights, low, high, start=start, tolerance=tolerance)
