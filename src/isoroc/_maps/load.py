"""Maps from model files: everything is checked, nothing is executed."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from isoroc._maps.auto import AutoMap
from isoroc._maps.bagging import BaggedIRPMap
from isoroc._maps.base import CalibrationMap
from isoroc._maps.binned import HistogramMap, IRPMap, RecursiveBinningMap
from isoroc._maps.grouped import GroupedMap
from isoroc._maps.identity import IdentityMap
from isoroc._maps.kernel import KernelMap
from isoroc._maps.matrix import MatrixMap
from isoroc._maps.monotone import MonotoneMap
from isoroc._maps.one_vs_rest import IsotonicMap, VennAbersMap
from isoroc._maps.spline import SplineMap
from isoroc._maps.tempered import TemperatureMap
from isoroc._persistence import Fault, ModelFileError, decode, read
from isoroc._persistence.states import ROUNDING

M = TypeVar("M", bound=CalibrationMap)
#: Makes what a document describes, without its state. The second argument is its place.
Make = Callable[[dict[str, Any], str], M]

#: The map that each calibrator learns, by the name that stands in model files.
MAPS: dict[str, type[CalibrationMap]] = {
    kind.kind(): kind
    for kind in (
        AutoMap,
        BaggedIRPMap,
        GroupedMap,
        HistogramMap,
        IRPMap,
        IdentityMap,
        IsotonicMap,
        KernelMap,
        MatrixMap,
        MonotoneMap,
        RecursiveBinningMap,
        SplineMap,
        TemperatureMap,
        VennAbersMap,
    )
}
#: What is remembered of every fit besides the attributes of `fitted_state`.
COMMON = ("classes_", "n_features_in_", "feature_names_in_", "scores_")
#: So that no file can make loading slow.
MAX_CLASSES = 10_000


def load_map(path: str | os.PathLike[str]) -> CalibrationMap:
    """The map in a model file: it makes the forecasts of the saved calibrator.

    Parameters of the fit are not read, except those that the map rests on.
    """
    document = read(path)
    found = restore_checked(document, path, _make)
    found.checksum = document["checksum"]
    return found


def restore_checked(document: dict[str, Any], path: str | os.PathLike[str], make: Make[M]) -> M:
    """What `make` makes of a model file, with the state and the summary that the file holds."""
    try:
        fitted = restore(document["model"], "model", make)
        _check(fitted)
    except Fault as fault:
        raise ModelFileError.of(path, fault) from fault
    fitted.summary_ = document["summary"]
    return fitted


def unknown_kind(document: dict[str, Any], place: str) -> Fault:
    """The error for a calibrator that does not exist."""
    return Fault(f"{place}.kind", f"{document['kind']!a} is no calibrator of this version")


def _make(document: dict[str, Any], place: str) -> CalibrationMap:
    kind = MAPS.get(document["kind"])
    if kind is None:
        raise unknown_kind(document, place)
    found = kind()
    for name in kind.parameters:
        if name not in document["parameters"]:
            raise Fault(f"{place}.parameters.{name}", "is missing")
        setattr(found, name, decode(document["parameters"][name], place, _make))
    return found


def restore(document: dict[str, Any], place: str, make: Make[M]) -> M:
    """What `make` makes of a document, with its state, which may not fit together."""
    fitted = make(document, place)
    state = document["state"]
    required = [*fitted.fitted_state, "scores_"]
    for name, value in state.items():
        inner = f"{place}.state.{ascii(name)[1:-1]}"
        if name not in {*COMMON, *required}:
            raise Fault(inner, "is unknown to this version")
        setattr(fitted, name, decode(value, inner, partial(restore, make=make)))
    for name in required:
        if name not in state:
            raise Fault(f"{place}.state.{name}", "is missing")
    return fitted


def _check(fitted: CalibrationMap) -> None:
    """Refuse a state from which no forecasts on the simplex can be made."""
    try:
        with np.errstate(all="ignore"):
            K = _check_common(fitted)
            fitted.check_state(K)
            _check_forecasts(fitted, K)
    except Fault as fault:
        raise Fault(f"model.state.{fault.place}", fault.problem) from fault
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"no forecasts can be made from it ({ascii(str(error))[1:100]})"
        raise Fault("model.state", problem) from error


def _check_common(fitted: CalibrationMap) -> int:
    """Check classes and columns; returns K."""
    classes = getattr(fitted, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise Fault("classes_", "expected an array")
    if not 2 <= len(classes) <= MAX_CLASSES:
        raise Fault("classes_", f"expected 2 to {MAX_CLASSES} classes, got {len(classes)}")
    if len(set(classes.tolist())) != len(classes) or any(c != c for c in classes.tolist()):  # noqa: PLR0124
        raise Fault("classes_", "the classes are not distinct")
    n_columns, K = getattr(fitted, "n_features_in_", None), len(classes)
    if type(n_columns) is not int or n_columns not in ({1, 2} if K == 2 else {K}):
        raise Fault("n_features_in_", f"expected a column for each of {K} classes")
    names = getattr(fitted, "feature_names_in_", np.array([""] * n_columns, dtype=object))
    if not isinstance(names, np.ndarray) or names.shape != (n_columns,) or names.dtype != object:
        raise Fault("feature_names_in_", f"expected {n_columns} names")
    return K


def _check_forecasts(fitted: CalibrationMap, n_classes: int) -> None:
    """Make a few forecasts; what they must be is known."""
    if fitted.n_features_in_ == 1:
        forecasts = np.array([0.0, 0.5, 1.0])
    else:
        forecasts = np.full((3, n_classes), 1 / n_classes)
        forecasts[:2] = 0.0
        forecasts[0, 0] = forecasts[1, -1] = 1.0
        if fitted.scores_ == "logit":
            forecasts = np.log(np.maximum(forecasts, 1e-300))
    Q = fitted.calibrate(forecasts)
    if Q.shape != (len(forecasts), n_classes) or not (
        (Q >= 0).all() and (np.abs(Q.sum(axis=1) - 1) < ROUNDING).all()
    ):
        raise Fault("", "the forecasts made from it are no probabilities")
