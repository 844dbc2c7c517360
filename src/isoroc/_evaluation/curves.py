"""Curves of forecasts: reliability with its consistency bands, and ROC curves and surfaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit, logit

from isoroc._core.intervals import design_effect, effective_rows, wilson
from isoroc._core.types import Floats, Ints
from isoroc._counts import BinaryCounts
from isoroc._evaluation.triangle import group_means
from isoroc._input import Sample, check_option, split_by_kind
from isoroc._support.table import Table
from isoroc.metrics import RocCurve, symmetric_roc_curve
from isoroc.metrics._estimation.grouping import group_equal, group_quantile, group_rows

#: Largest number of groups of forecasts for which outcomes are simulated, and of points of a band.
_MAX_GROUPS, _MAX_POINTS = 2000, 200
#: At most this many distinct forecasts, each of about this many rows or more, have a group each.
_FEW_VALUES, _ROWS_PER_VALUE = 30, 5
#: Number of bars of a histogram, and the distance from which on distinct forecasts have bars.
_N_BARS, _LEAST_GAP = 20, 0.02
#: Groups of about equal weight, or of equal width.
Strategy = Literal["quantile", "uniform"]


class Axis(NamedTuple):
    """Scale of an axis, and where it starts and ends; most are axes of probabilities."""

    scale: Literal["linear", "log", "logit"] = "linear"
    low: float = 0.0
    high: float = 1.0

    def position(self, p: Any) -> Floats:
        """Place on the axis, from 0 to 1; what lies beyond an end is put there."""
        function: Any = {"log": np.log, "logit": logit}.get(self.scale, np.asarray)
        low, high = function(self.low), function(self.high)
        return np.asarray((function(np.clip(p, self.low, self.high)) - low) / (high - low))

    def clip(self, p: Any) -> Floats:
        """The same, but 0 and 1 become values beyond the ends that have a place on the scale."""
        return np.asarray(np.clip(p, self.low / 100, 1 - (1 - self.high) / 100))

    def values(self, n: int) -> Floats:
        """Values that divide the axis into n parts of equal length."""
        if self.scale == "linear":
            return np.arange(n + 1) / n
        if self.scale == "log":
            return np.geomspace(self.low, 1, n + 1)
        return np.asarray(expit(np.linspace(logit(self.low), logit(self.high), n + 1)))

    def ticks(self) -> list[float]:
        """Round values, at most about nine."""
        if self.scale == "linear":
            length = self.high - self.low
            power = 10 ** np.floor(np.log10(length / 6))
            step = power * next((k for k in (1, 2, 5) if length / (k * power) <= 5.1), 10)
            first, last = np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9)
            return [float(f"{k * step + 0.0:.10g}") for k in np.arange(first, last + 1)]
        below, above = (
            [float(f"1e-{k}") for k in range(1, round(-np.log10(end)) + 1)]
            for end in (self.low, 1 - self.high if self.scale == "logit" else 1.0)
        )
        if self.scale == "log":
            return [1.0, *below][:: 1 + len(below) // 5][::-1]
        # Those between 0.1 and 0.9 are close together on a long axis.
        below, above = (
            powers if len(powers) <= 2 else [0.01, *powers[3::2]][:2] for powers in (below, above)
        )
        return [*reversed(below), 0.5, *(1 - p for p in above)]


def axis_of(samples: Iterable[Sample], scale: str = "auto") -> Axis:
    """Axis on which forecasts of events can be told apart; see `CalibrationDisplay` for "auto"."""
    p = np.concatenate([sample.forecasts for sample in samples])
    check_option("scale", scale, ("auto", "linear", "log", "logit"))
    if scale == "auto":
        ends = np.mean(np.minimum(p, 1 - p) <= 0.1) >= 0.95
        scale = "logit" if ends else "linear"
        scale = "log" if np.mean(p <= 0.2) >= 0.95 else scale
    if scale == "linear":
        return Axis()
    if scale == "log":
        return Axis("log", _decade_below(p, 0.02))
    least = _decade_below(np.minimum(p, 1 - p), 0.02)
    low, high = (max(least, _decade_below(side, 0.002)) for side in (p, 1 - p))
    return Axis("logit", low, 1 - high)


def _decade_below(distance: Floats, share: float) -> float:
    """Power of ten, 1e-5 to 0.1, below which about this share of the positive distances lies."""
    smallest = np.quantile(distance[distance > 0], share) if (distance > 0).any() else 0.1
    return float(10 ** np.floor(np.log10(np.clip(smallest, 1e-5, 0.1))))


def event_of(sample: Sample, k: int | None) -> Sample:
    """Sample of one event: class k, or that the most probable class comes true if k is None."""
    if k is None:
        return split_by_kind(sample, "top")[0]
    column = np.ascontiguousarray(sample.forecasts[:, k])
    event = (sample.codes == k).view(np.uint8)
    return Sample(column, event, sample.weights, clusters=sample.clusters)


def reliability(
    sample: Sample,
    axis: Axis,
    *,
    n_bins: int | None = None,
    strategy: Strategy = "quantile",
    confidence: float = 0.95,
    n_resamples: int = 400,
    seed: int = 0,
) -> dict[str, Table]:
    """Tables of a reliability diagram: "rates", "curve", "histogram" and, if simulated, "band"."""
    rates = observed_rates(sample, n_bins=n_bins, strategy=strategy, confidence=confidence)
    tables = {"rates": rates, "curve": isotonic_curve(sample), "histogram": histogram(sample, axis)}
    if n_resamples:
        tables["band"] = consistency_band(sample, confidence, n_resamples, seed)
    return tables


def observed_rates(
    sample: Sample, *, n_bins: int | None, confidence: float, strategy: Strategy = "quantile"
) -> Table:
    """Observed rates of groups of about equal weight or equal width, with Wilson's intervals.

    Equal forecasts are in the same group. The intervals take a weight as a number of rows, of which
    clusters make fewer.
    """
    p = sample.forecasts
    if n_bins is None and strategy == "quantile" and has_few_values(p):
        group = group_equal(p)
    else:
        n_bins = n_bins or int(np.clip(np.rint(np.cbrt(len(p))), 2, 15))
        group = group_rows(p, sample.weights, n_bins if strategy == "uniform" else strategy, n_bins)
    weight, forecast, rate = group_means(group, sample.weights, p, sample.codes)
    rate = rate.clip(0, 1)
    low, high = wilson(rate, weight / _design_effect(sample), confidence)
    return Table(forecast=forecast, rate=rate, low=low, high=high, weight=weight)


def _design_effect(sample: Sample) -> float:
    """How many times larger clusters make the variance of a sum of residuals."""
    return float(design_effect(sample.row_weights() * sample.residuals(), sample.clusters))


def has_few_values(p: Floats) -> bool:
    """Whether a few distinct forecasts have several rows each."""
    most = min(_FEW_VALUES, len(p) // _ROWS_PER_VALUE)
    return len(np.unique(p[: 50 * most])) <= most and len(np.unique(p)) <= most


def isotonic_curve(sample: Sample) -> Table:
    """Isotonic regression of outcomes on forecasts: both ends of each of its bins."""
    low, high, class_weights = BinaryCounts.from_arrays(*sample.arrays).isotonic_blocks()
    rate = class_weights[:, 1] / class_weights.sum(axis=1)
    return Table(forecast=np.column_stack([low, high]).ravel(), rate=np.repeat(rate, 2))


def consistency_band(sample: Sample, confidence: float, n_resamples: int, seed: int) -> Table:
    """Range of the isotonic curve of these forecasts under the hypothesis that they are calibrated.

    Outcomes are simulated with the forecasts as probabilities and the curve is fitted to each
    simulation (Dimitriadis, Gneiting and Jordan 2021). `low` to `high` contains the given share of
    the curves at each forecast, `low_all` to `high_all` about this share of whole curves.
    Simulation under the hypothesis needs no asymptotic theory, whereas the usual bootstrap is not
    consistent for isotonic regression.

    Many forecasts are first merged into groups of equal weight. The number of outcomes simulated
    for a group is its effective number of rows.
    """
    weights = sample.row_weights()
    group = group_quantile(sample.forecasts, sample.weights, _MAX_GROUPS)
    _, group = np.unique(group, return_inverse=True)  # none is empty
    weight, forecast = group_means(group, weights, sample.forecasts)
    forecast = forecast.clip(0, 1)
    size = effective_rows(weight, np.bincount(group, weights**2)) / _design_effect(sample)
    n_outcomes = np.maximum(np.rint(size), 1).astype(np.int64)
    rng = np.random.default_rng(seed)
    rates = rng.binomial(n_outcomes, forecast, (n_resamples, len(weight))) / n_outcomes
    kept = np.unique(np.linspace(0, len(weight) - 1, _MAX_POINTS).astype(np.intp))
    fits = np.array([isotonic_regression(rate, weights=weight).x[kept] for rate in rates])
    tail = (1 - confidence) / 2
    low, high = np.quantile(fits, [tail, 1 - tail], axis=0)
    # Arcsines of square roots of rates have about the same distribution near 0 as elsewhere.
    angles = np.arcsin(np.sqrt(fits.clip(0, 1)))
    centre, spread = angles.mean(axis=0), angles.std(axis=0) + 1e-9
    furthest = np.quantile((np.abs(angles - centre) / spread).max(axis=1), confidence)
    ends = [centre - furthest * spread, centre + furthest * spread]
    low_all, high_all = np.sin(np.clip(ends, 0, np.pi / 2)) ** 2
    whole = {"low_all": np.minimum(low, low_all), "high_all": np.maximum(high, high_all)}
    return Table(forecast=forecast[kept], low=low, high=high, **whole)


def histogram(sample: Sample, axis: Axis = Axis()) -> Table:
    """Share of rows in percent: bars of a few distinct forecasts, or twenty bins of equal width.

    Bars and gaps follow each other. A bin contains its left end, up to rounding.
    """
    p, weights = sample.forecasts, sample.weights
    gap = 0.0
    if has_few_values(p):
        place, group = np.unique(axis.position(p).round(9), return_inverse=True)
        gap = min(np.diff(place).min(initial=1.0), 0.05)
    if gap > _LEAST_GAP:
        ends = np.column_stack([place - 0.3 * gap, place + 0.3 * gap]).ravel()
        counted: Any = np.zeros(len(ends) - 1)
        counted[::2] = np.bincount(group, weights)
        edges = np.interp(ends, np.linspace(0, 1, 2001), axis.values(2000))
    else:
        bins = np.floor(axis.position(p) * _N_BARS + 1e-9).astype(np.intp).clip(0, _N_BARS - 1)
        counted = np.bincount(bins, weights, _N_BARS)
        edges = axis.values(_N_BARS)
    return Table(left=edges[:-1], right=edges[1:], percent=100 * counted / counted.sum())


def thin(x: Floats, y: Floats, most: int = 2000) -> Ints:
    """Indices of at most about `most` vertices of a monotone curve, both ends included.

    They are evenly spaced in the sum of both coordinates, each scaled to a range of 1, so the curve
    moves by no more than one step.
    """
    if len(x) <= most:
        return np.arange(len(x))
    steps = np.abs(np.diff(x)) / np.ptp(x) + np.abs(np.diff(y)) / np.ptp(y)
    length = np.append(0.0, np.cumsum(steps))
    found = np.searchsorted(length, np.linspace(0, length[-1], most))
    return np.unique(found.clip(max=len(x) - 1))


def one_vs_rest(
    samples: Mapping[str, Sample], classes: Sequence[int]
) -> dict[int, dict[str, RocCurve]]:
    """ROC curves of classes against the rest; a class with all rows or none has no curve."""
    found: dict[int, dict[str, RocCurve]] = {}
    codes = next(iter(samples.values())).codes
    for k in classes:
        is_class = codes == k
        if is_class.any() and not is_class.all():
            found[k] = {}
            for of, sample in samples.items():
                P = sample.forecasts if sample.forecasts.ndim == 1 else sample.forecasts[:, k]
                found[k][of] = symmetric_roc_curve(is_class, P, sample_weight=sample.weights)
    return found


def best_rates(points: Floats, steps: int) -> Floats:
    """Heat map of an ROC surface of three classes, shape (steps + 1, steps + 1).

    Entry (i, j) is the largest third coordinate of the points whose first two coordinates are at
    least i / steps and j / steps, 0 if there is none.
    """
    table = np.zeros((steps + 1, steps + 1))
    i, j = np.floor(points[:, :2] * steps + 1e-9).astype(np.intp).T
    np.maximum.at(table, (i, j), points[:, 2])
    for axis in (0, 1):
        table = np.flip(np.maximum.accumulate(np.flip(table, axis), axis), axis)
    return table
