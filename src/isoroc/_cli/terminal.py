"""What users see: results on standard output, everything else on standard error."""

from __future__ import annotations

import codecs
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from isoroc._persistence.document import plain

Advance = Callable[[int], None]


@dataclass
class _Messages:
    """Where lines about the work go."""

    quiet: bool = False
    log: TextIO | None = None

    def write_log(self, text: str) -> None:
        if self.log is not None:
            time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self.log.write(f"{time} {visible(text)}\n")
            self.log.flush()


_MESSAGES = _Messages()


@contextmanager
def messages_to(log_file: str | None, *, quiet: bool) -> Iterator[None]:
    """Context in which lines about the work are appended to a file, or are not shown."""
    with ExitStack() as stack:
        log = None
        if log_file is not None:
            log = stack.enter_context(Path(log_file).open("a", encoding="utf-8"))
        _MESSAGES.quiet, _MESSAGES.log = quiet, log
        try:
            yield
        finally:
            _MESSAGES.quiet, _MESSAGES.log = False, None


def visible(text: str) -> str:
    r"""Text whose control characters are spelled out, so that no name can steer a terminal.

    Examples
    --------
    >>> print(visible("a\x1b[31mb\u202e"))
    a\x1b[31mb\u202e
    """
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
        else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )  # fmt: skip


def print_note(text: str) -> None:
    """Write a line about the work to standard error."""
    _MESSAGES.write_log(text)
    if not _MESSAGES.quiet:
        Console(stderr=True).print(Text(visible(text)), soft_wrap=True)


def print_warning(text: str) -> None:
    """Write a warning to standard error, even if the command is to be quiet."""
    line = f"isoroc: warning: {text}"
    _MESSAGES.write_log(line)
    Console(stderr=True).print(Text(visible(line)), soft_wrap=True)


def print_error(kind: str, message: str) -> None:
    """Write one line about an error to standard error."""
    _MESSAGES.write_log(f"isoroc: {kind}: {message}")
    line = Text.assemble(("isoroc: ", "bold"), (f"{kind}: ", "bold red"), visible(message))
    Console(stderr=True).print(line, soft_wrap=True)


def print_text(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(visible(text) + "\n")


def print_exact(text: str) -> None:
    """Print what a program reads; only on a terminal are control characters spelled out."""
    sys.stdout.write((visible(text) if sys.stdout.isatty() else text) + "\n")


def print_json(value: dict[str, Any]) -> None:
    """Print the result as JSON; NaN becomes null, infinity the text "inf"."""
    # C1 control characters and characters that the encoding lacks would not survive.
    is_unicode = codecs.lookup(sys.stdout.encoding or "ascii").name.startswith("utf")
    text = json.dumps(plain(value, "result"), indent=2, ensure_ascii=not is_unicode)
    sys.stdout.write(re.sub(r"[\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: bool = False
) -> None:
    """Print a table, not wrapped to any width unless standard output is a terminal.

    Parameters
    ----------
    title : str
        Printed above the table.
    columns : sequence of str
        Names of the columns.
    rows : iterable of sequences of str
        The cells.
    numeric : bool, default=False
        Whether all columns but the first hold numbers, which are aligned to the right.
    """
    console = Console()
    table = RichTable(title=Text(visible(title)), title_justify="left", title_style="bold")
    for k, name in enumerate(columns):
        table.add_column(
            Text(visible(name)), justify="right" if numeric and k else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    if not sys.stdout.isatty():
        unlimited = console.options.update(max_width=10_000)
        console.width = Measurement.get(console, unlimited, table).maximum
    console.print(table)


@contextmanager
def progress_bar(title: str, total: int | None = None, *, unit: str = "rows") -> Iterator[Advance]:
    """Context that yields a function to count rows; they are shown on terminals only."""
    if _MESSAGES.quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    parts = [TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn(unit)]
    with Progress(*parts, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
