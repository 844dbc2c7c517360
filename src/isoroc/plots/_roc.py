"""RocDisplay and RocSurfaceDisplay: curves, hulls and the surface of three classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._core.types import Floats
from isoroc._evaluation.curves import best_rates, one_vs_rest, thin
from isoroc._input import InputError, Sample
from isoroc._support.table import Table
from isoroc.metrics import roc_convex_hull, roc_surface, volume_under_surface
from isoroc.plots._display import (
    MAX_PANELS,
    NEUTRAL,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    class_panels,
    shortened,
    styles_in,
    tidy,
    wrapped,
)


@dataclass(repr=False, eq=False)
class RocDisplay(BeforeAfterDisplay):
    """ROC curves before and after calibration: of two classes, or of each class against the rest.

    For two classes the convex hull of the curve is drawn as well; its area is the AUC after
    isotonic calibration of the same rows without smoothing. For three classes or more there is one
    panel per class, for the twelve heaviest classes.

    Examples
    --------
    >>> from isoroc.plots import RocDisplay
    >>> RocDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8]).areas
    {'forecasts': 0.75, 'hull': 0.875}
    """

    areas: dict[Any, float]
    """Area under each curve, by series; for three classes or more by series and class."""
    labels: Any
    """The classes."""

    @classmethod
    def _of(cls, series: dict[str, Sample]) -> Self:
        first = next(iter(series.values()))
        heaviest = np.argsort(-first.class_weights(), kind="stable")[:MAX_PANELS]
        chosen = [1] if first.n_classes == 2 else np.sort(heaviest).tolist()
        layers: list[Layer] = []
        areas: dict[Any, float] = {}
        for k, curves in one_vs_rest(series, chosen).items():
            panel = str(first.classes[k])
            if first.n_classes == 2:
                before, *others = curves.items()
                curves = dict([before, ("hull", first.measure(roc_convex_hull)), *others])  # noqa: PLW2901
            for name, curve in curves.items():
                p0, p1, threshold = (column[thin(curve.p0, curve.p1)] for column in curve)
                data = Table(false_positive_rate=1 - p0, true_positive_rate=p1, threshold=threshold)
                layers.append(Layer(panel, name, "curve", data))
                areas[name if first.n_classes == 2 else (name, panel)] = curve.area()
        if not layers:
            raise InputError("y_true", None, "one class only", "a ROC curve needs two classes")
        return cls(layers, areas, first.classes)

    def __post_init__(self) -> None:
        self._grid = (4, (3.1, 3.1)) if len(self.labels) > 2 else (1, (4.3, 4.0))

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        panel, several = layers[0].panel, len(self.labels) > 2
        ax.plot([0, 1], [0, 1], color=NEUTRAL, lw=1, ls=":")
        styles = styles_in(ax, [x.series for x in layers if x.series != "hull"])
        lines: list[Any] = []
        for layer in layers:
            series, (across, up, _) = layer.series, layer.data.values()
            area = self.areas[(series, panel) if several else series]
            label = f"{'convex hull' if series == 'hull' else series}, AUC {area:.4f}"
            if series == "hull":
                ax.fill_between(across, up, alpha=0.06, color=NEUTRAL, lw=0)
                ax.plot(across, up, color=NEUTRAL, lw=2.6, alpha=0.7, label=label, zorder=1.5)
                continue
            colour, marker, dashes = styles[series]
            marks: dict[str, Any] = {"marker": marker, "ms": 4} if len(across) <= 30 else {}
            lines += ax.plot(across, up, color=colour, ls=dashes, lw=1.8, label=label, **marks)
        tidy(ax, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="false positive rate")
        ax.set_ylabel("true positive rate" + ("" if several else f" ({shortened(panel)})"))
        if several:
            ax.set_title(f"{wrapped(panel, 28)} against the rest", fontsize="medium")
        add_legend(ax, "lower right")
        return lines


@dataclass(repr=False, eq=False)
class RocSurfaceDisplay(BeforeAfterDisplay):
    """ROC surface of three classes: what one class gives up for the other two.

    Each threshold gets a share of each class right. The colour at (x, y) is the largest share of
    the chosen class among the thresholds that get at least a share x of one of the other classes
    and y of the other right, so more colour is better. There is a panel before and one after
    calibration, with the volume under the hull of the surface, the VUS of the paper. With more than
    3,000 rows, all of this is based on 3,000 rows drawn at random.

    Options of `from_estimator` and `from_predictions`: `pos_label`, the class whose share is the
    colour, by default the last one; `resolution`, as in `isoroc.metrics.roc_surface`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.plots import RocSurfaceDisplay
    >>> y = [0, 1, 2, 2]
    >>> RocSurfaceDisplay.from_predictions(y, np.eye(3)[y]).volumes
    {'forecasts': 1.0}
    """

    volumes: dict[str, float]
    """Volume under the hull of each series."""
    names: list[str]
    """The classes: those of the two axes, and that of the colour."""

    _grid = (2, (4.2, 4.0))
    #: Number of cells along each side of the heat map.
    _steps = 50

    @classmethod
    def _of(
        cls, series: dict[str, Sample], *, pos_label: Any = None, resolution: int | None = None
    ) -> Self:
        first = next(iter(series.values()))
        if first.n_classes != 3:
            problem = f"{first.n_classes} classes, but the ROC surface is drawn for 3"
            raise InputError("y_prob", None, problem, "use RocDisplay")
        *_, last = class_panels(first, pos_label).values()
        order = np.array([*({0, 1, 2} - {last}), last])
        grid = np.arange(cls._steps + 1) / cls._steps
        x, y = (axis.ravel() for axis in np.meshgrid(grid, grid, indexing="ij"))
        volumes, layers = {}, []
        for name, sample in series.items():
            rows = sample.draw(3000)  # the same rows of both; every pair of rows gives a point
            points = rows.measure(roc_surface, resolution=resolution).points
            volumes[name] = float(rows.measure(volume_under_surface, resolution=resolution))
            rate = best_rates(points[:, order], cls._steps).ravel()
            layers.append(Layer(name, name, "rates", Table(x=x, y=y, rate=rate)))
        names = [str(label) for label in first.classes[order]]
        return cls(layers, volumes, names)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        grid, (name, _, _, data) = np.arange(self._steps + 1) / self._steps, layers[0]
        first, second, third = (wrapped(label, 22, 2) for label in self.names)
        rate: Floats = data["rate"].reshape(self._steps + 1, -1).T.clip(max=1)  # rounding
        image = ax.contourf(grid, grid, rate, cmap="viridis", levels=np.arange(11) / 10)
        ax.set(xlabel=f"share of {first} right, at least", aspect="equal")
        ax.set_ylabel(f"share of {second} right, at least")
        ax.set_title(f"{name}: volume {self.volumes[name]:.4f}", fontsize="medium")
        if ax is self.axes_[-1]:
            bar = self.figure_.colorbar(image, ax=self.axes_, shrink=0.75, ticks=grid[::10])
            bar.set_label(f"best share of {third} right")
        return []
