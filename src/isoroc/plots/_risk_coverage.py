"""RiskCoverageDisplay: how often the surest rows are wrong, and what a rule accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._evaluation.curves import histogram
from isoroc._evaluation.risk_coverage import RiskCoverage, risk_coverage_curve
from isoroc._input import InputError, Sample, check_confidence
from isoroc._maps.acceptance import AcceptanceRule
from isoroc._support.table import Table
from isoroc.metrics._calibration import event_of
from isoroc.plots._display import (
    NEUTRAL,
    BeforeAfterDisplay,
    Layer,
    add_legend,
    shortened,
    style_of,
    styles_in,
    tidy,
)

CURVES = "error of accepted rows"
ZONES_PANEL = "zones of the rule"


@dataclass(repr=False, eq=False)
class RiskCoverageDisplay(BeforeAfterDisplay):
    """Error of the surest rows against their share, before and after calibration.

    The band is the interval of the last forecasts. Options of `from_estimator` and
    `from_predictions` are `confidence`, and `rule`, an `AcceptanceRule` for the last forecasts: its
    share of accepted rows, their error and the limit are marked. If it has a threshold at both ends
    of two classes, a second panel shows the three zones.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.plots import RiskCoverageDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p
    >>> display = RiskCoverageDisplay.from_predictions(y, p)
    >>> round(display.curve.error_at(0.2), 2)
    0.05
    """

    curve: RiskCoverage
    rule: AcceptanceRule | None = None

    _needs_probabilities = True
    _grid = (2, (5.2, 4.0))

    @classmethod
    def _of(
        cls,
        series: dict[str, Sample],
        *,
        rule: AcceptanceRule | None = None,
        confidence: float = 0.95,
    ) -> Self:
        check_confidence(confidence)
        curve = risk_coverage_curve(series, confidence)
        layers = []
        for name in series:
            rows = curve.table["of"] == name
            columns = {key: column[rows] for key, column in curve.table.items() if key != "of"}
            layers.append(Layer(CURVES, name, "curve", Table(columns)))
        if rule is not None:
            layers += _layers_of(rule, list(series.values())[-1])
        return cls(layers, curve, rule)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        if layers[0].panel == ZONES_PANEL:
            return _draw_zones(ax, layers)
        curves = [layer for layer in layers if layer.kind == "curve"]
        styles = styles_in(ax, [layer.series for layer in curves])
        lines = []
        highest = 0.0
        for layer in curves:
            colour, _, dashes = styles[layer.series]
            x, y, low, high = (layer.data[key] for key in ("coverage", "error", "low", "high"))
            area = self.curve.area[layer.series].value
            label = f"{layer.series}, area {area:.4f}"
            lines += ax.plot(x, y, color=colour, ls=dashes, lw=1.6, label=label)
            highest = max(highest, float(y[x >= 0.05].max()))
            if layer is curves[-1]:
                text = f"{100 * self.curve.confidence:g} % interval"
                ax.fill_between(x, low, high, color=colour, alpha=0.18, lw=0, label=text)
        for layer in layers:
            if layer.kind == "limit":
                limit = float(layer.data["error"][0])
                ax.axhline(limit, color=NEUTRAL, ls="--", lw=1.2, label=f"limit {limit:g}")
                highest = max(highest, limit)
            elif layer.kind == "rule":
                coverage, error = (layer.data[key] for key in ("coverage", "error"))
                label = f"rule: {100 * coverage[0]:.0f} % accepted"
                ax.plot(coverage, error, "D", color=colour, label=label, zorder=3, clip_on=False)
        limits = (0.0, min(1.15 * highest, 1.02) or 1.0)
        tidy(ax, xlim=(0, 1.02), ylim=limits, xlabel="share of rows accepted", ylabel=CURVES)
        add_legend(ax)
        return lines


def _layers_of(rule: Any, sample: Sample) -> list[Layer]:
    """What a rule accepts of the rows, with the error of these."""
    if not isinstance(rule, AcceptanceRule):
        fix = "pass what isoroc.decisions.acceptance_rule returns"
        raise InputError("rule", None, f"is {type(rule).__name__}", fix)
    if rule.scored or rule.segments is not None:
        problem = "it uses scores or segments, which the display does not have"
        raise InputError("rule", None, problem, "leave it out")
    accepted = rule.accept(sample.forecasts)
    weights = sample.row_weights()
    wrong = rule.decisions(sample.forecasts) != sample.codes
    share = weights[accepted].sum() / weights.sum()
    error = np.average(wrong[accepted], weights=weights[accepted]) if accepted.any() else 0.0
    point = Table(coverage=np.array([share]), error=np.array([error]))
    layers = [Layer(CURVES, "rule", "rule", point)]
    limits = [Table(error=np.array([limit])) for limit in np.unique(rule.zones["max_error"])]
    layers += [Layer(CURVES, "rule", "limit", limit) for limit in limits]
    if rule.action == "both":
        low = max(1 - rule.thresholds[0, 0], 0.0)
        high = min(rule.thresholds[0, 1], 1.0)
        low = min(low, high)
        ends = Table(left=np.array([0.0, low, high]), right=np.array([low, high, 1.0]))
        p = sample.forecasts[:, 1]
        zone = np.where(accepted & (p > 0.5), 2, np.where(accepted, 0, 1))
        ends["share"] = np.bincount(zone, weights, 3) / weights.sum()
        names = [f"as {label}" for label in rule.classes.tolist()]
        layers.append(Layer(ZONES_PANEL, " | ".join(names), "zones", ends))
        layers.append(
            Layer(ZONES_PANEL, str(rule.classes[1]), "histogram", histogram(event_of(sample, 1)))
        )
    return layers


def _draw_zones(ax: Axes, layers: list[Layer]) -> list[Any]:
    """Histogram of the probability of the second class, with three shaded zones."""
    zones, bars = layers
    left, right, percents = bars.data.values()
    ax.bar(left, percents, right - left, align="edge", color=NEUTRAL, alpha=0.7)
    first, second = zones.series.split(" | ")
    titles = [
        f"accept {shortened(first)}",
        "a person",
        f"accept {shortened(second)}",
    ]
    colours = [style_of(0)[0], "none", style_of(1)[0]]
    for (start, end, share), title, colour in zip(
        zip(*zones.data.values(), strict=True), titles, colours, strict=True
    ):
        label = f"{title}: {100 * share:.0f} %"
        ax.axvspan(start, end, facecolor=colour, alpha=0.25, lw=0, label=label)
    event = shortened(bars.series)
    xlabel = f"probability of {event}"
    top = 1.35 * max(float(percents.max()), 1.0)
    tidy(ax, xlim=(0, 1), ylim=(0, top), xlabel=xlabel, ylabel="share of rows in %")
    add_legend(ax, loc="upper center")
    return []
