"""RocDisplay and RocSurfaceDisplay: curves, hulls and the surface of three classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._core.types import Floats
from isoroc._evaluation.curves import best_rates, one_vs_rest, thin
from isoroc._input import InputError, Sample, check_choices, check_option, first_improbable
from isoroc._support.table import Table
from isoroc.metrics import RocCurve, roc_convex_hull, roc_surface, volume_under_surface
from isoroc.plots._display import (
    MAX_PANELS,
    NEUTRAL,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    class_panels,
    shortened,
    style_of,
    styles_in,
    tidy,
    wrapped,
)


@dataclass(repr=False, eq=False)
class RocDisplay(BeforeAfterDisplay):
    """ROC curves before and after calibration: of two classes, or of each class against the rest.

    For three classes or more there is one panel per class, for the twelve heaviest classes. Panels
    for two classes, after Figure 1 of the paper:

    - "roc": the curve and its hull, whose area is the AUC after isotonic calibration of the same
      rows without smoothing;
    - "diagram": rows of the second class among those with the smallest forecasts, that is the
      cumulative sum diagram, and its greatest convex minorant. An affine map takes this panel to
      the panel "roc" and the minorant to the hull;
    - "forecasts": the forecasts in ascending order, and their isotonic regression.

    Options of `from_estimator` and `from_predictions`: `panels`, those to draw for two classes, by
    default ``("roc",)``; `orientation`, the horizontal axis of a ROC curve: "usual", the false
    positive rate, or "symmetric", the true negative rate, as in the paper.

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
    orientation: Literal["usual", "symmetric"] = "usual"
    """What the horizontal axis of a ROC curve is."""

    @classmethod
    def _of(
        cls,
        series: dict[str, Sample],
        *,
        panels: Sequence[str] = ("roc",),
        orientation: Literal["usual", "symmetric"] = "usual",
    ) -> Self:
        check_option("orientation", orientation, ("usual", "symmetric"))
        check_choices("panels", panels, ("roc", "diagram", "forecasts"))
        first = next(iter(series.values()))
        heaviest = np.argsort(-first.class_weights(), kind="stable")[:MAX_PANELS]
        chosen = [1] if first.n_classes == 2 else np.sort(heaviest).tolist()
        found = one_vs_rest(series, chosen)
        if not found:
            raise InputError("y_true", None, "one class only", "a ROC curve needs two classes")
        layers: list[Layer] = []
        areas: dict[Any, float] = {}
        if first.n_classes > 2:
            for k, curves in found.items():
                panel = str(first.classes[k])
                layers += _roc(panel, curves)
                areas |= {(of, panel): curve.area() for of, curve in curves.items()}
        else:
            before, *others = found[1].items()
            curves = dict([before, ("hull", first.measure(roc_convex_hull)), *others])
            areas = {of: curve.area() for of, curve in curves.items()}
            share = float(np.average(first.codes, weights=first.weights))
            for panel in panels:
                if panel == "roc":
                    layers += _roc(panel, curves)
                else:
                    layers += (_diagram if panel == "diagram" else _forecasts)(curves, share)
        return cls(layers, areas, first.classes, orientation)

    def __post_init__(self) -> None:
        self._grid = (4, (3.1, 3.1)) if len(self.labels) > 2 else (3, (4.3, 4.0))

    _sorted: ClassVar = "share of rows,\nby ascending forecast"

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        several, name = len(self.labels) > 2, layers[0].panel
        if several or name == "roc":
            return self._draw_roc(ax, layers, name if several else None)
        if name == "diagram":
            label_of = {"hull": "greatest convex minorant"}
            labels = [label_of.get(layer.series, "cumulative sums") for layer in layers]
            _draw_lines(ax, layers, "rows", "second", labels)
            tidy(ax, xlabel=self._sorted, ylim=(0, None), xlim=(-0.02, 1.02))
            ax.set_ylabel(f"share of rows of {shortened(str(self.labels[1]))}")
            add_legend(ax, "upper left")
        else:
            self._draw_forecasts(ax, layers)
        return []

    def _draw_roc(self, ax: Axes, layers: list[Layer], panel: str | None) -> list[Any]:
        usual = self.orientation == "usual"
        ax.plot([0, 1], [0, 1] if usual else [1, 0], color=NEUTRAL, lw=1, ls=":")
        areas = [self.areas[x.series if panel is None else (x.series, panel)] for x in layers]
        names = ["convex hull" if x.series == "hull" else x.series for x in layers]
        labels = [f"{name}, AUC {area:.4f}" for name, area in zip(names, areas, strict=True)]
        lines = _draw_lines(ax, layers, "false positive rate" if usual else "p0", "p1", labels)
        across, up = "false positive rate" if usual else "true negative rate", "true positive rate"
        if panel is None:
            low, high = (shortened(str(label)) for label in self.labels)
            across, up = across if usual else f"{across} ({low})", f"{up} ({high})"
        else:
            ax.set_title(f"{wrapped(panel, 28)} against the rest", fontsize="medium")
        tidy(ax, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=across, ylabel=up)
        add_legend(ax, "lower right" if usual else "lower left")
        return lines

    def _draw_forecasts(self, ax: Axes, layers: list[Layer]) -> None:
        for layer in layers:
            data = layer.data
            if layer.kind == "steps":
                edges = np.append(data["left"], data["right"][-1])
                style: dict[str, Any] = {"color": NEUTRAL, "lw": 1.6, "label": layer.series}
                ax.stairs(data["value"], edges, baseline=None, **style)
            elif layer.kind == "line":
                ax.plot(data["rows"], data["forecast"], color=style_of(0)[0], label=layer.series)
            else:
                k = int(layer.series)
                colour, marker, _ = style_of(k)
                style = {"color": colour, "marker": marker, "s": 22, "zorder": 3}
                style["label"] = f"rows of {shortened(str(self.labels[k]), 24)}"
                ax.scatter(data["rows"], data["forecast"], **style)
        tidy(ax, xlabel=self._sorted, xlim=(-0.02, 1.02))
        ax.set_ylabel(f"forecast probability of {shortened(str(self.labels[1]))}")
        add_legend(ax)


