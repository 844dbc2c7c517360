"""PathDisplay: loss and separation against the number of bins, while a tree grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from isoroc._calibrators.irp import IRPCalibrator
from isoroc._evaluation.forecasts import unwrap
from isoroc._evaluation.path import measured_path, measures_of
from isoroc._input import InputError, Sample, check_sample, share_seen
from isoroc._support.table import Table
from isoroc.plots._display import (
    NEUTRAL,
    Display,
    Layer,
    Size,
    Where,
    add_legend,
    style_of,
    tidy,
)


@dataclass(repr=False, eq=False)
class PathDisplay(Display):
    """Log loss and AUC, or VUS, against the number of bins (Figures 2, 4 and 5 of the paper).

    One panel per measure, one curve per set of rows, and a dotted line for the uncalibrated model.
    A marker shows where growth ended. The VUS is the volume under the hull of the ROC surface, of
    three to six classes, from as many rows as `isoroc.evaluate` takes. Of more than 40 stages, 40
    are measured, and of more than 20,000 rows, 20,000. Create it with `from_estimator`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IRPCalibrator
    >>> from isoroc.plots import PathDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> y = rng.random(400) < p**2
    >>> irp = IRPCalibrator.paper().fit(p[:200], y[:200])
    >>> display = PathDisplay.from_estimator(irp, p[:200], y[:200], test=(p[200:], y[200:]))
    >>> display.panels
    ['log loss', 'AUC']
    """

    _grid = (2, (4.6, 3.6))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        test: tuple[Any, ...] | None = None,
        sample_weight: Any = None,
        ax: Where = None,
        figsize: Size = None,
    ) -> Self:
        """Draw the path of a calibrator.

        Parameters
        ----------
        estimator : IRPCalibrator or CalibratedClassifier
            Fitted. A `CalibratedClassifier` must have a single `IRPCalibrator`.
        X, y : array-like
            Forecasts for a calibrator or features for a classifier, and labels. The rows are called
            "calibration" if the calibrator was fitted to them, otherwise "test".
        test : tuple, default=None
            Forecasts or features, labels and, optionally, weights of other rows.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row of `X`.
        ax, figsize
            As in `plot`.
        """
        calibrator, sample = _rows(estimator, X, y, sample_weight, ("X", "y"))
        fitted = share_seen(calibrator.summary_, sample) == 1
        series = {"calibration" if fitted else "test": sample}
        if test is not None:
            if len(test) not in (2, 3):
                fix = "expected forecasts, labels and, optionally, weights"
                raise InputError("test", None, f"has {len(test)} entries", fix)
            X, y, sample_weight = (*test, None)[:3]
            _, others = _rows(estimator, X, y, sample_weight, ("test[0]", "test[1]"))
            name = "other" if "test" in series else "test"
            series[name] = others
        layers: list[Layer] = []
        for name, rows in series.items():
            path = measured_path(calibrator.map_, rows)
            before = measures_of(rows.draw(20_000).on_simplex())
            for measure in [column for column in path if column != "n_bins"]:
                curve = Table(n_bins=path["n_bins"], value=path[measure])
                layers.append(Layer(measure, name, "path", curve))
                if measure in before:
                    line = Table(value=np.array([before[measure]]))
                    layers.append(Layer(measure, name, "uncalibrated", line))
        measures = dict.fromkeys(layer.panel for layer in layers)
        ordered = [layer for measure in measures for layer in layers if layer.panel == measure]
        return cls(ordered).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        measure = layers[0].panel
        names = list(dict.fromkeys(layer.series for layer in self.layers))
        low, high = _limits(layers)
        lines: list[Any] = []
        for _, series, kind, data in layers:
            colour, marker, dashes = style_of(names.index(series))
            if kind == "path":
                lines += ax.plot(
                    data["n_bins"],
                    data["value"],
                    color=colour,
                    ls=dashes,
                    lw=1.8,
                    marker=marker,
                    markevery=[-1],
                    mec=ax.get_facecolor(),
                    ms=8,
                    label=f"{series} rows",
                )
                continue
            (value,) = data["value"]
            label = f"uncalibrated, {series}"
            ax.axhline(value, color=colour, lw=1.2, ls=":", label=label)
            if not low <= value <= high:
                text = f"{label}: {value:.3g}, off the scale"
                ax.text(
                    0.98,
                    0.98 - 0.07 * names.index(series),
                    text,
                    transform=ax.transAxes,
                    ha="right",
                    va="top",
                    fontsize="small",
                    color=colour,
                )
        _scale(ax, [layer.data["n_bins"] for layer in layers if layer.kind == "path"])
        titles = {
            "log loss": "log loss (nats), lower is better",
            "AUC": "AUC, higher is better",
            "VUS": "volume under the ROC surface",
        }
        tidy(ax, xlabel="number of bins", ylabel=titles[measure], ylim=(low, high))
        if measure == self.panels[-1]:  # one legend, where curves leave most space
            ax.plot([], [], color=NEUTRAL, marker="o", ls="none", ms=7, label="end of growth")
            add_legend(ax)
        return lines


def _rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, names: tuple[str, str]
) -> tuple[IRPCalibrator, Sample]:
    """The calibrator with bins, and the sample of its input."""
    calibrator, P = unwrap(estimator, X)
    if not isinstance(calibrator, IRPCalibrator):
        problem = f"{type(calibrator).__name__} has no single path of bins"
        raise InputError("estimator", None, problem, "pass an IRPCalibrator")
    sample = check_sample(
        P,
        y,
        sample_weight,
        calibrator.classes_,
        unit=calibrator.unit_,
        name=names[0],
        label_name=names[1],
    )
    return calibrator, sample.positive()


def _limits(layers: list[Layer]) -> tuple[float, float]:
    """Limits of the vertical axis.

    The first stage of a path, a single bin, is left out, and so is an uncalibrated value farther
    from the paths than three times their range.
    """
    paths = [x.data["value"][int(x.data.n_rows > 3) :] for x in layers if x.kind == "path"]
    value = np.concatenate(paths)
    low = value.min()
    high = value.max()
    reach = 3 * ((high - low) or 1.0)
    before = [float(layer.data["value"][0]) for layer in layers if layer.kind == "uncalibrated"]
    near = [v for v in before if low - reach <= v <= high + reach]
    low = min([low, *near])
    high = max([high, *near])
    margin = 0.08 * ((high - low) or 1.0)
    return float(low - margin), float(high + margin)


def _scale(ax: Axes, n_bins: list[Any]) -> None:
    """Scale and ticks of the number of bins: logarithmic if there are many."""
    most = max(column.max() for column in n_bins)
    ax.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    if most >= 60:
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < 200 else (1,)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,g}"))
        ax.xaxis.set_minor_locator(NullLocator())
