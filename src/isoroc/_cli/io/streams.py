"""Standard input and output."""

from __future__ import annotations

import os
import sys

#: What ``-`` becomes before options are parsed: a hyphen would start an option.
STANDARD = "<standard>"


def mark_standard(tokens: list[str]) -> list[str]:
    """Words of a command line with every lone hyphen replaced by `STANDARD`.

    Examples
    --------
    >>> mark_standard(["fit", "-", "-o", "model.json"])
    ['fit', '<standard>', '-o', 'model.json']
    """
    return [STANDARD if word == "-" else word for word in tokens]


def discard_output() -> None:
    """Discard whatever is still written to standard output, because its reader closed it."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
