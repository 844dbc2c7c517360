"""Formats of files, told by their names or by their first bytes."""

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
    """Kind of a file, and how it is compressed around that."""

    kind: Kind
    compression: Literal["gzip", "zstd"] | None = None

    @classmethod
    def named(cls, name: str) -> Format | None:
        """Format that the end of a name stands for, None where it stands for none.

        Examples
        --------
        >>> Format.named("day.csv.gz")
        Format(kind='csv', compression='gzip')
        >>> Format.named("day.txt")
        """
        path = PurePath(name.lower())
        compression = _COMPRESSIONS.get(path.suffix)
        kind = KINDS.get(path.suffix if compression is None else PurePath(path.stem).suffix)
        if kind is None:
            return None
        if compression is not None and kind not in _TEXT:
            raise CommandError(f"{name}: {kind} files compress themselves; leave out the last end.")
        return cls(kind, compression)

    @classmethod
    def asked(cls, name: str) -> Format:
        """Format that the user asked for by an option."""
        found = cls.named(f"x.{name.lower().lstrip('.')}")
        if found is None:
            ends = [end[1:] for end in KINDS]
            raise CommandError(f"format {name}: not known; {did_you_mean(name, ends)}")
        return found

    @classmethod
    def sniffed(cls, path: Path) -> Format:
        """Format that the first bytes of a file speak of."""
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


def target_format(target: str, asked: str | None, otherwise: Format) -> Format:
    """Format to write: the one asked for, or that of the name, or that of what was read."""
    if asked is not None:
        return Format.asked(asked)
    found = None if target == STANDARD else Format.named(Path(target).name)
    if found is not None:
        return found
    if otherwise.kind == "arrow stream":
        return Format("arrow")
    return Format(otherwise.kind) if target == STANDARD else otherwise
