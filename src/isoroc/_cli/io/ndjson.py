"""NDJSON files: types of their columns from all rows, and lines that are copied."""

import json
from bisect import bisect_left
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Any

import polars as pl

from isoroc._cli.errors import CommandError, first_line

#: Column of the text of each row.
LINE = "isoroc: line"


def infer(path: Path, name: str) -> dict[str, pl.DataType]:
    """Types of the columns of a file, which is `name` in messages, from all of its rows."""
    try:
        found = _infer(path, None).items()
    except pl.exceptions.PolarsError as error:
        n_rows = scan_lines(path).select(pl.len()).collect(engine="streaming").item()
        row = bisect_left(range(n_rows), 1, key=lambda row: _fails(path, row + 1))
        problem = f"row {row} is not a JSON object, or unlike earlier rows ({first_line(error)})"
        raise CommandError(f"{name}: {problem}; correct the file.") from error
    if any(_depth(kind) > 100 for _, kind in found):
        raise CommandError(f"{name}: its values are nested too deeply; correct the file.")
    # Few programs can read columns of Int128.
    return {column: pl.UInt64() if kind == pl.Int128 else kind for column, kind in found}


def _infer(path: Path, n_rows: int | None) -> Mapping[str, pl.DataType]:
    return pl.scan_ndjson(escape(str(path)), infer_schema_length=n_rows).collect_schema()


def _depth(kind: Any) -> int:
    """Levels of lists and objects of a type; polars can read more of them than it can write."""
    inner = [field.dtype for field in kind.fields] if isinstance(kind, pl.Struct) else []
    inner += [kind.inner] if isinstance(kind, pl.List) else []
    return 1 + max(map(_depth, inner), default=0)


def _fails(path: Path, n_rows: int) -> bool:
    try:
        _infer(path, n_rows)
    except pl.exceptions.PolarsError:
        return True
    return False


def scan_lines(path: Path) -> pl.LazyFrame:
    """The text of each row, in the column `LINE`."""
    return pl.scan_lines(path, name=LINE, glob=False).filter(pl.col(LINE).str.strip_chars() != "")


def decode(lines: pl.LazyFrame, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """The lines and some columns."""
    values = pl.col(LINE).str.json_decode(pl.Struct(dict(schema)))
    return lines.with_columns(values.alias("isoroc: values")).unnest("isoroc: values")


def check_values(path: Path, name: str, schema: Mapping[str, pl.DataType]) -> None:
    """Raise an error if a type cannot hold a value of a file, `name` in messages, exactly."""
    if not schema:
        return
    read = pl.struct(list(schema)).struct.json_encode().alias("read")
    batches = decode(scan_lines(path), schema).select(LINE, read).collect_batches()
    pairs = (pair for batch in batches for pair in batch.iter_rows())
    for row, texts in enumerate(pairs):
        given, found = map(json.loads, texts)
        for column, kind in schema.items():
            if not _same(given.get(column), found[column]):
                value = json.dumps(given[column], ensure_ascii=False)
                shown = value if len(value) <= 60 else f"{value[:60]}..."
                what = f"column {column!r} is {shown}, which {kind} cannot hold exactly"
                fix = "correct the file, or write NDJSON, where other columns are copied"
                raise CommandError(f"{name}: row {row}, {what}; {fix}.")


def _same(given: Any, found: Any) -> bool:
    """Whether a value of a file is the one that was read; fields that are not there are null."""
    if isinstance(given, dict) and isinstance(found, dict):
        return all(_same(value, found.get(name)) for name, value in given.items())
    if isinstance(given, list) and isinstance(found, list):
        return len(given) == len(found) and all(map(_same, given, found))
    return bool(given == found) and isinstance(given, bool) == isinstance(found, bool)


def append(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The lines of a frame with the values of some columns at their end."""
    added = pl.struct(names).struct.json_encode().str.slice(1)
    start = pl.col(LINE).str.strip_chars().str.strip_suffix("}").str.strip_chars_end()
    comma = pl.when(start == "{").then(pl.lit("")).otherwise(pl.lit(","))
    return frame.select((start + comma + added).alias(LINE))


def replace(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The lines of a frame with other values of some columns, in their places."""
    rows = zip(frame[LINE], frame.select(names).iter_rows(named=True), strict=True)
    lines = [json.dumps(json.loads(line) | values, ensure_ascii=False) for line, values in rows]
    return pl.DataFrame({LINE: pl.Series(lines, dtype=pl.String)})