def _roc(panel: str, curves: dict[str, RocCurve]) -> list[Layer]:
    """Curves with few vertices."""
    layers = []
    for name, (p0, p1, thresholds) in curves.items():
        kept = thin(p0, p1)
        columns = {"p0": p0, "false positive rate": 1 - p0, "p1": p1, "threshold": thresholds}
        data = Table({column: values[kept] for column, values in columns.items()})
        layers.append(Layer(panel, name, "curve", data))
    return layers


def _sums(curve: RocCurve, share: float) -> tuple[Floats, Floats]:
    """Cumulative sums of an ROC curve, by the inverse of the affine map in the paper's proof."""
    second = share * (1 - curve.p1)
    return (1 - share) * curve.p0 + second, second


def _diagram(curves: dict[str, RocCurve], share: float) -> list[Layer]:
    """Cumulative sums and their greatest convex minorant."""
    layers = []
    for name in [name for name in curves if name != "after"]:
        rows, second = _sums(curves[name], share)
        kept = thin(rows, second)
        layers.append(Layer("diagram", name, "curve", Table(rows=rows[kept], second=second[kept])))
    return layers


def _forecasts(curves: dict[str, RocCurve], share: float, most_points: int = 400) -> list[Layer]:
    """Forecasts in ascending order, a line if there are many, and their isotonic regression."""
    first = next(iter(curves.values()))
    scores = first.thresholds[1:]
    if first_improbable(scores) is not None:
        problem = f'"forecasts" needs probabilities, got {scores[0]:.6g} to {scores[-1]:.6g}'
        raise InputError("panels", None, problem, "leave it out or calibrate the scores first")
    rows, second = _sums(first, share)
    middle = (rows[1:] + rows[:-1]) / 2
    if len(scores) > most_points:
        rows, scores = np.repeat(rows, 2)[1:-1], np.repeat(scores, 2)  # both ends of equal ones
        middle, shown = rows, {("forecasts", "line"): thin(rows, scores)}
    else:
        # Whether rows of each class have this forecast, up to rounding.
        present = np.column_stack([np.diff(rows - second), np.diff(second)]) > 1e-12
        shown = {(str(k), "points"): np.flatnonzero(present[:, k]) for k in (0, 1)}
    layers = [
        Layer("forecasts", *names, Table(rows=middle[kept], forecast=scores[kept]))
        for names, kept in shown.items()
    ]
    ends, height = _sums(curves["hull"], share)
    steps = Table(left=ends[:-1], right=ends[1:], value=np.diff(height) / np.diff(ends))
    return [*layers, Layer("forecasts", "isotonic regression", "steps", steps)]


def _draw_lines(ax: Axes, layers: list[Layer], x: str, y: str, labels: list[str]) -> list[Any]:
    """Draw columns of layers, and return the curves without the hull, a wide grey line."""
    styles, lines = styles_in(ax, [x.series for x in layers if x.series != "hull"]), []
    for layer, label in zip(layers, labels, strict=True):
        across, up = layer.data[x], layer.data[y]
        if layer.series == "hull":
            ax.fill_between(across, up, alpha=0.06, color=NEUTRAL, lw=0)
            ax.plot(across, up, color=NEUTRAL, lw=2.6, alpha=0.7, label=label, zorder=1.5)
            continue
        colour, marker, dashes = styles[layer.series]
        marks: dict[str, Any] = {"marker": marker, "ms": 4} if len(across) <= 30 else {}
        lines += ax.plot(across, up, color=colour, ls=dashes, lw=1.8, label=label, **marks)
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
