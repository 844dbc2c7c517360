"""Temperature scaling, alone or before another correction."""

import math
from functools import partial
from typing import Literal

import numpy as np

from isoroc._calibrators.floors import FLOORS, distinct_floors, likeliest_floor
from isoroc._calibrators.parts import FINE, FINE_ROWS, draw_part, gather
from isoroc._core.losses import likeliest_power
from isoroc._core.smooth import power_loss
from isoroc._core.types import Codes, Floats
from isoroc._input import InputError, Sample, check_number
from isoroc._maps import TemperatureMap


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


def temper(
    sample: Sample,
    floor: float,
    pseudocount: float,
    *,
    bounded: bool = True,
    start: float = 1.0,
    tolerance: float = 1e-10,
) -> TemperatureMap:
    """Temperature scaling with a given floor. See `inverse_temperature` for the other options."""
    z = sample.kind.log_rows(sample.forecasts, floor)
    rows = z, sample.codes, sample.row_weights()
    inverse = inverse_temperature(*rows, floor, bounded=bounded, start=start, tolerance=tolerance)
    share = uniform_share(sample, pseudocount)
    return TemperatureMap(kind=sample.kind, floor=floor, temperature=1 / inverse, smoothing=share)


def uniform_share(sample: Sample, pseudocount: float) -> float:
    """Share of the uniform forecast that stands for `pseudocount` rows beside the sample."""
    total = float(sample.class_weights().sum())
    return float(pseudocount / (total + pseudocount))


def _choose_floor(sample: Sample, smoothing: float) -> tuple[float, float]:
    """The lowest floor within 2 nats of the largest likelihood, and its 1 / T."""
    lowest = FLOORS[0] if sample.kind.scores == "probability" else 0.0  # logits need no floor
    z = sample.kind.log_rows(sample.forecasts, lowest)
    rows = z, sample.codes, sample.row_weights()
    if len(z) == 2:
        # No cell holds a floor.
        levels = np.searchsorted(np.log(FLOORS[::-1]), z)
        places = np.stack([np.floor((z[1] - z[0]) / FINE), *levels])
        rows = gather(*rows, places, least_rows=FINE_ROWS)
    inverse = 1.0

    def fit(floor: float) -> tuple[float, float]:
        nonlocal inverse  # the best one changes little between floors, and need not be exact
        inverse = inverse_temperature(*rows, floor, start=inverse, least_gain=1e-4)
        return mean_loss(*rows, inverse, floor=floor, smoothing=smoothing), inverse

    floors = distinct_floors([lowest, *FLOORS[1:]], float(z.min()))
    return likeliest_floor(floors, fit, tie=2 / float(sample.class_weights().sum()))


def mean_loss(
    z: Floats,
    codes: Codes,
    weights: Floats,
    inverse: float,
    *,
    floor: float = 0.0,
    smoothing: float = 0.0,
) -> float:
    """Mean log loss under softmax(z / T), with a floor and a share of the uniform forecast."""
    at = codes.astype(np.intp)
    return power_loss(z, at, weights, inverse, _log(floor), smoothing) / float(weights.sum())


def _log(floor: float) -> float:
    return math.log(floor) if floor else -math.inf


def _steepest(z: Floats, weights: Floats, floor: float) -> float:
    """Upper bound on 1 / T that the rows support.

    Half of the rows keep log odds between their two most probable classes of at most
    2 log(K (n + 1)), twice the log odds of a class not seen in n rows. Odds against the floor say
    nothing, so such rows count only if there are no others.
    """
    if len(z) == 2:
        first = z.max(axis=0)
        second = z.min(axis=0)
    else:
        second, first = np.partition(z, -2, axis=0)[-2:]
    most = 2 * float(np.log(len(z) * (weights.sum() + 1)))
    above = second > _log(floor)
    rows = np.flatnonzero(above if above.any() else ~above)
    gap = first[rows] - np.maximum(second[rows], _log(floor))
    middle = float(np.quantile(gap, 0.5, weights=weights[rows], method="inverted_cdf"))
    return max(1.0, most / middle) if middle > 0 else np.inf


def inverse_temperature(
    z: Floats,
    codes: Codes,
    weights: Floats,
    floor: float = 0.0,
    *,
    bounded: bool = True,
    start: float = 1.0,
    tolerance: float = 1e-10,
    least_gain: float = 0.0,
) -> float:
    """Maximum likelihood estimate of 1 / T in softmax(z / T), up to an upper bound.

    Log forecasts z, of shape (K, n), are raised to the floor. `likeliest_power` says when the
    search ends.
    """
    lowest = _log(floor)
    own = np.maximum(z[codes, np.arange(len(weights))], lowest)
    # Large logits may need a large temperature. A larger one would leave rounding errors only.
    low = 1e-4 / max(1.0, float(z.max()) - max(float(z.min()), lowest))
    find = partial(
        likeliest_power,
        z,
        weights,
        low,
        tolerance=tolerance,
        least_gain=least_gain,
        lowest=lowest,
        outcome=float(weights @ own / weights.sum()),
    )
    high = 1e6
    if bounded:
        # The loss is convex and the bound at least 1, so it matters only if the best is above 1.
        # Forecasts that sort the outcomes perfectly would have an infinite 1 / T.
        if start <= 1:
            start = find(1.0, start=start)
            if start < 1:
                return start
        high = min(high, _steepest(z, weights, floor))
    return find(high, start=start)
