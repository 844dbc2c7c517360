"""Parameters of a `CalibratedClassifier`."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from isoroc._input import InputError, check_option


def check_parameters(classifier: Any) -> bool:
    """Check the parameters; returns whether the classifier is used without fitting it again."""
    if isinstance(classifier.estimator, type) or not hasattr(classifier.estimator, "fit"):
        problem = f"expected a classifier, got {classifier.estimator!r}"
        raise InputError("estimator", None, problem, "pass an instance of a classifier")
    if is_regressor(classifier.estimator):
        problem = f"{type(classifier.estimator).__name__} is a regressor"
        raise InputError("estimator", None, problem, "pass a classifier")
    calibrator = classifier.calibrator
    if calibrator is not None and (
        isinstance(calibrator, type) or not hasattr(calibrator, "predict_proba")
    ):
        problem = f"expected a calibrator, got {calibrator!r}"
        raise InputError("calibrator", None, problem, "pass an instance, as AutoCalibrator()")
    check_option("ensemble", classifier.ensemble, (True, False))
    check_option("response", classifier.response, ("auto", "predict_proba", "decision_function"))
    if isinstance(classifier.cv, str) and classifier.cv != "prefit":
        problem = f'expected a number, a splitter or "prefit", got {classifier.cv!r}'
        raise InputError("cv", None, problem)
    prefit = isinstance(classifier.cv, str) or isinstance(classifier.estimator, FrozenEstimator)
    if prefit:
        check_is_fitted(classifier.estimator)
    return prefit
