"""Progress of long computations: a rich status line on terminals, plain lines otherwise."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec

Announce = Callable[[str], None]


@contextmanager
def progress(title: str, *, shown: bool) -> Iterator[Announce]:
    """Context that yields a function to report progress on standard error, after a title."""
    if not shown:
        yield lambda _: None
    elif sys.stderr.isatty() and find_spec("rich") is not None:
        from rich.console import Console  # noqa: PLC0415

        with Console(stderr=True).status(title) as status:
            yield lambda text: status.update(f"{title}: {text}")
    else:
        yield lambda text: print(f"{title}: {text}", file=sys.stderr)  # noqa: T201
