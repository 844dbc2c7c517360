"""Atomic writes: a file appears complete or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Path of a new file that replaces `path` when the block ends without an error.

    Readers of `path` see either the old content or all of the new content. If the block raises, the
    old content stays and the new file is removed.

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
    try:
        # O_EXCL: no file of another process is overwritten. The umask sets the permissions, as for
        # any other new file.
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield new
        _flush(new, os.O_RDWR)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    with suppress(PermissionError):  # Windows cannot open directories
        _flush(target.parent, os.O_RDONLY)


def _flush(path: Path, mode: int) -> None:
    """Flush a file, or the entries of a directory, to the disk."""
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
