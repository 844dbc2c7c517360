"""SimplexDisplay: forecasts of three classes in a triangle, of four in a tetrahedron."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Self

import mpltern  # noqa: F401 -- registers the axes of triangles
import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.transforms import ScaledTranslation

from isoroc._calibrators.irp import IRPCalibrator
from isoroc._core.types import Floats, Ints
from isoroc._evaluation.forecasts import unwrap
from isoroc._evaluation.triangle import bin_polygons, mix, occupied_cells
from isoroc._input import InputError, Sample, check_choices, check_weights
from isoroc._support.table import Table
from isoroc.metrics._estimation.grouping import group_means
from isoroc.plots._display import NEUTRAL, BeforeAfterDisplay, Layer, figure_of, style_of, wrapped


class Triangle:
    """Ternary axes: first class at the lower left, second at the lower right, third on top."""

    def __init__(self, ax: Any, names: list[str]) -> None:
        self.ax = ax
        ax.set_axisbelow(True)
        # Position of each label: a corner and an offset in points. mpltern would look for free
        # positions, which takes seconds per figure.
        positions = [
            (ax.laxis, 0, 0, -22, -22, "left", "top"),
            (ax.raxis, 1, 0, 22, -22, "right", "top"),
            (ax.taxis, 0.5, 1, 0, 21, "center", "bottom"),
        ]
        for k, (axis, x, y, right, up, across, along) in enumerate(positions):
            text = f"{'●▲■'[k]} {wrapped(names[k], 16, 4)}"  # with its marker, in place of a legend
            axis.label.set(text=text, color=style_of(k)[0], weight="bold", rotation=0)
            axis.label.set(ha=across, va=along, ma=across)
            offset = ScaledTranslation(right / 72, up / 72, figure_of(ax).dpi_scale_trans)
            axis.set_label_coords(x, y, ax.transAxes + offset)
            axis.set_ticks([0.2, 0.4, 0.6, 0.8])  # 0 and 1 would touch the names
        ax.tick_params(labelsize="x-small")
        ax.grid(visible=True, color=NEUTRAL, alpha=0.25, lw=0.6)

    def title(self, text: str) -> None:
        """Set the title."""
        lines = 1 + self.ax.taxis.label.get_text().count("\n")
        self.ax.set_title(text, y=1, pad=27 + 14 * lines, fontsize="medium")

    def flat(self, P: Floats) -> Floats:
        """Points in the plane of the axes, shape (m, 2)."""
        return np.asarray(self.ax.transProjection.transform(P[:, [2, 0, 1]]))  # top, left, right

    def points(self, P: Floats, **style: Any) -> None:
        """Draw points."""
        self.ax.scatter(*P[:, [2, 0, 1]].T, **{"clip_on": False} | style)

    def polygons(self, corners: list[Floats], colours: Floats) -> None:
        """Fill polygons."""
        flat = [self.flat(polygon) for polygon in corners]
        edge = self.ax.get_facecolor()
        width = 0.9 if len(flat) <= 80 else 0.3 if len(flat) <= 1000 else 0.0
        filled = PolyCollection(flat, facecolors=colours, edgecolors=[edge], lw=width)
        filled.set_antialiased(width > 0)
        self.ax.add_collection(filled)

    def arrows(self, P: Floats, Q: Floats) -> None:
        """Draw arrows from the points P to the points Q, in the colours of Q."""
        tails = self.flat(P)
        heads = self.flat(Q)
        self.ax.quiver(
            *tails.T,
            *(heads - tails).T,
            color=mix(Q),
            angles="xy",
            scale_units="xy",
            scale=1,
            transform=self.ax.transData,
            width=0.006,
            headwidth=4,
            zorder=3,
        )


class Tetrahedron:
    """Axes in three dimensions with a regular tetrahedron, one corner per class."""

    corners: ClassVar[Floats] = np.array(
        [[0, 0, 0], [1, 0, 0], [1 / 2, np.sqrt(3 / 4), 0], [1 / 2, np.sqrt(1 / 12), np.sqrt(2 / 3)]]
    )

    def __init__(self, ax: Any, names: list[str]) -> None:
        self.ax = ax
        ax.set_axis_off()
        ax.view_init(elev=18, azim=-40)  # so that the forecasts hide no corner
        size = np.ptp(self.corners, axis=0)
        ax.set_box_aspect(size.tolist(), zoom=0.9)
        centre = np.array([0.44, 0.3, 0.32])  # seen from there, in the middle between the corners
        xlim, ylim, zlim = np.column_stack([centre - size / 2, centre + size / 2])
        ax.set(xlim=xlim, ylim=ylim, zlim=zlim)
        middle = self.corners.mean(axis=0)
        for i, j in combinations(range(4), 2):
            is_behind = (i, j) == (0, 2)
            line = self.corners[[i, j]].T
            ax.plot(*line, color=NEUTRAL, lw=0.9, ls="--" if is_behind else "-")
        # Long names grow away from the tetrahedron: left, below, right and above.
        sides = [("right", "center"), ("center", "top"), ("left", "center"), ("center", "bottom")]
        for k, (across, along) in enumerate(sides):
            place = self.corners[k] + 0.05 * (self.corners[k] - middle)
            text = f"{'●▲■◆'[k]} {wrapped(names[k], 12, 2)}"
            ax.text(*place, text, color=style_of(k)[0], weight="bold", ha=across, va=along)

    def title(self, text: str) -> None:
        """Title above the tetrahedron."""
        self.ax.set_title(text, fontsize="medium", y=1.0)

    def points(self, P: Floats, **style: Any) -> None:
        """Draw points of the simplex."""
        self.ax.scatter(*(P @ self.corners).T, depthshade=False, **style)


@dataclass(repr=False, eq=False)
class SimplexDisplay(BeforeAfterDisplay):
    """Forecasts of three classes in a triangle, or of four in a tetrahedron.

    Each class has a corner and a colour. The colour of a forecast is the mixture of the colours of
    the classes. Panels:

    - "forecasts", coloured by their labels, of at most 3,000 rows drawn at random.
    - "bins" of a calibrator, coloured by their calibrated value, and the thresholds of its splits.
    - "map": arrows from the mean forecast of each bin to its calibrated value, or of each of a few
      dozen cells if there are no bins or more than 60.
    - "values": the same forecasts, coloured by their calibrated value.

    The option `panels` of `from_estimator` and `from_predictions` says which to draw, by default
    forecasts, bins (values if there are no bins of three classes) and map. For four classes there
    are forecasts and values. Axes that are passed, one per panel, need ``projection="ternary"``, or
    ``projection="3d"`` for four classes.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IRPCalibrator
    >>> from isoroc.plots import SimplexDisplay
    >>> P = np.random.default_rng(0).dirichlet(np.ones(3), size=600)
    >>> y = P.argmax(axis=1)
    >>> calibrator = IRPCalibrator(random_state=0).fit(P, y)
    >>> SimplexDisplay.from_estimator(calibrator, P, y).panels
    ['forecasts', 'bins', 'map']
    """

    names: list[str]
    """The classes."""

    _grid = (3, (4.2, 4.2))
    _projection = "ternary"

    def __post_init__(self) -> None:
        if len(self.names) == 4:
            self._projection = "3d"
            self._grid = (2, (5.2, 4.2))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """As for every display. A calibrator with bins of three classes has its bins drawn."""
        estimator, X = unwrap(estimator, X)
        if isinstance(estimator, IRPCalibrator) and estimator.top_ is None:
            bin_of = estimator.apply(X)
            weights = check_weights(options.get("sample_weight"), len(bin_of))
            kept = slice(None) if weights is None else np.flatnonzero(weights)
            options["bins"] = estimator, bin_of[kept]
        return super().from_estimator(estimator, X, y, **options)

    @classmethod
    def _of(
        cls,
        series: dict[str, Sample],
        *,
        panels: Sequence[str] | None = None,
        bins: tuple[IRPCalibrator, Ints] | None = None,
    ) -> Self:
        sample, *others = series.values()
        if sample.n_classes not in (3, 4):
            fix = "the simplex is drawn for 3 and 4; use CalibrationDisplay or RocDisplay"
            raise InputError("y_prob", None, f"{sample.n_classes} classes", fix)
        names = [str(label) for label in sample.classes]
        shown = sample.drawn_rows(3000)
        P = sample.forecasts[shown]
        codes = sample.codes[shown]
        layers = [
            Layer("forecasts", name, "points", _table(names, P[codes == k]))
            for k, name in enumerate(names)
        ]
        if sample.n_classes == 4:
            bins = None  # and no arrows: neither can be seen in a tetrahedron
        if bins is not None:
            layers += _partition(bins[0], names)
        if others:
            after = others[0].forecasts
            layers.append(Layer("values", "after", "points", _table(names, P, after[shown])))
            if sample.n_classes == 3:
                layers.append(_arrows(sample, after, bins and bins[1], names))
        display = cls(layers, names)
        if panels is None:
            panels = [name for name in display.panels if name != "values" or bins is None]
        check_choices("panels", panels, display.panels)
        return cls([layer for name in panels for layer in display.of_panel(name)], names)

    def _draw(self, ax: Any, layers: list[Layer]) -> list[Any]:
        drawing: Any = (Triangle if len(self.names) == 3 else Tetrahedron)(ax, self.names)
        panel = layers[0].panel
        size = float(np.clip(6000 / sum(x.data.n_rows for x in layers), 6, 36))
        for _, series, kind, data in layers:
            P = np.column_stack([data[f"p_{name}"] for name in self.names])
            values = [data[f"value_{name}"] for name in self.names if f"value_{name}" in data]
            if kind == "thresholds":
                inside = (P >= 0).all(axis=1)
                area = 90 / np.sqrt(data["split"])
                drawing.points(
                    P[inside], s=area[inside], marker="+", color="black", lw=1.2, zorder=4
                )
            elif not values:
                colour, marker, _ = style_of(self.names.index(series))
                drawing.points(
                    P, s=size, label=series, color=colour, marker=marker, lw=0, alpha=0.75
                )
            elif kind == "points":
                drawing.points(P, c=mix(np.column_stack(values)), s=size, lw=0)
            elif kind == "arrows":
                drawing.arrows(P, np.column_stack(values))
            else:
                ends = np.flatnonzero(np.diff(data["bin"])) + 1
                colours = mix(np.column_stack(values))[np.append(0, ends)]
                drawing.polygons(np.split(P, ends), colours)
        titles = {
            "forecasts": "forecasts, by what came true",
            "values": "forecasts, by calibrated value",
            "bins": "bins by value, + thresholds",
            "map": "from forecast to calibrated",
        }
        drawing.title(titles[panel])
        return []


def _table(names: list[str], P: Floats, values: Floats | None = None, **others: Any) -> Table:
    """Points, their values if given, and other columns."""
    columns = {f"p_{name}": P[:, k] for k, name in enumerate(names)}
    if values is not None:
        columns |= {f"value_{name}": values[:, k] for k, name in enumerate(names)}
    return Table(columns, **others)


def _partition(bins: IRPCalibrator, names: list[str]) -> list[Layer]:
    """Corners of the bins, and the thresholds of the splits."""
    polygons = bin_polygons(bins.tree_)
    gammas = bins.tree_.thresholds
    number = np.repeat(np.arange(len(polygons)), [len(polygon) for polygon in polygons])
    corners = _table(names, np.vstack(polygons), bins.bin_values_[number], bin=number.astype(float))
    splits = _table(names, gammas, split=np.arange(1.0, len(gammas) + 1))
    parts = [("bins", "polygons", corners), ("splits", "thresholds", splits)]
    return [Layer("bins", *part) for part in parts]


def _arrows(sample: Sample, after: Floats, bin_of: Ints | None, names: list[str]) -> Layer:
    """Mean forecast and mean calibrated value per bin, or per cell without bins or with many."""
    if bin_of is None or len(np.unique(bin_of)) > 60:
        bin_of = occupied_cells(sample.forecasts, 12)[1]
    weight, tails, heads = group_means(bin_of, sample.weights, sample.forecasts, after)
    return Layer("map", "after", "arrows", _table(names, tails, heads, weight=weight))
