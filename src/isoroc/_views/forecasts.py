"""Forecasts that an estimator makes, before and after calibration."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._calibrators.base import Calibrator
from isoroc._classifier import CalibratedClassifier
from isoroc._input import InputError, check_forecasts, first_improbable


def forecasts_of(estimator: Any, X: Any, groups: Any = None) -> tuple[Any, Any, NDArray[Any]]:
    """Forecasts of an estimator before and after calibration, and its classes.

    - Calibrator: `X` holds the forecasts before calibration, `predict_proba` returns those after.
      Other units than scores of two classes become probabilities.
    - `CalibratedClassifier`: the mean of the forecasts of its classifiers, and its own.
    - Any other classifier: its forecasts, and none after calibration.
    """
    options = {} if groups is None else {"groups": groups}
    if isinstance(estimator, Calibrator):
        after = estimator.predict_proba(X, **options)
        kind = estimator.map_.kind
        if kind.unit != "probability" and not (kind.single and kind.scores == "logit"):
            X = check_forecasts(X, name="X", scores=kind.unit)
            X = np.exp(X) if kind.scores == "logit" else X
        return X, after, estimator.classes_
    if isinstance(estimator, CalibratedClassifier):
        after, classes = estimator.predict_proba(X, **options), estimator.classes_
        single = [estimator.forecast(inner, X, classes) for inner in estimator.estimators_]
        return np.mean(single, axis=0), after, classes
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X), None, estimator.classes_
    problem = f"{type(estimator).__name__} has neither predict_proba nor decision_function"
    raise InputError("estimator", None, problem, "pass a classifier or a calibrator")


def unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The calibrator of a `CalibratedClassifier` with a single one, and its input.

    Any other estimator is returned unchanged: an ensemble, or a calibrator of several logits, whose
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
    """Whether forecasts are probabilities rather than scores of two classes on another scale."""
    values = check_forecasts(forecasts, name="y_prob")
    return values.ndim == 2 or first_improbable(values) is None
