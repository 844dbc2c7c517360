"""Files of one format, read lazily as one table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from isoroc._cli.errors import CommandError, first_line
from isoroc._cli.io.formats import Format
from isoroc._cli.io.text import check_fields, read_header, scan_text
from isoroc._cli.io.where import parse_condition

#: Number of rows per batch.
BATCH = 1 << 17
#: Column that keeps each row's number in the table when rows are filtered, for error messages.
ROW = "__row__"
#: Number of rows from which the types of columns in NDJSON files are inferred.
_INFERRED = 10_000
#: Value of the folders of rows without a value, in Hive and Spark.
_MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Source:
    """Files of one format, read in order as one table.

    A file may lack columns of others, and its numbers may have other types. All columns of CSV and
    TSV files are text, so that they can be copied without a change.
    """

    paths: list[Path]
    format: Format
    names: list[str]
    """Names of the files in messages."""
    partitions: list[dict[str, str]] = field(default_factory=list)
    """For each file the columns, and their values, that its folders ``column=value`` stand for."""

    @property
    def untyped(self) -> bool:
        """Whether the format stores all values as text."""
        return self.format.separator is not None

    @property
    def name(self) -> str:
        """Name of the whole table in messages."""
        rest = len(self.names) - 1
        return self.names[0] + (f" and {rest} more" if rest else "")

    def scan(self, numbers: Collection[str] = ()) -> pl.LazyFrame:
        """All rows, lazily.

        Parameters
        ----------
        numbers : collection of str, default=()
            In NDJSON files, the columns of real numbers, even if the first rows hold integers.
        """
        typed = self.format.kind in ("parquet", "arrow")
        if typed and not self._partition_types and self._are_alike:
            return self._scan_typed(self.paths)
        parts = [self._scan_file(k, numbers) for k in range(len(self.paths))]
        return parts[0] if len(parts) == 1 else pl.concat(parts, how="diagonal_relaxed")

    def _scan_file(self, k: int, numbers: Collection[str]) -> pl.LazyFrame:
        """Rows of a file, with the columns that its folders stand for."""
        path, kind = self.paths[k], self.format.kind
        if self.format.separator is not None:
            rows = scan_text(path, self._headers[k], self.format.separator)
        elif kind == "ndjson":
            reals = dict.fromkeys(numbers, pl.Float64)
            rows = pl.scan_ndjson(path, infer_schema_length=_INFERRED, schema_overrides=reals)
        elif kind in ("parquet", "arrow"):
            rows = self._scan_typed([path])
        else:
            rows = pl.read_ipc_stream(path).lazy()
        if not self._partition_types:
            return rows
        own = rows.collect_schema()
        return rows.with_columns(
            pl.lit(_typed(self.partitions[k].get(name), of_name), of_name).alias(name)
            for name, of_name in self._partition_types.items()
            if name not in own
        )

    def _scan_typed(self, paths: list[Path]) -> pl.LazyFrame:
        if self.format.kind == "parquet":
            return pl.scan_parquet(paths, glob=False, hive_partitioning=False)
        return pl.scan_ipc(paths, glob=False, hive_partitioning=False)

    @cached_property
    def _headers(self) -> list[list[str]]:
        """Columns of each CSV or TSV file, whose rows have as many fields."""
        separator = self.format.separator or ","
        headers = []
        for path, name in zip(self.paths, self.names, strict=True):
            with file_errors(name):
                header = read_header(path, name, separator)
                check_fields(path, name, len(header), separator)
            headers.append(header)
        return headers

    @cached_property
    def _are_alike(self) -> bool:
        """Whether all Parquet or Arrow files have the same columns."""
        read = pl.read_parquet_schema if self.format.kind == "parquet" else pl.read_ipc_schema
        found = set()
        for path, name in zip(self.paths, self.names, strict=True):
            with file_errors(name):
                found.add(tuple(read(path).items()))
        return len(found) == 1

    @cached_property
    def _partition_types(self) -> dict[str, pl.DataType]:
        """Types of the columns that folders stand for: whole numbers, dates or text."""
        found: dict[str, list[str]] = {}
        for partition in self.partitions:
            for name, value in partition.items():
                found.setdefault(name, []).append(value)
        if self.untyped:
            return dict.fromkeys(found, pl.String())
        return {name: _type_of(values) for name, values in found.items()}

    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of the columns."""
        with file_errors(self.name):
            return dict(self.scan().collect_schema())

    def rows(self, numbers: Collection[str], where: str | None = None) -> pl.LazyFrame:
        """Rows that satisfy a condition, with their numbers in the column `ROW`.

        `numbers` are as in `scan`.
        """
        rows = self.scan(numbers).with_row_index(ROW)
        if where is None:
            return rows
        text = self.untyped or self.format.kind == "ndjson"
        return rows.filter(parse_condition(where, self.schema(), untyped=text))

    def count(self) -> int | None:
        """Number of rows, if the format stores it."""
        if self.format.kind not in ("parquet", "arrow"):
            return None
        with file_errors(self.name):
            return int(self.scan().select(pl.len()).collect().item())

    def place(self, row: int) -> str:
        """File and row, for messages, of a row of the whole table, counted from 0."""
        *others, last = self.names
        for name, path in zip(others, self.paths, strict=False):
            n_rows = Source([path], self.format, [name]).scan().select(pl.len()).collect().item()
            if row < n_rows:
                return f"{name}: row {row}"
            row -= n_rows
        return f"{last}: row {row}"


def partition_of(path: Path) -> dict[str, str]:
    """Columns, and their values, that folders named ``column=value`` stand for.

    Examples
    --------
    >>> partition_of(Path("day=2025-03-01/city=New%20York/part.csv"))
    {'day': '2025-03-01', 'city': 'New York'}
    """
    pairs = (part.partition("=") for part in path.parts[:-1])
    known = {unquote(name): unquote(value) for name, sign, value in pairs if name and sign}
    return {name: value for name, value in known.items() if value != _MISSING}


def _type_of(values: Sequence[str]) -> pl.DataType:
    if all(re.fullmatch(r"0|-?[1-9]\d{0,17}", value) for value in values):
        return pl.Int64()
    try:
        are_dates = all(date.fromisoformat(value).isoformat() == value for value in values)
    except ValueError:
        are_dates = False
    return pl.Date() if are_dates else pl.String()


def _typed(value: str | None, kind: pl.DataType) -> str | int | date | None:
    if value is None or kind == pl.String:
        return value
    return date.fromisoformat(value) if kind == pl.Date else int(value)


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """Context that turns errors of reading and writing into one line that names the file."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        text = first_line(error)
        if "Broken pipe" in text:  # polars raises it as an OSError without a number
            raise BrokenPipeError from error
        raise CommandError(text if name in text else f"{name}: {text}") from error
