"""Forecasts and weights of a batch of rows; errors name the file, the row and the columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from isoroc._cli.errors import CommandError
from isoroc._cli.io.labels import TEXT_TYPES
from isoroc._cli.io.source import ROW, Source
from isoroc._input import InputError, check_forecasts, check_weights
from isoroc._simplex import Floats


def read_forecasts(
    batch: pl.DataFrame,
    columns: Sequence[str],
    source: Source,
    check: Callable[[Floats], Floats] = check_forecasts,
) -> Floats:
    """Validated forecasts of a batch, or what a calibrator makes of them.

    Parameters
    ----------
    batch : DataFrame
        Rows, with their numbers in the column `ROW`.
    columns : sequence of str
        Columns of the forecasts.
    source : Source
        The table that the batch comes from.
    check : callable
        Takes an array of shape (n, K), or (n,) for one column, and raises `InputError` if a row is
        invalid: `check_forecasts` or a calibrator's `predict_proba`.
    """
    values = np.empty((len(batch), len(columns)))
    for k, name in enumerate(columns):
        values[:, k] = _numbers(batch, name, source)
    try:
        return check(values[:, 0] if len(columns) == 1 else values)
    except InputError as error:
        fix = str(error.fix).replace('scores="logit"', "--scores logit")
        if len(columns) > 1:
            fix = (
                "name one column of probabilities for each class with --probs, or one column of "
                "scores for two classes"
            )
        raise _locate(error, fix, batch, columns, source) from error


def read_leniently(batch: pl.DataFrame, columns: Sequence[str], source: Source) -> Floats:
    """Forecasts of a batch as numbers that are not validated; NaN where there is none."""
    values = [
        _check_numeric(batch[name], source).cast(pl.Float64, strict=False).fill_null(np.nan)
        for name in columns
    ]
    return np.column_stack([column.to_numpy() for column in values])


def read_weights(batch: pl.DataFrame, column: str, source: Source) -> Floats:
    """Validated weights of a batch."""
    weights = _numbers(batch, column, source)
    if weights.any():  # a batch without weight is valid, a table without weight is not
        try:
            check_weights(weights, len(weights))
        except InputError as error:
            raise _locate(error, error.fix, batch, [column], source) from error
    return weights


def _locate(
    error: InputError, fix: str, batch: pl.DataFrame, columns: Sequence[str], source: Source
) -> Exception:
    """The error with the file and row that it is about; the error itself if it names no row."""
    if error.row is None:
        return error
    place = source.place(batch[ROW][error.row])
    return CommandError(f"{place} ({', '.join(columns)}) {error.problem}; {fix}.")


def _numbers(batch: pl.DataFrame, name: str, source: Source) -> Floats:
    """Column as finite numbers."""
    raw = _check_numeric(batch[name], source)
    values = raw.cast(pl.Float64, strict=False)
    finite = values.is_finite().fill_null(value=False)
    if not finite.all():
        at = int(finite.arg_min() or 0)
        if raw[at] is None:
            problem = "is empty"
        elif values[at] is None:
            problem = f"is {raw[at]!r}, not a number"
        else:
            problem = f"is {values[at]}, not a finite number"
        raise CommandError(
            f"{source.place(batch[ROW][at])}, column {name!r} {problem}; correct such rows, or "
            "leave them out with --where."
        )
    return values.to_numpy()


def _check_numeric(column: pl.Series, source: Source) -> pl.Series:
    if not (column.dtype.is_numeric() or column.dtype in TEXT_TYPES):
        raise CommandError(
            f"{source.name}: column {column.name!r} has the type {column.dtype}, which is not "
            "numeric."
        )
    return column
