"""Forecasts that an estimator makes, before and after calibration."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.classifier import CalibratedClassifier
from isoroc._evaluation.before_after import calibrated
from isoroc._input import InputError, check_forecasts, first_improbable
from isoroc._maps.loading import LoadedMap


def forecasts_of(estimator: Any, X: Any, segments: Any = None) -> tuple[Any, Any, NDArray[Any]]:
    """Forecasts of an estimator before and after calibration, and its classes.

    - Calibrator or `LoadedMap`: `X` holds the forecasts before calibration, and `predict_proba`
      calibrates them. Other units than scores of two classes become probabilities.
    - `CalibratedClassifier`: the mean of the forecasts of its classifiers, and its own.
    - Any other classifier: its forecasts, and none after calibration.
    """
    if isinstance(estimator, Calibrator | LoadedMap):
        after = calibrated(estimator, X, segments)
        kind = estimator.map_.kind
        scores = not kind.exclusive or (kind.single and kind.scores == "logit")
        if kind.unit != "probability" and not scores:
            X = check_forecasts(X, name="X", unit=kind.unit)
            X = np.exp(X) if kind.scores == "logit" else X
        return X, after, estimator.classes_
    if isinstance(estimator, CalibratedClassifier):
        after = estimator.predict_proba(X)
        classes = estimator.classes_
        single = [estimator.forecast(inner, X, classes) for inner in estimator.estimators_]
        return np.mean(single, axis=0), after, classes
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(X), None, estimator.classes_
    problem = f"{type(estimator).__name__} has neither predict_proba nor decision_function"
    raise InputError("estimator", None, problem, "pass a classifier or a calibrator")


def unwrap(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The single calibrator of a `CalibratedClassifier` and its input, or the arguments."""
    if isinstance(estimator, CalibratedClassifier) and len(estimator.calibrators_) == 1:
        (classifier,) = estimator.estimators_
        (calibrator,) = estimator.calibrators_
        two = len(estimator.classes_) == 2  # several logits are not forecasts
        if isinstance(calibrator, Calibrator) and (two or calibrator.unit_ == "probability"):
            return calibrator, estimator.forecast(classifier, X, estimator.classes_)
    return estimator, X


def are_probabilities(forecasts: Any) -> bool:
    """Whether forecasts are probabilities rather than scores of two classes on another scale."""
    values = check_forecasts(forecasts, name="y_prob")
    return values.ndim == 2 or first_improbable(values) is None
