"""Tables in files: finding them, and writing them atomically."""

import glob
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, Any

import polars as pl

from isoroc._cli.errors import CommandError
from isoroc._cli.io.ndjson import LINE
from isoroc._cli.io.source import KINDS, Format, Source, check_lines, file_errors, find_separator
from isoroc._cli.options import EVERYTHING, STANDARD, InputOptions
from isoroc._support.files import replacing, temporary_folder


@contextmanager
def open_source(given: Sequence[str], options: InputOptions = EVERYTHING) -> Iterator[Source]:
    """Context that yields the table in files, globs, folders or standard input."""
    if STANDARD in given and len(given) > 1:
        raise CommandError("standard input (-) cannot be combined with files.")
    with temporary_folder() as folder:
        if STANDARD in given:
            names = ["standard input"]
            paths = [_copy(sys.stdin.buffer, names[0], folder)]
        else:
            files = expand(given)
            names = [str(file) for file in files]
            paths = [_readable(file, folder) for file in files]
        in_folders = all(Path(item).is_dir() for item in given)
        yield Source(paths, _common_format(paths, names, options), names, hive=in_folders)


def _common_format(paths: list[Path], names: list[str], options: InputOptions) -> Format:
    """Common format of the files, with the separator of their fields."""
    separator = "\t" if options.separator in ("tab", "\\t") else options.separator
    if separator is not None and len(separator.encode()) != 1:
        raise CommandError(f"--separator {separator}: expected one ASCII character, or tab.")
    given = None if options.format is None else Format.from_option(options.format)
    formats = []
    for path, name in zip(paths, names, strict=True):
        formats.append(given or Format.from_name(name) or Format.from_content(path))
        check_lines(path, name, formats[-1])
    form = formats[0]
    kinds = sorted({each.kind for each in formats})
    if len(kinds) > 1:
        raise CommandError(f"{names[0]}: the files have several formats ({', '.join(kinds)}).")
    if separator is not None and form.separator is None:
        raise CommandError(f"--separator: {form.kind} files have none.")
    if separator is None and form.kind == "csv":
        with file_errors(names[0]):
            separator = find_separator(paths[0])
    return form if separator is None else replace(form, separator=separator)


def _readable(path: Path, folder: Path) -> Path:
    """The path itself, or that of a copy if it is a pipe."""
    if path.is_file():
        return path
    with file_errors(str(path)), path.open("rb") as pipe:
        return _copy(pipe, str(path), folder)


def _copy(stream: IO[bytes], name: str, folder: Path) -> Path:
    if not stream.readable():
        raise CommandError(f"{name} is closed; name a file.")
    with file_errors(name):
        with suppress(UnsupportedOperation):  # a stream in memory
            is_device = stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
            if is_device and not stream.isatty():  # such as /dev/zero, which never ends
                raise CommandError(f"{name}: is a device; name a file or a pipe.")
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
            shutil.copyfileobj(stream, copy)
    return Path(copy.name)


def expand(given: Sequence[str]) -> list[Path]:
    """Files that paths, folders and globs stand for."""
    files: list[Path] = []
    for item in given:
        path = Path(item)
        if path.is_dir():
            inside = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
            shown = (file for file in inside if not any(part[0] in "._" for part in file.parts))
            tables = sorted(path / file for file in shown if Format.from_name(file.name))
            if not tables:
                raise CommandError(f"{item}: no file in this folder ends in {', '.join(KINDS)}.")
            files += tables
        elif path.exists():
            files.append(path)
        elif path.is_symlink():
            raise CommandError(f"{item}: is a link to no file.")
        elif matches := sorted(glob.glob(item, recursive=True)):  # noqa: PTH207
            files += expand(matches)
        else:
            what = "no file matches" if glob.has_magic(item) else "no such file; check the name"
            raise CommandError(f"{item}: {what}.")
    return files


