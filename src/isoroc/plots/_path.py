"""PathDisplay: measures against the number of bins, on one or two sets of rows."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from isoroc._calibrators.binned import BinCalibrator
from isoroc._evaluation.forecasts import (
    few_rows,
    forecasts_of,
    is_calibration_set,
    measured,
    staged,
    unwrap,
)
from isoroc._input import InputError, check_sample
from isoroc._support.table import Table
from isoroc.plots._display import NEUTRAL, Display, Layer, Size, Where, add_legend, style_of, tidy


class PathDisplay(Display):
    """Log loss and AUC, or VUS, against the number of bins (Figures 2, 4 and 5 of the paper).

    One panel per measure and data set, one curve per calibrator, and a line for the uncalibrated
    forecasts. The volume under the hull of the ROC surface is drawn for three classes. Create it
    with `from_estimator`, or pass the values.

    Parameters
    ----------
    curves : mapping of columns
        Columns `data`, `measure` and `method`, which identify a curve, `n_bins` and `value`.
    uncalibrated : mapping of columns, default=None
        Columns `data`, `measure` and `value`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IRPCalibrator
    >>> from isoroc.plots import PathDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> y = rng.random(400) < p**2
    >>> calibrator = IRPCalibrator().fit(p[:200], y[:200])
    >>> test = p[200:], y[200:]
    >>> PathDisplay.from_estimator(calibrator, p[:200], y[:200], test=test).panels
    ['calibration log loss', 'test log loss', 'calibration AUC', 'test AUC']
    """

    def __init__(
        self, curves: Mapping[str, Any], uncalibrated: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__([])
        keys = [*zip(*(map(str, curves[c]) for c in ("measure", "data", "method")), strict=True)]
        names = [list(dict.fromkeys(column)) for column in zip(*keys, strict=True)]
        columns = {c: np.asarray(curves[c], dtype=np.float64) for c in ("n_bins", "value")}
        self._grid = (len(names[1]), (4.4, 3.2))  # the data sets of one measure are side by side
        self._keys = {f"{data} {measure}": (measure, data) for measure, data, _ in keys}
        for measure, data, method in product(*names):
            rows = [key == (measure, data, method) for key in keys]
            if any(rows):
                path = Table({c: column[rows] for c, column in columns.items()})
                self.layers.append(Layer(f"{data} {measure}", method, "path", path))
        lines = [(uncalibrated or {}).get(c, ()) for c in ("data", "measure", "value")]
        for data, measure, value in zip(*lines, strict=True):
            line = Table(value=np.array([value], dtype=np.float64))
            self.layers.append(Layer(f"{data} {measure}", "before calibration", "line", line))

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
        """Draw the paths of calibrators.

        Parameters
        ----------
        estimator : calibrator, CalibratedClassifier or mapping of names to these
            Fitted. The calibrators have bins (`staged_predict_proba` and `path_`); a
            `CalibratedClassifier` has one calibrator.
        X, y, sample_weight : array-like
            Forecasts for a calibrator or features for a classifier, labels, and weights. The rows
            are called "calibration" if the calibrators were fitted to them.
        test : tuple, default=None
            Input, labels and, optionally, weights of other rows.
        ax, figsize
            As in `plot`.
        """
        if not isinstance(estimator, Mapping):
            estimator = {type(estimator).__name__.removesuffix("Calibrator"): estimator}
        rows = _check_rows(estimator, (X, y, sample_weight), "X", "y")
        fitted = all(is_calibration_set(*row) for row in rows.values())
        sets = {"calibration" if fitted else "given rows": rows}
        if test is not None:
            sets["test"] = _check_rows(estimator, (*test, None)[:3], "test[0]", "test[1]")
        curves, lines = [], []
        for data, rows in sets.items():
            few = {method: few_rows(*row) for method, row in rows.items()}
            sample = next(iter(few.values()))[2]
            lines += [(data, *row) for row in measured(sample.draw(100_000))]
            for method, row in few.items():
                for n, stage in staged(*row):
                    curves += [(data, *value, method, n) for value in measured(stage)]
        names = ("data", "measure", "value")
        tables = Table.from_rows(curves, *names, "method", "n_bins"), Table.from_rows(lines, *names)
        return cls(*tables).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        measure, data = self._keys[layers[0].panel]
        limits, lines = self._limits(measure), []
        methods = list(dict.fromkeys(layer.series for layer in self.layers))
        for _, series, kind, path in layers:
            if kind == "line":
                (value,) = path["value"]
                is_shown = limits[0] <= value <= limits[1]
                label = series if is_shown else f"{series}: {value:.3g},\noff the scale"
                level = value if is_shown else np.nan
                ax.axhline(level, color=NEUTRAL, lw=1.2, ls=":", label=label)
                continue
            colour, marker, dashes = style_of(methods.index(series))
            style: dict[str, Any] = {"marker": marker, "ms": 7, "mec": ax.get_facecolor()}
            style |= {"color": colour, "ls": dashes, "lw": 1.6, "markevery": [-1]}
            lines += ax.plot(path["n_bins"], path["value"], label=series, **style)
        most = max(layer.data["n_bins"].max() for layer in self.layers if layer.kind == "path")
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        if most >= 20:
            ax.set_xscale("log")
            ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < 200 else (1,)))
            ax.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:,g}"))
            ax.xaxis.set_minor_locator(NullLocator())
        titles = {
            "log loss": "log loss (nats),\nlower is better",
            "AUC": "AUC,\nhigher is better",
            "VUS": "volume under\nROC surface (hull),\nhigher is better",
        }
        tidy(ax, xlabel="number of bins", ylabel=titles.get(measure, measure), ylim=limits)
        rows = {"test": "test rows", "calibration": "calibration rows"}
        ax.set_title(rows.get(data, data), fontsize="medium")
        add_legend(ax)
        return lines

    def _limits(self, measure: str) -> tuple[float, float]:
        """Limits of the vertical axis, shared by all data sets of a measure.

        The first stage of a path, a single bin, is left out, and so is an uncalibrated value that
        is farther from the paths than three times their range.
        """
        layers = [layer for layer in self.layers if self._keys[layer.panel][0] == measure]
        paths = [x.data["value"][int(x.data.n_rows > 3) :] for x in layers if x.kind == "path"]
        value = np.concatenate(paths)
        low, high = value.min(), value.max()
        reach = 3 * ((high - low) or 1.0)
        before = [layer.data["value"][0] for layer in layers if layer.kind == "line"]
        near = [v for v in before if low - reach <= v <= high + reach]
        low, high = min([low, *near]), max([high, *near])
        margin = 0.08 * ((high - low) or 1.0)
        return float(low - margin), float(high + margin)


def _check_rows(
    estimators: Mapping[str, Any], data: tuple[Any, Any, Any], name: str, label_name: str
) -> dict[str, tuple[Any, Any, Any]]:
    """Calibrators with bins, their input, and the sample of these rows."""
    X, y, weights = data
    rows = {}
    for method, estimator in estimators.items():
        calibrator, P = unwrap(estimator, X)
        if not isinstance(calibrator, BinCalibrator):
            problem = f"{type(calibrator).__name__} has no single path of bins"
            fix = "pass a calibrator with bins, such as IRPCalibrator"
            raise InputError("estimator", None, problem, fix)
        before, _, classes = forecasts_of(calibrator, P)
        sample = check_sample(before, y, weights, classes, name=name, label_name=label_name)
        rows[method] = (calibrator, P, sample)
    return rows
