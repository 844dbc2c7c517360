"""``isoroc monitor --plot``: pictures in files."""

from __future__ import annotations

from pathlib import Path

from isoroc._cli.errors import CommandError
from isoroc._cli.io.files import check_target, output_path
from isoroc._cli.io.source import file_errors
from isoroc._monitor import CalibrationMonitor

FORMATS = ("png", "svg", "pdf")


def check_picture(target: str) -> None:
    """Refuse names of files that do not say which kind of picture they are."""
    if _format(target) not in FORMATS:
        raise CommandError(f"--plot {target}: expected a name that ends in .png, .svg or .pdf.")
    check_target(target)


def save_picture(monitor: CalibrationMonitor, target: str) -> None:
    """Draw all batches of a monitor, and write the picture whole or not at all."""
    from isoroc.plots import MonitorDisplay  # noqa: PLC0415 -- of an extra, needed here only

    with file_errors(target), output_path(target) as path:
        MonitorDisplay(monitor).save(path, format=_format(target))


def _format(target: str) -> str:
    return Path(target).suffix.lower().removeprefix(".")
