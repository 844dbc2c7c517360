"""Display: the base of all displays, and the forecasts that an estimator makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, Self

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from isoroc._calibrators.base import Calibrator
from isoroc._classifier import CalibratedClassifier
from isoroc._input import (
    InputError,
    Sample,
    check_forecasts,
    check_length,
    check_sample,
    first_improbable,
    to_array,
)
from isoroc._simplex import Floats, count_classes
from isoroc._table import Table
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

    def frame(self) -> Table:
        """All plotted data, one row per point; NaN where a layer does not have a column.

        The columns `panel`, `series` and `layer` say where a row belongs. Call ``frame("pandas")``
        on the returned table to convert it to a dataframe.
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

    def _set_axes(self, axes: list[Any]) -> None:
        self.axes_ = axes
        self.figure_ = figure_of(axes[0])


class Forecasts(NamedTuple):
    """Forecasts of an estimator for some rows."""

    before: Any
    after: Any | None
    """None if the estimator does not calibrate."""
    classes: NDArray[Any]


def forecasts_of(estimator: Any, X: Any) -> Forecasts:
    """Forecasts of an estimator before and after calibration.

    - Calibrator: `X` holds the forecasts before calibration, `predict_proba` returns those after.
    - `CalibratedClassifier`: the mean of the forecasts of its classifiers, and its own.
    - Any other classifier: its forecasts, and none after calibration.

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
            estimator.forecast(inner, X, classes) for inner in estimator.estimators_
        ]
        return Forecasts(np.mean(single, axis=0), after, classes)
    if hasattr(estimator, "predict_proba"):
        return Forecasts(estimator.predict_proba(X), None, estimator.classes_)
    return Forecasts(estimator.decision_function(X), None, estimator.classes_)


class BeforeAfterDisplay(Display):
    """Base class of the displays that compare forecasts before and after calibration."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the forecasts of a classifier, or those before and after calibration.

        Parameters
        ----------
        estimator : calibrator or classifier
            Fitted. For a calibrator of isoroc or a `CalibratedClassifier`, the forecasts before
            and after calibration are drawn.
        X : array-like
            Input of the estimator: forecasts for a calibrator, features for a classifier. Use
            rows that the estimator was not fitted on.
        y : array-like of shape (n,)
            Labels.
        **options
            As in `from_predictions`.
        """
        before, after, classes = cls._forecasts_of(estimator, X)
        options = {"after": after, "labels": classes, "sample_weight": None, **options}
        # Checked before from_predictions does so, for errors to name the arguments given here.
        check_sample(before, y, options["sample_weight"], options["labels"], name="X")
        return cls.from_predictions(y, before, **options)

    @classmethod
    def _forecasts_of(cls, estimator: Any, X: Any) -> Forecasts:
        return forecasts_of(estimator, X)

    @classmethod
    @abstractmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, *, after: Any = None) -> Self:
        """Draw forecasts, optionally together with those after calibration."""


def are_probabilities(forecasts: Any) -> bool:
    """Whether forecasts are probabilities rather than scores of two classes on another scale.

    Examples
    --------
    >>> are_probabilities([[0.2, 0.8]]), are_probabilities([0.2, 0.8])
    (True, True)
    >>> are_probabilities([-1.3, 0.8])
    False
    """
    values = check_forecasts(forecasts, name="y_prob")
    return values.ndim == 2 or first_improbable(values) is None


def check_after(
    check: Callable[..., Sample],
    y_true: Any,
    after: Any,
    sample_weight: Any,
    before: Sample,
    *,
    name: str = "after",
) -> Sample:
    """Sample of the forecasts after calibration, for the rows and classes of those before.

    Parameters
    ----------
    check : callable
        `check_outcomes` or `check_probabilities`, whichever returned `before`.
    y_true, after, sample_weight
        As given by the user.
    before : Sample
        The same rows with the forecasts before calibration.
    name : str
        Name of `after` in error messages.

    Examples
    --------
    >>> from isoroc.metrics._inputs import check_outcomes
    >>> before = check_outcomes([0, 1], [0.2, 0.7])
    >>> check_after(check_outcomes, [0, 1], [[0.1, 0.1, 0.8]], None, before)
    Traceback (most recent call last):
    ...
    isoroc._input.error.InputError: after: 3 classes, but y_prob has 2; they must agree.
    """
    forecasts = check_forecasts(after, name=name)
    n_classes = count_classes(forecasts)
    if n_classes != before.n_classes:
        problem = f"{n_classes} classes, but y_prob has {before.n_classes}"
        raise InputError(name, None, problem, "they must agree")
    check_length(forecasts, len(to_array(y_true, name="y_true")), name=name, of="y_true")
    try:
        return check(y_true, forecasts, sample_weight, before.classes)
    except InputError as error:
        # Labels and weights have been checked with the forecasts before calibration.
        raise InputError(name, error.row, error.problem, error.fix) from None


def check_choices(name: str, chosen: Collection[str], allowed: Collection[str]) -> None:
    """Raise unless one or more names were chosen, all of them allowed.

    Examples
    --------
    >>> check_choices("panels", ["roc", "map"], ["roc", "diagram"])
    Traceback (most recent call last):
    ...
    isoroc._input.error.InputError: panels: got ['roc', 'map']; expected one or more of 'roc',
    'diagram'.
    """
    if isinstance(chosen, str) or not chosen or set(chosen) - set(allowed):
        expected = ", ".join(repr(choice) for choice in allowed)
        raise InputError(name, None, f"got {chosen!r}", f"expected one or more of {expected}")
