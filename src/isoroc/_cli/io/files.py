"""Tables in files: finding them, reading them lazily, writing them atomically."""

from __future__ import annotations

import glob
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import polars as pl

from isoroc._cli.errors import CommandError, did_you_mean, first_line
from isoroc._cli.io.formats import KINDS, SEPARATORS, Format
from isoroc._cli.io.streams import STANDARD
from isoroc._files import replacing

#: Number of rows per batch.
BATCH = 1 << 17
#: Column that keeps each row's number in its file when rows are filtered, for error messages.
ROW = "__row__"
#: Number of rows from which the types of columns in text files are inferred.
_INFERRED = 10_000


@dataclass(frozen=True)
class Source:
    """Files of one format, read in order as one table."""

    paths: list[Path]
    format: Format
    names: list[str]
    """Names of the files in messages."""
    partitioned: bool = False
    """Whether folders named ``column=value`` are columns."""

    @property
    def untyped(self) -> bool:
        """Whether the format stores all values as text."""
        return self.format.kind in SEPARATORS

    @property
    def name(self) -> str:
        """Name of the whole table in messages."""
        rest = len(self.names) - 1
        return self.names[0] + (f" and {rest} more" if rest else "")

    def scan(
        self, typed: Collection[str] | None = None, numbers: Collection[str] = ()
    ) -> pl.LazyFrame:
        """All rows, lazily.

        Parameters
        ----------
        typed : collection of str, default=None
            In CSV and TSV files, the columns whose types are inferred; all by default. Other
            columns stay text, so that they can be copied without a change.
        numbers : collection of str, default=()
            In NDJSON files, the columns of real numbers, even if the first rows hold integers.
        """
        kind = self.format.kind
        if self.untyped:
            texts = {}
            if typed is not None:
                texts = {name: pl.String for name in self.schema() if name not in typed}
            return pl.scan_csv(
                self.paths,
                separator=SEPARATORS[kind],
                infer_schema_length=_INFERRED,
                schema_overrides=texts,
                glob=False,
            )
        if kind == "ndjson":
            reals = dict.fromkeys(numbers, pl.Float64)
            return pl.scan_ndjson(self.paths, infer_schema_length=_INFERRED, schema_overrides=reals)
        if kind == "parquet":
            return pl.scan_parquet(self.paths, glob=False, hive_partitioning=self.partitioned)
        if kind == "arrow":
            return pl.scan_ipc(self.paths, glob=False, hive_partitioning=self.partitioned)
        return pl.concat([pl.read_ipc_stream(path).lazy() for path in self.paths])

    def schema(self) -> dict[str, pl.DataType]:
        """Names and types of the columns."""
        with file_errors(self.name):
            return dict(self.scan().collect_schema())

    def rows(self, numbers: Collection[str], where: str | None = None) -> pl.LazyFrame:
        """Rows that satisfy a condition, with their numbers in the column `ROW`.

        In CSV and TSV files only the columns of the condition have types; `numbers` are as in
        `scan`.
        """
        if where is None:
            return self.scan((), numbers).with_row_index(ROW)
        condition = _condition(where, self.schema())
        return self.scan(condition.meta.root_names(), numbers).with_row_index(ROW).filter(condition)

    def count(self) -> int | None:
        """Number of rows, if the format stores it."""
        if self.format.kind not in ("parquet", "arrow"):
            return None
        with file_errors(self.name):
            return int(self.scan().select(pl.len()).collect().item())

    def place(self, row: int) -> str:
        """File and row, for messages, of a row of the whole table, counted from 0."""
        *others, (last, _) = zip(self.names, self.paths, strict=True)
        for name, path in others:
            n_rows = int(replace(self, paths=[path]).scan().select(pl.len()).collect().item())
            if row < n_rows:
                return f"{name}: row {row}"
            row -= n_rows
        return f"{last}: row {row}"


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


