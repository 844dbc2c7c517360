"""PathDisplay: measures against the number of bins, on one or two sets of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from isoroc._input import InputError, Sample, check_after, check_outcomes, check_sample
from isoroc._table import Table
from isoroc._views.forecasts import unwrap
from isoroc._views.stages import Measured, few_rows, is_calibration_set, kept_stages, staged
from isoroc.plots._display import Display, Layer
from isoroc.plots._style import NEUTRAL, add_legend, axes_for, style_of, tidy

_UNITS = {"log loss": "log loss (nats)", "VUS": "VUS of the hull"}
#: From this number of bins on, the axis is logarithmic.
_LOGARITHMIC = 20
#: Largest number of rows for calibrators of the largest probabilities, whose stages need all rows.
_MAX_ROWS = 20_000
#: Largest number of stages; those of a longer path are evenly spaced on the logarithmic axis.
_MAX_STAGES = 60


class PathDisplay(Display):
    """Log loss and AUC, or VUS, against the number of bins (Figures 2, 4 and 5 of the paper).

    One panel per measure and data set, one curve per calibrator, and a line for the uncalibrated
    forecasts. Create it with `from_estimator` or `from_predictions`, or pass the values.

    Of a long path 60 stages are drawn. With more than 100,000 rows, the volume before calibration
    is that of 100,000 rows drawn at random. Stages of a calibrator of the largest probabilities
    (`top`) are measured on at most 20,000 rows drawn at random.

    Parameters
    ----------
    curves : mapping of columns
        Columns `data`, `measure` and `method`, which identify a curve, `n_bins` and `value`.
    uncalibrated : mapping of columns, default=None
        Columns `data`, `measure` and `value`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from isoroc import IRPCalibrator
    >>> from isoroc.plots import PathDisplay
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(400)
    >>> y = rng.random(400) < p**2
    >>> calibrator = IRPCalibrator().fit(p[:200], y[:200])
    >>> display = PathDisplay.from_estimator(
    ...     calibrator, p[:200], y[:200], test=(p[200:], y[200:]), ax=Figure().subplots()
    ... )
    >>> display.panels
    ['calibration log loss', 'test log loss', 'calibration AUC', 'test AUC']
    """

    def __init__(
        self, curves: Mapping[str, Any], uncalibrated: Mapping[str, Any] | None = None
    ) -> None:
        names = [tuple(map(str, name)) for name in _rows(curves, "measure", "data", "method")]
        measures = dict.fromkeys(measure for measure, _, _ in names)
        data = dict.fromkeys(data for _, data, _ in names)
        #: Names of the panels; the data sets of one measure are side by side.
        self.panels = [f"{d} {m}" for m in measures for d in data]
        self._n_columns = len(data)
        self._label_of = {f"{d} {m}": f"{d} {_UNITS.get(m, m)}" for m in measures for d in data}
        found = {name: np.array([n == name for n in names]) for name in dict.fromkeys(names)}
        self.layers = [
            Layer(
                f"{data} {measure}",
                method,
                "path",
                Table(
                    n_bins=np.asarray(curves["n_bins"], dtype=np.float64)[rows],
                    value=np.asarray(curves["value"], dtype=np.float64)[rows],
                ),
            )
            for (measure, data, method), rows in found.items()
        ]
        for measure_, data_, value in _rows(uncalibrated or {}, "measure", "data", "value"):
            line = Table(value=np.array([value], dtype=np.float64))
            self.layers.append(Layer(f"{data_} {measure_}", "uncalibrated", "line", line))

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
        ax: Axes | Sequence[Axes] | None = None,
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
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel.
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
        measured = Measured(measures)
        for data, rows_of_data in sets.items():
            for number, (method, (calibrator, all_P, all_rows)) in enumerate(rows_of_data.items()):
                P, sample = few_rows(calibrator, all_P, all_rows, _MAX_ROWS)
                if number == 0:
                    measured.add_uncalibrated(data, sample)
                n_bins = calibrator.path_["n_bins"]
                kept = kept_stages(len(n_bins), _MAX_STAGES)
                stages = staged(calibrator, P, sample)
                for i, (n, stage) in enumerate(zip(n_bins, stages, strict=True)):
                    if i in kept:
                        measured.add(data, method, int(n), stage)
        return cls(*measured.tables()).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        stages: Mapping[str, Iterable[tuple[int, Any]]],
        *,
        name: str = "test",
        measures: Sequence[str] | None = None,
        sample_weight: Any = None,
        labels: Any = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw the paths of given forecasts.

        Parameters
        ----------
        y_true, y_prob : array-like
            Labels, and forecasts before calibration.
        stages : mapping of names to pairs
            For each method, pairs of a number of bins and the calibrated forecasts.
        name : str, default="test"
            Name of the data set.
        measures, sample_weight
            As in `from_estimator`.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        ax : matplotlib axes or list of them, default=None
            As in `from_estimator`.
        """
        measured = Measured(measures)
        sample = check_outcomes(y_true, y_prob, sample_weight, labels)
        measured.add_uncalibrated(name, sample)
        for method, pairs in stages.items():
            for n, Q in pairs:
                stage = check_after(Q, sample, name="stages")
                measured.add(name, method, n, stage)
        return cls(*measured.tables()).plot(ax)

    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw in `ax`; see `from_estimator`."""
        axes = axes_for(ax, len(self.panels), columns=self._n_columns, size=(4.4, 3.2))
        paths = [layer for layer in self.layers if layer.kind == "path"]
        index_of = {method: i for i, method in enumerate(dict.fromkeys(s.series for s in paths))}
        most = max(layer.data["n_bins"].max() for layer in paths)
        for axes_, panel in zip(axes, self.panels, strict=True):
            for layer in self.of_panel(panel):
                _draw(axes_, layer, index_of.get(layer.series, -1))
            if most >= _LOGARITHMIC:
                axes_.set_xscale("log")
                axes_.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes_.xaxis.set_major_formatter(FuncFormatter(lambda n, _: f"{n:g}"))
                axes_.xaxis.set_minor_locator(NullLocator())
            else:
                axes_.xaxis.set_major_locator(MaxNLocator(integer=True))
            tidy(axes_, xlabel="number of bins", ylabel=self._label_of[panel])
            axes_.set_ylim(self._limits(panel))
        add_legend(axes[0])
        self._set_axes(axes)
        return self

    def _limits(self, panel: str) -> tuple[float, float]:
        """Limits of the vertical axis, shared by all data sets of a measure.

        The first stage of a path is left out: its value, that of a single bin, is so far from the
        others that their differences would not be visible.
        """
        first = self.panels.index(panel) // self._n_columns * self._n_columns
        group = self.panels[first : first + self._n_columns]
        layers = [layer for layer in self.layers if layer.panel in group]
        values = [layer.data["value"][int(layer.data.n_rows > 3) :] for layer in layers]
        value = np.concatenate(values)
        value = value[np.isfinite(value)]
        if not len(value):
            return 0.0, 1.0
        margin = 0.08 * (np.ptp(value) or 1.0)
        return float(value.min() - margin), float(value.max() + margin)


def _check_rows(
    estimators: Mapping[str, Any], data: tuple[Any, Any, Any], name: str, label_name: str
) -> dict[str, tuple[Any, Any, Sample]]:
    """Calibrators with bins, their input, and the sample of these rows."""
    X, y, weights = data
    found = {}
    for method, estimator in estimators.items():
        calibrator, P = unwrap(estimator, X)
        if not hasattr(calibrator, "staged_predict_proba"):
            kind = type(calibrator).__name__
            problem = f"{kind} has no single path of bins"
            fix = "pass a calibrator with bins, such as IRPCalibrator"
            raise InputError("estimator", None, problem, fix)
        sample = check_sample(P, y, weights, calibrator.classes_, name=name, label_name=label_name)
        found[method] = (calibrator, P, sample)
    return found


def _rows(columns: Mapping[str, Any], *names: str) -> list[tuple[Any, ...]]:
    return list(zip(*(columns[name] for name in names), strict=True)) if columns else []


def _draw(ax: Axes, layer: Layer, index: int) -> None:
    value = layer.data["value"]
    if layer.kind == "line":
        finite = np.isfinite(value[0])
        label = layer.series if finite else f"{layer.series}: {value[0]}"
        ax.axhline(value[0] if finite else np.nan, color=NEUTRAL, lw=1.2, ls=":", label=label)
        return
    colour, marker, dashes = style_of(index)
    n_bins = layer.data["n_bins"]
    ax.plot(
        n_bins,
        value,
        color=colour,
        ls=dashes,
        lw=1.6,
        marker=marker,
        ms=7,
        mec=ax.get_facecolor(),
        markevery=[-1],
        label=layer.series,
    )
