"""File formats, recognised by the ends of names or by the first bytes of the content."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from isoroc._cli.errors import CommandError, did_you_mean
from isoroc._cli.io.streams import STANDARD

Kind = Literal["csv", "tsv", "ndjson", "parquet", "arrow", "arrow stream"]
KINDS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}
_TEXT = ("csv", "tsv", "ndjson")
SEPARATORS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class Format:
    """Format of a file, and the compression of the whole file."""

    kind: Kind
    compression: Literal["gzip", "zstd"] | None = None

    @classmethod
    def from_name(cls, name: str) -> Format | None:
        """Format that the end of a file name stands for; None if it stands for none.

        Examples
        --------
        >>> Format.from_name("day.csv.gz")
        Format(kind='csv', compression='gzip')
        >>> Format.from_name("day.txt")
        """
        path = PurePath(name.lower())
        compression = _COMPRESSIONS.get(path.suffix)
        kind = KINDS.get(path.suffix if compression is None else PurePath(path.stem).suffix)
        if kind is None:
            return None
        if compression is not None and kind not in _TEXT:
            raise CommandError(
                f"{name}: {kind} files are compressed internally; remove the ending {path.suffix}."
            )
        return cls(kind, compression)

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
        if start.startswith(b"PAR1"):
            return cls("parquet")
        if start.startswith(b"ARROW1"):
            return cls("arrow")
        if start.startswith(b"\xff\xff\xff\xff"):
            return cls("arrow stream")
        if start.startswith(b"(\xb5/\xfd"):
            return cls("csv", "zstd")
        if start.startswith(b"\x1f\x8b"):
            with gzip.open(path) as inside:
                start = inside.read(8)
            return cls("ndjson" if start.lstrip().startswith(b"{") else "csv", "gzip")
        return cls("ndjson" if start.lstrip().startswith(b"{") else "csv")


def output_format(target: str, option: str | None, of_input: Format) -> Format:
    """Format to write: the one of the option, of the target's name, or of the input."""
    if option is not None:
        return Format.from_option(option)
    found = None if target == STANDARD else Format.from_name(Path(target).name)
    if found is not None:
        return found
    if of_input.kind == "arrow stream":
        return Format("arrow")
    return Format(of_input.kind) if target == STANDARD else of_input
