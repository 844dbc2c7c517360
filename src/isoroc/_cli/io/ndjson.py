"""NDJSON files: types of their columns, and lines that are copied unchanged."""

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
    """Types of the columns, inferred from all rows. `name` is the name of the file in messages."""
    schema = _infer(path, None)
    if isinstance(schema, Exception):
        n_rows = filled_lines(path).select(pl.len()).collect(engine="streaming").item()
        row = bisect_left(
            range(1, n_rows + 1), 1, key=lambda n: isinstance(_infer(path, n), Exception)
        )
        problem = f"row {row} is not a JSON object, or unlike earlier rows ({first_line(schema)})"
        raise CommandError(f"{name}: {problem}; correct the file.") from schema
    if any(_depth(kind) > 100 for kind in schema.values()):
        raise CommandError(f"{name}: its values are nested too deeply; correct the file.")
    # Few programs can read columns of Int128.
    return {name: pl.UInt64() if kind == pl.Int128 else kind for name, kind in schema.items()}


def _infer(path: Path, n_rows: int | None) -> Mapping[str, pl.DataType] | Exception:
    """Types of the columns in the first rows, or why there are none."""
    try:
        return pl.scan_ndjson(escape(str(path)), infer_schema_length=n_rows).collect_schema()
    except pl.exceptions.PolarsError as error:
        return error


def _depth(kind: Any) -> int:
    """Levels of nesting of a type. Polars can read more of them than it can write."""
    inner = [field.dtype for field in kind.fields] if isinstance(kind, pl.Struct) else []
    inner += [kind.inner] if isinstance(kind, pl.List) else []
    return 1 + max(map(_depth, inner), default=0)


def filled_lines(path: Path) -> pl.LazyFrame:
    return pl.scan_lines(path, name=LINE, glob=False).filter(pl.col(LINE).str.strip_chars() != "")


def decoded_lines(path: Path, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Lines of a file with some columns decoded from them."""
    values = pl.col(LINE).str.json_decode(pl.Struct(dict(schema))).alias("isoroc: values")
    return filled_lines(path).with_columns(values).unnest("isoroc: values")


def check_values(path: Path, name: str, schema: Mapping[str, pl.DataType]) -> None:
    """Raise an error if a type cannot hold a value of a file exactly."""
    if not schema:
        return
    read = pl.struct(list(schema)).struct.json_encode().alias("read")
    batches = decoded_lines(path, schema).select(LINE, read).collect_batches()
    rows = (row for batch in batches for row in batch.iter_rows())
    for row, texts in enumerate(rows):
        given, decoded = map(json.loads, texts)
        for column, kind in schema.items():
            if not _same(given.get(column), decoded[column]):
                shown = json.dumps(given[column], ensure_ascii=False)[:60]
                what = f"column {column!r} is {shown}, which {kind} cannot hold exactly"
                fix = "correct the file, or write NDJSON, where other columns are copied"
                raise CommandError(f"{name}: row {row}, {what}; {fix}.")


def _same(given: Any, decoded: Any) -> bool:
    """Whether a value of a file was read unchanged. Missing fields are null."""
    if isinstance(given, dict) and isinstance(decoded, dict):
        return all(_same(value, decoded.get(name)) for name, value in given.items())
    if isinstance(given, list) and isinstance(decoded, list):
        return len(given) == len(decoded) and all(map(_same, given, decoded))
    return bool(given == decoded) and isinstance(given, bool) == isinstance(decoded, bool)


def append(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Lines with the values of some columns appended."""
    added = pl.struct(names).struct.json_encode().str.slice(1)
    start = pl.col(LINE).str.strip_chars().str.strip_suffix("}").str.strip_chars_end()
    comma = pl.when(start == "{").then(pl.lit("")).otherwise(pl.lit(","))
    return frame.select((start + comma + added).alias(LINE))


def replace(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Lines with the values of some columns replaced."""
    rows = zip(frame[LINE], frame.select(names).iter_rows(named=True), strict=True)
    lines = [json.dumps(json.loads(line) | values, ensure_ascii=False) for line, values in rows]
    return pl.DataFrame({LINE: pl.Series(lines, dtype=pl.String)})
