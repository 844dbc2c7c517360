"""DecisionCurveDisplay: the net benefit of acting on forecasts against the threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from matplotlib.axes import Axes

from isoroc._table import Table
from isoroc.decisions import DecisionCurve, net_benefit
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import NEUTRAL, axes_for, styles_in, tidy


class DecisionCurveDisplay(BeforeAfterDisplay):
    """Net benefit of acting on forecasts, of acting on all rows, and on none.

    Bands are the intervals of the forecasts. Where a curve is below one of the dotted lines,
    forecasts do harm. See `isoroc.decisions.net_benefit`. Create it with `from_estimator` or
    `from_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc.plots import DecisionCurveDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> ax = Figure().subplots()
    >>> display = DecisionCurveDisplay.from_predictions(y, p, [0.2, 0.5], after=p**2, ax=ax)
    >>> dict(zip(display.curve.strategies, display.curve.values.round(3).tolist(), strict=True))
    {'before': [0.251, 0.107], 'after': [0.264, 0.152], 'none': [0.0, 0.0], 'all': [0.209, -0.266],
    'oracle': [0.367, 0.367]}
    """

    _needs_probabilities = True

    def __init__(self, curve: DecisionCurve, *, scaled: bool = False, xlabel: str = "") -> None:
        #: The decision curve.
        self.curve = curve
        #: Whether the net benefit is standardised.
        self.scaled = scaled
        self.xlabel = xlabel
        self.layers = []
        for name in curve.strategies[:-1]:
            kind = "curve" if name in ("forecasts", "before", "after") else "constant"
            found = curve.benefit(name, scaled=scaled)
            table = Table(found | {"net_benefit": found["value"]})
            names = ("threshold", "net_benefit", "low", "high")
            self.layers.append(Layer("net benefit", name, kind, table.select(*names)))

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        thresholds: Any = None,
        *,
        after: Any = None,
        costs: Callable[[float], Any] | None = None,
        scaled: bool = False,
        sample_weight: Any = None,
        labels: Any = None,
        confidence: float = 0.95,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the decision curves of forecasts.

        Parameters
        ----------
        y_true, y_prob, thresholds, after, costs, sample_weight, labels, confidence
            As in `isoroc.decisions.net_benefit`.
        scaled : bool, default=False
            Standardise: divide by the net benefit of the best action for each label, which for two
            classes is the share of the second one.
        ax : Axes, default=None
            Where to draw.
        """
        options: dict[str, Any] = {"sample_weight": sample_weight, "labels": labels}
        options |= {"after": after, "costs": costs, "confidence": confidence}
        curve = net_benefit(y_true, y_prob, thresholds, **options)
        xlabel = "threshold probability" if costs is None else "cost that varies"
        return cls(curve, scaled=scaled, xlabel=xlabel).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        (axes,) = all_axes = axes_for(ax, 1, columns=1, size=(5.2, 4.0))
        drawn = [layer for layer in self.layers if layer.kind == "curve"]
        styles = styles_in(axes, [layer.series for layer in drawn])
        dashes = iter((":", "-.", (0, (1, 3)), (0, (5, 3))) * len(self.layers))
        for layer in self.layers:
            x, y = layer.data["threshold"], layer.data["net_benefit"]
            if layer.kind == "constant":
                axes.plot(x, y, color=NEUTRAL, ls=next(dashes), lw=1.2, label=layer.series)
                continue
            colour, _, style = styles[layer.series]
            axes.plot(x, y, color=colour, ls=style, lw=1.6, label=layer.series)
            low, high = layer.data["low"], layer.data["high"]
            axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
        tidy(axes, ylabel="standardised net benefit" if self.scaled else "net benefit")
        top = max(layer.data["high"].max() for layer in drawn)
        lowest = min(0.0, *(layer.data["net_benefit"].min() for layer in drawn))
        axes.set_ylim(max(lowest, -top) - 0.05 * top, 1.05 * top)  # "all" falls without a bound
        axes.set_xlabel(self.xlabel)
        axes.legend(frameon=False, fontsize="small")
        return self._drawn_in(all_axes)
