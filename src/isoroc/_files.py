"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside `path` that takes its place when the block ends without an error.

    Whoever reads `path` sees the old content or the new, never a part; after an error the old
    content is still there and nothing else.

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
    target = Path(os.path.realpath(path))  # a link keeps pointing to the file
    new = target.with_name(f".isoroc-{secrets.token_hex(8)}{target.suffix}")
    try:
        # Made by us and nobody else, with the rights that the user's other new files get.
        os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield new
        _flush(new, os.O_RDWR)
        new.replace(target)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    with suppress(PermissionError):  # Windows opens no folders
        _flush(target.parent, os.O_RDONLY)


def _flush(path: Path, mode: int) -> None:
    """Bring a file, or the names in a folder, to the disk."""
    handle = os.open(path, mode)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
