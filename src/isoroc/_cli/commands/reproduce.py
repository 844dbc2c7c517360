"""``isoroc reproduce``: the paper's experiments."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from isoroc import paper
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import split_words
from isoroc._cli.terminal import print_text


def reproduce(
    *,
    data: str | None = None,
    classes: Annotated[list[str] | None, Parameter(negative=())] = None,
    out: str = "build/paper",
    quick: Annotated[bool, Parameter(negative=())] = False,
) -> None:
    """Run the paper's experiments, next to isoroc's calibrator on the same data.

    Parameters
    ----------
    data
        A Covertype CSV with a column Class, ready forecasts (.npz), or a data home of
        scikit-learn. Default: Covertype is downloaded.
    classes
        Numbers of classes, separated by commas. Default: 2,3,4.
    out
        Folder to write to.
    quick
        Repeat on three random splits with two classifiers instead of 50 with four.
    """
    words = split_words(classes)
    try:
        numbers = None if words is None else [int(word) for word in words]
    except ValueError as error:
        raise CommandError(
            f"--classes {','.join(words or ())}: expected integers such as 2,3,4."
        ) from error
    done = paper.reproduce(data, classes=numbers, out=out, quick=quick, verbose=sys.stderr.isatty())
    print_text(str(done))
