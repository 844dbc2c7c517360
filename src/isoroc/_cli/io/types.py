"""Types of the columns that a command only copies, where the user asks for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.io.columns import check_column, split_words
from isoroc._cli.io.formats import parse_boolean
from isoroc._cli.io.source import ROW, Source


class ColumnType(NamedTuple):
    """A type that text can be read as."""

    dtype: pl.DataType
    expected: str
    """What each value must be, for messages."""
    parse: Callable[[pl.Expr], pl.Expr]
    """Values of a column of text, null where the text is not of the type."""


def _parse_date(text: pl.Expr) -> pl.Expr:
    return text.str.to_date("%Y-%m-%d", strict=False)


def _parse_time(offset: str, time_zone: str | None, text: pl.Expr) -> pl.Expr:
    return text.str.replace(" ", "T", literal=True).str.to_datetime(
        f"%Y-%m-%dT%H:%M:%S%.f{offset}", time_unit="us", time_zone=time_zone, strict=False
    )


#: The types by the names that the option takes.
TYPES = {
    "int": ColumnType(pl.Int64(), "a whole number", lambda text: text.cast(pl.Int64, strict=False)),
    "float": ColumnType(pl.Float64(), "a number", lambda text: text.cast(pl.Float64, strict=False)),
    "bool": ColumnType(pl.Boolean(), "true or false", parse_boolean),
    "date": ColumnType(pl.Date(), "a date such as 2025-03-01", _parse_date),
    "datetime": ColumnType(
        pl.Datetime("us"), "a time such as 2025-03-01T12:30:00", partial(_parse_time, "", None)
    ),
    "timestamp": ColumnType(
        pl.Datetime("us", "UTC"),
        "a time with an offset such as 2025-03-01T12:30:00+02:00",
        partial(_parse_time, "%#z", "UTC"),
    ),
}


def parse_types(
    given: Sequence[str] | None, schema: Mapping[str, pl.DataType], forecasts: Collection[str]
) -> dict[str, ColumnType]:
    """Types by column from words such as ``day=date``."""
    found = {}
    for word in split_words(given) or ():
        name, sign, kind = word.rpartition("=")
        if not sign:
            raise CommandError(f"--type {word}: expected COLUMN=TYPE, such as day=date.")
        check_column("--type", name, list(schema))
        if kind not in TYPES:
            known = did_you_mean(kind, TYPES)
            raise CommandError(f"--type {word}: {kind!r} is not a type; {known}")
        if name in forecasts:
            raise CommandError(f"--type {word}: {name} holds forecasts, which are always numbers.")
        if schema[name] not in (pl.String, TYPES[kind].dtype):
            raise CommandError(
                f"--type {word}: only columns of text can be read as a type, and {name} has the "
                f"type {schema[name]}."
            )
        found[name] = TYPES[kind]
    return found


def read_typed(batch: pl.DataFrame, name: str, kind: ColumnType, source: Source) -> pl.Series:
    """A column of a batch as values of a type; empty text is a missing value."""
    texts = batch[name]
    if texts.dtype == kind.dtype:
        return texts
    values = batch.select(kind.parse(pl.col(name))).to_series()
    wrong = values.is_null() & (texts.fill_null("") != "")
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        raise CommandError(
            f"{source.place(batch[ROW][at])}, column {name!r} is {texts[at]!r}, not "
            f"{kind.expected}; correct such rows, or copy the column as text without --type."
        )
    return values
