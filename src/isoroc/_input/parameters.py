"""Checks of parameters, with errors that name the parameter and what was expected."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection
from typing import Any

from isoroc._input.error import InputError


def check_number(name: str, value: Any, kind: type[Any], *, minimum: float) -> None:
    """Check that a value is a finite number >= minimum, of a type of `numbers`."""
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not minimum <= value < math.inf:
        expected = "an int" if kind is numbers.Integral else "a finite number"
        raise InputError(name, None, f"is {value!r}", f"expected {expected} >= {minimum:g}")


def check_confidence(confidence: float) -> None:
    """Check the probability that an interval covers the truth."""
    if not 0 < confidence < 1:
        raise InputError("confidence", None, f"is {confidence!r}", "expected 0 < confidence < 1")


def check_option(name: str, value: Any, options: tuple[Any, ...]) -> None:
    """Check that a value is one of the options."""
    if not any(value is option or value == option for option in options):
        allowed = ", ".join(repr(option) for option in options)
        raise InputError(name, None, f"expected one of {allowed}", f"got {value!r}")


def check_choices(name: str, chosen: Collection[str], allowed: Collection[str]) -> None:
    """Raise unless one or more names were chosen, all of them allowed."""
    if isinstance(chosen, str) or not chosen or set(chosen) - set(allowed):
        expected = ", ".join(repr(choice) for choice in allowed)
        raise InputError(name, None, f"got {chosen!r}", f"expected one or more of {expected}")
