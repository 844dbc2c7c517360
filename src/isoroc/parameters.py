"""Checks of parameters, with errors that name the parameter and what was expected."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np


def check_number(name: str, value: Any, kind: type[Any], *, minimum: float) -> None:
    """Refuse what is not a number of a kind (numbers.Real, numbers.Integral) >= minimum."""
    expected = "an integer" if kind is numbers.Integral else "a number"
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name}: expected {expected} >= {minimum}, got {value!r}.")
    if not minimum <= value < np.inf:
        raise ValueError(f"{name}: expected {expected} >= {minimum}, got {value!r}.")


def check_option(name: str, value: Any, options: tuple[Any, ...]) -> None:
    """Refuse what is not one of the options."""
    if not any(value is option or value == option for option in options):
        raise ValueError(f"{name}: expected one of {options}, got {value!r}.")
