"""``isoroc count``: gather forecasts and outcomes in cells, and write a file of counts."""

from dataclasses import replace

from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import COUNTS, check_target, open_source
from isoroc._cli.io.reading import Reader
from isoroc._cli.io.source import file_errors
from isoroc._cli.models import parse_value
from isoroc._cli.options import ALL_ROWS, STANDARD, Force, Forecasts, Output, Selection
from isoroc._cli.terminal import print_note


def count(
    forecasts: Forecasts,
    /,
    *,
    output: Output,
    selection: Selection = ALL_ROWS,
    force: Force = False,
    resolution: str = "auto",
    folds: int = 5,
    fold_by: str | None = None,
) -> None:
    """Count forecasts and outcomes.

    Parameters
    ----------
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
    check_target(output, forecasts, COUNTS, force=force)
    if selection.unit == "auto":
        selection = replace(selection, unit="probability")
    with open_source(forecasts, selection) as source:
        counts = Reader(source, selection).count(parse_value(resolution), folds, fold_by)
    with file_errors(output):
        counts.to_parquet(output)
    print_note(f"{output}: {counts}")
