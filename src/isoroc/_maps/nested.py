"""Maps inside maps, when they come from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isoroc._maps.base import CalibrationMap
from isoroc._persistence import Fault


def check_nested(maps: Mapping[str, Any], n_classes: int) -> None:
    """Raise a `Fault` unless all values, by their places in the file, are sound maps."""
    for place, fitted in maps.items():
        if not isinstance(fitted, CalibrationMap):
            raise Fault(place, "expected a calibrator")
        try:
            fitted.check_state(n_classes)
        except Fault as fault:
            raise Fault(f"{place}.{fault.place}", fault.problem) from fault


def by_place(name: str, maps: Sequence[CalibrationMap]) -> dict[str, CalibrationMap]:
    """Entries of a list by their places in the file."""
    return {f"{name}[{m}]": fitted for m, fitted in enumerate(maps)}
