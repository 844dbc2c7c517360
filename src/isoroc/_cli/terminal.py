"""What users see: results on standard output, everything else on standard error."""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as RichTable
from rich.text import Text

from isoroc._cli.process import QUIET

Advance = Callable[[int], None]


def visible(text: str) -> str:
    """Text with control characters spelled out, so that they cannot steer a terminal."""
    return "".join(
        char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs")
        else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )  # fmt: skip


def print_note(text: str) -> None:
    """Write a line about the work to standard error, unless the command is to be quiet."""
    if not QUIET.get():
        _write((text, ""))


def print_warning(text: str) -> None:
    """Write a warning to standard error, even if the command is to be quiet."""
    _write((f"isoroc: warning: {text}", ""))


def print_error(kind: str, message: str) -> None:
    _write(("isoroc: ", "bold"), (f"{kind}: ", "bold red"), (message, ""))


def _write(*parts: tuple[str, str]) -> None:
    """Write a line, made of texts with their styles, to standard error."""
    line = Text.assemble(*((visible(text), style) for text, style in parts))
    Console(stderr=True).print(line, soft_wrap=True)


def print_text(text: str) -> None:
    sys.stdout.write(visible(text) + "\n")


def print_exact(text: str) -> None:
    """Print what a program reads. Control characters are spelled out only on a terminal."""
    sys.stdout.write((visible(text) if sys.stdout.isatty() else text) + "\n")


def print_json(command: str, value: dict[str, Any]) -> None:
    """Print the result of a command as JSON. NaN becomes null, infinity the text "inf"."""
    from isoroc._maps.modelfile.document import plain  # noqa: PLC0415 -- slow to import

    # The version changes if an entry is renamed or removed.
    value = {"format": f"isoroc-{command}", "version": 1} | value
    sys.stdout.write(json.dumps(plain(value, "result"), indent=2) + "\n")


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, numeric: bool = False
) -> None:
    """Print a table, at full width unless on a terminal. Numbers are aligned to the right."""
    console = Console()
    table = RichTable(title=Text(visible(title)), title_justify="left", title_style="bold")
    for k, name in enumerate(columns):
        side: JustifyMethod = "right" if numeric and k else "left"
        table.add_column(Text(visible(name)), justify=side, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    if not sys.stdout.isatty():
        unlimited = console.options.update(max_width=10_000)
        console.width = Measurement.get(console, unlimited, table).maximum
    console.print(table)


@contextmanager
def progress_bar(title: str, total: int | None = None) -> Iterator[Advance]:
    """Context that yields a function to count rows. The count is shown on terminals only."""
    if QUIET.get() or not sys.stderr.isatty():
        yield lambda _: None
        return
    parts = [TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("rows")]
    with Progress(*parts, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
