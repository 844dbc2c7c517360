"""SimplexDisplay: forecasts of three or four classes, bins, and the calibration map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from isoroc._calibrators.binned import BinCalibrator
from isoroc._input import (
    InputError,
    Sample,
    check_after,
    check_choices,
    check_outcomes,
    check_sample,
)
from isoroc._simplex import Floats, Ints
from isoroc._table import Table
from isoroc._tree import BinTree
from isoroc._views.colours import mix
from isoroc._views.forecasts import forecasts_of, unwrap
from isoroc._views.geometry import bin_polygons, cells_of
from isoroc.plots._canvas import Tetrahedron, Triangle
from isoroc.plots._display import Display, Layer
from isoroc.plots._style import axes_for, style_of

_TITLES = {
    "forecasts": "forecasts, by what came true",
    "values": "forecasts, by their calibrated value",
    "bins": "bins, by their calibrated value",
    "map": "from forecasts to calibrated values",
}
#: Above this number of rows cells are drawn instead of points.
_MAX_POINTS = 3000
#: Least and largest number of cells along an edge, by the number of classes.
_CELLS = {3: (16, 60), 4: (6, 12)}
#: Number of cells along an edge for arrows that do not start at bins.
_ARROWS = {3: 12, 4: 6}
#: Up to this number of bins there is one arrow per bin.
_MAX_BINS = 60


class _Bins(NamedTuple):
    """The bins of a calibrator, and the bin of each row."""

    tree: BinTree
    values: Floats
    bin_of: Ints


def _columns(prefix: str, names: list[str], matrix: Floats) -> dict[str, NDArray[Any]]:
    return {f"{prefix}_{name}": column for name, column in zip(names, matrix.T, strict=True)}


def _forecasts(sample: Sample, names: list[str]) -> list[Layer]:
    """Forecasts by label: one layer of points per class, or cells if there are many rows."""
    if len(sample.codes) > _MAX_POINTS:
        outcomes = np.eye(len(names))[sample.codes]
        return [_cells("forecasts", sample, outcomes, names)]
    return [
        Layer(
            "forecasts",
            name,
            "points",
            Table(_columns("p", names, sample.forecasts[sample.codes == k])),
        )
        for k, name in enumerate(names)
    ]


def _values(sample: Sample, after: Floats, names: list[str]) -> Layer:
    """Forecasts by calibrated value: points, or cells if there are many rows."""
    if len(sample.codes) > _MAX_POINTS:
        return _cells("values", sample, after, names)
    columns = _columns("p", names, sample.forecasts) | _columns("value", names, after)
    return Layer("values", "after", "points", Table(columns))


def _cells(panel: str, sample: Sample, values: Floats, names: list[str]) -> Layer:
    """Cells of forecasts with their weight and mean value."""
    K, n = len(names), len(sample.codes)
    # Evenly spread rows put about sixty into each cell, enough for colours to show no noise.
    steps = int(np.clip((n / 60) ** (1 / (K - 1)), *_CELLS[K]))
    cells, cell = cells_of(sample.forecasts, steps)
    centres = (cells + (steps - cells.sum(axis=1, keepdims=True)) / K) / steps
    columns = _columns("p", names, centres) | _columns("value", names, _means(cell, values, sample))
    others = {"width": np.full(len(cells), 1 / steps), "weight": _weight(cell, sample)}
    return Layer(panel, "all", "cells", Table(columns | others))


def _weight(group: Ints, sample: Sample) -> Floats:
    return np.bincount(group, sample.weights).astype(np.float64)


def _means(group: Ints, values: Floats, sample: Sample) -> Floats:
    """Mean value of each group; no group may be empty."""
    weighted = values if sample.weights is None else values * sample.weights[:, None]
    sums = np.column_stack([np.bincount(group, column) for column in weighted.T])
    return np.asarray(sums / _weight(group, sample)[:, None])


def _partition(bins: _Bins, names: list[str]) -> list[Layer]:
    """Corners of the bins of three classes, and the thresholds of the splits."""
    polygons = bin_polygons(bins.tree)
    sizes = [len(polygon) for polygon in polygons]
    corners = np.vstack(polygons)
    values = np.repeat(bins.values, sizes, axis=0)
    columns = _columns("p", names, corners) | _columns("value", names, values)
    number = np.repeat(np.arange(len(sizes), dtype=np.float64), sizes)
    gammas = bins.tree.thresholds
    order = {"split": np.arange(1.0, len(gammas) + 1)}
    return [
        Layer("bins", "bins", "polygons", Table(columns | {"bin": number})),
        Layer("bins", "splits", "thresholds", Table(_columns("p", names, gammas) | order)),
    ]


def _arrows(sample: Sample, after: Floats, bin_of: Ints | None, names: list[str]) -> Layer:
    """Mean forecast and mean calibrated value per bin, or per cell without bins or with many."""
    group = bin_of
    if group is None or len(np.unique(group)) > _MAX_BINS:
        group = cells_of(sample.forecasts, _ARROWS[len(names)])[1]
    _, group = np.unique(group, return_inverse=True)
    tails, heads = (_means(group, v, sample) for v in (sample.forecasts, after))
    columns = _columns("p", names, tails) | _columns("value", names, heads)
    return Layer("map", "after", "arrows", Table(columns | {"weight": _weight(group, sample)}))


class SimplexDisplay(Display):
    """Forecasts of three classes in a triangle, or of four in a tetrahedron.

    Each class has a corner and a colour; the colour of a forecast is the mixture of the colours of
    the classes. Panels:

    - "forecasts": the forecasts, coloured by their labels. Above 3,000 rows they are grouped into
      small cells, coloured by the mixture of their labels; cells with more rows are stronger in
      colour (three classes) or larger (four classes);
    - "bins": the bins of a calibrator of three classes, coloured by their calibrated value, and the
      thresholds of its splits; markers get smaller with each split;
    - "map": arrows from the mean forecast of each bin to its calibrated value. Without bins, or
      with more than 60, there is one arrow for each of a few dozen cells;
    - "values": the forecasts, coloured by their calibrated value.

    Create it with `from_estimator` or `from_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc import IRPCalibrator
    >>> from isoroc.plots import SimplexDisplay
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet(np.ones(3), size=600)
    >>> y = [rng.choice(3, p=p) for p in P]
    >>> calibrator = IRPCalibrator(random_state=0).fit(P, y)
    >>> display = SimplexDisplay.from_estimator(calibrator, P, y, ax=Figure().subplots())
    >>> display.panels
    ['forecasts', 'bins', 'map']
    """

    def __init__(self, layers: list[Layer], *, names: list[str]) -> None:
        self.layers = layers
        #: The classes.
        self.names = names
        #: The panels in the order in which they are drawn.
        self.panels = list(dict.fromkeys(layer.panel for layer in layers))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        panels: Sequence[str] | None = None,
        sample_weight: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the forecasts of a classifier, or a calibrator with its bins and its map.

        Parameters
        ----------
        estimator : calibrator or classifier
            Fitted. The bins of a `CalibratedClassifier` are those of its calibrator if there is one
            only.
        X : array-like
            Input of the estimator: forecasts for a calibrator, features for a classifier.
        y : array-like of shape (n,)
            Labels.
        panels : sequence of {"forecasts", "bins", "map", "values"}, default=None
            What to draw, in this order. By default forecasts, bins (values if the estimator has no
            bins of three classes) and map.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per panel,
            created with ``projection="ternary"`` for three classes and ``"3d"`` for four.
        """
        estimator, X = unwrap(estimator, X)
        before, after, classes = forecasts_of(estimator, X)
        sample = check_sample(before, y, sample_weight, classes, name="X")
        bins = None
        if isinstance(estimator, BinCalibrator) and getattr(estimator, "top_", None) is None:
            bins = _Bins(estimator.tree_, estimator.bin_values_, estimator.apply(X))
        return cls._make(sample, after, bins, panels, ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        panels: Sequence[str] | None = None,
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw forecasts, and their calibrated values if given.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n, 3) or (n, 4)
            Forecasts.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        panels : sequence of {"forecasts", "map", "values"}, default=None
            What to draw, in this order; by default all that the arguments allow.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes or sequence of Axes, default=None
            As in `from_estimator`.
        """
        sample = check_outcomes(y_true, y_prob, sample_weight, labels)
        if after is not None:
            after = check_after(after, sample).forecasts
        return cls._make(sample, after, None, panels, ax)

    @classmethod
    def _make(
        cls,
        sample: Sample,
        after: Floats | None,
        bins: _Bins | None,
        panels: Sequence[str] | None,
        ax: Axes | Sequence[Axes] | None,
    ) -> Self:
        K = sample.n_classes
        if K not in (3, 4):
            fix = "the simplex is drawn for 3 or 4; use ReliabilityDisplay or RocDisplay"
            raise InputError("y_prob", None, f"{K} classes", fix)
        if sample.weights is not None:
            rows = np.flatnonzero(sample.weights)
            sample = sample.take(rows)
            after = None if after is None else after[rows]
            bins = None if bins is None else bins._replace(bin_of=bins.bin_of[rows])
        names = [str(label) for label in sample.classes]
        drawn = {"forecasts": _forecasts(sample, names)}
        if bins is not None and K == 3:
            drawn["bins"] = _partition(bins, names)
        if after is not None:
            drawn["values"] = [_values(sample, after, names)]
            drawn["map"] = [_arrows(sample, after, None if bins is None else bins.bin_of, names)]
        if panels is None:
            panels = [name for name in drawn if name != "values" or "bins" not in drawn]
        check_choices("panels", panels, drawn)
        return cls([layer for name in panels for layer in drawn[name]], names=names).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_estimator`."""
        canvas = Triangle if len(self.names) == 3 else Tetrahedron
        axes = axes_for(
            ax, len(self.panels), columns=3, size=(4.2, 4.2), projection=canvas.projection
        )
        for axes_, panel in zip(axes, self.panels, strict=True):
            drawing = canvas(axes_, self.names)
            layers = self.of_panel(panel)
            size = float(np.clip(6000 / sum(x.data.n_rows for x in layers), 6, 36))
            for layer in layers:
                self._draw_layer(drawing, layer, size)
            drawing.title(_TITLES[panel])
        self._set_axes(axes)
        return self

    def _draw_layer(self, drawing: Any, layer: Layer, size: float) -> None:
        data = layer.data
        P = _matrix(data, "p", self.names)
        if layer.kind == "points" and layer.panel == "forecasts":
            colour, marker, _ = style_of(self.names.index(layer.series))
            drawing.points(
                P,
                color=colour,
                marker=marker,
                s=size,
                lw=0,
                alpha=0.75,
                label=layer.series,
            )
        elif layer.kind == "thresholds":
            inside = (P >= 0).all(axis=1)
            area = 90 / np.sqrt(data["split"])
            drawing.points(P[inside], s=area[inside], marker="+", color="black", lw=1.2, zorder=4)
        else:
            values = _matrix(data, "value", self.names)
            colours = mix(values)
            if layer.kind == "points":
                drawing.points(P, c=colours, s=size, lw=0)
            elif layer.kind == "cells":
                steps = round(1 / data["width"][0])
                drawing.cells(np.floor(P * steps).astype(np.intp), steps, colours, data["weight"])
            elif layer.kind == "arrows":
                drawing.arrows(P, values, colours)
            else:
                ends = np.flatnonzero(np.diff(data["bin"])) + 1
                first = np.append(0, ends)
                drawing.polygons(np.split(P, ends), colours[first])


def _matrix(data: Table, prefix: str, names: list[str]) -> Floats:
    return np.column_stack([data[f"{prefix}_{name}"] for name in names])
