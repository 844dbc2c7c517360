"""CSV and TSV files: separators, headers, and rows with missing or extra fields."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from isoroc._cli.errors import CommandError

#: Separators that are recognised in the header of a CSV file.
SEPARATORS = (",", ";", "\t", "|")
#: A header with line breaks between quotes may take so many lines.
_HEADER_LINES = 64


def find_separator(path: Path) -> str:
    """Separator that splits the header of a file into most columns."""
    return max(SEPARATORS, key=lambda separator: len(_first_record(path, separator)))


def read_header(path: Path, name: str, separator: str) -> list[str]:
    """Names of the columns of a file, which is `name` in messages."""
    header = _first_record(path, separator)
    if not header:
        raise CommandError(f"{name}: empty; the first line must name the columns.")
    twice = [column for k, column in enumerate(header) if column in header[:k]]
    if twice:
        raise CommandError(f"{name}: two columns are named {twice[0]!r}; rename one of them.")
    return header


def _first_record(path: Path, separator: str) -> list[str]:
    lines = pl.scan_lines(path, glob=False).head(_HEADER_LINES).collect().to_series().to_list()
    if lines:
        lines[0] = lines[0].removeprefix("\ufeff")  # byte order mark
    return next(csv.reader((f"{line}\n" for line in lines), delimiter=separator), [])


def scan_text(path: Path, header: list[str], separator: str) -> pl.LazyFrame:
    """Rows of a file, all of them text."""
    return pl.scan_csv(
        path, new_columns=header, separator=separator, infer_schema=False, glob=False
    )


def check_fields(path: Path, name: str, n_fields: int, separator: str) -> None:
    """Raise an error if a row has another number of fields than the header.

    polars fills missing fields with null, and skips extra ones that are not read.
    """
    if n_fields == 1:
        return  # without a separator there is nothing to count
    line = pl.col("line")
    escaped = re.escape(separator)
    outside = line.str.replace_all(rf'(^|{escaped})"(?:[^"]|"")*"', "$1")
    counted = pl.when(line.str.contains('"', literal=True)).then(outside).otherwise(line)
    wrong = counted.str.count_matches(separator, literal=True) != n_fields - 1
    lines = pl.scan_lines(path, row_index_name="at", glob=False).select(
        at=pl.col("at").filter(wrong).min(),
        is_open=(line.str.count_matches('"', literal=True) % 2 == 1).any(),
    )
    at, is_open = lines.collect(engine="streaming").row(0)
    if at is None and not is_open:
        return
    # Quotes may contain line breaks, so the record decides, not the line.
    for row, fields in enumerate(_records(path, separator)):
        if len(fields) != n_fields:
            raise CommandError(
                f"{name}: row {row - 1} has {len(fields)} fields, but the header has {n_fields}; "
                "the file may be truncated, or text that contains the separator lacks quotes."
            )


def _records(path: Path, separator: str) -> Iterator[list[str]]:
    batches = pl.scan_lines(path, glob=False).collect_batches()
    lines = (f"{line}\n" for batch in batches for line in batch.to_series())
    return csv.reader(lines, delimiter=separator)
