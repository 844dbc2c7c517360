"""CostCurveDisplay: the cost of decisions between two classes against the ratio of costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from matplotlib.axes import Axes

from isoroc._table import Table
from isoroc._views.forecasts import series_of
from isoroc.decisions import cost_curve
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import NEUTRAL, axes_for, shortened, styles_in, tidy


class CostCurveDisplay(BeforeAfterDisplay):
    """Mean cost of the decisions of forecasts for every ratio of the two costs.

    Drawn are the cost of the decisions of the forecasts, or of those before and after calibration,
    the least cost that thresholds on the same scores have, chosen on these rows, and the cost of
    the better constant decision. Where a curve is above the latter, forecasts do harm. See
    `isoroc.decisions.cost_curve`. Create it with `from_estimator` or `from_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc.plots import CostCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> ax = Figure().subplots()
    >>> display = CostCurveDisplay.from_predictions(y, p, after=p**2, ax=ax)
    >>> {series: round(area, 3) for series, area in display.areas.items()}
    {'before': 0.17, 'after': 0.142}
    """

    _needs_probabilities = True

    def __init__(self, layers: list[Layer], *, areas: dict[str, float], labels: Any) -> None:
        self.layers = layers
        #: Area under each curve, which is the mean of ``(y - p)**2``, by series.
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
        n_ratios: int = 1001,
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the cost curves of forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels of two classes.
        y_prob : array-like of shape (n, 2) or (n,)
            Forecasts, or the probability of the second class.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        n_ratios : int, default=1001
            Number of ratios, between 0 and 1.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (2,), default=None
            The classes in the order of the columns; sorted by default.
        ax : Axes, default=None
            Where to draw.
        """
        series = series_of(y_true, y_prob, after, sample_weight, labels, probabilities=True)
        curves = {
            name: cost_curve(
                sample.codes,
                sample.forecasts,
                n_ratios=n_ratios,
                sample_weight=sample.weights,
                labels=range(sample.n_classes),
            )
            for name, sample in series.items()
        }
        first = next(iter(curves.values()))
        drawn = {name: ("curve", curve.cost) for name, curve in curves.items()}
        drawn |= {"best thresholds": ("bound", first.best)}
        drawn |= {"constant decision": ("bound", first.constant)}
        layers = [
            Layer("cost", name, kind, Table(ratio=first.ratio, cost=cost))
            for name, (kind, cost) in drawn.items()
        ]
        areas = {name: curve.area() for name, curve in curves.items()}
        labels = next(iter(series.values())).classes
        return cls(layers, areas=areas, labels=labels).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        axes = axes_for(ax, 1, columns=1, size=(5.2, 4.0))
        styles: dict[str, Any] = styles_in(axes[0], list(self.areas))
        styles |= {"best thresholds": (NEUTRAL, "", "-."), "constant decision": (NEUTRAL, "", ":")}
        for layer in self.layers:
            colour, _, dashes = styles[layer.series]
            width, label = 1.2, layer.series
            if layer.kind == "curve":
                width, label = 1.6, f"{label}, area {self.areas[label]:.4f}"
            data = layer.data
            axes[0].plot(
                data["ratio"], data["cost"], color=colour, ls=dashes, lw=width, label=label
            )
        second = shortened(str(self.labels[1]))
        tidy(axes[0], xlim=(-0.02, 1.02), ylabel="mean cost")
        highest = max(x.data["cost"].max() for x in self.layers if x.kind == "curve")
        axes[0].set_ylim(0, min(axes[0].get_ylim()[1], 2 * highest))  # a constant may cost far more
        axes[0].set_xlabel(f"cost of deciding wrongly for {second}, as a share of both costs")
        axes[0].legend(frameon=False, fontsize="small")
        return self._drawn_in(axes)
