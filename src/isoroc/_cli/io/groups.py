"""The group of each row, from a column of a table."""

from __future__ import annotations

import numpy as np
import polars as pl

from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import check_column
from isoroc._cli.io.reading import Columns, Selection, read_batches
from isoroc._cli.io.source import ROW, Source
from isoroc._input import InputError, Names, check_groups


def read_groups(source: Source, selection: Selection, column: str, option: str) -> Names:
    """Group of each row that `read_sample` reads with the same selection.

    Parameters
    ----------
    source : Source
        The table.
    selection : Selection
        Which rows are read.
    column : str
        The column of the groups.
    option : str
        Where the name of the column comes from, for the error message.
    """
    check_column(option, column, list(source.schema()))
    batches = read_batches(source, selection, Columns([], column, None))
    return np.concatenate([groups_of(batch, column, source) for batch in batches])


def groups_of(batch: pl.DataFrame, column: str, source: Source) -> Names:
    """Group of each row of a batch; errors name the file and the row."""
    values = batch[column]
    if values.null_count():
        row, problem = int(values.is_null().arg_max() or 0), "is empty"
        fix = "name a group for such rows"
    else:
        try:
            return check_groups(values, len(values))
        except InputError as error:
            row, problem, fix = error.row or 0, error.problem, str(error.fix)
    raise CommandError(
        f"{source.place(batch[ROW][row])}, column {column!r} {problem}; {fix}, or leave them "
        "out with --where."
    )
