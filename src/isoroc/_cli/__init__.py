"""The command line. Its entry point is `main`."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec

from isoroc._cli.errors import ExitCode
from isoroc._cli.process import prepare, wait_if_ending

__all__ = ["main"]


def main(tokens: Sequence[str] | None = None) -> int:
    """Run the command with the words after its name and return its exit code."""
    missing = [name for name in ("cyclopts", "polars", "rich") if find_spec(name) is None]
    if missing:
        needed = ", ".join(missing)
        install = " ".join(["pip install", *missing])
        sys.stderr.write(f"isoroc: the command line needs {needed}: {install}\n")
        return 2
    try:
        if tokens is None:
            prepare()
        from isoroc._cli.app import run  # noqa: PLC0415

        return run(list(sys.argv[1:] if tokens is None else tokens))
    except KeyboardInterrupt:  # before signals are handled, or where polars handles them
        wait_if_ending()
        sys.stderr.write("isoroc: ended by SIGINT\n")
        return ExitCode.INTERRUPTED
