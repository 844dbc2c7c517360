"""``isoroc count``: gather forecasts and outcomes in cells, and write a file of counts."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from isoroc._cli.errors import CommandError
from isoroc._cli.io.counting import read_counts
from isoroc._cli.io.files import check_target, open_source
from isoroc._cli.io.reading import Selection
from isoroc._cli.io.source import file_errors
from isoroc._cli.io.streams import STANDARD
from isoroc._cli.models import parse_value
from isoroc._cli.terminal import print_note


def count(
    forecasts: list[str],
    /,
    *,
    output: Annotated[str, Parameter(alias="-o")],
    selection: Selection | None = None,
    resolution: str = "auto",
    folds: int = 5,
    fold_by: str | None = None,
) -> None:
    """Count forecasts and outcomes.

    Parameters
    ----------
    forecasts
        Files, globs, folders, or - for standard input.
    output
        File of counts to write, in Parquet.
    resolution
        Fineness of the cells: auto, exact, or a power of two.
    folds
        Number of folds for cross-validation.
    fold_by
        Column of whole numbers; rows with the same number share a fold. Default: rows with the same
        forecast do.
    """
    if output == STANDARD:
        raise CommandError("counts are written to a file; name one with -o.")
    check_target(output, forecasts)
    selection = selection or Selection()
    with open_source(forecasts, selection.format, selection.separator) as source:
        counts, _ = read_counts(
            source,
            selection,
            resolution=parse_value(resolution),
            folds=folds,
            fold_by=fold_by,
        )
    with file_errors(output):
        counts.to_parquet(output)
    print_note(f"{output}: {counts}")
