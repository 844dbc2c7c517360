"""Curves of forecasts: reliability, calibration maps and ROC curves, on axes of probabilities."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit

from isoroc._core.types import Floats, Ints
from isoroc._input import Sample, check_option, rows_by_group
from isoroc._support.table import Table
from isoroc._support.threads import in_threads
from isoroc.metrics import RocCurve, symmetric_roc_curve
from isoroc.metrics._calibration import Event, event_of, has_few_values, observed_rates
from isoroc.metrics._clinical import smooth_curve
from isoroc.metrics._estimation.grouping import group_means

#: Probabilities that an axis of log odds may start and end at, and that it may have ticks at.
LEVELS = (1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)


class Axis(NamedTuple):
    """Scale of an axis, and where it starts and ends. Most axes show probabilities."""

    scale: Literal["linear", "logit"] = "linear"
    low: float = 0.0
    high: float = 1.0

    def position(self, p: Any) -> Floats:
        """Position on the axis, from 0 to 1. Values beyond an end are moved there."""
        function: Any = logit if self.scale == "logit" else np.asarray
        low = function(self.low)
        high = function(self.high)
        return np.asarray((function(np.clip(p, self.low, self.high)) - low) / (high - low))

    def values(self, n: int) -> Floats:
        """Values that divide the axis into n parts of equal length."""
        if self.scale == "linear":
            return self.low + np.arange(n + 1) / n * (self.high - self.low)
        return np.asarray(expit(np.linspace(logit(self.low), logit(self.high), n + 1)))

    def ticks(self) -> list[float]:
        """Round values, at most about seven."""
        if self.scale == "linear":
            length = self.high - self.low
            power = 10 ** np.floor(np.log10(length / 6))
            step = power * next((k for k in (1, 2, 5) if length / (k * power) <= 5.1), 10)
            first = np.ceil(self.low / step - 1e-9)
            last = np.floor(self.high / step + 1e-9)
            return [float(f"{k * step + 0.0:.10g}") for k in np.arange(first, last + 1)]
        inside = [p for p in LEVELS if self.low <= p <= self.high]
        chosen: list[float] = []
        for p in sorted(inside, key=lambda p: (p not in (self.low, self.high), abs(p - 0.5))):
            gap = 0.15 if p < 0.99 else 0.19  # the labels are longer
            if all(abs(self.position(p) - self.position(q)) > gap for q in chosen):
                chosen.append(p)
        return sorted(chosen)


def axis_of(samples: Iterable[Sample], scale: str = "auto") -> Axis:
    """Axis on which forecasts of an event differ visibly. `CalibrationDisplay` explains "auto"."""
    check_option("scale", scale, ("auto", "linear", "logit"))
    events = list(samples)
    p = np.concatenate([event.forecasts for event in events])
    rate = float(np.average(events[0].codes, weights=events[0].weights))
    if scale == "auto":
        sides = [np.mean(p <= 0.2), np.mean(p >= 0.8), np.mean(np.minimum(p, 1 - p) <= 0.1)]
        scale = "logit" if min(rate, 1 - rate) < 0.05 or max(sides) >= 0.95 else "linear"
    inside = (p > 0) & (p < 1)
    inner = p[inside]
    if scale == "linear" or not len(inner):
        return Axis()
    low, high = np.quantile(inner, [0.002, 0.998])
    # The axis includes the few rows that have most of a rare outcome.
    occurred = np.concatenate([event.codes for event in events])[inside] == 1
    if occurred.any():
        high = max(high, np.quantile(inner[occurred], 0.99))
    if not occurred.all():
        low = min(low, np.quantile(inner[~occurred], 0.01))
    # The axis also includes rates around the event's overall rate.
    low = min(low, max(rate / 3, 1 - 3 * (1 - rate)))
    high = max(high, min(3 * rate, 1 - (1 - rate) / 3))
    starts = [level for level in LEVELS[:6] if level <= low]
    ends = [level for level in LEVELS[5:] if level >= high]
    return Axis("logit", max([LEVELS[0], *starts]), min([LEVELS[-1], *ends]))


class ReliabilityPanel(NamedTuple):
    """A reliability diagram of an event, with the tables of each series by name."""

    name: str
    event: str
    axis: Axis
    series: dict[str, dict[str, Table]]


def reliability_panels(
    samples: Mapping[str, Sample],
    events: Mapping[str, Event],
    scale: str = "auto",
    confidence: float = 0.95,
    **bins: Any,  # options of `observed_rates`
) -> list[ReliabilityPanel]:
    """One panel per event (see `event_of`), or two for a single event before and after."""

    def draw(name: str) -> ReliabilityPanel:
        parts = {stage: event_of(sample, events[name]) for stage, sample in samples.items()}
        axis = axis_of(parts.values(), scale)
        series = {}
        for stage, event in parts.items():
            curve, ici = smooth_curve(event.draw(100_000), confidence)
            series[stage] = {
                "rates": observed_rates(event, confidence=confidence, **bins),
                "histogram": histogram(event, axis),
                "curve": curve.select("forecast", "rate"),
                "band": curve.select("forecast", "low", "high"),
                "ici": Table(ici=np.array([ici])),
            }
        return ReliabilityPanel(name, name, axis, series)

    panels = in_threads(draw, events)
    if len(panels) > 1 or len(samples) == 1:
        return panels
    return [
        panel._replace(name=stage, series={stage: tables})
        for panel in panels
        for stage, tables in panel.series.items()
    ]


def histogram(sample: Sample, axis: Axis = Axis(), n_bars: int = 20) -> Table:
    """Share of rows in percent: bars of a few distinct forecasts, or bins of equal width."""
    p = sample.forecasts
    weights = sample.weights
    gap = 0.0
    if has_few_values(p):
        centre, group = np.unique(axis.position(p).round(9), return_inverse=True)
        gap = min(np.diff(centre).min(initial=1.0), 0.05)
    if gap > 0.02:  # narrower bars could not be seen
        ends = np.column_stack([centre - 0.3 * gap, centre + 0.3 * gap]).ravel()
        counted: Any = np.zeros(len(ends) - 1)  # of bars and the gaps between them
        counted[::2] = np.bincount(group, weights)
        edges = np.interp(ends, np.linspace(0, 1, 2001), axis.values(2000))
    else:
        # A bin contains its left end, up to rounding.
        bins = np.floor(axis.position(p) * n_bars + 1e-9).astype(np.intp).clip(0, n_bars - 1)
        counted = np.bincount(bins, weights, n_bars)
        edges = axis.values(n_bars)
    return Table(left=edges[:-1], right=edges[1:], percent=100 * counted / counted.sum())


def calibration_map(event: Sample, after: Floats, axis: Axis, n_points: int = 25) -> Table:
    """Mean forecasts after calibration of rows with similar forecasts before.

    80 % of the rows lie between ``low`` and ``high``. These differ where rows with the same
    forecast before calibration have several after it.
    """
    p = event.forecasts
    group = np.floor(axis.position(p) * n_points).astype(np.intp)
    _, before, mean = group_means(group, event.weights, p, after)
    # Distances from the line through the means, extended at both ends: slope is not spread.
    line = np.array([axis.position(before), mean])
    if len(before) > 1:
        line = np.pad(line, ((0, 0), (1, 1)), "reflect", reflect_type="odd")
    distance = after - np.interp(axis.position(p), *line)
    weights = event.row_weights()
    ends = np.array(
        [
            np.quantile(distance[rows], [0.1, 0.9], weights=weights[rows], method="inverted_cdf")
            for _, rows in rows_by_group(group)
        ]
    )
    low, high = (mean[:, None] + ends).clip(0, 1).T
    return Table(before=before, after=mean, low=low, high=high)


def thin(x: Floats, y: Floats, most: int = 2000) -> Ints:
    """Indices of at most about `most` vertices of a monotone curve, both ends included."""
    if len(x) <= most:
        return np.arange(len(x))
    # Evenly spaced in the sum of both coordinates, so the curve moves by no more than one step.
    steps = np.abs(np.diff(x)) / np.ptp(x) + np.abs(np.diff(y)) / np.ptp(y)
    length = np.append(0.0, np.cumsum(steps))
    chosen = np.searchsorted(length, np.linspace(0, length[-1], most))
    return np.unique(chosen.clip(max=len(x) - 1))


def one_vs_rest(
    samples: Mapping[str, Sample], classes: Sequence[int]
) -> dict[int, dict[str, RocCurve]]:
    """ROC curves of classes against the rest. A class with all rows or none has no curve."""
    curves: dict[int, dict[str, RocCurve]] = {}
    for k in classes:
        for name, sample in samples.items():
            is_class = sample.codes == k
            if is_class.any() and not is_class.all():
                P = sample.forecasts if sample.forecasts.ndim == 1 else sample.forecasts[:, k]
                curve = symmetric_roc_curve(is_class, P, sample_weight=sample.weights)
                curves.setdefault(k, {})[name] = curve
    return curves
