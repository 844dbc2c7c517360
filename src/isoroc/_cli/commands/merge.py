"""``isoroc merge``: one file of counts from several."""

from __future__ import annotations

from isoroc._cli.io.files import check_target
from isoroc._cli.io.reading import load_counts
from isoroc._cli.io.source import file_errors
from isoroc._cli.options import Output
from isoroc._cli.terminal import print_note


def merge(counts: list[str], /, *, output: Output, decay: float | None = None) -> None:
    """Merge files of counts.

    Parameters
    ----------
    counts
        Files written by isoroc count, or by a warehouse, and globs.
    output
        File of counts to write.
    decay
        Multiply the weights of all files but the last by this factor.
    """
    check_target(output)
    *old, new = counts
    if decay is None or not old:
        merged = load_counts(counts)
    else:
        merged = load_counts(old).decay(decay) + load_counts([new])
    with file_errors(output):
        merged.to_parquet(output)
    print_note(f"{output}: {merged}")
