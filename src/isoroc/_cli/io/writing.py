"""Writing: targets are checked before the work, and replaced whole or not at all."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import IO, Any

import polars as pl

from isoroc._cli.errors import CommandError
from isoroc._cli.io.formats import Format, file_errors
from isoroc._cli.io.ndjson import LINE
from isoroc._cli.io.opening import expand
from isoroc._cli.options import STANDARD
from isoroc._support.files import replacing


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
    """What a file holds, in words. The text is empty if the file is."""
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


class Rejected(Exception):  # noqa: N818
    """A table that must not replace a file."""


def write_frame(
    frame: pl.LazyFrame,
    target: str,
    form: Format,
    check: Callable[[], list[str]] = list,
) -> list[str]:
    """Write a table batch by batch, atomically to a file or directly to standard output.

    `check` is called after the last row. Its findings are returned, and a file is replaced only if
    there are none.
    """
    schema = frame.collect_schema()
    if form.kind not in ("parquet", "arrow"):  # polars would fail too late
        for name, kind in schema.items():
            if _holds_binary(kind) or (kind.is_nested() and form.separator is not None):
                problem = f"has the type {kind}, which {form.kind} files cannot store"
                fix = "write Parquet or Arrow, or remove the column"
                raise CommandError(f"column {name!r} {problem}; {fix}.")
    compression: Any = form.compression or "uncompressed"
    found: list[str] = []
    with suppress(Rejected), output_to(target) as to:
        if schema.names() == [LINE]:
            frame.sink_csv(
                to,
                include_header=False,
                quote_style="never",
                compression=compression,
                check_extension=False,
            )
        elif form.separator is not None:
            frame.sink_csv(
                to, separator=form.separator, compression=compression, check_extension=False
            )
        elif form.kind == "ndjson":
            frame.sink_ndjson(to, compression=compression, check_extension=False)
        elif form.kind == "parquet":
            frame.sink_parquet(
                to, compression_level=1
            )  # of zstd: as small as with the default of 3
        else:
            frame.sink_ipc(to)
        found = check()
        if found:
            raise Rejected
    return found


def _holds_binary(kind: pl.DataType) -> bool:
    if isinstance(kind, pl.Struct):
        return any(_holds_binary(field.dtype) for field in kind.fields)  # type: ignore[arg-type]
    inner = getattr(kind, "inner", None)
    return kind in (pl.Binary, pl.Object) or (inner is not None and _holds_binary(inner))


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
