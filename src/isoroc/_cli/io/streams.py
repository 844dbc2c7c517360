"""Standard input and output as commands see them."""

from __future__ import annotations

import os
import sys

#: What ``-`` becomes before options are read: to the parser a hyphen would begin an option.
STANDARD = "<standard>"


def mark_standard(tokens: list[str]) -> list[str]:
    """Words of a command line with every lone hyphen marked.

    Examples
    --------
    >>> mark_standard(["fit", "-", "-o", "model.json"])
    ['fit', '<standard>', '-o', 'model.json']
    """
    return [STANDARD if word == "-" else word for word in tokens]


def forget_output() -> None:
    """Let nothing more be written to standard output, whose reader has gone."""
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
