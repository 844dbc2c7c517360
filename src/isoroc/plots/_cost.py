"""CostCurveDisplay: the cost of decisions between two classes against the ratio of costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from isoroc._input import Sample
from isoroc._table import Table
from isoroc.decisions import cost_curve
from isoroc.plots._display import (
    NEUTRAL,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    shortened,
    styles_in,
    tidy,
)


@dataclass(repr=False, eq=False)
class CostCurveDisplay(BeforeAfterDisplay):
    """Mean cost of the decisions of forecasts for every ratio of the two costs.

    Drawn are the cost of the decisions of the forecasts, or of those before and after calibration,
    the least cost that thresholds on the same scores have, chosen on these rows, and the cost of
    the better constant decision. Where a curve is above the latter, forecasts do harm. See
    `isoroc.decisions.cost_curve`. The option `n_ratios` of `from_estimator` and `from_predictions`
    is the number of ratios, 1001 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.plots import CostCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> CostCurveDisplay.from_predictions(y, p, after=p**2).labels
    array([False,  True])
    """

    areas: dict[str, float]
    """Area under each curve, which is the Brier score, by series."""
    labels: Any
    """The two classes."""

    _needs_probabilities = True

    @classmethod
    def _of(cls, series: dict[str, Sample], *, n_ratios: int = 1001) -> Self:
        curves = {
            name: sample.measure(cost_curve, n_ratios=n_ratios) for name, sample in series.items()
        }
        first = next(iter(curves.values()))
        drawn = {(name, "curve"): curve.cost for name, curve in curves.items()}
        drawn["best thresholds", "bound"] = first.best
        drawn["constant decision", "bound"] = first.constant
        layers = [Layer("cost", *of, Table(ratio=first.ratio, cost=c)) for of, c in drawn.items()]
        areas = {name: curve.area() for name, curve in curves.items()}
        return cls(layers, areas, next(iter(series.values())).classes)

    def _draw(self) -> list[Any]:
        ax, lines = self.ax_, []
        styles: dict[str, Any] = styles_in(ax, list(self.areas))
        styles |= {"best thresholds": (NEUTRAL, "", "-."), "constant decision": (NEUTRAL, "", ":")}
        for layer in self.layers:
            colour, _, dashes = styles[layer.series]
            style: dict[str, Any] = {"color": colour, "ls": dashes, "lw": 1.2}
            if layer.kind == "curve":
                score = f"Brier score {self.areas[layer.series]:.4f}"
                style |= {"lw": 1.6, "label": f"{layer.series}, {score}"}
            (line,) = ax.plot(*layer.data.values(), **{"label": layer.series} | style)
            lines += [line] if layer.kind == "curve" else []
        tidy(ax, xlim=(-0.02, 1.02), ylabel="mean cost")
        highest = max(x.data["cost"].max() for x in self.layers if x.kind == "curve")
        ax.set_ylim(0, min(ax.get_ylim()[1], 2 * highest))  # a constant may cost far more
        second = shortened(str(self.labels[1]))
        ax.set_xlabel(f"cost of deciding wrongly for {second},\nas a share of both costs")
        add_legend(ax)
        return lines
