"""The command line: forecasts and outcomes in files, calibrated forecasts and a verdict out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(tokens: Sequence[str] | None = None) -> int:
    """Run the command with these words, by default those of the process; returns the exit code.

    Examples
    --------
    >>> from isoroc._cli import main
    >>> main(["--version"])
    0.1.0
    0
    """
    missing = [name for name in ("cyclopts", "polars", "rich") if find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"isoroc: the command line needs {', '.join(missing)}: pip install 'isoroc[cli]'\n"
        )
        return 2
    from isoroc._cli.app import run  # noqa: PLC0415

    return run(list(sys.argv[1:] if tokens is None else tokens))
