"""PathDisplay: measures against the number of bins, on one or two sets of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from isoroc._calibrators.binned import BinCalibrator
from isoroc._evaluation.forecasts import (
    MEASURES,
    few_rows,
    forecasts_of,
    is_calibration_set,
    measured,
    staged,
    unwrap,
)
from isoroc._input import InputError, check_choices, check_sample
from isoroc._support.table import Table
from isoroc.plots._display import NEUTRAL, Display, Layer, Size, Where, add_legend, style_of, tidy


class PathDisplay(Display):
    """Log loss and AUC, or VUS, against the number of bins (Figures 2, 4 and 5 of the paper).

    One panel per measure and data set, one curve per calibrator, and a line for the uncalibrated
    forecasts. Create it with `from_estimator`, or pass the values.

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
        key_of = [*zip(*(map(str, curves[c]) for c in ("measure", "data", "method")), strict=True)]
        names = [list(dict.fromkeys(column)) for column in zip(*key_of, strict=True)]
        columns = {c: np.asarray(curves[c], dtype=np.float64) for c in ("n_bins", "value")}
        self._grid = (len(names[1]), (4.4, 3.2))  # the data sets of one measure are side by side
        self._of_panel = {f"{data} {measure}": (measure, data) for measure, data, _ in key_of}
        for measure, data, method in product(*names):
            rows = [key == (measure, data, method) for key in key_of]
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
        name: str | None = None,
        measures: Sequence[str] | None = None,
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
        X, y : array-like
            Input of the estimator, that is forecasts for a calibrator and features for a
            classifier, and labels.
        test : tuple, default=None
            Input, labels and, optionally, weights of other rows.
        name : str, default=None
            Name of the first set of rows. By default "calibration" if the bins have the weights of
            these rows, which means that the calibrators were fitted to them, and "given rows"
            otherwise.
        measures : sequence of {"log loss", "AUC", "VUS"}, default=None
            What to draw. By default log loss and, for two classes, AUC or, for three and
            four, the volume under the hull of the ROC surface.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row of X.
        ax, figsize
            As in `plot`.
        """
        if not isinstance(estimator, Mapping):
            estimator = {type(estimator).__name__.removesuffix("Calibrator"): estimator}
        rows = _check_rows(estimator, (X, y, sample_weight), "X", "y")
        if name is None:
            fitted = all(is_calibration_set(*row) for row in rows.values())
            name = "calibration" if fitted else "given rows"
        sets = {name: rows}
        if test is not None:
            sets["test"] = _check_rows(estimator, (*test, None)[:3], "test[0]", "test[1]")
        stages: dict[str, Any] = {}
        for data, of_data in sets.items():
            few = {method: few_rows(*row, 20_000) for method, row in of_data.items()}
            paths = {method: staged(*row, 60) for method, row in few.items()}
            stages[data] = next(iter(few.values()))[2], paths
        return cls(*_tables(stages, measures)).plot(ax, figsize=figsize)

    def _draw(self, ax: Axes, layers: list[Layer]) -> list[Any]:
        measure, data = self._of_panel[layers[0].panel]
        limits, lines = self._limits(measure), []
        methods = list(dict.fromkeys(layer.series for layer in self.layers))
        named = ax is self.ax_  # legends are the same in all panels but for values off the scale
        for _, series, kind, path in layers:
            value = path["value"]
            if kind == "line":
                shown = limits[0] <= value[0] <= limits[1]
                level = f"{value[0]:.3g}" if np.isfinite(value[0]) else "infinite"
                label = series if shown else f"before: {level},\noff the scale"
                place = value[0] if shown else np.nan
                ax.axhline(place, color=NEUTRAL, lw=1.2, ls=":", label=label)
                named |= not shown
                continue
            colour, marker, dashes = style_of(methods.index(series))
            style: dict[str, Any] = {"marker": marker, "ms": 7, "mec": ax.get_facecolor()}
            style |= {"color": colour, "ls": dashes, "lw": 1.6, "markevery": [-1]}
            lines += ax.plot(path["n_bins"], value, label=series, **style)
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
        if named:
            add_legend(ax)
        return lines

    def _limits(self, measure: str) -> tuple[float, float]:
        """Limits of the vertical axis, shared by all data sets of a measure.

        The first stage of a path, a single bin, and an uncalibrated value are left out where they
        are so far from the others, three times the range of the paths, that the differences of
        those would not be visible.
        """
        layers = [x for x in self.layers if self._of_panel[x.panel][0] == measure]
        values = [x.data["value"][int(x.data.n_rows > 3) :] for x in layers if x.kind == "path"]
        value = np.concatenate(values)
        value = value[np.isfinite(value)]
        if not len(value):
            return 0.0, 1.0
        reach = 3 * (np.ptp(value) or 1.0)
        low, high = value.min(), value.max()
        others = [x.data["value"][0] for x in layers if x.kind == "line"]
        near = [v for v in others if low - reach <= v <= high + reach]
        low, high = min([low, *near]), max([high, *near])
        margin = 0.08 * ((high - low) or 1.0)
        return float(low - margin), float(high + margin)


def _tables(sets: dict[str, Any], measures: Sequence[str] | None) -> tuple[Table, Table]:
    """The arguments of a display: each set has a sample and, for each method, its stages."""
    if measures is not None:
        check_choices("measures", measures, MEASURES)
    curves, lines = [], []
    for data, (sample, paths) in sets.items():
        lines += [(data, *row) for row in measured(sample, measures, binned=False)]
        for method, stages in paths.items():
            for n, stage in stages:
                curves += [(data, *row, method, n) for row in measured(stage, measures)]
    columns = ("data", "measure", "value")
    return Table.from_rows(curves, *columns, "method", "n_bins"), Table.from_rows(lines, *columns)


def _check_rows(
    estimators: Mapping[str, Any], data: tuple[Any, Any, Any], name: str, label_name: str
) -> dict[str, tuple[Any, Any, Any]]:
    """Calibrators with bins, their input, and the sample of these rows."""
    X, y, weights = data
    found = {}
    for method, estimator in estimators.items():
        calibrator, P = unwrap(estimator, X)
        if not isinstance(calibrator, BinCalibrator):
            problem = f"{type(calibrator).__name__} has no single path of bins"
            fix = "pass a calibrator with bins, such as IRPCalibrator"
            raise InputError("estimator", None, problem, fix)
        before, _, classes = forecasts_of(calibrator, P)
        sample = check_sample(before, y, weights, classes, name=name, label_name=label_name)
        found[method] = (calibrator, P, sample)
    return found
