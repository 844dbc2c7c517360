"""MapDisplay: calibrated probabilities against the forecasts, for each class."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, to_rgba

from isoroc._evaluation.curves import Axis, axis_of, calibration_map
from isoroc._input import InputError, Sample
from isoroc.metrics._calibration import event_of
from isoroc.plots._display import (
    SERIES,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    class_panels,
    set_scale,
    shortened,
    tidy,
    wrapped,
)

#: Number of cells along an axis.
_CELLS = 40


@dataclass(repr=False, eq=False)
class MapDisplay(BeforeAfterDisplay):
    """What calibration did to the probability of each class: after against before.

    Each panel shows one class: the rows as cells, darker where there are more, and the mean after
    calibration of rows with about the same forecast. On the diagonal nothing changed. For two
    classes there is one panel, for up to twelve one per class, and for more one for the class that
    was most probable before.

    Options of `from_estimator` and `from_predictions`: `pos_label`, the only class to draw;
    `scale`, as in `CalibrationDisplay`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.plots import MapDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p**2
    >>> MapDisplay.from_predictions(y, p, after=p**2).panels
    ['True']
    """

    scales: dict[str, Axis]
    """Scale of the axes of each panel, and where they start."""
    _needs_probabilities = True
    _grid = (4, (3.3, 3.4))

    @classmethod
    def _of(
        cls,
        series: dict[str, Sample],
        *,
        pos_label: Any = None,
        scale: Literal["auto", "linear", "logit"] = "auto",
    ) -> Self:
        if "after" not in series:
            fix = "pass the forecasts after calibration; those before must be probabilities"
            raise InputError("after", None, "there are no second forecasts", fix)
        first, second = series.values()
        shown = class_panels(first, pos_label)
        layers: list[Layer] = []
        scales = {}
        for name, k in shown.items():
            before = event_of(first, k)
            best = first.forecasts.argmax(axis=1) if k is None else k
            calibrated = replace(before, forecasts=second.forecasts[np.arange(len(first)), best])
            scales[name] = axis_of([before, calibrated], scale)
            tables = calibration_map(before, calibrated.forecasts, scales[name], _CELLS)
            kinds = zip(("density", "map"), tables, strict=True)
            layers += [Layer(name, "after", kind, table) for kind, table in kinds]
        return cls(layers, scales)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        panel, colour = layers[0].panel, SERIES["after"][0]
        axis = self.scales[panel]
        density, line = (layer.data for layer in layers)
        weight = density["weight"]
        ends = axis.low, axis.high
        x, y = np.clip([density["before"], density["after"]], *ends)
        if len(weight) <= 12:
            area = 12 + 150 * weight / weight.max()
            ax.scatter(x, y, s=area, color=colour, lw=0, zorder=3)
        else:
            shades = LinearSegmentedColormap.from_list("", [to_rgba(colour, 0.12), to_rgba(colour)])
            cells = np.full((_CELLS, _CELLS), np.nan)
            row, column = (
                np.minimum(axis.position(p) * _CELLS, _CELLS - 1).astype(np.intp) for p in (y, x)
            )
            cells[row, column] = weight
            norm = LogNorm(weight.min(), max(weight.max(), 2 * weight.min()))
            edges = axis.values(_CELLS)
            ax.pcolormesh(edges, edges, cells, cmap=shades, norm=norm)
        style: dict[str, Any] = {"color": SERIES["before"][0], "label": "mean", "lw": 1.8}
        lines = ax.plot(*np.clip([line["before"], line["after"]], *ends), **style)
        tidy(ax, xlabel=f"probability of {shortened(panel)} before", ylabel="after")
        set_scale(ax, axis)
        if len(self.axes_) > 1:
            ax.set_title(wrapped(panel, 28), fontsize="medium")
        if ax is self.ax_:
            add_legend(ax, "upper left")
        return lines
