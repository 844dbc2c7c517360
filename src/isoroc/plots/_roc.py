"""RocDisplay: the symmetric ROC curve, its convex hull and the cumulative sum diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import InputError, first_improbable
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc.metrics._inputs import check_outcomes
from isoroc.metrics._roc import RocCurve, roc_convex_hull, symmetric_roc_curve
from isoroc.plots._display import BeforeAfterDisplay, Layer, check_after, check_choices
from isoroc.plots._style import NEUTRAL, SERIES, axes_for, style_of, thin, tidy

_PANELS = ("forecasts", "diagram", "roc")
#: Above this number of distinct forecasts a line replaces the points.
_MAX_POINTS = 400


class RocDisplay(BeforeAfterDisplay):
    """Symmetric ROC curve of two classes before and after calibration, with its convex hull.

    Panels, after Figure 1 of the paper:

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
    2
    """

    def __init__(self, layers: list[Layer], *, areas: dict[str, float], labels: Any) -> None:
        self.layers = layers
        #: Area under each curve of the panel "roc".
        self.areas = areas
        #: The two classes.
        self.labels = labels

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        panels: Sequence[str] = ("roc", "diagram"),
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the ROC curve of forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two classes.
        y_prob : array-like of shape (n, 2) or (n,)
            Forecasts, or real scores that increase with the probability of the second class.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        panels : sequence of {"roc", "diagram", "forecasts"}, default=("roc", "diagram")
            What to draw, in this order.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (2,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel.
        """
        check_choices("panels", panels, _PANELS)
        options = {"sample_weight": sample_weight, "labels": labels}
        first = "forecasts" if after is None else "before"
        curves = {
            first: symmetric_roc_curve(y_true, y_prob, **options),
            "hull": roc_convex_hull(y_true, y_prob, **options),
        }
        sample = check_outcomes(y_true, y_prob, sample_weight, labels)
        if after is not None:
            changed = check_after(check_outcomes, y_true, after, sample_weight, sample)
            curves["after"] = symmetric_roc_curve(y_true, changed.forecasts, **options)
        share = float(np.average(sample.codes, weights=sample.weights))
        layers = [
            layer
            for panel in panels
            for layer in {"roc": _roc, "diagram": _diagram, "forecasts": _forecasts}[panel](
                curves, share
            )
        ]
        areas = {name: curve.area() for name, curve in curves.items()}
        return cls(layers, areas=areas, labels=sample.classes).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        names = list(dict.fromkeys(layer.panel for layer in self.layers))
        axes = axes_for(ax, len(names), columns=3, size=(4.3, 4.0))
        draw = {"roc": self._draw_roc, "diagram": self._draw_diagram, "forecasts": self._draw_map}
        for axes_, name in zip(axes, names, strict=True):
            draw[name](axes_, self.of_panel(name))
        self._set_axes(axes)
        return self

    def _draw_roc(self, ax: Axes, layers: list[Layer]) -> None:
        ax.plot([0, 1], [1, 0], color=NEUTRAL, lw=1, ls=":")
        for layer in layers:
            label = f"{layer.series}, AUC {self.areas[layer.series]:.4f}"
            _line(ax, layer, "p0", "p1", label)
        low, high = self.labels
        tidy(
            ax,
            xlim=(-0.02, 1.02),
            ylim=(-0.02, 1.02),
            xlabel=f"share of class {low} at or below the threshold",
            ylabel=f"share of class {high} above the threshold",
            title="symmetric ROC curve",
        )
        ax.legend(loc="lower left", frameon=False, fontsize="small")

    def _draw_diagram(self, ax: Axes, layers: list[Layer]) -> None:
        for layer in layers:
            label = "greatest convex minorant" if layer.series == "hull" else "cumulative sums"
            _line(ax, layer, "rows", "second", label)
        tidy(
            ax,
            xlabel="share of rows, by ascending forecast",
            ylabel=f"share of rows of class {self.labels[1]}",
            title="cumulative sum diagram",
            ylim=(0, None),
            xlim=(-0.02, 1.02),
        )
        ax.legend(loc="upper left", frameon=False, fontsize="small")

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
                    label=f"rows of class {self.labels[k]}",
                    zorder=3,
                )
        tidy(
            ax,
            xlabel="share of rows, by ascending forecast",
            ylabel=f"forecast probability of class {self.labels[1]}",
            title="forecasts and their isotonic regression",
            xlim=(-0.02, 1.02),
        )
        ax.legend(loc="lower right", frameon=False, fontsize="small")


def _line(ax: Axes, layer: Layer, x: str, y: str, label: str) -> None:
    data = layer.data
    if layer.series == "hull":
        ax.fill_between(data[x], data[y], alpha=0.12, color=NEUTRAL, lw=0)
        ax.plot(data[x], data[y], color=NEUTRAL, lw=2.6, alpha=0.7, label=label, zorder=1.5)
        return
    colour, marker, dashes = SERIES[layer.series]
    few = len(data[x]) <= 30
    ax.plot(
        data[x], data[y], color=colour, ls=dashes, lw=1.4, label=label, ms=4, marker=marker * few
    )


def _roc(curves: dict[str, RocCurve], _: float) -> list[Layer]:
    layers = []
    for name, (p0, p1, thresholds) in curves.items():
        kept = thin(p0, p1)
        data = Table(p0=p0[kept], p1=p1[kept], threshold=thresholds[kept])
        layers.append(Layer("roc", name, "curve", data))
    return layers


def _sums(curve: RocCurve, share: float) -> tuple[Floats, Floats]:
    """Cumulative sums of an ROC curve, by the inverse of the affine map in the paper's proof."""
    second = share * (1 - curve.p1)
    return (1 - share) * curve.p0 + second, second


def _diagram(curves: dict[str, RocCurve], share: float) -> list[Layer]:
    layers = []
    for name, curve in curves.items():
        if name != "after":
            rows, second = _sums(curve, share)
            kept = thin(rows, second)
            data = Table(rows=rows[kept], second=second[kept])
            layers.append(Layer("diagram", name, "curve", data))
    return layers


def _forecasts(curves: dict[str, RocCurve], share: float) -> list[Layer]:
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
