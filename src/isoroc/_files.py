"""Atomic writes: a file appears complete or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Files and folders that are removed if a signal ends the process.
_UNFINISHED: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Path of a new file that replaces `path` when the block ends without an error.

    Readers of `path` see either the old content or all of the new content. If the block raises, the
    old content stays and the new file is removed. The permissions of a file that exists are kept.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "answer.txt")
    ...     with replacing(target) as new:
    ...         _ = new.write_text("42")
    ...     target.read_text(), len(os.listdir(folder))
    ('42', 1)
    """
    target = Path(os.path.realpath(path))  # write through a symbolic link, do not replace it
    new = target.with_name(f".isoroc-{secrets.token_hex(8)}{target.suffix}")
    old_mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    with _unfinished(new):
        try:
            # O_EXCL: no file of another process is overwritten. A new file gets the permissions
            # that the umask sets; one that replaces another is never open to more users than that.
            mode = 0o666 if old_mode is None else 0o600
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
            yield new
            if old_mode is not None:
                new.chmod(old_mode)
            _flush(new, os.O_RDWR)
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    with suppress(PermissionError):  # Windows cannot open directories
        _flush(target.parent, os.O_RDONLY)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Path of a folder that is removed when the block ends."""
    with tempfile.TemporaryDirectory() as folder, _unfinished(Path(folder)):
        yield Path(folder)


def remove_unfinished() -> None:
    """Remove files and folders that are still being written: the process is about to be killed."""
    for path in list(_UNFINISHED):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _unfinished(path: Path) -> Iterator[None]:
    _UNFINISHED.add(path)
    try:
        yield
    finally:
        _UNFINISHED.discard(path)


def _flush(path: Path, mode: int) -> None:
    """Flush a file, or the entries of a directory, to the disk."""
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
