"""Atomic writes: a file appears complete or not at all."""

import errno
import os
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

#: Files and folders that are removed if a signal ends the process.
_UNFINISHED: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Path of a new file that replaces `path` when the block ends without an error.

    Readers of `path` see either the old content or all of the new content. If the block raises, the
    old content stays and the new file is removed. Permissions of a file that exists are kept, and
    its owner where that is allowed. Only regular files are replaced: devices and pipes are written
    to.
    """
    target = Path(os.path.realpath(path))  # write through a symbolic link, do not replace it
    old = target.stat() if target.exists() else None
    if old is not None and not (stat.S_ISREG(old.st_mode) and os.access(target, os.W_OK)):
        if stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode):
            raise PermissionError(errno.EACCES, "read-only, or a folder", str(target))
        yield target
        return
    new = target.with_name(f".isoroc-{secrets.token_hex(8)}{target.suffix}")
    with _unfinished(new):
        # O_EXCL: no file of another process is overwritten. A new file gets the permissions that
        # the umask sets; one that replaces another is never open to more users than that.
        try:
            mode = 0o666 if old is None else 0o600
            os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        except OSError as error:
            error.filename = str(target)  # the name that the caller knows
            raise
        yield new
        if old is not None:
            with suppress(PermissionError, AttributeError):  # Windows has no chown
                os.chown(new, old.st_uid, old.st_gid)
            new.chmod(stat.S_IMODE(old.st_mode))
        _flush(new, os.O_RDWR)
        new.replace(target)
    with suppress(PermissionError):  # Windows cannot open directories
        _flush(target.parent, os.O_RDONLY)


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context that one process at a time is in for a file; others wait.

    What is locked is a hidden file beside it. A process that is killed has no lock any more.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    while True:
        try:
            handle = lock.open("a", encoding="utf-8")
        except OSError as error:
            error.filename = str(path)  # the name that the caller knows
            raise
        with handle:
            _wait_for(handle.fileno())
            # If the process before removed the file, others may hold a lock on a new one.
            is_current = False
            with suppress(FileNotFoundError):
                is_current = os.path.samestat(os.fstat(handle.fileno()), lock.stat())
            if is_current:
                try:
                    yield
                finally:
                    with suppress(PermissionError):  # Windows keeps files that are open
                        lock.unlink(missing_ok=True)
                return


def _wait_for(handle: int) -> None:
    """Lock an open file as soon as no other process has."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415

        while True:
            with suppress(OSError):  # after ten seconds
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(handle, fcntl.LOCK_EX)


def creation_time() -> datetime:
    """Time that files are said to be created at; SOURCE_DATE_EPOCH makes them reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Path of a folder that is removed when the block ends."""
    folder = Path(tempfile.mkdtemp())
    with _unfinished(folder):
        yield folder


def remove_unfinished() -> None:
    """Remove files and folders that are still being written: the process is about to be killed."""
    for path in list(_UNFINISHED):
        _remove(path)


@contextmanager
def _unfinished(path: Path) -> Iterator[None]:
    """Context at whose end, or that of the process, a path is removed if it still exists."""
    _UNFINISHED.add(path)
    try:
        yield
    finally:
        _remove(path)
        _UNFINISHED.discard(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _flush(path: Path, mode: int) -> None:
    """Flush a file, or the entries of a directory, to the disk."""
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
