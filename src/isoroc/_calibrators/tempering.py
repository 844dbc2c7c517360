"""Temperature scaling, alone or before another correction."""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, Self

import numpy as np

from isoroc._calibrators.floors import FLOORS, distinct_floors, likeliest_floor
from isoroc._calibrators.parts import FINE, FINE_ROWS, draw_part, gather
from isoroc._core.losses import likeliest_power
from isoroc._core.smooth import power_loss
from isoroc._core.types import Codes, Floats
from isoroc._input import InputError, Sample, check_number
from isoroc._maps import TemperatureMap


@dataclass(frozen=True, eq=False)
class LogRows:
    """Log forecasts of rows, shape (K, n), their outcomes and weights."""

    z: Floats
    codes: Codes
    weights: Floats

    @classmethod
    def of(cls, sample: Sample, floor: float) -> Self:
        """Rows of a sample. Forecasts below the floor are raised to it."""
        z = sample.kind.log_rows(sample.forecasts, floor)
        return cls(z, sample.codes, sample.row_weights())

    @cached_property
    def own(self) -> Floats:
        """Log forecasts of the outcomes, shape (n,)."""
        return np.asarray(self.z[self.codes, np.arange(len(self.codes))])

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest log forecast."""
        return float(self.z.min()), float(self.z.max())

    @cached_property
    def leading(self) -> tuple[Floats, Floats]:
        """The two largest log forecasts of each row, the larger one first, shape (n,) each."""
        first = self.z.max(axis=0)
        if len(self.z) == 2:
            return first, self.z.min(axis=0)
        others = self.z.copy()
        others[self.z.argmax(axis=0), np.arange(len(self.codes))] = -np.inf
        return first, others.max(axis=0)

    def mean_loss(self, inverse: float, *, floor: float = 0.0, smoothing: float = 0.0) -> float:
        """Mean log loss under softmax(z / T), with a floor and a share of the uniform forecast."""
        at = self.codes.astype(np.intp)
        loss = power_loss(self.z, at, self.weights, inverse, _log(floor), smoothing)
        return loss / float(self.weights.sum())

    def inverse_temperature(
        self,
        floor: float = 0.0,
        *,
        bounded: bool = True,
        start: float = 1.0,
        tolerance: float = 1e-10,
        least_gain: float = 0.0,
    ) -> float:
        """Maximum likelihood estimate of 1 / T in softmax(z / T), up to an upper bound.

        Log forecasts z are raised to the floor. `likeliest_power` says when the search ends.
        """
        lowest = _log(floor)
        least, most = self.ends
        own = np.maximum(self.own, lowest)
        # Large logits may need a large temperature. A larger one would leave rounding errors only.
        low = 1e-4 / max(1.0, most - max(least, lowest))
        find = partial(
            likeliest_power,
            self.z,
            self.weights,
            low,
            tolerance=tolerance,
            least_gain=least_gain,
            lowest=lowest,
            outcome=float(self.weights @ own / self.weights.sum()),
        )
        high = 1e6
        if bounded:
            # The loss is convex and the bound at least 1, so it matters only if the best is above
            # 1. Forecasts that sort the outcomes perfectly would have an infinite 1 / T.
            if start <= 1:
                start = find(1.0, start=start)
                if start < 1:
                    return start
            high = min(high, self._steepest(lowest))
        return find(high, start=start)

    def _steepest(self, lowest: float) -> float:
        """Upper bound on 1 / T that the rows support.

        Half of the rows keep log odds between their two most probable classes of at most
        2 log(K (n + 1)), twice the log odds of a class not seen in n rows. Odds against the floor
        say nothing, so such rows count only if there are no others.
        """
        first, second = self.leading
        most = 2 * float(np.log(len(self.z) * (self.weights.sum() + 1)))
        above = second > lowest
        rows = np.flatnonzero(above if above.any() else ~above)
        gap = first[rows] - np.maximum(second[rows], lowest)
        order = np.argsort(gap)
        below = self.weights[rows[order]].cumsum()
        middle = float(gap[order[np.searchsorted(below, below[-1] / 2)]])  # weighted median
        return max(1.0, most / middle) if middle > 0 else np.inf


def fit_tempering(
    sample: Sample, floor: float | Literal["auto"], pseudocount: float
) -> TemperatureMap:
    """Check the parameters of temperature scaling, and fit it."""
    check_number("pseudocount", pseudocount, minimum=0)
    check_number("floor", floor, minimum=FLOORS[0], others=("auto",))
    if floor == "auto":
        part = draw_part(sample)
        lowest = FLOORS[0] if sample.kind.scores == "probability" else 0.0  # logits need no floor
        rows = LogRows.of(part, lowest)
        floor, inverse = _choose_floor(rows, lowest, uniform_share(sample, pseudocount))
        known = rows if part is sample else None
        return temper(sample, floor, pseudocount, rows=known, start=inverse)
    if floor >= 1:
        raise InputError("floor", None, f"is {floor!r}", "expected a number below 1")
    return temper(sample, float(floor), pseudocount)


def temper(
    sample: Sample,
    floor: float,
    pseudocount: float,
    *,
    rows: LogRows | None = None,
    bounded: bool = True,
    start: float = 1.0,
    tolerance: float = 1e-10,
) -> TemperatureMap:
    """Temperature scaling with a given floor, from rows of the sample if they are known.

    See `LogRows.inverse_temperature` for the other options.
    """
    if rows is None:
        rows = LogRows.of(sample, floor)
    inverse = rows.inverse_temperature(floor, bounded=bounded, start=start, tolerance=tolerance)
    share = uniform_share(sample, pseudocount)
    return TemperatureMap(kind=sample.kind, floor=floor, temperature=1 / inverse, smoothing=share)


def uniform_share(sample: Sample, pseudocount: float) -> float:
    """Share of the uniform forecast that stands for `pseudocount` rows beside the sample."""
    total = float(sample.class_weights().sum())
    return float(pseudocount / (total + pseudocount))


def _choose_floor(rows: LogRows, lowest: float, smoothing: float) -> tuple[float, float]:
    """The lowest floor within 2 nats of the largest likelihood, and its 1 / T."""
    smallest, _ = rows.ends
    tie = 2 / float(rows.weights.sum())
    if len(rows.z) == 2:
        # No cell holds a floor.
        levels = np.searchsorted(np.log(FLOORS[::-1]), rows.z)
        places = np.stack([np.floor((rows.z[1] - rows.z[0]) / FINE), *levels])
        gathered = gather(rows.z, rows.codes, rows.weights, places, least_rows=FINE_ROWS)
        rows = LogRows(*gathered)
    inverse = 1.0

    def fit(floor: float) -> tuple[float, float]:
        nonlocal inverse  # the best one changes little between floors, and need not be exact
        inverse = rows.inverse_temperature(floor, start=inverse, least_gain=1e-4)
        return rows.mean_loss(inverse, floor=floor, smoothing=smoothing), inverse

    floors = distinct_floors([lowest, *FLOORS[1:]], smallest)
    return likeliest_floor(floors, fit, tie)


def _log(floor: float) -> float:
    return math.log(floor) if floor else -math.inf
