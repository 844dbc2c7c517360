"""InputError: what was wrong with what the user passed; and checks of parameters."""

from __future__ import annotations

import math
import numbers
from collections.abc import Collection
from typing import Any


class InputError(ValueError):
    """Input that cannot be used: which argument, which row, what is wrong and what to do.

    Attributes
    ----------
    argument, problem, fix : str
        Name of the argument, what is wrong, and what was expected or how to get there.
    row : int or None
        The first offending row, where one is to blame.

    Examples
    --------
    >>> error = InputError("P", 3, "sums to 1.1, not to 1", "pass probabilities")
    >>> str(error)
    'P: row 3 sums to 1.1, not to 1; pass probabilities.'
    >>> error.row
    3
    """

    def __init__(self, argument: str, row: int | None, problem: str, fix: str = "") -> None:
        super().__init__(argument, row, problem, fix)
        self.argument, self.row, self.problem, self.fix = argument, row, problem, fix

    def __str__(self) -> str:
        row = "" if self.row is None else f"row {self.row} "
        fix = f"; {self.fix}" if self.fix else ""
        return f"{self.argument}: {row}{self.problem}{fix}."


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
