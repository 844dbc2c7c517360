"""What was computed once: arrays in files that are named after everything they depend on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isoroc

Arrays = dict[str, NDArray[Any]]


class Cache:
    """Results in a folder.

    A result is found again if its name, all parts of its key and the code are the same: the files
    of this package byte by byte, and the versions of what it computes with. So no result outlives
    the code that made it.

    Parameters
    ----------
    folder : Path or None
        Where the files are; made when the first one is. With None nothing is kept.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     results = Cache(Path(folder))
    ...     for seed in (1, 2, 1):
    ...         arrays = results.get("dice", (seed,), lambda: {"eyes": np.arange(1, 7)})
    ...     results.n_computed, results.n_reused
    (2, 1)
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.n_computed = 0
        self.n_reused = 0

    def get(self, name: str, key: tuple[Any, ...], compute: Callable[[], Arrays]) -> Arrays:
        """Arrays by name, from their file or else from `compute`.

        Parameters
        ----------
        name : str
            What the file's name begins with.
        key : tuple
            What the result depends on: arrays, and anything else whose `repr` tells all.
        compute : callable
            Called without arguments if there is no file.
        """
        if self.folder is None:
            self.n_computed += 1
            return compute()
        path = self.folder / f"{name}-{_digest(key)}.npz"
        if path.exists():
            self.n_reused += 1
            with np.load(path, allow_pickle=False) as file:
                return dict(file)
        self.n_computed += 1
        arrays = compute()
        with replacing(path) as beside:
            np.savez_compressed(beside, **arrays)  # type: ignore[arg-type]
        return arrays


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` once it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        yield beside
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _digest(key: tuple[Any, ...]) -> str:
    found = hashlib.sha256(_code())
    for part in key:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype}{part.shape}".encode())
            found.update(np.ascontiguousarray(part).tobytes())
        else:
            found.update(repr(part).encode())
        found.update(b"\0")
    return found.hexdigest()[:24]


@cache
def _code() -> bytes:
    """Digest of the package and of what its results rest on."""
    names = ("numpy", "scipy", "scikit-learn")
    found = hashlib.sha256(repr([(name, version(name)) for name in names]).encode())
    root = Path(isoroc.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.suffix in {".py", ".so", ".pyd"}:
            found.update(str(path.relative_to(root)).encode())
            found.update(path.read_bytes())
    return found.digest()
