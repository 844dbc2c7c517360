"""Display: the base of all displays."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure

from isoroc._input import check_sample
from isoroc._table import Table
from isoroc._views.forecasts import are_probabilities, forecasts_of
from isoroc.plots._style import figure_of


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
    """

    layers: list[Layer]
    figure_: Figure
    axes_: list[Any]

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

    def _drawn_in(self, axes: list[Any]) -> Self:
        self.axes_ = axes
        self.figure_ = figure_of(axes[0])
        return self


class BeforeAfterDisplay(Display):
    """Base class of the displays that compare forecasts before and after calibration."""

    #: Whether scores that are not probabilities cannot be drawn.
    _needs_probabilities: ClassVar[bool] = False
    #: Whether `from_predictions` takes groups.
    _takes_groups: ClassVar[bool] = False

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
    @abstractmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, *, after: Any = None) -> Self:
        """Draw forecasts, optionally together with those after calibration."""
