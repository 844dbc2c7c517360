"""RocDisplay: ROC curves of two classes, of each class against the rest, or the ROC surface."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

from isoroc._core.types import Floats
from isoroc._evaluation.curves import one_vs_rest, thin
from isoroc._evaluation.surface import AZIMUTH, ELEVATION, drawn_surface, edges_of, lit
from isoroc._input import InputError, Sample, check_option
from isoroc._support.table import Table
from isoroc.metrics import roc_convex_hull
from isoroc.plots._display import (
    MAX_PANELS,
    NEUTRAL,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    shortened,
    styles_in,
    tidy,
    wrapped,
)


@dataclass(repr=False, eq=False)
class RocDisplay(BeforeAfterDisplay):
    """ROC curves before and after calibration: of two classes, or of each class against the rest.

    For two classes the convex hull of the curve is drawn as well. Its area is the AUC after
    isotonic calibration of the same rows without smoothing. For three classes or more there is one
    panel per class, for the twelve heaviest classes. The last panel says how many are drawn.

    The option `kind` of `from_estimator` and `from_predictions` is "classes" by default. "surface"
    draws the ROC surfaces of three classes before and after calibration in one picture: the body of
    the convex hull before, and the edges of the hull after, with the ROC points that span them.
    With more than 2,000 rows, 2,000 are drawn at random. Axes that are passed need
    ``projection="3d"``.

    Examples
    --------
    >>> from isoroc.plots import RocDisplay
    >>> RocDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8]).areas
    {'forecasts': 0.75, 'hull': 0.875}
    """

    areas: dict[Any, float]
    """Area under each curve, by series. For three classes or more by series and class. With
    ``kind="surface"``, the volume under each surface, by series."""
    labels: Any
    """The classes."""
    kind: Literal["classes", "surface"] = "classes"

    @classmethod
    def _of(
        cls, series: dict[str, Sample], *, kind: Literal["classes", "surface"] = "classes"
    ) -> Self:
        check_option("kind", kind, ("classes", "surface"))
        first = next(iter(series.values()))
        if kind == "surface":
            return cls(*_surfaces(series), first.classes, kind)
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
        if self.kind == "surface":
            self._grid = (1, (6.2, 5.4))
            self._projection = "3d"

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        if self.kind == "surface":
            return self._draw_surface(ax, layers)
        panel = layers[0].panel
        several = len(self.labels) > 2
        ax.plot([0, 1], [0, 1], color=NEUTRAL, lw=1, ls=":")
        styles = styles_in(ax, [x.series for x in layers if x.series != "hull"])
        lines: list[Any] = []
        for layer in layers:
            series = layer.series
            across, up, _ = layer.data.values()
            area = self.areas[(series, panel) if several else series]
            label = f"{'convex hull' if series == 'hull' else series}, AUC {area:.4f}"
            if series == "hull":
                ax.fill_between(across, up, alpha=0.06, color=NEUTRAL, lw=0)
                ax.plot(across, up, color=NEUTRAL, lw=2.6, alpha=0.7, label=label, zorder=1.5)
                continue
            colour, marker, dashes = styles[series]
            (line,) = ax.plot(across, up, color=colour, ls=dashes, lw=1.8, label=label)
            if len(across) <= 30:
                line.set(marker=marker, markersize=4)
            lines.append(line)
        across_label = "false positive rate"
        if several and panel == self.panels[-1] and len(self.panels) < len(self.labels):
            across_label += f"\n({len(self.panels)} of {len(self.labels)} classes, the heaviest)"
        tidy(ax, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=across_label)
        ax.set_ylabel("true positive rate" + ("" if several else f" ({shortened(panel)})"))
        if several:
            ax.set_title(f"{wrapped(panel, 28)} against the rest", fontsize="medium")
        add_legend(ax, "lower right")
        return lines

    def _draw_surface(self, ax: Any, layers: list[Layer]) -> list[Any]:
        """The first surface as a shaded body, the second as edges above it."""
        ax.computed_zorder = False  # all faces look at the viewer, so nothing may hide the edges
        names = [shortened(str(label)) for label in self.labels]
        series = list(dict.fromkeys(layer.series for layer in layers))
        styles = styles_in(ax, series)
        for _, name, kind, data in layers:
            xyz = np.column_stack([data["share_0"], data["share_1"], data["share_2"]])
            colour, marker, _ = styles[name]
            is_first = name == series[0]
            if kind == "corners":
                label = f"{name}, volume {self.areas[name]:.4f}"
                ax.scatter(
                    *xyz.T,
                    color=colour,
                    marker=marker,
                    s=20,
                    ec="white",
                    lw=0.4,
                    depthshade=False,
                    label=label,
                    zorder=4 if is_first else 6,
                )
            elif is_first:
                _add_body(ax, xyz.reshape(-1, 3, 3), colour)
            else:
                _add_edges(ax, xyz.reshape(-1, 3, 3), colour)
        ax.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1))
        for axis, name in zip((ax.xaxis, ax.yaxis, ax.zaxis), names, strict=True):
            axis.set_ticks([0, 0.5, 1], ["0", "0.5", "1"])
            axis.label.set_text(f"share of {name} right")
            axis.set_pane_color((1, 1, 1, 0))
            axis.line.set_color(NEUTRAL)
        ax.grid(visible=True)
        ax.view_init(elev=ELEVATION, azim=AZIMUTH)
        ax.set_box_aspect((1, 1, 1), zoom=0.9)
        ax.legend(loc="upper left", fontsize="small", framealpha=0.8, edgecolor="none")
        return []


def _surfaces(series: dict[str, Sample]) -> tuple[list[Layer], dict[Any, float]]:
    """Faces and corners of the hulls of the ROC surfaces, and their volumes."""
    K = next(iter(series.values())).n_classes
    if K != 3:
        fix = 'use RocDisplay with kind="classes", or the points of isoroc.metrics.roc_surface'
        raise InputError("kind", None, f'"surface" needs three classes, got {K}', fix)
    layers = []
    volumes: dict[Any, float] = {}
    for name, sample in series.items():
        surface = drawn_surface(sample)
        volumes[name] = surface.volume
        for kind, points in (("faces", surface.faces.reshape(-1, 3)), ("corners", surface.corners)):
            columns = {f"share_{k}": points[:, k] for k in range(3)}
            layers.append(Layer("surface", name, kind, Table(columns)))
    return layers, volumes


def _add_body(ax: Any, faces: Floats, colour: str) -> None:
    """Faces in a colour, darker where less light falls."""
    colours = 1 - (1 - np.array(to_rgb(colour))) * 0.45
    shaded = lit(faces, ambient=0.5)[:, None] * colours
    body = Poly3DCollection(faces, facecolors=shaded, edgecolors=shaded, lw=0.3, zorder=2)
    ax.add_collection3d(body)


def _add_edges(ax: Any, faces: Floats, colour: str) -> None:
    """The edges of faces, without those between triangles of one plane."""
    lines = Line3DCollection(edges_of(faces), colors=[colour], lw=0.8, zorder=5)
    ax.add_collection3d(lines)
