"""Display: the base of all displays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure

from isoroc._input import (
    InputError,
    Sample,
    check_after,
    check_groups,
    check_outcomes,
    check_probabilities,
    check_sample,
    to_array,
)
from isoroc._table import Table
from isoroc._views.forecasts import are_probabilities, forecasts_of
from isoroc.plots._style import TOP, Size, Where, axes_for, figure_of, shortened

#: Up to this number of classes there is one panel per class, above it one for the top class.
MAX_PANELS = 12


class Layer(NamedTuple):
    """The data of one call to a plotting function."""

    panel: str
    """The axes in which it is drawn."""
    series: str
    """The source of the data: before, after, a class or a calibrator."""
    kind: str
    """The kind of mark: points, a curve, a band."""
    data: Table
    """Numbers, one row per point."""


@dataclass(repr=False, eq=False)
class Display:
    """Base class of the displays.

    Attributes
    ----------
    layers : list of Layer
        The plotted data.
    figure_ : Figure
        The figure, set by `plot`.
    axes_ : list of Axes
        One axes per panel, set by `plot`.
    ax_ : Axes
        The first of these axes.
    line_ : Line2D or list of Line2D
        The curve, or a list if there is more or less than one, set by `plot`.
    """

    layers: list[Layer]
    figure_: Figure = field(init=False)
    axes_: list[Any] = field(init=False)
    ax_: Any = field(init=False)
    line_: Any = field(init=False)

    #: Largest number of panels side by side, and the size of each in inches.
    _grid = (1, (5.2, 4.0))
    _projection: ClassVar[str | None] = None
    #: Draws in `axes_` and returns the curves; takes the options of lines, if any.
    _draw: ClassVar[Callable[..., list[Any]]]

    @property
    def panels(self) -> list[str]:
        """Names of the panels, in the order in which they are drawn."""
        return list(dict.fromkeys(layer.panel for layer in self.layers))

    def frame(self) -> Table:
        """All plotted data, one row per point; NaN where a layer does not have a column.

        The columns `panel`, `series` and `layer` say where a row belongs. Call ``frame("pandas")``
        on the returned table to convert it to a dataframe.
        """
        sizes = [layer.data.n_rows for layer in self.layers]
        named = zip(("panel", "series", "layer"), zip(*self.layers, strict=True), strict=False)
        table = Table({name: np.repeat(column, sizes) for name, column in named})
        for name in dict.fromkeys(name for layer in self.layers for name in layer.data):
            columns = [
                np.asarray(layer.data.get(name, np.full(size, np.nan)), dtype=np.float64)
                for layer, size in zip(self.layers, sizes, strict=True)
            ]
            table[name] = np.concatenate(columns)
        return table

    def of_panel(self, panel: str) -> list[Layer]:
        """Layers of one panel."""
        return [layer for layer in self.layers if layer.panel == panel]

    def plot(self, ax: Where = None, *, figsize: Size = None, **options: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            Where to draw: one axes, which is divided if there are several panels, or one per
            panel. By default pyplot creates a figure.
        figsize : tuple of float, default=None
            Width and height of the new figure in inches.
        **options
            Of a `CalibrationDisplay`: `name`, and options of its curves.
        """
        columns, size = self._grid
        new: dict[str, Any] = {"figsize": figsize, "projection": self._projection}
        self.axes_ = axes_for(ax, len(self.panels), columns=columns, size=size, **new)
        self.ax_, self.figure_ = self.axes_[0], figure_of(self.axes_[0])
        lines = self._draw(**options)
        self.line_ = lines[0] if len(lines) == 1 else lines
        return self


