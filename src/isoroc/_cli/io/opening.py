"""Opening: which files are meant, what their format is, and copies of pipes."""

import glob
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import UnsupportedOperation
from pathlib import Path
from typing import IO

from isoroc._cli.errors import CommandError
from isoroc._cli.io.formats import SUFFIXES, Format, check_lines, file_errors, find_separator
from isoroc._cli.io.source import Source
from isoroc._cli.options import EVERYTHING, STANDARD, InputOptions
from isoroc._support.files import temporary_folder


@contextmanager
def open_source(given: Sequence[str], options: InputOptions = EVERYTHING) -> Iterator[Source]:
    """Context that yields the table in files, globs, folders or standard input."""
    if STANDARD in given and len(given) > 1:
        raise CommandError("standard input (-) cannot be combined with files.")
    with temporary_folder() as folder:
        if STANDARD in given:
            names = ["standard input"]
            paths = [_copy(sys.stdin.buffer, names[0], folder)]
        else:
            files = expand(given)
            names = [str(file) for file in files]
            paths = [_readable(file, folder) for file in files]
        in_folders = all(Path(item).is_dir() for item in given)
        yield Source(paths, _common_format(paths, names, options), names, hive=in_folders)


def expand(given: Sequence[str]) -> list[Path]:
    """Files that paths, folders and globs stand for."""
    files: list[Path] = []
    for item in given:
        path = Path(item)
        if path.is_dir():
            inside = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
            shown = (file for file in inside if not any(part[0] in "._" for part in file.parts))
            tables = sorted(path / file for file in shown if Format.from_name(file.name))
            if not tables:
                raise CommandError(f"{item}: no file in this folder ends in {', '.join(SUFFIXES)}.")
            files += tables
        elif path.exists():
            files.append(path)
        elif path.is_symlink():
            raise CommandError(f"{item}: is a link to no file.")
        elif matches := sorted(glob.glob(item, recursive=True)):  # noqa: PTH207
            files += expand(matches)
        else:
            what = "no file matches" if glob.has_magic(item) else "no such file; check the name"
            raise CommandError(f"{item}: {what}.")
    return files


def _readable(path: Path, folder: Path) -> Path:
    """The path itself, or the path of a copy if it is a pipe."""
    if path.is_file():
        return path
    with file_errors(str(path)), path.open("rb") as pipe:
        return _copy(pipe, str(path), folder)


def _copy(stream: IO[bytes], name: str, folder: Path) -> Path:
    if not stream.readable():
        raise CommandError(f"{name} is closed; name a file.")
    with file_errors(name):
        with suppress(UnsupportedOperation):  # a stream in memory
            is_device = stat.S_ISCHR(os.fstat(stream.fileno()).st_mode)
            if is_device and not stream.isatty():  # such as /dev/zero, which never ends
                raise CommandError(f"{name}: is a device; name a file or a pipe.")
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as copy:
            shutil.copyfileobj(stream, copy)
    return Path(copy.name)


def _common_format(paths: list[Path], names: list[str], options: InputOptions) -> Format:
    """Common format of the files, with the separator of their fields."""
    separator = "\t" if options.separator in ("tab", "\\t") else options.separator
    if separator is not None and len(separator.encode()) != 1:
        raise CommandError(f"--separator {separator}: expected one ASCII character, or tab.")
    given = None if options.format is None else Format.from_option(options.format)
    formats = []
    for path, name in zip(paths, names, strict=True):
        formats.append(given or Format.from_name(name) or Format.from_content(path))
        check_lines(path, name, formats[-1])
    form = formats[0]
    kinds = sorted({each.kind for each in formats})
    if len(kinds) > 1:
        raise CommandError(f"{names[0]}: the files have several formats ({', '.join(kinds)}).")
    if separator is not None and form.separator is None:
        raise CommandError(f"--separator: {form.kind} files have none.")
    if separator is None and form.kind == "csv":
        with file_errors(names[0]):
            separator = find_separator(paths[0])
    return form if separator is None else replace(form, separator=separator)
