"""Calibrators from model files: everything is checked, nothing is executed."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.document import COMMON, MAX_CLASSES, find_kind
from isoroc._persistence import Fault, ModelFileError, decode, read
from isoroc._persistence.states import ROUNDING


def load(path: str | os.PathLike[str]) -> Any:
    """Calibrator from a model file that `save` wrote: it predicts what the saved one did.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    calibrator
        Fitted, of the class that was saved; its `summary_` is what the file says about the fit.

    Raises
    ------
    ModelFileError
        A `ValueError` that names the file, the place in it and the fix, for every file that is not
        a sound model file: damaged, altered, too large, of another version, or something else.

    Examples
    --------
    >>> import os, tempfile
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], ["no", "yes", "no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     calibrator.save(path, summary={"data": "2026-07"})
    ...     loaded = isoroc.load(path)
    >>> (loaded.predict_proba([0.2, 0.8]) == calibrator.predict_proba([0.2, 0.8])).all()
    np.True_
    >>> loaded.summary_
    {'rows': 4, 'weight': 4.0, 'class_weights': [2.0, 2.0], 'data': '2026-07'}
    """
    document = read(path)
    try:
        calibrator = _restore(document["model"], "model")
        _check(calibrator)
    except Fault as fault:
        raise ModelFileError.of(path, fault) from fault
    calibrator.summary_ = document["summary"]
    return calibrator


def _restore(document: dict[str, Any], place: str, *, fitted: bool = True) -> Calibrator:
    """Calibrator with the parameters and the state of a document, which may not fit together."""
    kind = find_kind(document["kind"])
    if kind is None:
        raise Fault(f"{place}.kind", f"{document['kind']!a} is no calibrator of this version")
    calibrator: Calibrator = kind()
    known = calibrator.get_params(deep=False)
    for name, value in document["parameters"].items():
        inner = f"{place}.parameters.{ascii(name)[1:-1]}"
        if name not in known:
            raise Fault(inner, "is unknown to this version")
        setattr(calibrator, name, decode(value, inner, partial(_restore, fitted=False)))
    state = document["state"]
    required = [*kind.fitted_state, "scores_"] if fitted else []
    allowed = {*COMMON, *required} if fitted else set()
    for name, value in state.items():
        inner = f"{place}.state.{ascii(name)[1:-1]}"
        if name not in allowed:
            raise Fault(inner, "is unknown to this version")
        setattr(calibrator, name, decode(value, inner, _restore))
    for name in required:
        if name not in state:
            raise Fault(f"{place}.state.{name}", "is missing")
    return calibrator


def _check(calibrator: Calibrator) -> None:
    """Refuse a state from which no forecasts on the simplex can be made."""
    try:
        with np.errstate(all="ignore"):
            K = _check_common(calibrator)
            calibrator.check_state(K)
            _check_forecasts(calibrator, K)
    except Fault as fault:
        raise Fault(f"model.state.{fault.place}", fault.problem) from fault
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"no forecasts can be made from it ({ascii(str(error))[1:100]})"
        raise Fault("model.state", problem) from error


def _check_common(calibrator: Calibrator) -> int:
    """Check classes and columns; returns K."""
    classes = getattr(calibrator, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise Fault("classes_", "expected an array")
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise Fault("classes_", f"expected 2 to {MAX_CLASSES} classes, got {len(classes)}")
    if len(set(classes.tolist())) != len(classes) or any(c != c for c in classes.tolist()):  # noqa: PLR0124
        raise Fault("classes_", "the classes are not distinct")
    n_columns, K = getattr(calibrator, "n_features_in_", None), len(classes)
    if type(n_columns) is not int or n_columns not in ({1, 2} if K == 2 else {K}):
        raise Fault("n_features_in_", f"expected a column for each of {K} classes")
    names = getattr(calibrator, "feature_names_in_", np.array([""] * n_columns, dtype=object))
    if not isinstance(names, np.ndarray) or names.shape != (n_columns,) or names.dtype != object:
        raise Fault("feature_names_in_", f"expected {n_columns} names")
    return K


def _check_forecasts(calibrator: Calibrator, n_classes: int) -> None:
    """Make a few forecasts; what they must be is known."""
    if calibrator.n_features_in_ == 1:
        forecasts = np.array([0.0, 0.5, 1.0])
    else:
        forecasts = np.full((3, n_classes), 1 / n_classes)
        forecasts[:2] = 0.0
        forecasts[0, 0] = forecasts[1, -1] = 1.0
        if calibrator.scores_ == "logit":
            forecasts = np.log(np.maximum(forecasts, 1e-300))
    Q = calibrator.calibrate(forecasts)
    if Q.shape != (len(forecasts), n_classes) or not (
        (Q >= 0).all() and (np.abs(Q.sum(axis=1) - 1) < ROUNDING).all()
    ):
        raise Fault("", "the forecasts made from it are no probabilities")
