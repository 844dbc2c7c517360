"""Progress of long work: a rich display on terminals where rich is installed, else lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

Report = Callable[[str], None]


@contextmanager
def progress(title: str, *, shown: bool) -> Iterator[Report]:
    """Report of how far a piece of work is, on standard error.

    Examples
    --------
    >>> with progress("growing", shown=False) as report:
    ...     report("3 bins")
    """
    if not shown:
        yield lambda _: None
    elif sys.stderr.isatty() and find_spec("rich") is not None:
        from rich.console import Console  # noqa: PLC0415

        with Console(stderr=True).status(title) as status:
            yield lambda text: status.update(f"{title}: {text}")
    else:
        yield lambda text: print(f"{title}: {text}", file=sys.stderr)  # noqa: T201
