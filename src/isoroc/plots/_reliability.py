"""ReliabilityDisplay: observed rates against forecast probabilities."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import (
    InputError,
    Sample,
    check_after,
    check_confidence,
    check_number,
    check_option,
    check_probabilities,
    split_by_kind,
    to_array,
)
from isoroc._table import Table
from isoroc._views.forecasts import Forecasts, are_probabilities
from isoroc._views.rates import Strategy, default_n_bins, reliability
from isoroc.plots._display import BeforeAfterDisplay, Layer
from isoroc.plots._style import (
    NEUTRAL,
    add_legend,
    axes_for,
    plain,
    shortened,
    strip_below,
    styles_in,
    tidy,
    wrapped,
)

#: Up to this number of classes there is one panel per class, above it one for the top class.
_MAX_PANELS = 12
#: Panel of the most probable class of each row.
TOP = "the top class"


class ReliabilityDisplay(BeforeAfterDisplay):
    """Observed rates against forecasts, before and after calibration.

    Each panel shows, for one class or for the most probable one,

    - the isotonic curve: isotonic regression of the outcomes on the forecasts, which has no bins to
      choose;
    - a consistency band around the diagonal: at each forecast it contains the curve of calibrated
      forecasts with the given confidence, so a curve outside its band is evidence against
      calibration (Dimitriadis, Gneiting and Jordan 2021);
    - observed rates of groups of rows with Wilson's intervals;
    - miscalibration (MCB), discrimination (DSC) and uncertainty (UNC), the parts of the Brier score
      of this event: the score is MCB - DSC + UNC;
    - below, the histogram of the forecasts.

    Displays drawn in the same axes share a histogram and a legend; `name` tells them apart.

    Create it with `from_estimator` or `from_predictions`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc.plots import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> y = rng.random(500) < p**2
    >>> display = ReliabilityDisplay.from_predictions(y, p, ax=Figure().subplots())
    >>> display.axes_[0].get_ylabel()
    'observed rate'
    >>> display.frame()["rate"][:3].round(2)
    array([0.02, 0.05, 0.08])
    """

    def __init__(self, layers: list[Layer], *, name: str | None = None) -> None:
        self.layers = layers
        #: Name in the legend.
        self.name = name

    @classmethod
    def _forecasts_of(cls, estimator: Any, X: Any) -> Forecasts:
        found = super()._forecasts_of(estimator, X)
        if found.after is not None and not are_probabilities(found.before):
            # Scores on another scale have no reliability curve.
            return Forecasts(found.after, None, found.classes)
        return found

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        kind: Literal["auto", "classwise", "top"] = "auto",
        pos_label: Any = None,
        n_bins: int | None = None,
        strategy: Strategy = "quantile",
        confidence: float = 0.95,
        n_resamples: int = 400,
        sample_weight: Any = None,
        labels: Any = None,
        random_state: int = 0,
        name: str | None = None,
        ax: Axes | Sequence[Axes] | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw observed rates against forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n, K) or (n,)
            Forecasts, or probabilities of `pos_label`, by default the second of two classes.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        kind : {"auto", "classwise", "top"}, default="auto"
            "classwise" draws one panel per class, or one for the second of two classes; "top" one
            panel for the most probable class of each row. "auto" is "classwise" for up to 12
            classes and "top" for more.
        pos_label : label, default=None
            Draw the panel of this class only.
        n_bins : int, default=None
            Number of groups of rows whose observed rates are drawn. By default the cube root of
            the number of rows, between 2 and 15.
        strategy : {"quantile", "uniform"}, default="quantile"
            Groups of about equal weight, or of equal width.
        confidence : float, default=0.95
            Confidence level of the intervals, and of the band at each forecast.
        n_resamples : int, default=400
            Number of simulations for the band; with 0 there is no band.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        random_state : int, default=0
            Seed of these simulations.
        name : str, default=None
            Name in the legend, for several displays in the same axes.
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel.
        **line_options
            Options of the curves, such as ``color`` (also used for the other marks) and ``lw``.
        """
        check_option("kind", kind, ("auto", "classwise", "top"))
        check_option("strategy", strategy, ("quantile", "uniform"))
        check_confidence(confidence)
        check_number("n_resamples", n_resamples, numbers.Integral, minimum=0)
        if pos_label is not None and labels is None and np.ndim(y_prob) == 1:
            labels = _second(y_true, pos_label)
        before = check_probabilities(y_true, y_prob, sample_weight, labels, keep_zeros=True)
        series = {"forecasts": before.positive()}
        if after is not None:
            changed = check_after(after, before, probabilities=True)
            series = {"before": before.positive(), "after": changed.positive()}
        before = before.positive()
        if kind == "auto":
            few = before.n_classes <= _MAX_PANELS or pos_label is not None
            kind = "classwise" if few else "top"
        if n_bins is None:
            n_bins = default_n_bins(len(before.codes))
        check_number("n_bins", n_bins, numbers.Integral, minimum=1)
        layers = []
        for source, sample in series.items():
            for panel, view in _views(sample, kind, pos_label).items():
                tables = reliability(
                    view,
                    n_bins=n_bins,
                    strategy=strategy,
                    confidence=confidence,
                    n_resamples=n_resamples,
                    seed=random_state,
                )
                layers += [Layer(panel, source, layer, data) for layer, data in tables.items()]
        return cls(layers, name=name).plot(ax, **line_options)

    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        *,
        name: str | None = None,
        **line_options: Any,
    ) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        panels = list(dict.fromkeys(layer.panel for layer in self.layers))
        axes = axes_for(ax, len(panels), columns=4, size=(3.6, 4.4))
        for axes_, panel in zip(axes, panels, strict=True):
            self._draw_panel(axes_, panel, name or self.name, line_options)
            if len(panels) > 1:
                axes_.set_title(wrapped(panel, 30), fontsize="medium")
        if len(axes[0].get_legend_handles_labels()[0]) > 1 or self.name:
            add_legend(axes[0], "upper left", borderaxespad=0.2)
        self._set_axes(axes)
        return self

    def _draw_panel(
        self, ax: Axes, panel: str, name: str | None, line_options: dict[str, Any]
    ) -> None:
        strip = strip_below(ax)
        earlier = ax.get_legend_handles_labels()[0]
        if earlier:
            for patch in strip.patches:  # several outlines are legible, several areas are not
                if patch.get_fill():
                    patch.set(edgecolor=patch.get_facecolor(), fill=False, alpha=1, lw=1.4)
        else:
            ax.axline((0, 0), slope=1, color=NEUTRAL, lw=1, ls=":")
        layers = self.of_panel(panel)
        series = list(dict.fromkeys(layer.series for layer in layers))
        styles = dict(zip(series, styles_in(ax, series), strict=True))
        for layer in layers:
            label = layer.series if name is None else f"{name}, {layer.series}"
            if len(series) == 1:
                label = name or layer.series
            filled = not earlier and layer.series != "after"
            _draw(
                ax,
                strip,
                layer,
                style=styles[layer.series],
                label=plain(label),
                filled=filled,
                line_options=line_options,
            )
        top = panel == TOP
        tidy(ax, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.set_ylabel("share that came true" if top else "observed rate")
        tidy(strip, xlabel=f"forecast probability of {TOP if top else shortened(panel)}")
        tallest = max(layer.data["percent"].max() for layer in layers if layer.kind == "histogram")
        top_of_strip = max(1.08 * tallest, strip.get_ylim()[1] if earlier else 0.0)
        strip.set(ylabel="rows (%)", ylim=(0, top_of_strip))
        ax.tick_params(labelbottom=False)


def _second(y_true: Any, pos_label: Any) -> list[Any]:
    """The two labels, that whose probabilities are given last."""
    found = np.unique(to_array(y_true, name="y_true")).tolist()
    others = [label for label in found if label != pos_label]
    if len(others) != 1:
        problem = f"is {pos_label!r}, and the labels are {shortened(str(found), 60)}"
        fix = "pass one of two labels, or forecasts with one column per class"
        raise InputError("pos_label", None, problem, fix)
    return [others[0], pos_label]


def _views(sample: Sample, kind: Any, pos_label: Any) -> dict[str, Sample]:
    """Samples of one event each, by the name of the panel: the classes, or `TOP`."""
    if kind == "top":
        return {TOP: split_by_kind(sample, kind)[0]}
    classes = sample.classes.tolist()
    names = [str(label) for label in classes]
    if pos_label is None:
        shown = names[int(sample.n_classes == 2) :]
        return dict(zip(shown, split_by_kind(sample, kind), strict=True))
    if pos_label not in classes:
        problem = f"got {pos_label!r}"
        raise InputError(
            "pos_label", None, problem, f"expected one of {shortened(str(classes), 60)}"
        )
    k = classes.index(pos_label)
    column = np.ascontiguousarray(sample.forecasts[:, k])
    return {names[k]: Sample(column, (sample.codes == k).view(np.uint8), sample.weights)}


def _draw(
    ax: Axes,
    strip: Axes,
    layer: Layer,
    *,
    style: tuple[str, str, Any],
    label: str,
    filled: bool,
    line_options: dict[str, Any],
) -> None:
    colour, marker, dashes = style
    colour = line_options.get("color", line_options.get("c", colour))
    data = layer.data
    if layer.kind == "rates":
        error = np.abs([data["low"] - data["rate"], data["high"] - data["rate"]])
        ax.errorbar(
            data["forecast"],
            data["rate"],
            yerr=error,
            fmt=marker,
            color=colour,
            ms=4.5,
            mec=ax.get_facecolor(),
            mew=0.6,
            elinewidth=1,
            zorder=4,
        )
    elif layer.kind == "curve":
        options = {"color": colour, "ls": dashes, "lw": 1.6} | line_options
        ax.plot(data["forecast"], data["rate"], **{"label": label} | options)
    elif layer.kind == "band":
        ax.fill_between(data["forecast"], data["low"], data["high"], color=colour, alpha=0.18, lw=0)
    elif layer.kind == "scores":
        _write_scores(ax, data, colour)
    else:
        edges = np.append(data["left"], data["right"][-1])
        strip.stairs(
            data["percent"], edges, color=colour, fill=filled, alpha=0.5 if filled else 1, lw=1.4
        )


def _write_scores(ax: Axes, data: Table, colour: str) -> None:
    """Add a line for a series above those at the lower right; uncertainty is the same for all."""
    parts = [float(column[0]) for column in data.values()]
    lines = {
        f"UNC {parts[2]:.3f}": NEUTRAL,
        f"MCB {parts[0]:.3f}  DSC {parts[1]:.3f}": colour,
    }
    written = {text.get_text() for text in ax.texts}
    for line, line_colour in lines.items():
        if line in written and line_colour == NEUTRAL:
            continue
        ax.annotate(
            line,
            (1, 0),
            (-3, 3 + 10 * len(ax.texts)),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            fontsize="x-small",
            color=line_colour,
            zorder=5,
            bbox={"facecolor": ax.get_facecolor(), "alpha": 0.7, "lw": 0, "pad": 0.5},
        )
