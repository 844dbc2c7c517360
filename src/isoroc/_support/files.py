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

#: Files and folders to remove if a signal ends the process.
_UNFINISHED: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Context that yields a new file, which replaces `path` if there is no error.

    Readers of `path` see either the old content or all of the new content. After an error, the old
    content stays and the new file is removed. An existing file keeps its permissions and, if
    allowed, its owner. Devices and pipes are written to instead of being replaced.
    """
    target = Path(os.path.realpath(path))  # write through a symbolic link, do not replace it
    old = target.stat() if target.exists() else None
    if old is not None and not (stat.S_ISREG(old.st_mode) and os.access(target, os.W_OK)):
        if stat.S_ISREG(old.st_mode) or stat.S_ISDIR(old.st_mode):
            raise PermissionError(errno.EACCES, "read-only, or a folder", str(target))
        yield target
        return
    new = target.with_name(f".isoroc-{secrets.token_hex(8)}{target.suffix}")
    with _unfinished(new), _named(path, new):
        # O_EXCL: no file of another process is overwritten. A new file gets the permissions of the
        # umask. A replacement is never readable by more users than the file that it replaces.
        mode = 0o666 if old is None else 0o600
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
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
def _named(path: str | os.PathLike[str], new: Path) -> Iterator[None]:
    """Context in which write errors, such as a full disk, name the file that callers know."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(new)):
            error.filename = os.fspath(path)
        raise


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Context that locks a file, so that other processes wait.

    The lock is held on a hidden file next to it, and ends with the process.
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
            # If the previous holder removed the file, others may hold a lock on a new one.
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
    """Lock an open file as soon as no other process holds the lock."""
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
    """Creation time for files. SOURCE_DATE_EPOCH makes them reproducible."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Context that yields a folder and removes it at the end."""
    folder = Path(tempfile.mkdtemp())
    with _unfinished(folder):
        yield folder


def remove_unfinished() -> None:
    """Remove files and folders that are still being written, before the process is killed."""
    for path in list(_UNFINISHED):
        _remove(path)


@contextmanager
def _unfinished(path: Path) -> Iterator[None]:
    """Context that removes a path at its end, or at the end of the process."""
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
