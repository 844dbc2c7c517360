"""DecisionCurveDisplay: what acting on forecasts is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from matplotlib.axes import Axes

from isoroc._evaluation.before_after import Pair
from isoroc._evaluation.decision_curve import DecisionCurve, decision_curve, thresholds_of
from isoroc._input import Sample, check_confidence
from isoroc._support.table import Table
from isoroc.plots._display import NEUTRAL, BeforeAfterDisplay, Layer, add_legend, styles_in, tidy


@dataclass(repr=False, eq=False)
class DecisionCurveDisplay(BeforeAfterDisplay):
    """Net benefit of acting on forecasts, of acting on all rows, and on none.

    The band is the interval of the last forecasts. Where a curve is below one of the dotted lines,
    forecasts do harm. Options of `from_estimator` and `from_predictions` are `thresholds` and
    `confidence` of `isoroc.decisions.net_benefit` and `scaled` of `DecisionCurve.benefit`. By
    default the thresholds lie in the range of the observed rates of groups of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.plots import DecisionCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> display = DecisionCurveDisplay.from_predictions(y, p, after=p**2, thresholds=[0.2, 0.5])
    >>> dict(zip(display.curve.strategies, display.curve.values.round(3).tolist(), strict=True))
    {'before': [0.251, 0.107], 'after': [0.264, 0.152], 'none': [0.0, 0.0], 'all': [0.209, -0.266],
    'oracle': [0.367, 0.367]}
    """

    curve: DecisionCurve
    scaled: bool = False
    """Whether net benefits are standardised."""

    _needs_probabilities = True

    @classmethod
    def _of(
        cls,
        series: dict[str, Sample],
        *,
        thresholds: Any = None,
        scaled: bool = False,
        confidence: float = 0.95,
    ) -> Self:
        check_confidence(confidence)
        samples: list[Any] = list(series.values())
        pair = Pair(*samples)
        layers = []
        if thresholds is None and pair.n_classes == 2:
            thresholds = thresholds_of(series.values())
        curve = decision_curve(pair, thresholds, confidence)
        for name in curve.strategies[:-1]:
            x, value, low, high = curve.benefit(name, scaled=scaled).values()
            table = Table(threshold=x, net_benefit=value, low=low, high=high)
            kind = "curve" if name in series else "constant"
            layers.append(Layer("net benefit", name, kind, table))
        return cls(layers, curve, scaled)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        drawn = [layer for layer in layers if layer.kind == "curve"]
        styles = styles_in(ax, [layer.series for layer in drawn])
        constants = {"none": (":", "act on no row"), "all": ("-.", "act on all rows")}
        lines = []
        for layer in layers:
            x, y, low, high = layer.data.values()
            if layer.kind == "constant":
                dashes, name = constants[layer.series]
                ax.plot(x, y, color=NEUTRAL, ls=dashes, lw=1.2, label=name)
                continue
            colour, _, style = styles[layer.series]
            lines += ax.plot(x, y, color=colour, ls=style, lw=1.6, label=layer.series)
            if layer is drawn[-1]:
                text = f"{100 * self.curve.confidence:g} % interval"
                ax.fill_between(x, low, high, color=colour, alpha=0.18, lw=0, label=text)
        ylabel = "standardised net benefit" if self.scaled else "net benefit"
        limits = self.curve.limits(scaled=self.scaled)
        tidy(ax, ylim=limits, xlabel="threshold probability", ylabel=ylabel)
        ax.margins(x=0)
        add_legend(ax)
        return lines
