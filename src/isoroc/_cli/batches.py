"""Batches of checked numbers, weights and segments. Errors name the file and the row.

A batch is a dataframe of polars. Besides the columns that a command uses, it holds the number of
each row in the whole table (`ROW`), because conditions and samples leave rows out. `Source.place`
turns this number into a file and a row within it. The library checks arrays and knows rows by
their position in the batch, so `located` translates its errors.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import polars as pl

from isoroc._cli.errors import CommandError, in_options
from isoroc._cli.io.formats import file_errors
from isoroc._cli.io.source import BATCH, ROW, Source
from isoroc._cli.terminal import progress_bar
from isoroc._core.types import Floats
from isoroc._counts import hash_keys
from isoroc._input import InputError, Segments, check_forecasts, check_segments, check_weights

T = TypeVar("T")


def stream_rows(source: Source, where: str | None, names: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Batches of the selected rows, none of them empty, with some columns and the row number."""
    rows = source.rows(where).select(ROW, *dict.fromkeys(names))
    total = source.count() if where is None else None
    with file_errors(source.name), progress_bar("reading", total) as advance:
        for batch in rows.collect_batches(chunk_size=BATCH):
            advance(len(batch))
            if not batch.is_empty():
                yield batch


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items, each made in another thread while the previous one is used."""
    made = iter(items)
    end: Any = object()
    with ThreadPoolExecutor(1) as thread:
        item = thread.submit(next, made, end)
        while (now := item.result()) is not end:
            item = thread.submit(next, made, end)
            yield now


def is_sampled(batch: pl.DataFrame, share: float) -> pl.Series:
    """Which rows belong to a random sample: rows whose hashed number is small."""
    hashed = hash_keys(batch[ROW].to_numpy()[:, None], None)
    return pl.Series((hashed >> np.uint64(11)) * 2.0**-53 < share)


def no_rows(source: Source, where: str | None) -> CommandError:
    """Error about a table without rows."""
    which = "" if where is None else f" with {where}"
    return CommandError(f"{source.name}: no rows{which}; at least one is needed.")


def check_types(source: Source, columns: Sequence[str]) -> None:
    """Raise an error if a column holds neither numbers nor text."""
    for name in columns:
        kind = source.schema[name]
        if not kind.is_numeric() and kind not in (pl.Boolean, pl.String, pl.Categorical, pl.Enum):
            what = f"column {name!r} has the type {kind}"
            raise CommandError(f"{source.name}: {what}; expected numbers, text or booleans.")


def forecasts_of_batch(
    batch: pl.DataFrame,
    columns: Sequence[str],
    source: Source,
    check: Callable[[Floats], Floats] = check_forecasts,
) -> Floats:
    """Forecasts of a batch, of shape (n, K) or (n,), as `check` or a calibrator returns them."""
    values = np.column_stack([read_numbers(batch, name, source) for name in columns])
    with located(batch, columns, source):
        return check(values[:, 0] if len(columns) == 1 else values)


def read_weights(batch: pl.DataFrame, column: str, source: Source) -> Floats:
    weights = read_numbers(batch, column, source)
    if weights.any():  # a batch without weight is valid, a table without weight is not
        with located(batch, [column], source):
            check_weights(weights, len(weights))
    return weights


def read_segments(batch: pl.DataFrame, known: Mapping[str, bool]) -> Segments | None:
    """Segments of a batch. In numeric columns, values that are not numbers count as missing."""
    columns = {}
    for name, numeric in known.items():
        column = batch[name].cast(pl.Float64 if numeric else pl.String, strict=False)
        if batch[name].dtype.is_float() and not numeric:
            column = column.str.strip_suffix(".0")  # the text of whole numbers, as everywhere
        columns[name] = column
    return check_segments(columns, len(batch), known=known) if known else None


def read_numbers(batch: pl.DataFrame, name: str, source: Source) -> Floats:
    """Numbers of a column. Raises an error unless all are finite."""
    values = batch[name].cast(pl.Float64, strict=False)
    finite = values.is_finite().fill_null(value=False)
    if not finite.all():
        at = int(finite.arg_min() or 0)
        raw = batch[name][at]
        value = values[at]
        problem = "is empty" if raw is None else f"is {raw!r}, not a number"
        problem = problem if value is None else f"is {value}, not a finite number"
        fix = "correct such rows, or leave them out with --where"
        if isinstance(raw, str) and re.fullmatch(r"-?\d*,\d+", raw.strip()):
            fix = f"write numbers with a decimal point, such as {raw.strip().replace(',', '.')}"
        elif value is None:  # in conditions, text that is not a number is null
            fix += f' "{_quoted(name)} IS NOT NULL"'
        raise source.error(batch, at, name, f"{problem}; {fix}.")
    return values.to_numpy()


@contextmanager
def located(batch: pl.DataFrame, columns: Sequence[str], source: Source) -> Iterator[None]:
    """Context that adds file and columns to errors about a row of a batch, and names options."""
    try:
        yield
    except InputError as error:
        if error.row is None:
            raise
        fix = in_options(error.fix.partition(". For counts")[0])
        if len(columns) > 1 and not re.search("--|divide|shares", fix):
            fix = "name one column of probabilities for each class with --probs, or one column of "
            fix += "scores for two classes"
        where = f"{source.place(batch[ROW][error.row])} ({', '.join(columns)})"
        raise CommandError(f"{where} {in_options(error.problem)}; {fix}.") from error


def _quoted(name: str) -> str:
    """Name of a column, quoted for a condition in SQL."""
    return name if name.isidentifier() else f'\\"{name}\\"'
