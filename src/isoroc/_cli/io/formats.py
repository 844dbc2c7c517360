"""File formats, recognised by the ends of names or by the first bytes of the content."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
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
_SEPARATORS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class Format:
    """Format of a file, and the compression of the whole file."""

    kind: Kind
    compression: Literal["gzip", "zstd"] | None = None
    other_separator: str | None = None
    """Separator of the fields, if it is not the usual one of the format."""

    @property
    def separator(self) -> str | None:
        """Separator of the fields; None if the format has none."""
        return self.other_separator or _SEPARATORS.get(self.kind)

    def separated_by(self, separator: str) -> Format:
        """The format with another separator of the fields."""
        if self.kind not in _SEPARATORS:
            raise CommandError(f"--separator: {self.kind} files have none.")
        usual = separator == _SEPARATORS[self.kind]
        return replace(self, other_separator=None if usual else separator)

    @classmethod
    def from_name(cls, name: str) -> Format | None:
        """Format that the end of a file name stands for; None if it stands for none.

        Examples
        --------
        >>> Format.from_name("day.csv.gz")
        Format(kind='csv', compression='gzip', other_separator=None)
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
    name = None if target == STANDARD else Format.from_name(Path(target).name)
    found = name if option is None else Format.from_option(option)
    if found is not None:
        same = found.kind == of_input.kind
        return replace(found, other_separator=of_input.other_separator if same else None)
    if of_input.kind == "arrow stream":
        return Format("arrow")
    return replace(of_input, compression=None) if target == STANDARD else of_input
