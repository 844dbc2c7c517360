"""``isoroc count`` and ``isoroc merge``: count rows in cells, and add up files of counts."""

import os
from dataclasses import replace

from isoroc._cli import options as opt
from isoroc._cli.errors import CommandError
from isoroc._cli.io.formats import file_errors
from isoroc._cli.io.opening import expand, open_source
from isoroc._cli.io.writing import check_target
from isoroc._cli.models import parse_value
from isoroc._cli.reading import open_rows
from isoroc._cli.terminal import print_note
from isoroc._counts import Counts


def count(
    forecasts: opt.Tables,
    /,
    *,
    output: opt.Output,
    selection: opt.Selection = opt.ALL_ROWS,
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
        Column of integers. Rows with the same integer share a fold. Default: rows with the same
        forecast do.
    """
    _check_output(output, forecasts)
    if selection.unit == "auto":
        selection = replace(selection, unit="probability")
    with open_source(forecasts, selection) as source:
        counts = open_rows(source, selection).count(parse_value(resolution), folds, fold_by)
    _write(counts, output)


def merge(counts: list[str], /, *, output: opt.Output, decay: float | None = None) -> None:
    """Merge files of counts.

    Parameters
    ----------
    counts
        Files written by isoroc count or by a warehouse, and globs.
    output
        File of counts to write.
    decay
        Multiply the weights of all files but the last by this factor.
    """
    _check_output(output, counts)
    if decay is not None and not 0 < decay <= 1:
        raise CommandError(f"--decay {decay:g}: expected a number above 0 and at most 1.")
    paths = expand(counts)
    if len(set(map(os.path.realpath, paths))) < len(paths):
        raise CommandError("a file is named twice, so its rows would count twice; name it once.")
    *others, last = paths
    if decay is None or not others:
        merged = Counts.from_parquet(*paths)
    else:
        merged = Counts.from_parquet(*others).decay(decay) + Counts.from_parquet(last)
    _write(merged, output)


def _check_output(output: str, inputs: list[str]) -> None:
    if output == opt.STANDARD:
        raise CommandError("counts are written to a file; name one with -o.")
    check_target(output, inputs, "counts")


def _write(counts: Counts, output: str) -> None:
    with file_errors(output):
        counts.to_parquet(output)
    print_note(f"{output}: {counts}")
