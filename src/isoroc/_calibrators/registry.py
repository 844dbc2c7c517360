"""Calibrators by name, and from model files: everything is checked, nothing is executed."""

import os
import re
from functools import cache
from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import Any

from isoroc._calibrators import __path__
from isoroc._calibrators.base import COMMON
from isoroc._maps.loading import checked_map, decode_known
from isoroc._maps.modelfile.document import Fault, faults_of, read


@cache
def classes_by_name() -> dict[str, type[Any]]:
    """All calibrators of the package by the names of their classes, which model files hold."""
    modules = [import_module(f"{__package__}.{module.name}") for module in iter_modules(__path__)]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if name.endswith("Calibrator") and not isabstract(value)
    }


def short_name(name: str) -> str:
    """Short name of a class of calibrators: "venn-abers" for VennAbersCalibrator."""
    words = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
    return words.sub("-", name.removesuffix("Calibrator")).lower()


@cache
def methods() -> dict[str, type[Any]]:
    """Calibrators of classes by their short names: "irp", "venn-abers"."""
    return {
        short_name(name): calibrator
        for name, calibrator in sorted(classes_by_name().items())
        if calibrator._has_classes
    }


def load(path: str | os.PathLike[str]) -> Any:
    """Load a calibrator from a model file that `save` wrote, with the same forecasts.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    calibrator
        Fitted, of the class that was saved. Its `summary_` is what the file says about the fit.

    Raises
    ------
    ModelFileError
        If the file is not a valid model file. The message names the entry and the fix.

    Examples
    --------
    >>> import os, tempfile
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], ["no", "yes", "no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.json")
    ...     calibrator.save(path, summary={"data": "2026-07"})
    ...     loaded = isoroc.load(path)
    >>> loaded.summary_["rows"], loaded.summary_["data"]
    (4, '2026-07')
    """
    document = read(path)
    with faults_of(path):
        model = document["model"]
        calibrator = _restore(model, "model", COMMON)
        calibrator.map_ = checked_map(model, vars(calibrator))
        for name, check in calibrator._state.items():
            value = getattr(calibrator, name)
            sizes = {"K": len(calibrator.classes_)}
            check(value, f"model.state.{name}", sizes)
        calibrator.summary_ = document["summary"]
        calibrator._finish()
    return calibrator


def unfitted(document: dict[str, Any], place: str) -> Any:
    """Calibrator with the parameters of a document."""
    return _restore(document, place, fitted=False)


def _restore(
    document: dict[str, Any], place: str, common: tuple[str, ...] = (), *, fitted: bool = True
) -> Any:
    """Calibrator with the parameters of a document and, if it was fitted, its attributes."""
    is_calibrator = document["type"] == "calibrator"
    make = classes_by_name().get(document["kind"]) if is_calibrator else None
    if make is None:
        problem = f"{document.get('kind')!a} is not a calibrator of this version"
        raise Fault(f"{place}.kind", problem)
    calibrator = make()
    known = calibrator.get_params(deep=False)
    learned = list(calibrator._state) if fitted else []
    given = document["parameters"]
    state = document["state"]
    attributes = decode_known(given, known, f"{place}.parameters", unfitted)
    names = {*common, *learned}
    attributes |= decode_known(state, names, f"{place}.state", _restore, learned)
    vars(calibrator).update(attributes)
    return calibrator
