"""Formats of files: recognised by names or content, and checked before polars reads them."""

import csv
import gzip
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Literal, Self

import polars as pl

from isoroc._cli.errors import CommandError, did_you_mean, first_line
from isoroc._cli.options import STANDARD

FileFormat = Literal["csv", "tsv", "ndjson", "parquet", "arrow", "arrow stream"]
SUFFIXES: dict[str, FileFormat] = {
    ".csv": "csv", ".tsv": "tsv", ".ndjson": "ndjson", ".jsonl": "ndjson", ".parquet": "parquet",
    ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
}  # fmt: skip
Compression = Literal["gzip", "zstd"]
#: Longest line for polars, and longest quoted field for Python, that needs little memory.
_LONGEST = 2**25
csv.field_size_limit(_LONGEST)


@dataclass(frozen=True)
class Format:
    """Format of a file, and the compression of the whole file."""

    kind: FileFormat
    compression: Compression | None = None
    separator: str | None = None  # of the fields, if the format has one

    @classmethod
    def from_name(cls, name: str) -> Self | None:
        """Format by the ending of a file name, or None if the ending is unknown."""
        path = PurePath(name.lower())
        compressions: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}
        compression = compressions.get(path.suffix)
        kind = SUFFIXES.get(path.suffix if compression is None else PurePath(path.stem).suffix)
        if kind is None:
            return None
        if compression is not None and kind in ("parquet", "arrow"):
            fix = f"remove the ending {path.suffix}"
            raise CommandError(f"{name}: {kind} files are compressed internally; {fix}.")
        return cls(kind, compression, {"csv": ",", "tsv": "\t"}.get(kind))

    @classmethod
    def from_option(cls, name: str) -> Self:
        form = cls.from_name(f"x.{name.lower().lstrip('.')}")
        if form is None:
            ends = [end[1:] for end in SUFFIXES]
            raise CommandError(f"unknown format {name}; {did_you_mean(name, ends)}")
        return form

    @classmethod
    def from_content(cls, path: Path) -> Self:
        """Format by the first bytes of a file."""
        marks: dict[bytes, Self] = {
            b"PAR1": cls("parquet"),
            b"ARROW1": cls("arrow"),
            b"\xff\xff\xff\xff": cls("arrow stream"),
            b"(\xb5/\xfd": cls("csv", "zstd", ","),
        }
        with path.open("rb") as file:
            start = file.read(8)
        for mark, form in marks.items():
            if start.startswith(mark):
                return form
        compression: Compression | None = None
        if start.startswith(b"\x1f\x8b"):
            compression = "gzip"
            with gzip.open(path) as inside:
                start = inside.read(8)
        is_json = start.lstrip().startswith(b"{")
        return cls("ndjson", compression) if is_json else cls("csv", compression, ",")


def choose_format(target: str, option: str | None, of_input: Format) -> Format:
    """Format to write: from the option, from the target's name, or as the input."""
    name = "" if target == STANDARD else PurePath(target).name
    form = Format.from_name(name) if option is None else Format.from_option(option)
    if form is not None:
        same = form.kind == of_input.kind
        return replace(form, separator=of_input.separator) if same else form
    if end := PurePath(name).suffix:
        fix = f"expected {', '.join(SUFFIXES)}, or --output-format"
        raise CommandError(f"{target}: {end} is not the ending of a format; {fix}.")
    if of_input.kind == "arrow stream":
        return Format("arrow")
    return of_input if name else replace(of_input, compression=None)


@contextmanager
def file_errors(name: str) -> Iterator[None]:
    """Context that turns read and write errors into an error that names the file."""
    try:
        yield
    except (pl.exceptions.PolarsError, OSError, csv.Error) as error:
        text = getattr(error, "strerror", None) or first_line(error)
        if re.search(r"utf-?8", text, re.IGNORECASE):
            text = "not UTF-8; convert the file, for example with iconv -f cp1252 -t utf-8"
        if "Broken pipe" in text:  # polars raises it as an OSError without a number
            raise BrokenPipeError from error
        raise CommandError(text if name in text else f"{name}: {text}") from error


def check_lines(path: Path, name: str, form: Format) -> None:
    """Raise an error if a line of a text file is far longer than `_LONGEST`.

    Most of the file is skipped, so this is quick if it is not compressed. Files compressed by zstd
    are not checked.
    """
    if form.kind not in ("csv", "tsv", "ndjson") or form.compression == "zstd":
        return
    with file_errors(name), (gzip.open if form.compression else open)(path, "rb") as file:
        length = 0
        while part := file.read(2**16):
            length += len(part)
            if b"\n" in part:
                length = 0
                file.seek(_LONGEST, os.SEEK_CUR)
            elif length > _LONGEST:
                problem = f"a line is longer than {_LONGEST:,} bytes"
                raise CommandError(f"{name}: {problem}; the file may be damaged, or not text.")


def find_separator(path: Path) -> str:
    """Separator that splits the header of a file into most columns."""
    return max(",;\t|", key=lambda separator: len(_first_record(path, separator)))


def read_header(path: Path, name: str, separator: str) -> list[str]:
    header = _first_record(path, separator)
    if not header:
        raise CommandError(f"{name}: empty; the first line must name the columns.")
    twice, times = Counter(header).most_common(1)[0]
    if times > 1:
        raise CommandError(f"{name}: two columns are named {twice!r}; rename one of them.")
    check_fields(path, name, len(header), separator)
    return header


def _first_record(path: Path, separator: str) -> list[str]:
    # A header may contain line breaks between quotes.
    lines = pl.scan_lines(path, glob=False).head(64).collect().to_series().to_list()
    if lines:
        lines[0] = lines[0].removeprefix("\ufeff")  # byte order mark
        if "\r" in lines[0] and '"' not in lines[0]:
            raise csv.Error("lines end in CR alone; convert them to LF or CRLF.")
    return next(csv.reader((f"{line}\n" for line in lines), delimiter=separator), [])


def check_fields(path: Path, name: str, n_fields: int, separator: str) -> None:
    """Raise an error if a row has more or fewer fields than the header, which polars hides."""
    if n_fields == 1:
        return  # without a separator there is nothing to count
    line = pl.col("line")
    outside = line.str.replace_all(rf'(^|{re.escape(separator)})"(?:[^"]|"")*"', "$1")
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
    batches = pl.scan_lines(path, glob=False).collect_batches()
    records = (f"{line}\n" for batch in batches for line in batch.to_series())
    for row, fields in enumerate(csv.reader(records, delimiter=separator)):
        if len(fields) != n_fields:
            problem = f"row {row - 1} has {len(fields)} fields, but the header has {n_fields}"
            cause = "the file may be truncated, or text that contains the separator lacks quotes"
            raise CommandError(f"{name}: {problem}; {cause}.")
