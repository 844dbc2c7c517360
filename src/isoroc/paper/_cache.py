"""Results kept in files whose names depend on everything that the results depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isoroc
from isoroc._files import replacing

#: A result: arrays by name.
Arrays = dict[str, NDArray[Any]]


class Cache:
    """Cache of results in a folder.

    A result is reused if its name, its key and the code are the same: every byte of this package,
    and the versions of NumPy, SciPy and scikit-learn. So no result outlives the code that computed
    it.

    Parameters
    ----------
    folder : Path or None
        Folder of the files, created with the first one; None to keep nothing.

    Attributes
    ----------
    n_computed, n_reused : int
        How many results were computed, and how many came from files.

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
        """Result from its file, or from `compute` if there is no file.

        Parameters
        ----------
        name : str
            Beginning of the name of the file.
        key : tuple
            What the result depends on: arrays, and objects that are determined by their `repr`.
        compute : callable
            Computes the result, without arguments.
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
        self.folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as new:
            np.savez_compressed(new, **arrays)  # type: ignore[arg-type]
        return arrays


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
    """Digest of the package and of the versions of the libraries that it computes with."""
    names = ("numpy", "scipy", "scikit-learn")
    found = hashlib.sha256(repr([(name, version(name)) for name in names]).encode())
    root = Path(isoroc.__file__).parent
    for path in sorted(root.rglob("*")):
        if path.suffix in {".py", ".so", ".pyd"}:
            found.update(str(path.relative_to(root)).encode())
            found.update(path.read_bytes())
    return found.digest()
