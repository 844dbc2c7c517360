"""RocDisplay: the ROC curve, its convex hull and the cumulative sum diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import (
    InputError,
    Sample,
    check_after,
    check_choices,
    check_option,
    check_outcomes,
    first_improbable,
)
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc._views.thinning import thin
from isoroc.metrics import RocCurve, roc_convex_hull, symmetric_roc_curve
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


def _one_vs_rest(
    series: dict[str, Sample], most: int
) -> tuple[list[Layer], dict[tuple[str, str], float]]:
    """Curves of the heaviest classes against the rest, and the areas by series and class."""
    layers, areas = [], {}
    first = next(iter(series.values()))
    heaviest = np.sort(np.argsort(-first.class_weights(), kind="stable")[:most])
    for k in heaviest:
        panel = str(first.classes[k])
        is_class = first.codes == k
        if is_class.all() or not is_class.any():  # without rows of both kinds there is no curve
            continue
        for name, sample in series.items():
            scores = np.ascontiguousarray(sample.forecasts[:, k])
            curve = symmetric_roc_curve(is_class, scores, sample_weight=sample.weights)
            layers.append(_curve_layer(panel, name, curve))
            areas[name, panel] = curve.area()
    return layers, areas


def _curve_layer(panel: str, series: str, curve: RocCurve) -> Layer:
    """Curve with few vertices."""
    p0, p1, thresholds = curve
    kept = thin(p0, p1)
    data = Table(p0=p0[kept], p1=p1[kept], threshold=thresholds[kept])
    return Layer(panel, series, "curve", data)


def _roc(curves: dict[str, RocCurve], _: float) -> list[Layer]:
    """Curves of two classes."""
    return [_curve_layer("roc", name, curve) for name, curve in curves.items()]


def _sums(curve: RocCurve, share: float) -> tuple[Floats, Floats]:
    """Cumulative sums of an ROC curve, by the inverse of the affine map in the paper's proof."""
    second = share * (1 - curve.p1)
    return (1 - share) * curve.p0 + second, second


def _diagram(curves: dict[str, RocCurve], share: float) -> list[Layer]:
    """Cumulative sums and their greatest convex minorant."""
    layers = []
    for name, curve in curves.items():
        if name != "after":
            rows, second = _sums(curve, share)
            kept = thin(rows, second)
            data = Table(rows=rows[kept], second=second[kept])
            layers.append(Layer("diagram", name, "curve", data))
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
        kept = thin(middle, scores)
        line = Table(rows=middle[kept], forecast=scores[kept])
        layers = [Layer("forecasts", "forecasts", "line", line)]
    else:
        # Whether rows of each class have this forecast, up to rounding.
        present = np.column_stack([np.diff(rows - second), np.diff(second)]) > 1e-12
        layers = [
            Layer(
                "forecasts",
                str(k),
                "points",
                Table(rows=middle[present[:, k]], forecast=scores[present[:, k]]),
            )
            for k in (0, 1)
        ]
    ends, height = _sums(curves["hull"], share)
    steps = Table(left=ends[:-1], right=ends[1:], value=np.diff(height) / np.diff(ends))
    return [*layers, Layer("forecasts", "isotonic regression", "steps", steps)]


_PANELS = {"roc": _roc, "diagram": _diagram, "forecasts": _forecasts}


