"""Display, the base of all displays, and the colours, markers and axes that they share.

No global setting is changed. Text, ticks and backgrounds follow the current style. The colours are
legible on white and on black.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from isoroc._evaluation.curves import Axis
from isoroc._evaluation.forecasts import are_probabilities, forecasts_of
from isoroc._evaluation.triangle import COLOURS
from isoroc._input import (
    InputError,
    Sample,
    check_after,
    check_option,
    check_order,
    check_outcomes,
    check_probabilities,
    check_sample,
    to_array,
)
from isoroc._support.table import Table
from isoroc.metrics._calibration import Event

_LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
#: Colours, markers and lines, so that series and classes differ in print without colour.
_STYLES: list[tuple[str, str, Any]] = [*zip(COLOURS, "o^sDvP", _LINES, strict=True)]
#: For everything that is not a series: the diagonal, a hull, the uncalibrated forecasts.
NEUTRAL = "0.5"
#: Styles before and after calibration, or of forecasts alone.
SERIES = {"before": _STYLES[1], "after": _STYLES[0], "forecasts": _STYLES[0]}
#: Panel of the most probable class of each row.
TOP_CLASS = "the top class"
#: One axes, or one per panel, or None for a new figure.
Where = Axes | Sequence[Axes] | None
#: Width and height of a new figure in inches.
Size = tuple[float, float] | None
#: Up to this number of classes there is one panel per class, above it one for the top class.
MAX_PANELS = 12


class Layer(NamedTuple):
    """The data of one call to a plotting function, one row per point."""

    panel: str  # name of the axes
    series: str  # source of the data: before, after, a class or a calibrator
    kind: str  # of the marks: points, a curve, a band
    data: Table


@dataclass(repr=False, eq=False)
class Display:
    """Base class of the displays. `plot` sets the attributes with a trailing underscore."""

    layers: list[Layer]
    """The plotted data."""
    figure_: Figure = field(init=False)
    axes_: list[Any] = field(init=False)
    """One axes per panel."""
    ax_: Any = field(init=False)
    """The first of these axes."""
    line_: Any = field(init=False)
    """The curve, or a list of curves if there is not exactly one."""

    #: Largest number of panels side by side, and the size of each in inches.
    _grid = (1, (5.2, 4.0))
    #: Projection of the axes, as matplotlib names it.
    _projection = cast("str | None", None)
    #: Draws the layers of a panel in axes and returns its curves. Takes options of lines, if any.
    _draw: ClassVar[Callable[..., list[Any]]]

    @property
    def panels(self) -> list[str]:
        """Names of the panels, in the order in which they are drawn."""
        return list(dict.fromkeys(layer.panel for layer in self.layers))

    @property
    def table(self) -> Table:
        """All plotted data by `panel`, `series` and `layer`. NaN where a layer lacks a column."""
        rows = [layer for layer in self.layers for _ in range(layer.data.n_rows)]
        table = Table.from_rows([layer[:3] for layer in rows], "panel", "series", "layer")
        for name in dict.fromkeys(name for layer in self.layers for name in layer.data):
            columns = (
                layer.data.get(name, np.full(layer.data.n_rows, np.nan)) for layer in self.layers
            )
            table[name] = np.concatenate([np.asarray(column, np.float64) for column in columns])
        return table

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`table` as a dataframe of the named library."""
        return self.table.frame(backend)

    def of_panel(self, panel: str) -> list[Layer]:
        """Layers of one panel."""
        return [layer for layer in self.layers if layer.panel == panel]

    def plot(self, ax: Where = None, *, figsize: Size = None, **options: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            One axes, which is divided if there are several panels, or one per panel. By default
            pyplot creates a figure.
        figsize : tuple of float, default=None
            Width and height of the new figure in inches.
        **options
            For a `CalibrationDisplay`: `name`, and options of its curves.
        """
        shape = len(self.panels), *self._grid
        self.axes_ = axes_for(ax, *shape, figsize=figsize, projection=self._projection)
        self.ax_ = self.axes_[0]
        self.figure_ = figure_of(self.ax_)
        lines: list[Any] = []
        for axes, panel in zip(self.axes_, self.panels, strict=True):
            lines += self._draw(axes, self.of_panel(panel), **options)
        self.line_ = lines[0] if len(lines) == 1 else lines
        return self


class BeforeAfterDisplay(Display):
    """Base class of the displays that compare forecasts before and after calibration."""

    #: Whether scores that are not probabilities cannot be drawn.
    _needs_probabilities: ClassVar[bool] = False
    #: Makes the display of samples, "forecasts" alone or "before" and "after". Takes its options.
    _of: ClassVar[Callable[..., Self]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the forecasts of a classifier, or those before and after calibration.

        Parameters
        ----------
        estimator : calibrator or classifier
            Fitted. For a calibrator of isoroc or a `CalibratedClassifier`, forecasts before and
            after calibration are drawn. A display of probabilities leaves out scores.
        X, y : array-like
            Forecasts for a calibrator or features for a classifier, and labels, of rows
            that were not used in the fit.
        **options
            As in `from_predictions`. Also `segments` of the rows, for a `SegmentCalibrator`.
        """
        before, after, classes = forecasts_of(estimator, X, options.pop("segments", None))
        if cls._needs_probabilities and after is not None and not are_probabilities(before):
            before = after
            after = None
        options = {"after": after, "labels": classes, "sample_weight": None, **options}
        # Checked before from_predictions does so, for errors to name the arguments given here.
        check_sample(before, y, options["sample_weight"], options["labels"], name="X")
        return cls.from_predictions(y, before, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        after: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        ax: Where = None,
        figsize: Size = None,
        **options: Any,
    ) -> Self:
        """Draw forecasts, optionally together with those after calibration.

        Parameters
        ----------
        y_true, y_prob, after, sample_weight, labels : array-like
            As in `isoroc.evaluate`. Scores of two classes belong to `pos_label`, by default the
            second class, and must be probabilities where the display needs them.
        ax, figsize
            As in `plot`.
        **options
            Options that the class describes.
        """
        pos_label = options.get("pos_label")
        if pos_label is not None and labels is None and np.ndim(y_prob) == 1:
            labels = _second(y_true, pos_label)
        if cls._needs_probabilities:
            first = check_probabilities(y_true, y_prob, sample_weight, labels, keep_zeros=True)
        else:
            first = check_outcomes(y_true, y_prob, sample_weight, labels)
        if options.get("kind") == "thresholds" and labels is None:
            check_order(first.classes)
        series = {"forecasts": first}
        if after is not None:
            second = check_after(after, first, probabilities=cls._needs_probabilities)
            series = {"before": first, "after": second}
        positive = {stage: sample.positive() for stage, sample in series.items()}
        return cls._of(positive, **options).plot(ax, figsize=figsize)


def _second(y_true: Any, pos_label: Any) -> list[Any]:
    """The two labels. The one with the given probabilities comes last."""
    known = np.unique(to_array(y_true, name="y_true")).tolist()
    others = [label for label in known if label != pos_label]
    if len(others) != 1:
        problem = f"is {pos_label!r}, and the labels are {shortened(str(known), 60)}"
        fix = "pass one of two labels, or forecasts with one column per class"
        raise InputError("pos_label", None, problem, fix)
    return [others[0], pos_label]


def class_panels(sample: Sample, pos_label: Any, kind: str = "auto") -> dict[str, Event]:
    """Events to draw, by the name of the panel: see `event_of`."""
    classes = sample.classes.tolist()
    ordered = kind == "thresholds"
    if ordered:
        classes.pop()  # all outcomes are at most the last class
    check_option("pos_label", pos_label, (None, *classes))
    if kind == "top" or (kind == "auto" and pos_label is None and len(classes) > MAX_PANELS):
        return {TOP_CLASS: None}
    drawn = range(int(sample.n_classes == 2 and not ordered), len(classes))
    chosen = drawn if pos_label is None else [classes.index(pos_label)]
    if ordered:
        return {f"≤ {classes[k]}": slice(k + 1) for k in chosen}
    return {str(classes[k]): k for k in chosen}


def style_of(index: int) -> tuple[str, str, Any]:
    """Colour, marker and line style of the class or series with this index."""
    return _STYLES[index % len(_STYLES)]


def styles_in(ax: Axes, series: Sequence[str]) -> dict[str, tuple[str, str, Any]]:
    """Styles of series in axes that may have labelled series of earlier displays."""
    drawn = len(ax.get_legend_handles_labels()[0])
    if not drawn and set(series) <= set(SERIES):
        return {name: SERIES[name] for name in series}
    return {name: style_of(drawn + i) for i, name in enumerate(series)}


def wrapped(name: str, width: int = 18, lines: int = 3) -> str:
    """Name in a few lines, with an ellipsis if it is longer."""
    text = " ".join(name.split()) or name
    parts = textwrap.wrap(text, width, max_lines=lines, placeholder="…")
    return without_math("\n".join(parts))


def shortened(name: str, width: int = 16) -> str:
    """Name in one line, with an ellipsis in the middle if it is longer."""
    half = width // 2
    return without_math(name if len(name) <= width else f"{name[:half]}…{name[half + 1 - width :]}")


def without_math(text: str) -> str:
    """Text in which matplotlib reads no dollar sign as mathematics."""
    return text.replace("$", r"\$")


def axes_for(
    ax: Where,
    n_panels: int,
    columns: int,
    size: tuple[float, float],
    *,
    figsize: Size = None,
    projection: str | None = None,
) -> list[Any]:
    """Axes to draw in: a new figure's of pyplot, the given ones, or parts of the given one.

    At most `columns` panels are side by side. `size` belongs to a panel of a new figure, in inches.
    """
    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    columns = -(-n_panels // rows)
    given: list[Any] = [] if ax is None else list(np.ravel(np.asarray(ax, dtype=object)))
    if ax is not None and figsize is not None:
        fix = "set the size of the figure that has these axes"
        raise InputError("figsize", None, "is only for new figures, but ax is given", fix)
    if ax is None:
        from matplotlib import pyplot as plt  # noqa: PLC0415

        figure: Any = plt.figure(figsize=figsize or (columns * size[0], rows * size[1]))
        # Names at the corners of triangles reach beyond what the layout expects.
        height, width = (0.16, 0.08) if projection == "ternary" else (None, None)
        figure.set_layout_engine("constrained", h_pad=height, w_pad=width)
        grid = figure.add_gridspec(rows, columns)
    elif len(given) == 1 and n_panels > 1:
        if len(parts := _made_from(given[0])) == n_panels:
            return parts
        figure = given[0].figure
        spec = given[0].get_subplotspec()
        if spec is None:
            problem = f"the display has {n_panels} panels, and only axes in a grid can be divided"
            raise InputError("ax", None, problem, f"pass a sequence of {n_panels} axes")
        given[0].set_axis_off()
        grid = spec.subgridspec(rows, columns)
    else:
        if len(given) != n_panels:
            fix = f"expected {n_panels}, one per panel"
            raise InputError("ax", None, f"got {len(given)} axes", fix)
        for axes in given:
            if axes.name != (projection or axes.name):
                fix = f'use plt.subplots(subplot_kw={{"projection": "{projection}"}})'
                raise InputError("ax", None, f'got axes with projection "{axes.name}"', fix)
        return given
    made = [figure.add_subplot(grid[i], projection=projection) for i in range(n_panels)]
    for axes in given:
        axes.isoroc_made = made
    return made


def _made_from(ax: Any) -> list[Any]:
    """Parts of divided axes, or the strip below axes: a later display uses them again."""
    return [made for made in getattr(ax, "isoroc_made", ()) if made.figure is ax.figure]


def strip_below(ax: Any, share: float = 0.2) -> Any:
    """Axes in the lower part of the given ones, as for a colour bar, with the same x axis."""
    if earlier := _made_from(ax):
        return earlier[0]
    if (spec := ax.get_subplotspec()) is not None:
        parts = spec.subgridspec(2, 1, height_ratios=(1 - share, share), hspace=0.04)
        ax.set_subplotspec(parts[0])
        strip = ax.figure.add_subplot(parts[1], sharex=ax)
    else:
        x, y, width, height = ax.get_position().bounds
        ax.set_position((x, y + height * (share + 0.06), width, height * (0.94 - share)))
        strip = ax.figure.add_axes((x, y, width, height * share), sharex=ax)
    ax.isoroc_made = [strip]
    return strip


def tidy(ax: Axes, **labels: Any) -> None:
    """Remove two spines, draw thin grid lines below the data, and set limits and labels."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(visible=True, color=NEUTRAL, alpha=0.2, lw=0.6)
    ax.set(**labels)


def set_scale(ax: Axes, axis: Axis) -> None:
    """Scale, limits and ticks of two axes of probabilities, and the diagonal."""
    line = axis.values(100)
    ax.plot(line, line, color=NEUTRAL, lw=1, ls=":", label="_diagonal")
    limits = (-0.02, 1.02)
    if axis.scale != "linear":
        limits = axis.low / 1.2, 1 - (1 - axis.high) / 1.2
        ax.set(xscale=axis.scale, yscale=axis.scale)
        texts = [f"{p:g}" if p > 5e-4 else f"1e{np.log10(p):.0f}" for p in axis.ticks()]
        for each in (ax.xaxis, ax.yaxis):
            each.set_ticks(axis.ticks(), texts)
            each.set_ticks([], minor=True)
    ax.set(xlim=limits, ylim=limits)


def figure_of(ax: Axes) -> Figure:
    """The figure of an axes, also if the axes is in a subfigure."""
    figure: Figure = ax.figure.figure
    return figure


def add_legend(ax: Axes, loc: Any = "best", **options: Any) -> None:
    """Legend without a border that stays legible above lines."""
    ax.legend(loc=loc, fontsize="small", framealpha=0.8, edgecolor="none", **options)
