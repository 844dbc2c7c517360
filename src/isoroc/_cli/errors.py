"""What can go wrong for the user, and the one line that says so."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class CommandError(Exception):
    """Something that the user can mend; its message is one line that says how."""


def first_line(error: BaseException) -> str:
    r"""What an exception says, without the hints for programmers that may follow.

    Examples
    --------
    >>> first_line(ValueError("no such thing\n\nResolved plan until failure: ..."))
    'no such thing'
    """
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the nearest known one, else all of them.

    Examples
    --------
    >>> did_you_mean("lable", ["label", "weight"])
    "did you mean 'label'?"
    >>> did_you_mean("x", ["label", "weight"])
    'there are label, weight.'
    """
    names = list(known)
    near = get_close_matches(word, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}."
