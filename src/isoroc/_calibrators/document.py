"""Calibrators as documents for the model file."""

from __future__ import annotations

from functools import partial
from typing import Any

import isoroc
from isoroc._input import InputError
from isoroc._maps.load import COMMON, MAX_CLASSES
from isoroc._persistence import MAX_VALUES, checksum, encode


def find_kind(name: str) -> type[Any] | None:
    """Calibrator of a model file by the name of its class; None unless it is a public one."""
    known = name.endswith("Calibrator") and name in isoroc.__all__
    return getattr(isoroc, name) if known else None


def to_document(calibrator: Any, place: str, *, fitted: bool = True) -> dict[str, Any]:
    """The schema's ``calibrator`` for a calibrator and those inside it, with what they learned."""
    kind = type(calibrator)
    if find_kind(kind.__name__) is not kind:
        raise TypeError(
            f"{place}: {kind.__name__} does not go into a model file; calibrators of isoroc, "
            "numbers, strings and arrays do. Use skops or pickle for others."
        )
    if len(getattr(calibrator, "classes_", ())) > MAX_CLASSES:
        problem = f"{len(calibrator.classes_)} classes"
        raise InputError(place, None, problem, f"a model file holds at most {MAX_CLASSES}")
    state = {}
    if fitted:
        for name in (*COMMON, *calibrator.fitted_state):
            if hasattr(calibrator, name):
                value = getattr(calibrator, name)
                state[name] = encode(value, f"{place}.state.{name}", to_document)
    # A calibrator among the parameters is a pattern to copy: what it may have learned stays out.
    parameters = {
        name: encode(value, f"{place}.parameters.{name}", partial(to_document, fitted=False))
        for name, value in calibrator.get_params(deep=False).items()
    }
    return {
        "type": "calibrator",
        "kind": kind.__name__,
        "parameters": parameters,
        "state": state,
    }


def checksum_of(calibrator: Any) -> str | None:
    """Checksum of the file of a map, or that `save` would write; None if no file can hold it."""
    if calibrator.checksum is not None:
        return str(calibrator.checksum)
    try:
        document = to_document(calibrator, "model")
        if _count_values(document) > MAX_VALUES:
            return None
        return checksum(document, getattr(calibrator, "summary_", {}))
    except (TypeError, ValueError):
        return None


def _count_values(entry: Any) -> int:
    """Values in a document; lists hold values of one kind."""
    if isinstance(entry, dict):
        return sum(map(_count_values, entry.values()))
    if isinstance(entry, list):
        nested = entry and isinstance(entry[0], dict | list)
        return sum(map(_count_values, entry)) if nested else len(entry)
    return 1
