"""Forecasts that an estimator makes, before and after calibration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._calibrators.base import Calibrator
from isoroc._classifier import CalibratedClassifier
from isoroc._input import InputError, check_forecasts, first_improbable
from isoroc._simplex import Floats


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
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return Forecasts(getattr(estimator, method)(X), None, estimator.classes_)
    problem = f"{type(estimator).__name__} has neither predict_proba nor decision_function"
    raise InputError("estimator", None, problem, "pass a classifier or a calibrator")


def unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The calibrator of a `CalibratedClassifier` with a single one, and its input.

    Any other estimator is returned as it is: an ensemble, or a calibrator of several logits, whose
    input is not a forecast.
    """
    if isinstance(estimator, CalibratedClassifier) and len(estimator.calibrators_) == 1:
        (classifier,), (calibrator,) = estimator.estimators_, estimator.calibrators_
        classes = estimator.classes_
        known = isinstance(calibrator, Calibrator)
        if known and (len(classes) == 2 or calibrator.scores_ == "probability"):
            return calibrator, estimator.forecast(classifier, X, classes)
    return estimator, X


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
