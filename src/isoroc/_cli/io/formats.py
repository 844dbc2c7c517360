"""File formats, recognised by names or by content; headers, separators and rows of text files."""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, Literal

import polars as pl

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.options import STANDARD

Kind = Literal["csv", "tsv", "ndjson", "parquet", "arrow", "arrow stream"]
KINDS: dict[str, Kind] = {
    ".csv": "csv", ".tsv": "tsv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet",
    ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
_COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}
_TEXT = ("csv", "tsv", "ndjson")
#: First bytes of formats.
_MARKS: dict[bytes, Kind] = {
    b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow stream"
}  # fmt: skip
_SEPARATORS = {"csv": ",", "tsv": "\t"}
#: Separators that are recognised in the header of a CSV file.
SEPARATORS = (",", ";", "\t", "|")
csv.field_size_limit(2**31 - 1)  # 128 KiB is the default
#: A header with line breaks between quotes may take this many lines.
_HEADER_LINES = 64


@dataclass(frozen=True)
class Format:
    """Format of a file, and the compression of the whole file."""

    kind: Kind
    compression: Literal["gzip", "zstd"] | None = None
    separator: str | None = None
    """Separator of the fields, if the format has one."""

    def separated_by(self, separator: str) -> Format:
        """The format with another separator of the fields."""
        if self.kind not in _SEPARATORS:
            raise CommandError(f"--separator: {self.kind} files have none.")
        return replace(self, separator=separator)

    @classmethod
    def from_name(cls, name: str) -> Format | None:
        """Format that the end of a file name stands for; None if it stands for none."""
        path = PurePath(name.lower())
        compression = _COMPRESSIONS.get(path.suffix)
        kind = KINDS.get(path.suffix if compression is None else PurePath(path.stem).suffix)
        if kind is None:
            return None
        if compression is not None and kind not in _TEXT:
            raise CommandError(
                f"{name}: {kind} files are compressed internally; remove the ending {path.suffix}."
            )
        return cls(kind, compression, _SEPARATORS.get(kind))

    @classmethod
    def from_option(cls, name: str) -> Format:
        """Format that the user named in an option."""
        found = cls.from_name(f"x.{name.lower().lstrip('.')}")
        if found is None:
            ends = [end[1:] for end in KINDS]
            raise CommandError(f"unknown format {name}; {did_you_mean(name, ends)}")
        return found

    @classmethod
    def from_content(cls, path: Path) -> Format:
        """Format that the first bytes of a file indicate."""
        with path.open("rb") as file:
            start = file.read(8)
        for mark, kind in _MARKS.items():
            if start.startswith(mark):
                return cls(kind)
        if start.startswith(b"(\xb5/\xfd"):
            return cls("csv", "zstd", ",")
        compression: Literal["gzip"] | None = None
        if start.startswith(b"\x1f\x8b"):
            compression = "gzip"
            with gzip.open(path) as inside:
                start = inside.read(8)
        is_json = start.lstrip().startswith(b"{")
        return cls("ndjson", compression) if is_json else cls("csv", compression, ",")


def output_format(target: str, option: str | None, of_input: Format) -> Format:
    """Format to write: the one of the option, of the target's name, or of the input."""
    name = None if target == STANDARD else Format.from_name(Path(target).name)
    found = name if option is None else Format.from_option(option)
    if found is None and target != STANDARD and (end := PurePath(target).suffix):
        fix = f"expected {', '.join(KINDS)}, or --output-format"
        raise CommandError(f"{target}: {end} is not the ending of a format; {fix}.")
    if found is not None:
        same = found.kind == of_input.kind
        return replace(found, separator=of_input.separator) if same else found
    if of_input.kind == "arrow stream":
        return Format("arrow")
    return replace(of_input, compression=None) if target == STANDARD else of_input


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
        if "\r" in lines[0] and '"' not in lines[0]:
            raise csv.Error("lines end in CR alone; convert them to LF or CRLF.")
    return next(csv.reader((f"{line}\n" for line in lines), delimiter=separator), [])


def scan_text(path: Path, header: list[str], separator: str) -> pl.LazyFrame:
    """Rows of a file, all of them text."""
    options: Any = {"separator": separator, "infer_schema": False, "glob": False}
    return pl.scan_csv(path, new_columns=header, **options)


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
