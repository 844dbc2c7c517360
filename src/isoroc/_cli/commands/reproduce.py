"""``isoroc reproduce``: the paper's experiments."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from isoroc import paper
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import split_words
from isoroc._cli.terminal import say


def reproduce(
    *,
    data: str | None = None,
    classes: Annotated[list[str] | None, Parameter(negative=())] = None,
    out: str = "build/paper",
    quick: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """The paper's experiments and figures, next to what isoroc makes of the same data.

    Parameters
    ----------
    data
        A Covertype CSV, ready forecasts (.npz) or a data home of scikit-learn; else it is fetched.
    classes
        Numbers of classes, joined by commas; by default 2,3,4.
    out
        Folder to write to.
    quick
        Few repetitions, for a look.
    """
    words = split_words(classes)
    try:
        numbers = None if words is None else [int(word) for word in words]
    except ValueError as error:
        raise CommandError(f"--classes {','.join(words or ())}: expected 2,3,4.") from error
    done = paper.reproduce(data, classes=numbers, out=out, quick=quick, verbose=sys.stderr.isatty())
    say(str(done))
