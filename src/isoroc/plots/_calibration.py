"""CalibrationDisplay: observed rates against forecast probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from isoroc._evaluation.curves import Axis, reliability_panels
from isoroc._input import InputError, Sample, check_confidence, check_number, check_option
from isoroc.metrics._calibration import Strategy
from isoroc.plots._display import (
    TOP_CLASS,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    class_panels,
    set_scale,
    shortened,
    strip_below,
    styles_in,
    tidy,
    without_math,
    wrapped,
)


@dataclass(repr=False, eq=False)
class CalibrationDisplay(BeforeAfterDisplay):
    """Observed rates against forecasts, before and after calibration: a reliability diagram.

    Each panel shows a smooth calibration curve with its interval, observed rates of groups of rows
    with Wilson's intervals, and the histogram of the forecasts. The legend has the ICI of
    `isoroc.metrics.calibration_summary`. A single event has one panel before and one after
    calibration. Several classes have one panel each, with a thin line for the forecasts before.
    Displays in the same axes share histogram and legend. Those with a `name` have no rates.

    Options of `from_estimator` and `from_predictions`:

    - `kind`: "classwise" draws each class, or the second of two. "top" draws the most probable
      class of each row. "thresholds" draws, for ordered classes, that the outcome is at most each
      class but the last. "auto", the default, is "classwise" for up to 12 classes and "top" for
      more.
    - `pos_label`: draw this class only.
    - `scale` of both axes: "linear" or "logit" (log odds). "auto", the default, is "logit" for
      events with a rate below 0.05 or above 0.95, and where 95 % of the forecasts lie in the
      lowest fifth, in the highest fifth, or in the lowest and highest tenths.
    - `n_bins`: number of groups of rows. By default each of up to 30 distinct forecasts is a group.
      If there are more, the number is the cube root of the number of rows, between 2 and 15, and
      groups in which most events are expected are divided.
    - `strategy`: groups of about equal weight, "quantile", the default, or width, "uniform".
    - `confidence` of the intervals, 0.95 by default.
    - `name` in the legend, and options of the curves such as ``color`` (also used for the other
      marks) and ``lw``. These can also be passed to `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.plots import CalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p**2
    >>> display = CalibrationDisplay.from_predictions(y, p, after=p**2)
    >>> display.panels
    ['before', 'after']
    >>> display.table["rate"][:3].round(2)
    array([0.02, 0.05, 0.08])
    """

    scales: dict[str, Axis] = field(default_factory=dict)
    """Scale of the axes of each panel, and where they start, linear by default."""
    names: dict[str, str] = field(default_factory=dict)
    """The class of each panel."""
    confidence: float = 0.95
    """Of the intervals."""
    name: str | None = None
    """Name in the legend."""
    line_options: dict[str, Any] = field(default_factory=dict)
    """Options of the curves."""

    _needs_probabilities = True
    _grid = (4, (3.7, 4.5))

    @classmethod
    def _of(
        cls,
        series: dict[str, Sample],
        *,
        kind: Literal["auto", "classwise", "top", "thresholds"] = "auto",
        pos_label: Any = None,
        scale: Literal["auto", "linear", "logit"] = "auto",
        n_bins: int | None = None,
        strategy: Strategy = "quantile",
        confidence: float = 0.95,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        check_option("kind", kind, ("auto", "classwise", "top", "thresholds"))
        check_option("strategy", strategy, ("quantile", "uniform"))
        check_confidence(confidence)
        check_number("n_bins", n_bins, int, minimum=1, others=(None,))
        try:
            Line2D([], [], **line_options)
        except (AttributeError, TypeError, ValueError) as error:
            fix = "expected those that CalibrationDisplay describes, or options of lines"
            raise InputError("options", None, str(error), fix) from None
        events = class_panels(next(iter(series.values())), pos_label, kind)
        panels = reliability_panels(
            series, events, scale, confidence, n_bins=n_bins, strategy=strategy
        )
        layers = []
        for panel in panels:
            for stage, tables in panel.series.items():
                layers += [Layer(panel.name, stage, kind, data) for kind, data in tables.items()]
        scales = {panel.name: panel.axis for panel in panels}
        names = {panel.name: panel.event for panel in panels}
        return cls(layers, scales, names, confidence, name, line_options)

    def _draw(
        self, ax: Axes, layers: list[Layer], *, name: str | None = None, **line_options: Any
    ) -> list[Any]:
        name = name or self.name
        panel = layers[0].panel
        strip = strip_below(ax)
        event = self.names.get(panel, panel)
        axis = self.scales[panel]
        is_first = not ax.get_legend_handles_labels()[0]
        tallest = 0.0 if is_first else strip.get_ylim()[1]
        if is_first:
            tidy(ax)
            tidy(strip)
            set_scale(ax, axis)
            ax.tick_params(labelbottom=False)
        lines: list[Any] = []
        styles = styles_in(ax, list(dict.fromkeys(layer.series for layer in layers)))
        texts = {"band": f"{100 * self.confidence:g} % interval", "rates": "observed rates"}
        for stage, style in styles.items():
            data = {layer.kind: layer.data for layer in layers if layer.series == stage}
            label = stage if name is None else name if stage == "forecasts" else f"{name}, {stage}"
            ici = data["ici"]["ici"][0]
            label += "" if np.isnan(ici) else f", ICI {ici:.3f}"
            options = {"label": without_math(label)} | self.line_options | line_options
            hidden = {"rates"} if name else set()
            if stage == "before" and len(styles) > 1:  # in the background
                hidden = {"rates", "band"}
                options = {"lw": 1.2} | options
            elif len(styles) == 1 and not name:
                options = {"ls": "-"} | options
            drawn = {kind: data[kind] for kind in data if kind not in hidden}
            named = texts if is_first and ax is self.ax_ else {}
            lines += _draw((ax, strip), drawn, axis, style, texts=named, options=options)
        ax.set_ylabel("share that came true" if event == TOP_CLASS else "observed rate")
        strip.set_xlabel(
            f"forecast probability of {TOP_CLASS if event == TOP_CLASS else shortened(event)}"
        )
        percents = [layer.data["percent"].max() for layer in layers if layer.kind == "histogram"]
        strip.set(ylabel="rows (%)", ylim=(0, max(1.08 * max(percents), tallest)))
        if len(self.axes_) > 1:
            ax.set_title(wrapped(panel, 30), fontsize="medium")
        curves = [axis.position(np.array(line.get_data())) for line in lines]
        above = np.concatenate([y - x for x, y in curves])
        is_above = len(above) > 0 and above.mean() > 0.08
        add_legend(ax, "lower right" if is_above else "upper left", borderaxespad=0.2)
        return lines


def _draw(
    axes: tuple[Axes, Axes],
    data: dict[str, Any],
    axis: Axis,
    style: tuple[str, str, Any],
    *,
    texts: dict[str, str],
    options: dict[str, Any],
) -> list[Any]:
    """Draw the tables of a series and return its curve. Lines take the `options`."""
    ax, strip = axes
    colour, marker, dashes = style
    colour = options.get("color", options.get("c", colour))
    left, right, percent = data["histogram"].values()
    edges = np.append(left, right[-1])
    if "band" in data or "rates" in data:
        strip.stairs(percent, edges, color=colour, fill=True, alpha=0.25, lw=0)
    strip.stairs(percent, edges, color=colour, lw=1.2)

    def inside(kind: str) -> list[Any]:
        return [np.clip(column, axis.low, axis.high) for column in data[kind].values()]

    lines = ax.plot(*inside("curve"), **{"color": colour, "ls": dashes, "lw": 2.0} | options)
    if "band" in data:
        label = texts.get("band")
        ax.fill_between(*inside("band"), color=colour, alpha=0.18, lw=0, label=label)
    if "rates" in data:
        forecast, rate, low, high, _ = inside("rates")
        ax.errorbar(
            forecast,
            rate,
            yerr=np.abs([low - rate, high - rate]),
            fmt=marker,
            color=colour,
            mec=ax.get_facecolor(),
            mew=0.6,
            ms=5,
            elinewidth=1.0,
            zorder=4,
            label=texts.get("rates"),
        )
    return lines
