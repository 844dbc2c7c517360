"""What a display is: layers of plotted data, and the axes they were drawn in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from isoroc._calibrators.base import Calibrator
from isoroc._classifier import CalibratedClassifier
from isoroc._input import Sample, check_forecasts
from isoroc._simplex import Floats, count_classes
from isoroc._table import Table
from isoroc.plots._style import figure_of


class Layer(NamedTuple):
    """What one call of a plotting function draws."""

    panel: str
    """The axes it is drawn in."""
    series: str
    """Whose data it shows: before, after, a class, a calibrator."""
    kind: str
    """What it shows."""
    data: Table
    """One row a point; numbers."""


class Display:
    """Base of the displays.

    Attributes
    ----------
    layers : list of Layer
        The plotted data.
    figure_ : Figure
        The figure, once drawn.
    axes_ : list of Axes
        One for each panel, once drawn.
    """

    layers: list[Layer]
    figure_: Figure
    axes_: list[Any]

    def frame(self) -> Table:
        """All plotted data, one row a point; NaN where a layer has no such column.

        The columns `panel`, `series` and `layer` tell what a row belongs to. The table's own
        ``frame("pandas")`` makes a dataframe of it.
        """
        sizes = [layer.data.n_rows for layer in self.layers]
        table = Table(
            panel=np.repeat([layer.panel for layer in self.layers], sizes),
            series=np.repeat([layer.series for layer in self.layers], sizes),
            layer=np.repeat([layer.kind for layer in self.layers], sizes),
        )
        for name in dict.fromkeys(name for layer in self.layers for name in layer.data):
            table[name] = np.concatenate(
                [
                    np.asarray(layer.data.get(name, np.full(size, np.nan)), dtype=np.float64)
                    for layer, size in zip(self.layers, sizes, strict=True)
                ]
            )
        return table

    def of_panel(self, panel: str) -> list[Layer]:
        """Layers of one panel."""
        return [layer for layer in self.layers if layer.panel == panel]

    def _drawn(self, axes: list[Any]) -> None:
        self.axes_ = axes
        self.figure_ = figure_of(axes[0])


class Forecasts(NamedTuple):
    """What an estimator says of some rows."""

    before: Any
    after: Any | None
    """None where the estimator does not calibrate."""
    classes: NDArray[Any]


def forecasts_of(estimator: Any, X: Any) -> Forecasts:
    """Forecasts of an estimator before and after calibration.

    A calibrator takes forecasts: `X` is what it takes and the calibrated ones what it gives. For a
    `CalibratedClassifier` they are those of the classifiers in it, averaged, and its own. Any other
    classifier has forecasts before only.

    Examples
    --------
    >>> from isoroc import IRPCalibrator
    >>> cal = IRPCalibrator(pseudocount=0).fit([0.1, 0.2, 0.8], [0, 1, 1])
    >>> forecasts_of(cal, [0.1, 0.9]).after
    array([[1., 0.],
           [0., 1.]])
    """
    if isinstance(estimator, Calibrator):
        return Forecasts(X, estimator.predict_proba(X), estimator.classes_)
    if isinstance(estimator, CalibratedClassifier):
        after, classes = estimator.predict_proba(X), estimator.classes_
        single: list[Floats] = [
            estimator._forecast(inner, X, classes)  # noqa: SLF001
            for inner in estimator.estimators_
        ]
        return Forecasts(np.mean(single, axis=0), after, classes)
    if hasattr(estimator, "predict_proba"):
        return Forecasts(estimator.predict_proba(X), None, estimator.classes_)
    return Forecasts(estimator.decision_function(X), None, estimator.classes_)


class BeforeAfterDisplay(Display):
    """Base of the displays that show forecasts, or those before and after calibration."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the forecasts of a classifier, or those before and after a calibrator.

        Parameters
        ----------
        estimator : calibrator or classifier
            Fitted. A calibrator of isoroc or a `CalibratedClassifier` is drawn before and after.
        X : array-like
            What it takes: forecasts for a calibrator. Rows that it was not fitted on, to judge it.
        y : array-like of shape (n,)
            Labels.
        **options
            As in `from_predictions`.
        """
        before, after, classes = cls._forecasts_of(estimator, X)
        options = {"after": after, "labels": classes, **options}
        return cls.from_predictions(y, before, **options)

    @classmethod
    def _forecasts_of(cls, estimator: Any, X: Any) -> Forecasts:
        return forecasts_of(estimator, X)

    @classmethod
    @abstractmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, *, after: Any = None) -> Self:
        """Draw forecasts, perhaps with those after calibration."""


def is_probable(forecasts: Any) -> bool:
    """Whether forecasts are probabilities, and not scores of two classes on some other scale.

    Examples
    --------
    >>> is_probable([[0.2, 0.8]]), is_probable([0.2, 0.8]), is_probable([-1.3, 0.8])
    (True, True, False)
    """
    values = check_forecasts(forecasts, name="y_prob")
    return values.ndim == 2 or bool(values.min() >= 0 and values.max() <= 1)


def check_after(
    check: Callable[..., Sample], y_true: Any, after: Any, sample_weight: Any, before: Sample
) -> Sample:
    """Forecasts after calibration, of the same rows and classes as those before.

    Examples
    --------
    >>> from isoroc.metrics._inputs import check_outcomes
    >>> before = check_outcomes([0, 1], [0.2, 0.7])
    >>> check_after(check_outcomes, [0, 1], [[0.1, 0.1, 0.8]], None, before)
    Traceback (most recent call last):
    ...
    ValueError: after: expected forecasts of 2 classes as before, got 3.
    """
    n_classes = count_classes(check_forecasts(after, name="after"))
    if n_classes != before.n_classes:
        raise ValueError(
            f"after: expected forecasts of {before.n_classes} classes as before, got {n_classes}."
        )
    try:
        return check(y_true, after, sample_weight, before.classes)
    except ValueError as error:
        raise ValueError(str(error).replace("y_prob", "after")) from None
