"""What is shown: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import re
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

_FIGURE = re.compile(r"-?(\d.*)?|-?inf.*")


def note(text: str) -> None:
    """Say something about the work on standard error."""
    Console(stderr=True).print(Text(text), soft_wrap=True)


def complain(kind: str, message: str) -> None:
    """One line about what went wrong, on standard error."""
    line = Text.assemble(("isoroc: ", "bold"), (f"{kind}: ", "bold red"), message)
    Console(stderr=True).print(line, soft_wrap=True)


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")


def say_json(value: dict[str, Any]) -> None:
    """Print the result as JSON; figures that are not finite become null."""
    say(json.dumps(plain(value, "result"), indent=2, ensure_ascii=False))


def say_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, figures flush right, as wide as it has to be where there is no screen."""
    lines = [list(row) for row in rows]
    console = Console()
    table = RichTable(title=Text(title), title_justify="left", title_style="bold")
    for name, *cells in zip(columns, *lines, strict=True):
        figures = all(_FIGURE.fullmatch(cell) for cell in cells)
        table.add_column(Text(name), justify="right" if figures else "left", overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    if not sys.stdout.isatty():
        anyhow = console.options.update(max_width=10_000)
        console.width = Measurement.get(console, anyhow, table).maximum
    console.print(table)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Table for a page.

    Examples
    --------
    >>> print(markdown_table(["metric", "before"], [["log loss", "0.31"]]))
    | metric | before |
    |---|---|
    | log loss | 0.31 |
    """
    lines = [columns, ["---"] * len(columns), *rows]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = "|" + "---|" * len(columns)
    return "\n".join(text)


@contextmanager
def progress_bar(title: str, total: int | None = None, *, unit: str = "rows") -> Iterator[Advance]:
    """Count rows on a terminal, with a bar where their number is known; silent elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    parts = [TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn(unit)]
    with Progress(*parts, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
