"""Files of one format as one table: its columns, and its rows, read lazily."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from isoroc._cli.errors import CommandError, first_line
from isoroc._cli.io import ndjson
from isoroc._cli.io.columns import check_column
from isoroc._cli.io.formats import (
    Format,
    file_errors,
    read_header,
)

#: Number of rows per batch.
BATCH = 1 << 17
#: Prefix of the columns that the command adds while it works.
RESERVED = "isoroc: "
#: Column that keeps each row's number in the table when rows are filtered, for error messages.
ROW = f"{RESERVED}row"


@dataclass(frozen=True)
class Source:
    """Files of one format as one table. All columns of CSV and TSV files are text."""

    paths: list[Path]
    format: Format
    names: list[str]  # in messages
    hive: bool = False  # whether folders named ``column=value`` are columns

    @property
    def untyped(self) -> bool:
        return self.format.separator is not None

    def folders(self, path: Path) -> list[pl.Expr]:
        """Columns from the names of the folders of a file, such as ``day=2025-03-01``."""
        parts = (part.partition("=") for part in path.parts[:-1] if self.hive)
        return [pl.lit(unquote(value)).alias(name) for name, sign, value in parts if name and sign]

    @property
    def name(self) -> str:
        rest = len(self.names) - 1
        return self.names[0] + (f" and {rest} more" if rest else "")

    def scan(self) -> pl.LazyFrame:
        """All rows, lazily. Polars reads the folders of Parquet and Arrow files itself."""
        if self.format.kind not in ("parquet", "arrow"):
            return _join(self._files)
        scan = pl.scan_parquet if self.format.kind == "parquet" else pl.scan_ipc
        rows = scan(self.paths, glob=False, hive_partitioning=self.hive)
        first, *rest = [list(file.collect_schema().items()) for file in self._files]
        if all(each == first for each in rest):
            return rows
        folders = {k: v for k, v in rows.collect_schema().items() if k not in dict(first)} or None
        files = [
            scan([path], glob=False, hive_partitioning=self.hive, hive_schema=folders)
            for path in self.paths
        ]
        return _join(files)

    @cached_property
    def _files(self) -> list[pl.LazyFrame]:
        files = []
        for path, name in zip(self.paths, self.names, strict=True):
            with file_errors(name):
                files.append(self._scan_file(path, name))
                files[-1].collect_schema()  # raises an error if the file is damaged
        return files

    def _scan_file(self, path: Path, name: str) -> pl.LazyFrame:
        """Rows of a file, lazily. Except for Parquet and Arrow, folders become columns of text."""
        match self.format.kind:
            case "parquet":
                return pl.scan_parquet(path, glob=False)
            case "arrow":
                return pl.scan_ipc(path, glob=False)
            case "arrow stream":
                rows = pl.read_ipc_stream(path).lazy()
            case "ndjson":
                rows = pl.scan_ndjson(escape(str(path)), schema=ndjson.infer(path, name))
            case _:
                separator = self.format.separator or ","
                rows = pl.scan_csv(
                    path,
                    separator=separator,
                    infer_schema=False,
                    new_columns=read_header(path, name, separator),
                    glob=False,
                )
        return rows.with_columns(self.folders(path))

    @cached_property
    def schema(self) -> dict[str, pl.DataType]:
        with file_errors(self.name):
            schema = dict(self.scan().collect_schema())
        for name in (name for name in schema if name.startswith(RESERVED)):
            raise CommandError(f"{self.name}: the name {name!r} is reserved; rename the column.")
        return schema

    def check_values(self, schema: Mapping[str, pl.DataType]) -> None:
        """Raise an error if a type cannot hold a value of an NDJSON file exactly."""
        for path, name in zip(self.paths, self.names, strict=True):
            ndjson.check_values(path, name, schema)

    def rows(
        self, where: str | None = None, *, copied: Collection[str] = (), used: Collection[str] = ()
    ) -> pl.LazyFrame:
        """Rows that satisfy an SQL condition, with their numbers in the column `ROW`.

        In the condition, columns of CSV files have the types of their first rows, but numbers that
        begin with 0, such as 01234, are text. With `copied`, NDJSON files have only those columns,
        the columns that are `used` or in the condition, and the text of each row.
        """
        names = [] if where is None else _columns_of(where, self.schema)
        if copied:
            schema = {name: self.schema[name] for name in self.schema if name in (*names, *used)}
            self.check_values(schema)
            schema |= dict.fromkeys(copied, pl.String())
            rows = _join(
                [ndjson.decoded_lines(path, schema) for path in self.paths]
            ).with_row_index(ROW)
        else:
            rows = self.scan().with_row_index(ROW)
        if where is None:
            return rows
        types = _comparable(where, self.infer(names), self.schema) if self.untyped else {}
        texts = {name: f"{RESERVED}text of {name}" for name in types}
        kept = (pl.col(name).alias(text) for name, text in texts.items())
        parsed = (_parse_text(name, kind) for name, kind in types.items())
        typed = rows.with_columns(kept).with_columns(parsed)
        _check_query(where, typed.collect_schema())
        restored = (pl.col(text).alias(name) for name, text in texts.items())
        return typed.sql(_query(where)).with_columns(restored).drop(texts.values())

    def infer(self, names: Collection[str]) -> dict[str, pl.DataType]:
        """Types of those columns of CSV files that are not text, from 1,000 rows of each file."""
        if not names:
            return {}
        texts = _join([file.head(1000) for file in self._files]).select(names).collect()
        missing = ["NA", "N/A", "n/a", "null", "NULL", "None"]
        data = texts.write_csv().encode()
        schema = pl.read_csv(data, infer_schema_length=None, null_values=missing).schema
        return {
            name: kind
            for name, kind in schema.items()
            if kind != pl.String and not texts[name].str.contains(r"^-?0\d").any()
        }

    def count(self) -> int | None:
        if self.format.kind not in ("parquet", "arrow"):
            return None
        with file_errors(self.name):
            return int(self.scan().select(pl.len()).collect().item())

    def place(self, row: int) -> str:
        """File and row number within it, for messages, of a row of the whole table."""
        *others, last = self.names
        for k, name in enumerate(others):
            n_rows = self._files[k].select(pl.len()).collect().item()
            if row < n_rows:
                return f"{name}: row {row}"
            row -= n_rows
        return f"{last}: row {row}"

    def error(self, batch: pl.DataFrame, at: int, column: str, problem: str) -> CommandError:
        return CommandError(f"{self.place(batch[ROW][at])}, column {column!r} {problem}")


def _join(parts: list[pl.LazyFrame]) -> pl.LazyFrame:
    """Rows of tables that may lack columns of others."""
    return parts[0] if len(parts) == 1 else pl.concat(parts, how="diagonal_relaxed")


def _columns_of(where: str, schema: Mapping[str, pl.DataType]) -> list[str]:
    try:
        names = list(dict.fromkeys(pl.sql_expr(where).meta.root_names()))
    except pl.exceptions.PolarsError as error:
        fix = "write a condition as in SQL, for example \"y IS NOT NULL AND day >= '2025-01-01'\""
        raise CommandError(f"--where {where!r}: {first_line(error)}; {fix}.") from error
    return [check_column("--where", name, schema) for name in names]


def _comparable(
    where: str, types: dict[str, pl.DataType], schema: Mapping[str, pl.DataType]
) -> dict[str, pl.DataType]:
    """Most of the inferred types that the condition can compare. Other columns stay text.

    In ``score <> 'N/A'`` a column of numbers is compared with text, so it is text there.
    """
    query = _query(where)
    for n_texts in range(min(len(types), 8) + 1):
        for texts in combinations(types, n_texts):
            kept = {name: kind for name, kind in types.items() if name not in texts}
            with suppress(pl.exceptions.PolarsError):
                pl.DataFrame(schema=dict(schema) | kept).lazy().sql(query).collect()
                return kept
    return types


def _check_query(where: str, schema: Mapping[str, pl.DataType]) -> None:
    """Raise an error unless the condition is valid for a table with these columns."""
    try:
        pl.DataFrame(schema=schema).lazy().sql(_query(where)).collect()
    except pl.exceptions.PolarsError as error:
        fix = "CAST(column AS DOUBLE) and CAST(column AS TEXT) change the type of a column"
        raise CommandError(f"--where {where!r}: {first_line(error)}; {fix}.") from error


def _query(where: str) -> str:
    return f"SELECT * FROM self WHERE ({where})"  # noqa: S608


def _parse_text(name: str, kind: pl.DataType) -> pl.Expr:
    """Numbers or booleans of a column of text, null where the text is something else."""
    if kind != pl.Boolean:
        return pl.col(name).cast(kind, strict=False)
    text = pl.col(name).str.to_lowercase()
    values = {"true": True, "false": False}
    return text.replace_strict(values, default=None, return_dtype=pl.Boolean)
