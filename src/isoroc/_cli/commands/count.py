"""``isoroc count`` and ``isoroc merge``: files of counts from rows, and from such files."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import polars as pl

from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import COUNTS, check_target, expand, open_source, write_bytes
from isoroc._cli.io.reading import Reader
from isoroc._cli.io.source import file_errors
from isoroc._cli.models import parse_value
from isoroc._cli.options import ALL_ROWS, STANDARD, Force, Forecasts, Output, Selection
from isoroc._cli.terminal import print_note
from isoroc._counts import Counts
from isoroc._support.files import temporary_folder

#: Entry of the metadata of a file: hashes of the files that were merged, and when.
_SEEN = "isoroc_merged"


def count(
    forecasts: Forecasts,
    /,
    *,
    output: Output,
    selection: Selection = ALL_ROWS,
    force: Force = False,
    resolution: str = "auto",
    folds: int = 5,
    fold_by: str | None = None,
) -> None:
    """Count forecasts and outcomes.

    Parameters
    ----------
    output
        File of counts to write, in Parquet.
    resolution
        Fineness of the cells: auto, exact, or a power of two.
    folds
        Number of folds for cross-validation.
    fold_by
        Column of whole numbers; rows with the same number share a fold. Default: rows with the same
        forecast do.
    """
    if output == STANDARD:
        raise CommandError("counts are written to a file; name one with -o.")
    check_target(output, forecasts, COUNTS, force=force)
    if selection.unit == "auto":
        selection = replace(selection, unit="probability")
    with open_source(forecasts, selection) as source:
        counts = Reader(source, selection).count(parse_value(resolution), folds, fold_by)
    with file_errors(output):
        counts.to_parquet(output)
    print_note(f"{output}: {counts}")


def merge(
    counts: list[str],
    /,
    *,
    output: Output,
    decay: float | None = None,
    again: bool = False,
    force: Force = False,
) -> None:
    """Merge files of counts.

    Parameters
    ----------
    counts
        Files written by isoroc count, or by a warehouse, and globs.
    output
        File of counts to write.
    decay
        Multiply the weights of all files but the last by this factor.
    again
        Count files even if they are part of one before. By default such files are skipped.
    """
    check_target(output, counts, COUNTS, force=force)
    if decay is not None and not 0 < decay <= 1:
        raise CommandError(f"--decay {decay:g}: expected a number above 0 and at most 1.")
    paths = expand(counts)
    new, seen = _select(paths, again=again)
    merged = Counts.from_parquet(*new)
    if decay is not None and len(new) > 1 and new[-1] == paths[-1]:
        merged = Counts.from_parquet(*new[:-1]).decay(decay) + Counts.from_parquet(new[-1])
    with temporary_folder() as folder:
        merged.to_parquet(folder / "counts")
        data = BytesIO()
        frame = pl.read_parquet(folder / "counts")
        frame.write_parquet(data, metadata={_SEEN: json.dumps(seen)})
    write_bytes(output, data.getbuffer())
    print_note(f"{output}: {merged}")


def _select(paths: list[Path], *, again: bool) -> tuple[list[Path], dict[str, str]]:
    """Files that are to be merged, and hashes of all that they consist of, with times."""
    new, seen = list[Path](), dict[str, str]()
    for path in paths:
        own = _consists_of(path)
        known = own.keys() & seen.keys()
        if known and not again:
            if len(known) < len(own):
                problem = f"{len(known)} of the {len(own)} files that it was merged from are part"
                fix = "merge files that share none, or use --again"
                raise CommandError(f"{path}: {problem} of another one as well; {fix}.")
            when = max(seen[key] for key in known)
            print_note(f"{path}: skipped, merged on {when} already; --again counts it again.")
            continue
        new.append(path)
        seen = own | seen
    return new, seen


def _consists_of(path: Path) -> dict[str, str]:
    """Hashes of the files that a file was merged from, or its own, with times."""
    with file_errors(str(path)):
        if found := pl.read_parquet_metadata(path).get(_SEEN):
            return dict(json.loads(found))
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:32]
    return {digest: datetime.now(UTC).isoformat(timespec="seconds")}
