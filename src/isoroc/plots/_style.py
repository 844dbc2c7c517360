"""Colours, markers and panels that all displays share.

Neither this module nor the displays change a global setting. Text, ticks and backgrounds follow the
current style; the colours below are legible on white and on black.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from isoroc._input import InputError
from isoroc._views.curves import Axis
from isoroc._views.simplex import COLOURS

#: One for each colour, so that series and classes differ in print without colour.
MARKERS = ("o", "^", "s", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
#: For everything that is not a series: the diagonal, a hull, the uncalibrated forecasts.
NEUTRAL = "0.5"
#: Colour, marker and line before and after calibration, or of forecasts alone.
SERIES = {
    "before": ("#D55E00", "^", "--"),
    "after": ("#0072B2", "o", "-"),
    "forecasts": ("#0072B2", "o", "-"),
}
#: Panel of the most probable class of each row.
TOP = "the top class"
#: What `plot` takes: one axes or one per panel, and the size of a new figure in inches.
Where = Axes | Sequence[Axes] | None
Size = tuple[float, float] | None


def style_of(index: int) -> tuple[str, str, Any]:
    """Colour, marker and line style of the class or series with this index."""
    return COLOURS[index % 6], MARKERS[index % 6], DASHES[index % 6]


def styles_in(ax: Axes, series: Sequence[str]) -> dict[str, tuple[str, str, Any]]:
    """Styles of series in axes that may have labelled series of earlier displays."""
    drawn = len(ax.get_legend_handles_labels()[0])
    if not drawn and set(series) <= set(SERIES):
        return {name: SERIES[name] for name in series}
    return {name: style_of(drawn + i) for i, name in enumerate(series)}


def wrapped(name: str, width: int = 18, lines: int = 3) -> str:
    """Name in a few lines, with an ellipsis if it is longer."""
    text = " ".join(name.split()) or name
    n_lines = -(-len(text) // width)
    # Lines of about equal length look better than full ones and a rest.
    parts = textwrap.wrap(text, -(-len(text) // max(n_lines, 1)) + 1)
    if not n_lines <= len(parts) <= min(n_lines, lines) or max(map(len, parts)) > width:
        parts = textwrap.wrap(text, width, max_lines=lines, placeholder="…")
    return plain("\n".join(parts))


def shortened(name: str, width: int = 16) -> str:
    """Name in one line, with an ellipsis in the middle if it is longer."""
    if len(name) > width:
        half = width // 2
        name = f"{name[:half]}…{name[len(name) - (width - half - 1) :]}"
    return plain(name)


def plain(text: str) -> str:
    """Text in which matplotlib reads no dollar sign as mathematics."""
    return text.replace("$", r"\$")


def axes_for(
    ax: Where,
    n_panels: int,
    *,
    columns: int,
    size: tuple[float, float],
    figsize: Size = None,
    projection: str | None = None,
) -> list[Any]:
    """Axes to draw in: those of a new figure of pyplot, the given ones, or parts of the given one.

    `columns` panels are side by side; `size` is that of a panel of a new figure, in inches.
    """
    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    if ax is None:
        from matplotlib import pyplot as plt  # noqa: PLC0415

        figsize = figsize or (columns * size[0], rows * size[1])
        new = plt.figure(figsize=figsize, layout="constrained")
        if projection == "ternary":  # names at the corners reach beyond what the layout expects
            new.set_layout_engine("constrained", h_pad=0.16, w_pad=0.08)
        return _fill(new, new.add_gridspec(rows, columns), n_panels, projection)
    if figsize is not None:
        fix = "set the size of the figure that has these axes"
        raise InputError("figsize", None, "is only for new figures, but ax is given", fix)
    given: list[Any] = (
        [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax, dtype=object)))
    )
    if len(given) == 1 and n_panels > 1:
        parts = _made_from(given[0])
        if len(parts) == n_panels:
            return parts
        figure, spec = given[0].figure, given[0].get_subplotspec()
        if spec is None:
            problem = f"the display has {n_panels} panels, and only axes in a grid can be divided"
            raise InputError("ax", None, problem, f"pass a sequence of {n_panels} axes")
        given[0].set_axis_off()
        given[0].isoroc_made = _fill(figure, spec.subgridspec(rows, columns), n_panels, projection)
        return _made_from(given[0])
    if len(given) != n_panels:
        fix = f"expected {n_panels}, one per panel"
        raise InputError("ax", None, f"got {len(given)} axes", fix)
    for axes in given:
        if axes.name != (projection or axes.name):
            fix = f'use plt.subplots(subplot_kw={{"projection": "{projection}"}})'
            raise InputError("ax", None, f'got axes with projection "{axes.name}"', fix)
    return given


def _fill(figure: Any, grid: Any, n_panels: int, projection: str | None) -> list[Any]:
    places = [divmod(i, grid.ncols) for i in range(n_panels)]
    return [figure.add_subplot(grid[row, col], projection=projection) for row, col in places]


def _made_from(ax: Any) -> list[Any]:
    """Parts of divided axes, or the strip below axes: a later display uses them again."""
    return [made for made in getattr(ax, "isoroc_made", ()) if made.figure is ax.figure]


def strip_below(ax: Any, share: float = 0.2) -> Any:
    """Axes in the lower part of the given ones, as for a colour bar, with the same x axis.

    The strip of an earlier call is returned again.
    """
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
        limits = (axis.low / 1.2, 1.2 if axis.scale == "log" else 1 - axis.low / 1.2)
        ax.set(xscale=axis.scale, yscale=axis.scale)
        ticks = axis.ticks()
        for each in (ax.xaxis, ax.yaxis):
            each.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
            each.set_ticks([], minor=True)
    ax.set(xlim=limits, ylim=limits)


def figure_of(ax: Axes) -> Figure:
    """The figure of an axes, also if the axes is in a subfigure."""
    figure: Figure = ax.figure.figure
    return figure


def add_legend(ax: Axes, place: Any = "best", **options: Any) -> None:
    """Legend without a border that stays legible above lines."""
    options = {"fontsize": "small", "framealpha": 0.8, "edgecolor": "none"} | options
    ax.legend(loc=place, **options)
