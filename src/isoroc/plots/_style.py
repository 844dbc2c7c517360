"""Colours, marks and panels that all displays share.

Nothing here or in the displays sets anything global. Text, ticks and backgrounds are left to the
style in force; every colour below reads on white and on black alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from isoroc._simplex import Floats, Ints

#: Okabe and Ito's colours, safe for the colour-blind, those of middling lightness first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: One for each colour, so that print without colour tells series and classes apart.
MARKERS = ("o", "^", "s", "D", "v", "P")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
#: What is neither one series nor another: the diagonal, a hull, the uncalibrated forecasts.
NEUTRAL = "0.5"
#: Colour, marker and line before and after calibration, or of forecasts alone.
SERIES = {
    "before": ("#D55E00", "^", "--"),
    "after": ("#0072B2", "o", "-"),
    "forecasts": ("#0072B2", "o", "-"),
}
#: Lines keep at most so many vertices; a picture has fewer pixels across.
MAX_VERTICES = 2000


def style_of(place: int) -> tuple[str, str, Any]:
    """Colour, marker and line style of a class or a series by its place."""
    return COLOURS[place % 6], MARKERS[place % 6], DASHES[place % 6]


def mix(values: Floats) -> Floats:
    """Colours of points of the simplex: the classes' colours in the mixture that each point is.

    Light is mixed, not its code in a file, so that halves are half as bright.

    Parameters
    ----------
    values : ndarray of shape (m, K)

    Returns
    -------
    ndarray of shape (m, 3)
        Red, green and blue.

    Examples
    --------
    >>> import numpy as np
    >>> mix(np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])).round(2)
    array([[0.  , 0.45, 0.7 ],
           [0.61, 0.51, 0.33]])
    """
    codes = [
        [int(style_of(k)[0][i : i + 2], 16) for i in (1, 3, 5)] for k in range(values.shape[1])
    ]
    light = (np.array(codes) / 255) ** 2.2
    return np.asarray((values @ light).clip(0, 1) ** (1 / 2.2))


def thin(x: Floats, y: Floats, most: int = MAX_VERTICES) -> Ints:
    """Places of at most about `most` vertices of a monotone curve, its ends among them.

    They lie at even steps along both axes, so nothing moves by more than one step.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.linspace(0, 1, 1001)
    >>> thin(t, t, most=5)
    array([   0,  250,  500,  750, 1000])
    """
    if len(x) <= most:
        return np.arange(len(x))
    way = np.append(0.0, np.cumsum(np.abs(np.diff(x)) / np.ptp(x) + np.abs(np.diff(y)) / np.ptp(y)))
    return np.unique(np.searchsorted(way, np.linspace(0, way[-1], most)).clip(max=len(x) - 1))


def axes_for(
    ax: Axes | Sequence[Axes] | None,
    n_panels: int,
    *,
    columns: int,
    size: tuple[float, float],
    projection: str | None = None,
) -> list[Any]:
    """Axes to draw in: new ones, the given ones, or as many as needed in the place of one.

    Parameters
    ----------
    ax : Axes, sequence of Axes or None
        None makes a figure with pyplot, the only time that pyplot is called.
    n_panels, columns : int
        How many axes, and how many of them side by side.
    size : (width, height)
        Of one panel of a new figure, in inches.
    projection : str, default=None
        What the axes must be.
    """
    columns = min(columns, n_panels)
    rows = -(-n_panels // columns)
    if ax is None:
        from matplotlib import pyplot as plt  # noqa: PLC0415

        new = plt.figure(figsize=(columns * size[0], rows * size[1]), layout="constrained")
        return _fill(new, new.add_gridspec(rows, columns), n_panels, projection)
    given = [ax] if isinstance(ax, Axes) else list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) == 1 and n_panels > 1:
        figure, spec = given[0].figure, given[0].get_subplotspec()
        if spec is None:
            raise ValueError(
                f"ax: the display has {n_panels} panels and this axes is no subplot that could be "
                f"divided; pass a sequence of {n_panels} axes."
            )
        given[0].set_axis_off()
        return _fill(figure, spec.subgridspec(rows, columns), n_panels, projection)
    if len(given) != n_panels:
        raise ValueError(f"ax: expected {n_panels} axes, one for each panel, got {len(given)}.")
    for axes in given:
        if axes.name != (projection or axes.name):
            raise ValueError(
                f'ax: expected axes made with projection="{projection}", got "{axes.name}"; '
                f'for example plt.subplots(subplot_kw={{"projection": "{projection}"}}).'
            )
    return given


def _fill(figure: Any, grid: Any, n_panels: int, projection: str | None) -> list[Any]:
    places = [divmod(i, grid.ncols) for i in range(n_panels)]
    return [figure.add_subplot(grid[row, col], projection=projection) for row, col in places]


def strip_below(ax: Axes, share: float = 0.2) -> Axes:
    """Axes cut from the lower part of an axes, as a colour bar is, with the same x axis."""
    figure, spec = ax.figure, ax.get_subplotspec()
    if spec is not None:
        parts = spec.subgridspec(2, 1, height_ratios=(1 - share, share), hspace=0.04)
        ax.set_subplotspec(parts[0])
        return figure.add_subplot(parts[1], sharex=ax)
    x, y, width, height = ax.get_position().bounds
    ax.set_position((x, y + height * (share + 0.06), width, height * (0.94 - share)))
    return figure.add_axes((x, y, width, height * share), sharex=ax)


def tidy(ax: Axes, **labels: Any) -> None:
    """Two spines, thin grid lines below the data, and what the axes are called."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(visible=True, color=NEUTRAL, alpha=0.2, lw=0.6)
    ax.set(**labels)


def figure_of(ax: Axes) -> Figure:
    """The figure that an axes is in, also where it is in a part of it."""
    figure: Any = ax.figure
    while isinstance(figure, SubFigure):
        figure = figure.figure
    whole: Figure = figure
    return whole