@contextmanager
def open_source(given: Sequence[str], format_name: str | None = None) -> Iterator[Source]:
    """Context that yields the table in some files, globs, folders or standard input.

    Standard input and pipes can be read only once, so they are copied to temporary files.
    """
    of_option = None if format_name is None else Format.from_option(format_name)
    if STANDARD in given and len(given) > 1:
        raise CommandError("standard input (-) cannot be combined with files.")
    with tempfile.TemporaryDirectory() as folder:
        if STANDARD in given:
            paths, names = [_copy(sys.stdin.buffer, folder)], ["standard input"]
        else:
            found = [path for item in given for path in _expand(item)]
            paths, names = [_readable(path, folder) for path in found], list(map(str, found))
        formats = [
            of_option or Format.from_name(name) or Format.from_content(path)
            for name, path in zip(names, paths, strict=True)
        ]
        kinds = sorted({form.kind for form in formats})
        if len(kinds) > 1:
            raise CommandError(f"{names[0]}: the files have several formats ({', '.join(kinds)}).")
        partitioned = any(Path(item).is_dir() for item in given)
        yield Source(paths, formats[0], names, partitioned)


def _readable(path: Path, folder: str) -> Path:
    """The path, or the path of a copy if it is a pipe."""
    if path.is_file():
        return path
    with path.open("rb") as pipe:
        return _copy(pipe, folder)


def _copy(stream: IO[bytes], folder: str) -> Path:
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
        shutil.copyfileobj(stream, copy)
    return Path(copy.name)


def _expand(item: str) -> list[Path]:
    """Files that a name, a glob or a folder stands for, sorted."""
    path = Path(item)
    if path.is_dir():
        inside = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
        shown = [file for file in inside if not any(part[0] in "._" for part in file.parts)]
        found = sorted(path / file for file in shown if Format.from_name(file.name) is not None)
        if not found:
            raise CommandError(f"{item}: no file in this folder ends in {', '.join(KINDS)}.")
        return found
    if path.exists():
        return [path]
    matches = sorted(glob.glob(item, recursive=True))  # noqa: PTH207
    if not matches:
        what = "no file matches" if glob.has_magic(item) else "no such file; check the name"
        raise CommandError(f"{item}: {what}.")
    return [file for match in matches for file in _expand(match)]


def _condition(where: str, schema: dict[str, pl.DataType]) -> pl.Expr:
    """Condition of ``--where``; its columns are in the schema."""
    try:
        condition = pl.sql_expr(where)
    except pl.exceptions.PolarsError as error:
        raise CommandError(
            f"--where {where!r}: {first_line(error)}; write a condition as in SQL, for example "
            "\"y IS NOT NULL AND day >= '2025-01-01'\"."
        ) from error
    for name in condition.meta.root_names():
        if name not in schema:
            raise CommandError(f"--where: no column {name!r}; {did_you_mean(name, schema)}")
    return condition


def write_frame(frame: pl.LazyFrame, target: str, form: Format) -> None:
    """Write a table batch by batch, atomically to a file or directly to standard output."""
    if target == STANDARD:
        with file_errors("standard output"):
            _sink(frame, sys.stdout.buffer, form)
        return
    with file_errors(target), output_path(target) as path:
        _sink(frame, path, form)


def check_target(target: str) -> None:
    """Raise an error if a target cannot be written to, before any work is done for it."""
    path = Path(target)
    if path.is_dir():
        raise CommandError(f"{target}: is a folder; name a file.")
    if target != STANDARD and not path.resolve().parent.is_dir():
        raise CommandError(f"{target}: the folder does not exist; create it first.")


@contextmanager
def output_path(target: str) -> Iterator[Path]:
    """Context that yields a path to write to; it becomes the target if nothing fails."""
    check_target(target)
    path = Path(target)
    if path.exists() and not path.is_file():  # a pipe or a device must not be replaced by a file
        yield path
        return
    with replacing(path) as new:
        yield new


def _sink(frame: pl.LazyFrame, to: Path | IO[bytes], form: Format) -> None:
    compression: Any = form.compression or "uncompressed"
    options: dict[str, Any] = {"compression": compression, "check_extension": False}
    if form.kind in SEPARATORS:
        frame.sink_csv(to, separator=SEPARATORS[form.kind], **options)
    elif form.kind == "ndjson":
        frame.sink_ndjson(to, **options)
    elif form.kind == "parquet":
        frame.sink_parquet(to)
    else:
        frame.sink_ipc(to)
