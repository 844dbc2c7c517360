"""NDJSON files: types of their columns from all rows, and lines that are copied unchanged."""

import json
import math
import re
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import Any

import polars as pl

from isoroc._cli.errors import CommandError, first_line

#: Column of the text of each row.
LINE = "isoroc: line"
#: The first characters of values, by what they are called in messages.
_STARTS = {'"': "text", "[": "a list", "{": "an object", "t": "true or false", "f": "true or false"}
#: How values begin that columns of a type may not hold exactly; n is that of null.
_UNLIKE: dict[Any, str] = {
    pl.String: r'[^"n\s]', pl.Boolean: r"[^tfn\s]", pl.UInt64: r"[^0-9n\s]|[0-9]{20,}",
    pl.Float64: r"[^-0-9n\s]|-?[0-9]{16,}\s*[,}]",
}  # fmt: skip
#: Integers of more digits may have no equal double.
_EXACT = 2**53


def infer(path: Path, name: str) -> dict[str, pl.DataType]:
    """Types of the columns of a file, which is `name` in messages, from all of its rows."""
    try:
        found = pl.scan_ndjson(escape(str(path)), infer_schema_length=None).collect_schema().items()
        # Few programs can read columns of Int128.
        return {name: pl.UInt64() if kind == pl.Int128 else kind for name, kind in found}
    except pl.exceptions.PolarsError as error:
        place = _first_conflict(path) or first_line(error)
        raise CommandError(f"{name}: {place}; correct the file.") from error


def scan_lines(path: Path) -> pl.LazyFrame:
    """The text of each row, in the column `LINE`."""
    return pl.scan_lines(path, name=LINE, glob=False).filter(pl.col(LINE).str.strip_chars() != "")


def decode(lines: pl.LazyFrame, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """The lines and some columns."""
    values = pl.col(LINE).str.json_decode(pl.Struct(dict(schema)))
    return lines.with_columns(values.alias("isoroc: values")).unnest("isoroc: values")


def check_values(path: Path, name: str, schema: Mapping[str, pl.DataType]) -> None:
    """Raise an error if a type cannot hold a value of a file, `name` in messages, exactly."""
    text = "|".join(_suspicious(column, kind) for column, kind in schema.items())
    found = scan_lines(path).with_row_index("at").filter(pl.col(LINE).str.contains(text))
    for batch in found.collect_batches() if schema else ():
        for at, line in batch.rows():
            for column, value in json.loads(line).items():
                if column in schema and not _fits(value, schema[column]):
                    kind = _kind_of(value)
                    shown = f"is {value}" if kind == "a number" else f"holds {kind}"
                    what = f"column {column!r} {shown}, which {schema[column]} cannot hold exactly"
                    fix = "correct the file, or write NDJSON, where other columns are copied"
                    raise CommandError(f"{name}: row {at}, {what}; {fix}.")


def _suspicious(name: str, kind: pl.DataType) -> str:
    """Regular expression of rows in which a value begins unlike those of its type."""
    starts = "." if kind.is_nested() else _UNLIKE.get(kind, r"[^-0-9n\s]")
    keys = {re.escape(json.dumps(name)), re.escape(json.dumps(name, ensure_ascii=False))}
    return rf"(?:{'|'.join(sorted(keys))})\s*:\s*(?:{starts})"


def _fits(value: Any, kind: Any) -> bool:
    """Whether a polars type holds a value exactly."""
    match value:
        case None:
            return True
        case bool() | str():
            return bool(kind == (pl.Boolean if isinstance(value, bool) else pl.String))
        case int() | float():
            small = isinstance(value, float) or abs(value) <= _EXACT
            if kind == pl.UInt64:
                return isinstance(value, int) and 0 <= value < 2**64
            return (kind.is_float() and small) or (kind == pl.Int64 and isinstance(value, int))
        case list():
            return kind == pl.List and all(_fits(each, kind.inner) for each in value)
    inner = {f.name: f.dtype for f in kind.fields} if kind == pl.Struct else {}
    return all(name in inner and _fits(each, inner[name]) for name, each in value.items())


def _kind_of(value: Any) -> str:
    return _STARTS.get(json.dumps(value)[0], "a number")


def _first_conflict(path: Path) -> str | None:
    """The first row that is not an object, or in which a list or object meets another kind."""
    kinds: dict[str, str] = {}
    batches = scan_lines(path).collect_batches()
    for row, line in enumerate(line for batch in batches for line in batch.to_series()):
        try:
            values = json.loads(line, **_STRICT)
        except ValueError as error:
            return f"row {row} is not JSON ({first_line(error)})"
        if not isinstance(values, dict):
            return f"row {row} is not a JSON object"
        for name, value in values.items():
            kind = _kind_of(value)
            before = kinds.setdefault(name, kind) if value is not None else kind
            if before != kind and {before, kind} & {"a list", "an object", "true or false"}:
                return f"row {row}, column {name!r} holds {kind}, but earlier rows {before}"
    return None


def _limited(text: str) -> float:
    most = 2.0**127 if text.lstrip("-").isdigit() else math.inf
    if abs(float(text)) >= most:
        raise ValueError(f"{text} is too large")
    return float(text)


#: Numbers that polars cannot read are errors, and so are NaN and infinities.
_STRICT: dict[str, Any] = {"parse_constant": int, "parse_float": _limited, "parse_int": _limited}


def append(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The lines of a frame with the values of some columns at their end."""
    added = pl.struct(names).struct.json_encode().str.slice(1)
    start = pl.col(LINE).str.strip_chars().str.strip_suffix("}").str.strip_chars_end()
    comma = pl.when(start == "{").then(pl.lit("")).otherwise(pl.lit(","))
    return frame.select((start + comma + added).alias(LINE))


def replace(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """The lines of a frame with other values of some columns, in their places."""
    rows = zip(frame[LINE], frame.select(names).iter_rows(named=True), strict=True)
    lines = [_replace(line, values) for line, values in rows]
    return pl.DataFrame({LINE: pl.Series(lines, dtype=pl.String)})


def _replace(line: str, values: dict[str, float | None]) -> str:
    decoder, parts, copied = json.JSONDecoder(), list[str](), 0
    at = _skip(line, line.index("{") + 1, " \t\r")
    while line[at] != "}":
        name, at = decoder.raw_decode(line, at)
        start = _skip(line, at, " \t\r:")
        _, at = decoder.raw_decode(line, start)
        if name in values:
            parts += [line[copied:start], json.dumps(values[name])]
            copied = at
        at = _skip(line, at, " \t\r,")
    return "".join([*parts, line[copied:]])


def _skip(line: str, at: int, signs: str) -> int:
    while line[at] in signs:
        at += 1
    return at
