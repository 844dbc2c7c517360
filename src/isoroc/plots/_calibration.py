"""CalibrationDisplay: observed rates against forecast probabilities."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._evaluation.curves import Axis, Strategy, axis_of, event_of, reliability
from isoroc._input import Sample, check_confidence, check_number, check_option
from isoroc.plots._display import (
    TOP,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    class_panels,
    plain,
    set_scale,
    shortened,
    strip_below,
    styles_in,
    tidy,
    wrapped,
)


@dataclass(repr=False, eq=False)
class CalibrationDisplay(BeforeAfterDisplay):
    """Observed rates against forecasts, before and after calibration: a reliability diagram.

    Each panel shows the isotonic regression of the outcomes on the forecasts, which has no bins to
    choose, observed rates of groups of rows with Wilson's intervals, and the histogram of the
    forecasts. The bands around the diagonal (Dimitriadis, Gneiting and Jordan 2021) are where the
    curve of calibrated forecasts lies with the given confidence: in the inner, darker one at any
    one forecast, in the outer one everywhere. Displays drawn in the same axes share a histogram and
    a legend; `name` tells them apart.

    Options of `from_estimator` and `from_predictions`:

    - `kind`: "classwise" draws one panel per class, or one for the second of two classes; "top" one
      panel for the most probable class of each row. "auto", the default, is "classwise" for up to
      12 classes and "top" for more;
    - `pos_label`: draw the panel of this class only;
    - `scale` of both axes: "linear", "log" or "logit" (log odds). "auto", the default, is "log" for
      a panel with 95 % of its forecasts in the lowest fifth, and "logit" for one with 95 % in the
      lowest and highest tenths;
    - `n_bins`: number of groups of rows whose observed rates are drawn. By default each of up to 30
      distinct forecasts is a group; if there are more, the cube root of the number of rows, between
      2 and 15;
    - `strategy`: groups of about equal weight, "quantile", the default, or width, "uniform";
    - `confidence` of the intervals and of both bands, 0.95 by default;
    - `n_resamples` and `random_state`: number of simulations for the bands, 400 by default and
      none with 0, and their seed;
    - `name` in the legend, and options of the curves such as ``color`` (also used for the other
      marks) and ``lw``; these can also be passed to `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.plots import CalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p**2
    >>> display = CalibrationDisplay.from_predictions(y, p)
    >>> display.frame()["rate"][:3].round(2)
    array([0.02, 0.05, 0.08])
    """

    scales: dict[str, Axis] = field(default_factory=dict)
    """Scale of the axes of each panel, and where they start; linear by default."""
    name: str | None = None
    """Name in the legend."""
    line_options: dict[str, Any] = field(default_factory=dict)
    """Options of the curves."""

    _needs_probabilities = True
    _grid = (4, (3.6, 4.4))

    @classmethod
    def _of(
        cls,
        series: dict[str, Sample],
        *,
        kind: Literal["auto", "classwise", "top"] = "auto",
        pos_label: Any = None,
        scale: Literal["auto", "linear", "log", "logit"] = "auto",
        n_bins: int | None = None,
        strategy: Strategy = "quantile",
        confidence: float = 0.95,
        n_resamples: int = 400,
        random_state: int = 0,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        check_option("kind", kind, ("auto", "classwise", "top"))
        check_option("strategy", strategy, ("quantile", "uniform"))
        check_confidence(confidence)
        check_number("n_resamples", n_resamples, numbers.Integral, minimum=0)
        if n_bins is not None:
            check_number("n_bins", n_bins, numbers.Integral, minimum=1)
        options: dict[str, Any] = {"n_bins": n_bins, "strategy": strategy, "seed": random_state}
        options |= {"confidence": confidence, "n_resamples": n_resamples}
        layers, scales = [], {}
        for panel, k in class_panels(next(iter(series.values())), pos_label, kind).items():
            events = {of: event_of(sample, k) for of, sample in series.items()}
            scales[panel] = axis_of(events.values(), scale)
            for of, event in events.items():
                tables = reliability(event, scales[panel], **options)
                layers += [Layer(panel, of, layer, data) for layer, data in tables.items()]
        return cls(layers, scales, name, line_options)

    def _draw(
        self, ax: Axes, layers: list[Layer], *, name: str | None = None, **line_options: Any
    ) -> list[Any]:
        name, panel = name or self.name, layers[0].panel
        strip, axis = strip_below(ax), self.scales.get(panel, Axis())
        tallest = strip.get_ylim()[1] if ax.get_legend_handles_labels()[0] else 0.0
        if not tallest:
            tidy(ax)
            tidy(strip)
            set_scale(ax, axis)
            ax.tick_params(labelbottom=False)
        lines: list[Any] = []
        styles = styles_in(ax, list(dict.fromkeys(layer.series for layer in layers)))
        for layer in layers:
            label = layer.series if name is None else f"{name}, {layer.series}"
            label = plain(label if len(styles) > 1 else name or layer.series)
            options = {"label": label} | self.line_options | line_options
            lines += _draw((ax, strip), layer, axis, styles[layer.series], options)
        ax.set_ylabel("share that came true" if panel == TOP else "observed rate")
        strip.set_xlabel(f"forecast probability of {TOP if panel == TOP else shortened(panel)}")
        percents = [layer.data["percent"].max() for layer in layers if layer.kind == "histogram"]
        strip.set(ylabel="rows (%)", ylim=(0, max(1.08 * max(percents), tallest)))
        if len(self.axes_) > 1:
            ax.set_title(wrapped(panel, 30), fontsize="medium")
        if ax is self.ax_ and (len(ax.get_legend_handles_labels()[0]) > 1 or self.name):
            add_legend(ax, "upper left", borderaxespad=0.2)
        return lines


def _draw(
    axes: tuple[Axes, Axes], layer: Layer, axis: Axis, style: tuple[str, str, Any], options: Any
) -> list[Any]:
    """Draw a layer, and return its curve if it is one; `options` are those of lines."""
    (ax, strip), (colour, marker, dashes) = axes, style
    colour = options.get("color", options.get("c", colour))
    if layer.kind == "histogram":
        left, right, percent = layer.data.values()
        edges = np.append(left, right[-1])
        strip.stairs(percent, edges, color=colour, fill=True, alpha=0.25, lw=0)
        strip.stairs(percent, edges, color=colour, lw=1.4)
        return []
    data = {name: axis.clip(column) for name, column in layer.data.items() if name != "weight"}
    if layer.kind == "curve":
        shown = {"color": colour, "ls": dashes, "lw": 1.8} | options
        return ax.plot(data["forecast"], data["rate"], **shown)
    if layer.kind == "rates":
        error = np.abs([data["low"] - data["rate"], data["high"] - data["rate"]])
        mark: dict[str, Any] = {"fmt": marker, "mec": ax.get_facecolor(), "mew": 0.6, "ms": 5}
        mark |= {"color": colour, "elinewidth": 1.1, "zorder": 4}
        ax.errorbar(data["forecast"], data["rate"], yerr=error, **mark)
    else:
        for end, alpha in (("_all", 0.1), ("", 0.14)):
            ends = data[f"low{end}"], data[f"high{end}"]
            ax.fill_between(data["forecast"], *ends, color=colour, alpha=alpha, lw=0)
    return []
