"""SegmentsDisplay: where forecasts are wrong, and how a calibrator shifts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from sklearn.utils.validation import check_is_fitted

from isoroc._core.intervals import half_width
from isoroc._evaluation.evaluation import Evaluation
from isoroc._input import InputError
from isoroc._support.table import Table
from isoroc.plots._display import (
    NEUTRAL,
    SERIES,
    Display,
    Layer,
    Size,
    Where,
    add_legend,
    shortened,
    tidy,
)


@dataclass(repr=False, eq=False)
class SegmentsDisplay(Display):
    """Segments with intervals: observed rates over forecasts, or the shifts of a calibrator.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import evaluate
    >>> from isoroc.plots import SegmentsDisplay
    >>> rng = np.random.default_rng(0)
    >>> p, region = rng.random(600), rng.choice(["north", "south"], 600)
    >>> y = rng.random(600) < np.where(region == "north", p, p**2)
    >>> result = evaluate(y, p, segments={"region": region})
    >>> SegmentsDisplay.from_evaluation(result).names
    ['region: south (302)', 'region: north (298)']
    """

    names: list[str]
    """The segments, with their numbers of rows."""
    label: str
    """What the axis shows."""
    neutral: float
    """Where forecasts are right."""

    def __post_init__(self) -> None:
        self._grid = (1, (6.0, 1.3 + 0.3 * len(self.names)))

    @classmethod
    def from_evaluation(
        cls, evaluation: Evaluation, *, most: int = 12, ax: Where = None, figsize: Size = None
    ) -> Self:
        """Draw the segments that cost most before calibration, before and after.

        Parameters
        ----------
        evaluation : Evaluation
            Result of ``isoroc.evaluate(y, P, after, segments=...)``.
        most : int, default=12
            Number of segments.
        ax, figsize
            As in `plot`.
        """
        if not evaluation.segments:
            fix = "pass the result of evaluate(..., segments=...)"
            raise InputError("evaluation", None, "has no segments", fix)
        table = evaluation.worst_segments(most)
        if not table.n_rows:
            fix = "pass columns with fewer values, or more rows"
            raise InputError("evaluation", None, "has only segments of too few rows", fix)
        layers = []
        for stage in evaluation.segments:
            value, low, high = (table[f"{stage}_{column}"] for column in ("ratio", "low", "high"))
            data = Table(value=value, low=low, high=high)
            layers.append(Layer("segments", stage, "intervals", data))
        names = [f"{name} ({n:,})" for name, n in zip(table["name"], table["rows"], strict=True)]
        return cls(layers, names, "observed rate / mean forecast", 1.0).plot(ax, figsize=figsize)

    @classmethod
    def from_calibrator(
        cls, calibrator: Any, *, most: int = 30, ax: Where = None, figsize: Size = None
    ) -> Self:
        """Draw the shifts of a `SegmentCalibrator` with 95 % intervals, the most certain first.

        Parameters
        ----------
        calibrator : SegmentCalibrator
            Fitted.
        most : int, default=30
            Number of shifts.
        ax, figsize
            As in `plot`.
        """
        if not hasattr(calibrator, "count_unknown"):
            problem = f"is {type(calibrator).__name__}"
            raise InputError("calibrator", None, problem, "pass a SegmentCalibrator")
        check_is_fitted(calibrator, "map_")
        table = calibrator.shifts_
        clear = np.abs(table["shift"]) / np.maximum(table["error"], 1e-12)
        rows = np.sort(np.argsort(-clear, kind="stable")[:most])
        value = table["shift"][rows]
        half = half_width(0.95) * table["error"][rows]
        data = Table(value=value, low=value - half, high=value + half)
        several = len(set(table["class"].tolist())) > 1
        about = (table[name][rows].tolist() for name in ("column", "segment", "class", "rows"))
        names = [
            f"{column}: {segment}{f', {label}' * several} ({n:,})"
            for column, segment, label, n in zip(*about, strict=True)
        ]
        layers = [Layer("segments", "after", "intervals", data)]
        return cls(layers, names, "shift of the log odds", 0.0).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        ax.axvline(self.neutral, color=NEUTRAL, lw=1)
        heights = np.arange(len(self.names), dtype=np.float64)
        for i, (_, series, _, data) in enumerate(layers):
            colour, marker, _ = SERIES[series]
            y = heights + 0.24 * (i - (len(layers) - 1) / 2)
            ax.hlines(y, data["low"], data["high"], color=colour, lw=1.8)
            ax.plot(data["value"], y, label=series, color=colour, marker=marker, ms=5, lw=0)
        ax.set_yticks(heights, [shortened(name, 44) for name in self.names], size="small")
        ax.set_ylim(max(len(heights), 1) - 0.5, -0.5)
        if self.neutral == 1:  # ratios. Intervals of rare events may be long
            ax.set_xscale("log")
            ax.set_xlim(*np.clip(ax.get_xlim(), 0.2, 5.0))
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_locator(NullLocator())
        else:
            ax.xaxis.set_major_locator(MaxNLocator(5))
        tidy(ax, xlabel=self.label)
        if len(layers) > 1:
            add_legend(ax, "best")
        return []
