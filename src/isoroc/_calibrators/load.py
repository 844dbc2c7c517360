"""Calibrators from model files: everything is checked, nothing is executed."""

from __future__ import annotations

import os
from typing import Any

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.document import find_kind
from isoroc._maps.load import restore_checked, unknown_kind
from isoroc._persistence import Fault, decode, read


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
    return restore_checked(read(path), path, _make)


def _make(document: dict[str, Any], place: str) -> Calibrator:
    """Calibrator with the parameters of a document, not fitted."""
    kind = find_kind(document["kind"])
    if kind is None:
        raise unknown_kind(document, place)
    calibrator: Calibrator = kind()
    known = calibrator.get_params(deep=False)
    for name, value in document["parameters"].items():
        inner = f"{place}.parameters.{ascii(name)[1:-1]}"
        if name not in known:
            raise Fault(inner, "is unknown to this version")
        setattr(calibrator, name, decode(value, inner, _make_pattern))
    return calibrator


def _make_pattern(document: dict[str, Any], place: str) -> Calibrator:
    """Calibrator that is a parameter of another: it has no state."""
    for name in document["state"]:
        raise Fault(f"{place}.state.{ascii(name)[1:-1]}", "is unknown to this version")
    return _make(document, place)