class RocDisplay(BeforeAfterDisplay):
    """ROC curves before and after calibration: of two classes, or of each class against the rest.

    For three classes or more there is one panel per class, for the twelve heaviest classes. Panels
    for two classes, after Figure 1 of the paper:

    - "roc": for each threshold, the share of the first class at or below it and of the second
      class above it. The area under the hull is the AUC after isotonic calibration of the same
      rows without smoothing;
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
        orientation: Literal["symmetric", "usual"] = "symmetric",
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
        panels: Sequence[str] | None = None,
        orientation: Literal["symmetric", "usual"] = "symmetric",
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
        panels : sequence of {"roc", "diagram", "forecasts"}, default=None
            What to draw for two classes, in this order. By default "roc" and "diagram", or "roc"
            alone if `ax` is a single axes.
        orientation : {"symmetric", "usual"}, default="symmetric"
            The horizontal axis of a ROC curve: the true negative rate, as in the paper, or the
            false positive rate, as usual.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel.
        """
        check_option("orientation", orientation, ("symmetric", "usual"))
        if panels is None:
            panels = ("roc",) if isinstance(ax, Axes) else ("roc", "diagram")
        check_choices("panels", panels, _PANELS)
        sample = check_outcomes(y_true, y_prob, sample_weight, labels)
        series = {"forecasts": sample}
        if after is not None:
            changed = check_after(after, sample)
            series = {"before": sample, "after": changed}
        names = {"labels": sample.classes, "orientation": orientation}
        if sample.n_classes > 2:
            layers, each = _one_vs_rest(series, _MAX_CLASSES)
            if not layers:
                raise InputError("y_true", None, "one class only", "a ROC curve needs two classes")
            return cls(layers, areas=each, **names).plot(ax)
        options = {"sample_weight": sample_weight, "labels": sample.classes}
        first, *others = series
        curves = {
            first: symmetric_roc_curve(y_true, sample.forecasts, **options),
            "hull": roc_convex_hull(y_true, sample.forecasts, **options),
        }
        for name in others:
            curves[name] = symmetric_roc_curve(y_true, series[name].forecasts, **options)
        share = float(np.average(sample.codes, weights=sample.weights))
        layers = [layer for panel in panels for layer in _PANELS[panel](curves, share)]
        areas = {name: curve.area() for name, curve in curves.items()}
        return cls(layers, areas=areas, **names).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        names = list(dict.fromkeys(layer.panel for layer in self.layers))
        several = len(self.labels) > 2
        axes = axes_for(
            ax, len(names), columns=4 if several else 3, size=(3.1, 3.1) if several else (4.3, 4.0)
        )
        draw = {"roc": self._draw_roc, "diagram": self._draw_diagram, "forecasts": self._draw_map}
        for axes_, name in zip(axes, names, strict=True):
            if several:
                self._draw_roc(axes_, self.of_panel(name), name)
            else:
                draw[name](axes_, self.of_panel(name))
        self._set_axes(axes)
        return self

    def _draw_roc(self, ax: Axes, layers: list[Layer], panel: str | None = None) -> None:
        usual = self.orientation == "usual"
        ax.plot([0, 1], [0, 1] if usual else [1, 0], color=NEUTRAL, lw=1, ls=":")
        _draw_lines(
            ax,
            [
                (
                    layer,
                    1 - layer.data["p0"] if usual else layer.data["p0"],
                    layer.data["p1"],
                    f"{layer.series}, AUC {self._area(layer.series, panel):.4f}",
                )
                for layer in layers
            ],
        )
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

    def _area(self, series: str, panel: str | None) -> float:
        return self.areas[series if panel is None else (series, panel)]

    def _draw_diagram(self, ax: Axes, layers: list[Layer]) -> None:
        label_of = {"hull": "greatest convex minorant"}
        _draw_lines(
            ax,
            [
                (
                    layer,
                    layer.data["rows"],
                    layer.data["second"],
                    label_of.get(layer.series, "cumulative sums"),
                )
                for layer in layers
            ],
        )
        tidy(
            ax,
            xlabel="share of rows, by ascending forecast",
            ylabel=f"share of rows of {shortened(str(self.labels[1]))}",
            ylim=(0, None),
            xlim=(-0.02, 1.02),
        )
        add_legend(ax, "upper left")

    def _draw_map(self, ax: Axes, layers: list[Layer]) -> None:
        for layer in layers:
            data = layer.data
            if layer.kind == "steps":
                edges = np.append(data["left"], data["right"][-1])
                ax.stairs(
                    data["value"], edges, baseline=None, color=NEUTRAL, lw=1.6, label=layer.series
                )
            elif layer.kind == "line":
                ax.plot(data["rows"], data["forecast"], color=style_of(0)[0], label=layer.series)
            else:
                k = int(layer.series)
                colour, marker, _ = style_of(k)
                ax.scatter(
                    data["rows"],
                    data["forecast"],
                    s=22,
                    color=colour,
                    marker=marker,
                    label=f"rows of {shortened(str(self.labels[k]), 24)}",
                    zorder=3,
                )
        tidy(
            ax,
            xlabel="share of rows, by ascending forecast",
            ylabel=f"forecast probability of {shortened(str(self.labels[1]))}",
            xlim=(-0.02, 1.02),
        )
        add_legend(ax, "lower right")


def _draw_lines(ax: Axes, lines: list[tuple[Layer, Floats, Floats, str]]) -> None:
    """Draw lines with their labels; the hull is a wide grey one above a shaded area."""
    series = [layer.series for layer, *_ in lines if layer.series != "hull"]
    styles = dict(zip(series, styles_in(ax, series), strict=True))
    for layer, x, y, label in lines:
        if layer.series == "hull":
            ax.fill_between(x, y, alpha=0.12, color=NEUTRAL, lw=0)
            ax.plot(x, y, color=NEUTRAL, lw=2.6, alpha=0.7, label=label, zorder=1.5)
            continue
        colour, marker, dashes = styles[layer.series]
        few = len(x) <= 30
        ax.plot(x, y, color=colour, ls=dashes, lw=1.4, label=label, ms=4, marker=marker * few)