class BeforeAfterDisplay(Display):
    """Base class of the displays that compare forecasts before and after calibration."""

    #: Whether scores that are not probabilities cannot be drawn.
    _needs_probabilities: ClassVar[bool] = False
    #: Whether groups of rows can be drawn.
    _takes_groups: ClassVar[bool] = False
    #: Makes the display of samples, "forecasts" alone or "before" and "after"; takes its options.
    _of: ClassVar[Callable[..., Self]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the forecasts of a classifier, or those before and after calibration.

        Parameters
        ----------
        estimator : calibrator or classifier
            Fitted. For a calibrator of isoroc or a `CalibratedClassifier`, the forecasts before
            and after calibration are drawn; only those after if the others must be probabilities
            and are not.
        X : array-like
            Input of the estimator: forecasts for a calibrator, features for a classifier. Use
            rows that the estimator was not fitted on.
        y : array-like of shape (n,)
            Labels.
        **options
            As in `from_predictions`; also `groups`, the group of each row, for a
            `GroupedCalibrator`.
        """
        groups = options.get("groups") if cls._takes_groups else options.pop("groups", None)
        before, after, classes = forecasts_of(estimator, X, groups)
        if cls._needs_probabilities and after is not None and not are_probabilities(before):
            before, after = after, None
        options = {"after": after, "labels": classes, "sample_weight": None, **options}
        # Checked before from_predictions does so, for errors to name the arguments given here.
        check_sample(before, y, options["sample_weight"], options["labels"], name="X")
        return cls.from_predictions(y, before, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        after: Any = None,
        sample_weight: Any = None,
        labels: Any = None,
        ax: Where = None,
        figsize: Size = None,
        **options: Any,
    ) -> Self:
        """Draw forecasts, optionally together with those after calibration.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_prob : array-like of shape (n, K) or (n,)
            Forecasts, or probabilities of `pos_label`, by default the second of two classes; where
            no probabilities are needed, also real scores that increase with them.
        after : array-like, default=None
            Forecasts of the same rows after calibration.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        labels : array-like of shape (K,), default=None
            The classes in the order of the columns; sorted by default.
        ax, figsize
            As in `plot`.
        **options
            Those that the class describes.
        """
        pos_label = options.get("pos_label")
        if pos_label is not None and labels is None and np.ndim(y_prob) == 1:
            labels = _second(y_true, pos_label)
        if cls._needs_probabilities:
            first = check_probabilities(y_true, y_prob, sample_weight, labels, keep_zeros=True)
        else:
            first = check_outcomes(y_true, y_prob, sample_weight, labels)
        if cls._takes_groups and (groups := options.pop("groups", None)) is not None:
            first = replace(first, groups=check_groups(groups, len(first), of="y_prob"))
        series = {"forecasts": first}
        if after is not None:
            second = check_after(after, first, probabilities=cls._needs_probabilities)
            series = {"before": first, "after": second}
        positive = {of: sample.positive() for of, sample in series.items()}
        return cls._of(positive, **options).plot(ax, figsize=figsize)


def _second(y_true: Any, pos_label: Any) -> list[Any]:
    """The two labels, that whose probabilities are given last."""
    found = np.unique(to_array(y_true, name="y_true")).tolist()
    others = [label for label in found if label != pos_label]
    if len(others) != 1:
        problem = f"is {pos_label!r}, and the labels are {shortened(str(found), 60)}"
        fix = "pass one of two labels, or forecasts with one column per class"
        raise InputError("pos_label", None, problem, fix)
    return [others[0], pos_label]


def class_panels(sample: Sample, pos_label: Any, kind: str = "auto") -> dict[str, int | None]:
    """Classes to draw, by the name of the panel; None for the top class."""
    classes = sample.classes.tolist()
    if pos_label is not None and pos_label not in classes:
        fix = f"expected one of {shortened(str(classes), 60)}"
        raise InputError("pos_label", None, f"got {pos_label!r}", fix)
    if kind == "top" or (kind == "auto" and pos_label is None and len(classes) > MAX_PANELS):
        return {TOP: None}
    drawn = range(int(len(classes) == 2), len(classes))
    chosen = drawn if pos_label is None else [classes.index(pos_label)]
    return {str(classes[k]): k for k in chosen}
