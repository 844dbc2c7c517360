"""RocDisplay: the ROC curve, its convex hull and the cumulative sum diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import InputError, check_choices, check_option, first_improbable
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc._views.curves import one_vs_rest, thin
from isoroc._views.forecasts import series_of
from isoroc.metrics import RocCurve, roc_convex_hull
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import (
    NEUTRAL,
    add_legend,
    axes_for,
    shortened,
    style_of,
    styles_in,
    tidy,
    wrapped,
)

#: Largest number of classes that have a panel, the heaviest ones.
_MAX_CLASSES = 12
#: Above this number of distinct forecasts a line replaces the points.
_MAX_POINTS = 400
_PANELS = ("roc", "diagram", "forecasts")
_SORTED = "share of rows, by ascending forecast"


class RocDisplay(BeforeAfterDisplay):
    """ROC curves before and after calibration: of two classes, or of each class against the rest.

    For three classes or more there is one panel per class, for the twelve heaviest classes. Panels
    for two classes, after Figure 1 of the paper:

    - "roc": for each threshold, the share of the first class above it and of the second class above
      it. The area under the hull is the AUC after isotonic calibration of the same rows without
      smoothing;
    - "diagram": the cumulative sum diagram, that is the number of rows in ascending order of their
      forecasts against the number of rows of the second class among them, and its greatest convex
      minorant. An affine map takes this panel to the panel "roc" and the minorant to the hull;
    - "forecasts": the forecasts in the same order, and the slopes of the minorant, which are the
      isotonic regression.

    Create it with `from_estimator` or `from_predictions`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from isoroc.plots import RocDisplay
    >>> display = RocDisplay.from_predictions(
    ...     [0, 1, 0, 1], [0.1, 0.3, 0.4, 0.8], ax=Figure().subplots()
    ... )
    >>> display.areas
    {'forecasts': 0.75, 'hull': 0.875}
    >>> len(display.axes_)
    1
    """

    def __init__(
        self,
        layers: list[Layer],
        *,
        areas: dict[Any, float],
        labels: Any,
        orientation: Literal["usual", "symmetric"] = "usual",
    ) -> None:
        self.layers = layers
        #: Area under each curve, by series; for three classes or more by series and class.
        self.areas = areas
        #: The classes.
        self.labels = labels
        #: What the horizontal axis of a ROC curve is.
        self.orientation = orientation

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        panels: Sequence[str] = ("roc",),
        orientation: Literal["usual", "symmetric"] = "usual",
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the ROC curves of forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n, K) or (n,)
            Forecasts, or real scores that increase with the probability of the second of two
            classes.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        panels : sequence of {"roc", "diagram", "forecasts"}, default=("roc",)
            What to draw for two classes, in this order.
        orientation : {"usual", "symmetric"}, default="usual"
            The horizontal axis of a ROC curve: the false positive rate, or the true negative rate,
            as in the paper.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel.
        """
        check_option("orientation", orientation, ("usual", "symmetric"))
        check_choices("panels", panels, _PANELS)
        series = series_of(y_true, y_prob, after, sample_weight, labels)
        first = next(iter(series.values()))
        heaviest = np.argsort(-first.class_weights(), kind="stable")[:_MAX_CLASSES]
        chosen = [1] if first.n_classes == 2 else np.sort(heaviest).tolist()
        found = one_vs_rest(series, chosen)
        if not found:
            raise InputError("y_true", None, "one class only", "a ROC curve needs two classes")
        names = {"labels": first.classes, "orientation": orientation}
        if first.n_classes > 2:
            layers: list[Layer] = []
            areas: dict[Any, float] = {}
            for k, curves in found.items():
                panel = str(first.classes[k])
                layers += _roc(panel, curves)
                areas |= {(of, panel): curve.area() for of, curve in curves.items()}
            return cls(layers, areas=areas, **names).plot(ax)
        hull = roc_convex_hull(first.codes, first.forecasts, sample_weight=first.weights)
        before, *others = found[1].items()
        curves = dict([before, ("hull", hull), *others])
        share = float(np.average(first.codes, weights=first.weights))
        layers = []
        for panel in panels:
            if panel == "roc":
                layers += _roc(panel, curves)
            else:
                layers += (_diagram if panel == "diagram" else _forecasts)(curves, share)
        return cls(layers, areas={of: c.area() for of, c in curves.items()}, **names).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        names, several = self.panels, len(self.labels) > 2
        size = (3.1, 3.1) if several else (4.3, 4.0)
        axes = axes_for(ax, len(names), columns=4 if several else 3, size=size)
        for axes_, name in zip(axes, names, strict=True):
            if several or name == "roc":
                self._draw_roc(axes_, self.of_panel(name), name if several else None)
            else:
                draw = self._draw_diagram if name == "diagram" else self._draw_map
                draw(axes_, self.of_panel(name))
        return self._drawn_in(axes)

    def _draw_roc(self, ax: Axes, layers: list[Layer], panel: str | None) -> None:
        usual = self.orientation == "usual"
        ax.plot([0, 1], [0, 1] if usual else [1, 0], color=NEUTRAL, lw=1, ls=":")
        areas = [self.areas[x.series if panel is None else (x.series, panel)] for x in layers]
        names = ["convex hull" if x.series == "hull" else x.series for x in layers]
        labels = [f"{name}, AUC {area:.4f}" for name, area in zip(names, areas, strict=True)]
        _draw_lines(ax, layers, "false positive rate" if usual else "p0", "p1", labels)
        tidy(ax, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.set_xlabel("false positive rate" if usual else "true negative rate")
        if panel is None:
            low, high = (shortened(str(label)) for label in self.labels)
            ax.set_ylabel(f"true positive rate ({high})")
            if not usual:
                ax.set_xlabel(f"true negative rate ({low})")
        else:
            ax.set_ylabel("true positive rate")
            ax.set_title(f"{wrapped(panel, 28)} against the rest", fontsize="medium")
        add_legend(ax, "lower right" if usual else "lower left")

    def _draw_diagram(self, ax: Axes, layers: list[Layer]) -> None:
        label_of = {"hull": "greatest convex minorant"}
        labels = [label_of.get(layer.series, "cumulative sums") for layer in layers]
        _draw_lines(ax, layers, "rows", "second", labels)
        tidy(ax, xlabel=_SORTED, ylim=(0, None), xlim=(-0.02, 1.02))
        ax.set_ylabel(f"share of rows of {shortened(str(self.labels[1]))}")
        add_legend(ax, "upper left")

    def _draw_map(self, ax: Axes, layers: list[Layer]) -> None:
        for layer in layers:
            data = layer.data
            if layer.kind == "steps":
                edges = np.append(data["left"], data["right"][-1])
                style: dict[str, Any] = {"color": NEUTRAL, "lw": 1.6, "label": layer.series}
                ax.stairs(data["value"], edges, baseline=None, **style)
                continue
            x, y = data["rows"], data["forecast"]
            if layer.kind == "line":
                ax.plot(x, y, color=style_of(0)[0], label=layer.series)
                continue
            k = int(layer.series)
            colour, marker, _ = style_of(k)
            label = f"rows of {shortened(str(self.labels[k]), 24)}"
            ax.scatter(x, y, s=22, color=colour, marker=marker, label=label, zorder=3)
        tidy(ax, xlabel=_SORTED, xlim=(-0.02, 1.02))
        ax.set_ylabel(f"forecast probability of {shortened(str(self.labels[1]))}")
        add_legend(ax, "lower right")


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


def _forecasts(curves: dict[str, RocCurve], share: float) -> list[Layer]:
    """Forecasts in ascending order, and their isotonic regression."""
    first = next(iter(curves.values()))
    scores = first.thresholds[1:]
    if first_improbable(scores) is not None:
        problem = f'"forecasts" needs probabilities, got {scores[0]:.6g} to {scores[-1]:.6g}'
        raise InputError("panels", None, problem, "leave it out or calibrate the scores first")
    rows, second = _sums(first, share)
    middle = (rows[1:] + rows[:-1]) / 2
    if len(scores) > _MAX_POINTS:
        shown = {("forecasts", "line"): thin(middle, scores)}
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


def _draw_lines(ax: Axes, layers: list[Layer], x: str, y: str, labels: list[str]) -> None:
    """Draw columns of layers; the hull is a wide grey line above a shaded area."""
    styles = styles_in(ax, [layer.series for layer in layers if layer.series != "hull"])
    for layer, label in zip(layers, labels, strict=True):
        across, up = layer.data[x], layer.data[y]
        if layer.series == "hull":
            ax.fill_between(across, up, alpha=0.06, color=NEUTRAL, lw=0)
            ax.plot(across, up, color=NEUTRAL, lw=2.6, alpha=0.7, label=label, zorder=1.5)
            continue
        colour, marker, dashes = styles[layer.series]
        marks: dict[str, Any] = {"marker": marker, "ms": 4} if len(across) <= 30 else {}
        ax.plot(across, up, color=colour, ls=dashes, lw=1.8, label=label, **marks)