def write_frame(frame: pl.LazyFrame, target: str, form: Format) -> None:
    """Write a table batch by batch, atomically to a file or directly to standard output."""
    schema = frame.collect_schema()
    if form.kind not in ("parquet", "arrow"):  # polars finds out too late
        for name, kind in schema.items():
            if _holds_binary(kind) or (kind.is_nested() and form.separator is not None):
                problem = f"has the type {kind}, which {form.kind} files cannot store"
                fix = "write Parquet or Arrow, or remove the column"
                raise CommandError(f"column {name!r} {problem}; {fix}.")
    compression: Any = form.compression or "uncompressed"
    options: dict[str, Any] = {"compression": compression, "check_extension": False}
    with output_to(target) as to:
        if schema.names() == [LINE]:
            frame.sink_csv(to, include_header=False, quote_style="never", **options)
        elif form.separator is not None:
            frame.sink_csv(to, separator=form.separator, **options)
        elif form.kind == "ndjson":
            frame.sink_ndjson(to, **options)
        elif form.kind == "parquet":
            frame.sink_parquet(to)
        else:
            frame.sink_ipc(to)


def _holds_binary(kind: pl.DataType) -> bool:
    if isinstance(kind, pl.Struct):
        return any(_holds_binary(field.dtype) for field in kind.fields)  # type: ignore[arg-type]
    inner = getattr(kind, "inner", None)
    return kind in (pl.Binary, pl.Object) or (inner is not None and _holds_binary(inner))


def check_target(target: str, inputs: Iterable[str | None] = (), kind: str = "") -> None:
    """Raise an error unless a target is writable, not an input, and new or of the same kind."""
    path = Path(target)
    real = Path(os.path.realpath(target))
    if target == STANDARD:
        return
    if path.is_dir():
        raise CommandError(f"{target}: is a folder; name a file.")
    if not real.parent.is_dir():
        raise CommandError(f"{target}: the folder does not exist; create it first.")
    if real.is_symlink():
        raise CommandError(f"{target}: is a loop of links.")
    if not path.is_file():
        return
    for item in inputs:
        if item is not None and _is_read(path, item):
            shown = "standard input" if item == STANDARD else item
            raise CommandError(f"{target}: is also an input ({shown}); name another file to write.")
    accepted = {"", kind} | ({"other data"} if kind in ("a table", "a query") else set())
    if kind and (existing := _kind_of(path)) not in accepted:
        raise CommandError(f"{target}: holds {existing}, not {kind}; name another file to write.")


def _is_read(path: Path, item: str) -> bool:
    """Whether an argument names a file, possibly by another path."""
    if item != STANDARD:
        return any(path.samefile(file) for file in expand([item]))
    with suppress(OSError):  # it is not a file
        return os.path.samestat(path.stat(), os.fstat(sys.stdin.fileno()))
    return False


def _kind_of(path: Path) -> str:
    """What a file holds, or an empty text."""
    with path.open("rb") as file:
        start = file.read(400)
    if start.startswith(b"PAR1"):
        with file_errors(str(path)):
            return "counts" if "isoroc" in pl.read_parquet_schema(path) else "a table"
    marks = {
        b'"isoroc-model"': "a model",
        b'"isoroc-rule"': "a rule",
        b'"isoroc-monitor"': "the state of a monitor",
        b"<!doctype html>": "a page",
        b"# HELP isoroc_": "metrics",
    }
    for mark, kind in marks.items():
        if mark in start:
            return kind
    if path.suffix.lower() == ".onnx":
        return "an ONNX model"
    return ("a table" if Format.from_name(path.name) else "other data") if start else ""


@contextmanager
def dated_by(inputs: Iterable[str | None]) -> Iterator[None]:
    """Context that dates files by the newest input, so that equal input gives equal bytes."""
    files = expand([item for item in inputs if item not in (None, STANDARD)])
    known = "SOURCE_DATE_EPOCH" in os.environ or not files
    if not known:
        os.environ["SOURCE_DATE_EPOCH"] = str(int(max(path.stat().st_mtime for path in files)))
    try:
        yield
    finally:
        if not known:
            del os.environ["SOURCE_DATE_EPOCH"]


def write_bytes(target: str, data: bytes | memoryview) -> None:
    with output_to(target) as to:
        if isinstance(to, Path):
            to.write_bytes(data)
        else:
            to.write(data)


@contextmanager
def output_to(target: str) -> Iterator[Path | IO[bytes]]:
    """Context that yields standard output, or a path that replaces the target if nothing fails."""
    if target == STANDARD:
        if not sys.stdout.writable():
            raise UnsupportedOperation
        with file_errors("standard output"):
            yield sys.stdout.buffer
        return
    check_target(target)
    with file_errors(target), replacing(target) as new:
        yield new
