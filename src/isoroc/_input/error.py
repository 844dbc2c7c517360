"""InputError, and checks of parameters."""

import math
import numbers
from collections.abc import Collection, Iterable
from typing import Any


class InputError(ValueError):
    """Invalid input: the argument, the row, the problem and the fix.

    Attributes
    ----------
    argument, problem, fix : str
        Name of the argument, what is wrong with it, and what to do.
    row : int or None
        The first offending row, if any.

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
        self.argument = argument
        self.row = row
        self.problem = problem
        self.fix = fix

    def __str__(self) -> str:
        row = "" if self.row is None else f"row {self.row} "
        fix = f"; {self.fix}" if self.fix else ""
        text = f"{self.argument}: {row}{self.problem}{fix}"
        return text if text.endswith("?") else f"{text}."


def check_number(
    name: str, value: Any, kind: type[Any] = float, *, minimum: float, others: tuple[Any, ...] = ()
) -> None:
    """Check that a value is a finite number >= minimum, an integer if kind is int, or in others."""
    if any(value is other or (isinstance(value, str) and value == other) for other in others):
        return
    whole = issubclass(kind, numbers.Integral)
    is_number = isinstance(value, numbers.Integral if whole else numbers.Real)
    if not is_number or isinstance(value, bool) or not minimum <= value < math.inf:
        expected = f"expected {'an int' if whole else 'a finite number'} >= {minimum:g}"
        choices = "".join(f" or {other!r}" for other in others)
        raise InputError(name, None, f"is {value!r}", expected + choices)


def check_confidence(confidence: Any) -> None:
    """Check the probability that an interval covers the truth."""
    if not isinstance(confidence, numbers.Real) or not 0 < float(confidence) < 1:
        raise InputError("confidence", None, f"is {confidence!r}", "expected 0 < confidence < 1")


def check_option(name: str, value: Any, options: tuple[Any, ...]) -> None:
    if not any(value is option or value == option for option in options):
        from difflib import get_close_matches  # noqa: PLC0415  # slow to import

        allowed = ", ".join(repr(option) for option in options)
        near = get_close_matches(str(value), map(str, options), n=1)
        got = f"got {value!r}" + (f". Did you mean {near[0]!r}?" if near else "")
        raise InputError(name, None, f"expected one of {allowed}", got)


def check_names(name: str, given: Any) -> list[str]:
    """List of names, given as a name or several."""
    several = isinstance(given, Iterable) and not isinstance(given, str)
    names = list(given) if several else [given]
    if not all(isinstance(each, str) for each in names):
        raise InputError(name, None, f"is {given!r}", "expected a name or a sequence of names")
    return names


def check_choices(name: str, chosen: Collection[str], allowed: Collection[str]) -> None:
    if isinstance(chosen, str) or not chosen or set(chosen) - set(allowed):
        expected = ", ".join(repr(choice) for choice in allowed)
        raise InputError(name, None, f"got {chosen!r}", f"expected one or more of {expected}")
