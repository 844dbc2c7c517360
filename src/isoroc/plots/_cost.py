"""CostCurveDisplay: the cost of decisions between two classes against the ratio of costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import check_after, check_probabilities
from isoroc._table import Table
from isoroc.decisions import cost_curve
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import NEUTRAL, axes_for, shortened, styles_in, tidy

_PANEL = "cost"


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
        sample = check_probabilities(y_true, y_prob, sample_weight, labels, keep_zeros=True)
        series = {"forecasts": sample}
        if after is not None:
            changed = check_after(after, sample, probabilities=True)
            series = {"before": sample, "after": changed}
        curves = {
            name: cost_curve(
                part.codes,
                part.forecasts,
                n_ratios=n_ratios,
                sample_weight=part.weights,
                labels=np.arange(part.n_classes),
            )
            for name, part in series.items()
        }
        first = next(iter(curves.values()))
        layers = [
            Layer(_PANEL, name, "curve", Table(ratio=curve.ratio, cost=curve.cost))
            for name, curve in curves.items()
        ]
        for name, cost in (("best thresholds", first.best), ("constant decision", first.constant)):
            layers.append(Layer(_PANEL, name, "bound", Table(ratio=first.ratio, cost=cost)))
        areas = {name: curve.area() for name, curve in curves.items()}
        return cls(layers, areas=areas, labels=sample.classes).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        axes = axes_for(ax, 1, columns=1, size=(5.2, 4.0))
        (ax_,) = axes
        styles = styles_in(ax_, list(self.areas))
        for (name, area), (colour, _, dashes) in zip(self.areas.items(), styles, strict=True):
            (layer,) = (layer for layer in self.layers if layer.series == name)
            ratio, cost = layer.data["ratio"], layer.data["cost"]
            label = f"{name}, area {area:.4f}"
            ax_.plot(ratio, cost, color=colour, ls=dashes, lw=1.6, label=label)
        for layer, dashes in zip(self.layers[len(styles) :], ("-.", ":"), strict=True):
            ratio, cost = layer.data["ratio"], layer.data["cost"]
            ax_.plot(ratio, cost, color=NEUTRAL, ls=dashes, lw=1.2, label=layer.series)
        second = shortened(str(self.labels[1]))
        tidy(ax_, xlim=(-0.02, 1.02), ylabel="mean cost")
        ax_.set_ylim(bottom=0)
        ax_.set_xlabel(f"cost of deciding wrongly for {second}, as a share of both costs")
        ax_.legend(frameon=False, fontsize="small")
        self._set_axes(axes)
        return self
