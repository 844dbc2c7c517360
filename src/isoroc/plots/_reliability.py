"""ReliabilityDisplay: observed rates against forecast probabilities."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from matplotlib.axes import Axes

from isoroc._input import InputError, Sample, check_number, check_option
from isoroc.metrics._calibration import split_by_kind
from isoroc.metrics._inputs import check_probabilities
from isoroc.plots._display import (
    BeforeAfterDisplay,
    Forecasts,
    Layer,
    are_probabilities,
    check_after,
)
from isoroc.plots._rates import consistency_band, histogram, isotonic_curve, observed_rates
from isoroc.plots._style import NEUTRAL, SERIES, axes_for, strip_below, tidy

#: Up to this number of classes there is one panel per class, above it one for the top class.
_MAX_PANELS = 12
_TOP = "the top class"


class ReliabilityDisplay(BeforeAfterDisplay):
    """Observed rates against forecasts, before and after calibration.

    Each panel shows, for one class or for the most probable one,

    - the isotonic curve: isotonic regression of the outcomes on the forecasts, which has no bins to
      choose;
    - a consistency band around the diagonal: at each forecast it contains the curve of calibrated
      forecasts with the given confidence, so a curve outside its band is evidence against
      calibration (Dimitriadis, Gneiting and Jordan 2021);
    - observed rates of groups of rows with Wilson's intervals;
    - below, the histogram of the forecasts.

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
    'observed rate of class True'
    >>> display.frame()["rate"][:3].round(2)
    array([0.02, 0.05, 0.08])
    """

    def __init__(self, layers: list[Layer]) -> None:
        self.layers = layers

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
        n_groups: int | None = None,
        confidence: float = 0.95,
        n_resamples: int = 400,
        sample_weight: Any = None,
        labels: Any = None,
        random_state: int = 0,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw observed rates against forecasts.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n, K) or (n,)
            Forecasts, or probabilities of the second of two classes.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        kind : {"auto", "classwise", "top"}, default="auto"
            "classwise" draws one panel per class, or one for the second of two classes; "top" one
            panel for the most probable class of each row. "auto" is "classwise" for up to 12
            classes and "top" for more.
        n_groups : int, default=None
            Number of groups of rows whose observed rates are drawn. By default the cube root of
            the number of rows, between 2 and 15.
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
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel.
        """
        check_option("kind", kind, ("auto", "classwise", "top"))
        if not 0 < confidence < 1:
            raise InputError(
                "confidence", None, f"got {confidence!r}", "expected a number between 0 and 1"
            )
        check_number("n_resamples", n_resamples, numbers.Integral, minimum=0)
        before = check_probabilities(y_true, y_prob, sample_weight, labels)
        series = {"forecasts": before}
        if after is not None:
            changed = check_after(check_probabilities, y_true, after, sample_weight, before)
            series = {"before": before, "after": changed}
        if kind == "auto":
            kind = "classwise" if before.n_classes <= _MAX_PANELS else "top"
        if n_groups is None:
            n_groups = int(np.clip(np.rint(np.cbrt(len(before.codes))), 2, 15))
        check_number("n_groups", n_groups, numbers.Integral, minimum=1)
        layers = []
        for name, sample in series.items():
            for panel, view in zip(_panels(sample, kind), split_by_kind(sample, kind), strict=True):
                tables = {
                    "rates": observed_rates(view, n_groups=n_groups, confidence=confidence),
                    "curve": isotonic_curve(view),
                    "histogram": histogram(view),
                }
                if n_resamples:
                    tables["band"] = consistency_band(
                        view, confidence=confidence, n_resamples=n_resamples, seed=random_state
                    )
                layers += [Layer(panel, name, layer, data) for layer, data in tables.items()]
        return cls(layers).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_predictions`."""
        names = list(dict.fromkeys(layer.panel for layer in self.layers))
        axes = axes_for(ax, len(names), columns=4, size=(3.6, 4.4))
        for axes_, name in zip(axes, names, strict=True):
            strip = strip_below(axes_)
            axes_.axline((0, 0), slope=1, color=NEUTRAL, lw=1, ls=":")
            for layer in self.of_panel(name):
                _draw(axes_, strip, layer)
            rate = "share that came true" if name == _TOP else f"observed rate of {name}"
            tidy(axes_, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel=rate)
            tidy(strip, xlabel=f"forecast probability of {name}", ylabel="rows (%)", ylim=(0, None))
            axes_.tick_params(labelbottom=False)
        if len({layer.series for layer in self.layers}) > 1:
            axes[0].legend(loc="upper left", frameon=False, fontsize="small")
        self._set_axes(axes)
        return self


def _panels(sample: Sample, kind: str) -> list[str]:
    """Names of the panels: the classes, or `_TOP`."""
    if kind == "top":
        return [_TOP]
    return [f"class {label}" for label in sample.classes[int(sample.n_classes == 2) :]]


def _draw(ax: Axes, strip: Axes, layer: Layer) -> None:
    colour, marker, dashes = SERIES[layer.series]
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
        ax.plot(data["forecast"], data["rate"], color=colour, ls=dashes, lw=1.6, label=layer.series)
    elif layer.kind == "band":
        ax.fill_between(data["forecast"], data["low"], data["high"], color=colour, alpha=0.18, lw=0)
    else:
        edges = np.append(data["left"], data["right"][-1])
        filled = layer.series != "after"
        strip.stairs(
            data["percent"], edges, color=colour, fill=filled, alpha=0.5 if filled else 1, lw=1.4
        )
