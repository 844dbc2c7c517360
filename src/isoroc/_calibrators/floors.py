"""The floor under forecasts: probabilities below it are raised to it.

A forecast of 1e-30 for what happens costs 69 nats, more than all the rest of a small sample. So a
floor is a parameter of a map like any other, and the outcomes choose it from a few values.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY
from isoroc._core.rows import smallest_above
from isoroc._core.types import Floats
from isoroc._input import Sample, slices
from isoroc._input.kinds import columns_of

#: What floor="auto" chooses from. The first leaves every positive forecast unchanged.
FLOORS = 10.0 ** -np.array([300, 100, 30, 16, 8, 6, 4, 3, 2.5, 2, 1.5, 1])

AnySample = TypeVar("AnySample", bound=Sample)
T = TypeVar("T")


def likeliest_floor(
    floors: Iterable[float], fit: Callable[[float], tuple[float, T]], tie: float = 1e-9
) -> tuple[float, T]:
    """The floor with the least mean loss, and what was fitted with it.

    `fit` gives the mean loss under a floor and the fitted parameters. Floors come in the order of
    preference: the first within `tie` of the least loss is chosen.
    """
    candidates = []
    for floor in floors:
        loss, fitted = fit(floor)
        candidates.append((loss, float(floor), fitted))
    _, floor, fitted = likeliest(candidates, tie)
    return floor, fitted


def likeliest(candidates: Sequence[tuple[Any, ...]], tie: float = 1e-9) -> tuple[Any, ...]:
    """The tuple that begins with the least mean loss, the first of those that tie."""
    least = min(each[0] for each in candidates)
    return next(each for each in candidates if each[0] <= least + tie)


def may_be_least(losses: Floats, weights: Floats, n_errors: float = 5.0) -> NDArray[np.bool_]:
    """Which of some candidates may have the least loss on all rows, shape (m,).

    `losses`, of shape (m, n), come from a part of the rows. Candidates whose mean exceeds the least
    by more than `n_errors` standard errors of the difference are ruled out.
    """
    means = np.average(losses, axis=1, weights=weights)
    excess = losses - losses[means.argmin()]
    error = np.sqrt((excess - excess.mean(axis=1, keepdims=True)) ** 2 @ weights**2)
    return np.asarray(means - means.min() <= n_errors * error / weights.sum() + 1e-9)


def distinct_floors(floors: Iterable[float], smallest: float) -> list[float]:
    """The floors that differ in what they raise, if no log forecast is below `smallest`.

    Floors that raise nothing are all the same, so only the first of them is kept.
    """
    floors = list(floors)
    raising = [floor > 0 and float(np.log(floor)) > smallest for floor in floors]
    idle = [i for i, raises in enumerate(raising) if not raises]
    return [floor for i, floor in enumerate(floors) if raising[i] or i == idle[0]]


def without_noise(sample: AnySample, noise: tuple[float, float] = (1e-16, 1e-8)) -> AnySample:
    """The sample with exact zeros where something has put noise in their place.

    Forests and neighbours forecast shares of votes, many of which are 0. Noise in place of these
    zeros, however small, would look like evidence, since fits use logarithms. It is recognised by a
    gap: there are forecasts in the range of `noise`, but neither smaller ones nor any up to a
    hundred times larger. Where that is not so, tiny forecasts tell rows apart.
    """
    if sample.kind.scores != "probability":
        return sample
    least, most = noise
    if not least <= _smallest_above(0.0, sample) < most:
        return sample
    if _smallest_above(np.nextafter(most, 0), sample) < 100 * most:
        return sample
    p = sample.kind.probabilities(NUMPY, columns_of(sample.forecasts))
    is_tiny = p < most
    forecasts = np.where(is_tiny, 0.0, p)
    if sample.kind.single:
        forecasts = np.where(is_tiny[:, 0], 1.0, forecasts[:, 1])
    return replace(sample, forecasts=forecasts)


def smallest_forecast(sample: Sample) -> float:
    """The smallest positive forecast, between 1e-30 and 1e-3. Logits need no floor.

    As a floor for maps with many parameters, it leaves all positive forecasts distinct.
    """
    if sample.kind.scores != "probability":
        return 1e-30
    return float(np.clip(_smallest_above(0.0, sample), 1e-30, 1e-3))


def _smallest_above(bound: float, sample: Sample) -> float:
    """The smallest probability of any class above a bound."""
    parts = (columns_of(sample.forecasts[rows]) for rows in slices(len(sample)))
    return min(smallest_above(sample.kind.probabilities(NUMPY, part), bound) for part in parts)
