"""MapDisplay: calibrated probabilities against the forecasts, for each class or group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgba

from isoroc._input import InputError, Sample, check_groups, check_option, rows_by_group
from isoroc._table import Table
from isoroc._views.curves import Axis, axis_of, compact, event_of
from isoroc._views.forecasts import series_of
from isoroc._views.simplex import group_means
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import (
    SERIES,
    TOP,
    add_legend,
    axes_for,
    set_scale,
    shortened,
    tidy,
    wrapped,
)

#: Largest number of panels, number of cells along an axis, and of points of a line.
_MAX_PANELS, _CELLS, _POINTS = 12, 40, 20
#: Up to this number of filled cells they are drawn as dots.
_FEW = 12


class MapDisplay(BeforeAfterDisplay):
    """What calibration did to the probability of each class: after against before.

    Each panel shows one class: the rows as cells, darker where there are more, and the mean after
    calibration of rows with about the same forecast. On the diagonal nothing changed. For two
    classes there is one panel, for up to twelve one per class, and for more one for the class that
    was most probable before. With groups there is one panel per group and class.

    Create it with `from_estimator` or `from_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc.plots import MapDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p**2
    >>> display = MapDisplay.from_predictions(y, p, after=p**2, ax=Figure().subplots())
    >>> display.panels
    ['True']
    """

    _takes_groups = True

    def __init__(self, layers: list[Layer], *, scales: dict[str, Axis], names: list[str]) -> None:
        self.layers = layers
        #: Scale of the axes of each panel, and where they start.
        self.scales = scales
        #: The class of each panel.
        self.names = names

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        groups: Any = None,
        pos_label: Any = None,
        scale: Literal["auto", "linear", "log", "logit"] = "auto",
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw forecasts after calibration against those before.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels, of which only the classes matter.
        y_prob : array-like of shape (n, K) or (n,)
            Forecasts, or the probability of the second of two classes.
        after : array-like
            Forecasts of the same rows after calibration.
        groups : array-like of shape (n,), default=None
            Group of each row, such as those of a `GroupedCalibrator`.
        pos_label : label, default=None
            Draw the panels of this class only.
        scale : {"auto", "linear", "log", "logit"}, default="auto"
            Scale of both axes, as in `ReliabilityDisplay`.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel.
        """
        check_option("scale", scale, ("auto", "linear", "log", "logit"))
        if after is None:
            fix = "pass the forecasts after calibration; those before must be probabilities"
            raise InputError("after", None, "there are no second forecasts", fix)
        named = None if groups is None else check_groups(groups, len(y_true), of="y_prob")
        first, second = series_of(
            y_true, y_prob, after, sample_weight, labels, probabilities=True, groups=named
        ).values()
        classes = first.classes.tolist()
        if pos_label is not None and pos_label not in classes:
            raise InputError("pos_label", None, f"got {pos_label!r}", f"expected one of {classes}")
        shown: list[int | None] = [*range(int(len(classes) == 2), len(classes))]
        if pos_label is not None:
            shown = [classes.index(pos_label)]
        elif len(classes) > _MAX_PANELS:
            shown = [None]
        parts = {"": np.arange(len(first))}
        if first.groups is not None:
            parts = dict(rows_by_group(first.groups))
        layers: list[Layer] = []
        scales, names = {}, []
        for k in shown:
            for group, rows in list(parts.items())[:_MAX_PANELS]:
                name = TOP if k is None else str(classes[k])
                panel = name if not group else f"{group}: {name}" if shown[1:] else group
                before = event_of(first.take(rows), k)
                best = first.forecasts[rows].argmax(axis=1) if k is None else k
                calibrated = replace(before, forecasts=second.forecasts[rows, best])
                scales[panel] = axis_of([before, calibrated], scale)
                names.append(name)
                layers += _layers(panel, before, calibrated.forecasts, scales[panel])
        return cls(layers, scales=scales, names=names).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        axes = axes_for(ax, len(self.panels), columns=4, size=(3.3, 3.4))
        colour = SERIES["after"][0]
        for axes_, panel, name in zip(axes, self.panels, self.names, strict=True):
            axis = self.scales[panel]
            density, line = (layer.data for layer in self.of_panel(panel))
            cells = np.full((_CELLS, _CELLS), np.nan)
            place = [
                np.minimum(axis.position(density[c]) * _CELLS, _CELLS - 1).astype(np.intp)
                for c in ("after", "before")
            ]
            cells[tuple(place)] = density["weight"]
            shades = LinearSegmentedColormap.from_list("", [to_rgba(colour, 0.12), to_rgba(colour)])
            edges, weight = axis.values(_CELLS), density["weight"]
            if len(weight) <= _FEW:
                area = 12 + 150 * weight / weight.max()
                axes_.scatter(density["before"], density["after"], s=area, color=colour, lw=0)
            else:
                norm = LogNorm(weight.min(), max(weight.max(), 2 * weight.min()))
                axes_.pcolormesh(edges, edges, cells, cmap=shades, norm=norm)
            label = {"color": SERIES["before"][0], "label": "mean of these rows"}
            axes_.plot(line["before"], line["after"], lw=1.8, **label)
            tidy(axes_, xlabel=f"probability of {shortened(name)} before", ylabel="after")
            set_scale(axes_, axis)
            if len(axes) > 1:
                axes_.set_title(wrapped(panel, 28), fontsize="medium")
        add_legend(axes[0], "upper left")
        return self._drawn_in(axes)


def _layers(panel: str, event: Sample, after: Any, axis: Axis) -> list[Layer]:
    """Cells with their weight, and the mean after calibration of groups of forecasts."""
    p, weights = event.forecasts, event.weights
    places = [np.minimum(axis.position(v) * _CELLS, _CELLS - 1).astype(np.intp) for v in (p, after)]
    cell = places[0] * _CELLS + places[1]
    weight = np.bincount(cell, weights, _CELLS**2)
    filled = np.flatnonzero(weight)
    middle = axis.values(2 * _CELLS)[1::2]
    density = Table(
        before=middle[filled // _CELLS], after=middle[filled % _CELLS], weight=weight[filled]
    )
    group = compact(np.floor(axis.position(p) * _POINTS).astype(np.intp))
    _, mean, value = group_means(group, weights, p, after)
    return [
        Layer(panel, "after", "density", density),
        Layer(panel, "after", "map", Table(before=mean, after=value)),
    ]
