"""What users see: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from isoroc._persistence.document import plain

Advance = Callable[[int], None]


def print_note(text: str) -> None:
    """Write a line about the work to standard error."""
    Console(stderr=True).print(Text(text), soft_wrap=True)


def print_error(kind: str, message: str) -> None:
    """Write one line about an error to standard error."""
    line = Text.assemble(("isoroc: ", "bold"), (f"{kind}: ", "bold red"), message)
    Console(stderr=True).print(line, soft_wrap=True)


def print_text(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")


def print_json(value: dict[str, Any]) -> None:
    """Print the result as JSON; numbers that are not finite become null."""
    print_text(json.dumps(plain(value, "result"), indent=2, ensure_ascii=False))


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
    table = RichTable(title=Text(title), title_justify="left", title_style="bold")
    for k, name in enumerate(columns):
        table.add_column(Text(name), justify="right" if numeric and k else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    if not sys.stdout.isatty():
        unlimited = console.options.update(max_width=10_000)
        console.width = Measurement.get(console, unlimited, table).maximum
    console.print(table)


@contextmanager
def progress_bar(title: str, total: int | None = None, *, unit: str = "rows") -> Iterator[Advance]:
    """Context that yields a function to count rows; they are shown on terminals only."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    parts = [TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn(unit)]
    with Progress(*parts, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
