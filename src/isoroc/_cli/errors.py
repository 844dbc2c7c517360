"""Errors that the user can fix, and the exit codes of the command."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    CHECK_FAILED = 1  #: a condition of ``--fail-if`` holds, or an alarm of ``monitor``
    BAD_INPUT = 2  #: options, files or data that cannot be used
    INTERNAL = 3  #: a bug in isoroc
    INTERRUPTED = 130
    BROKEN_PIPE = 141  #: standard output was closed


class CommandError(Exception):
    """An error that the user can fix; its argument says how."""


def first_line(error: BaseException) -> str:
    """Message of an exception without the details for programmers that may follow it."""
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """End of a message about an unknown word: the closest known word, or else all of them."""
    names = list(known)
    near = get_close_matches(word, names, n=1)
    shown = ", ".join(names[:50]) + (", ..." if len(names) > 50 else "")
    return f"did you mean {near[0]!r}?" if near else f"expected one of {shown}."


def in_options(text: str) -> str:
    """A message of the library with the options of the command in place of arguments."""
    return re.sub(r'unit="(\w+)"', r"--unit \1", text)
