"""Tables of forecasts for the tests of the command line, and files of all formats."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl


def make_forecasts(n_rows=300, classes=("bird", "cat", "dog"), seed=0):
    """Table of identifiers, overconfident forecasts, weights and outcomes."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(len(classes)), n_rows)
    outcome = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    P = truth**2
    P /= P.sum(axis=1, keepdims=True)
    columns = {f"p_{name}": P[:, k] for k, name in enumerate(classes)}
    return pl.DataFrame(
        {
            "id": [f"{row:05d}" for row in range(n_rows)],
            **columns,
            "w": rng.integers(1, 9, n_rows) / 4,
            "y": np.array(classes)[outcome],
        }
    )


class Reader(NamedTuple):
    """Writes and reads a format without the code of the command."""

    write: Callable[..., object]
    read: Callable[..., pl.DataFrame]


def _write_gz(table, path):
    with gzip.open(path, "wb") as file:
        file.write(table.write_csv().encode())


def _read_gz(path):
    with gzip.open(path) as file:
        return pl.read_csv(file.read())


def listing():
    """Names of all files in the current folder, including hidden ones."""
    return sorted(path.name for path in Path().iterdir())


READERS = {
    "csv": Reader(lambda t, path: t.write_csv(path), pl.read_csv),
    "csv.gz": Reader(_write_gz, _read_gz),
    "csv.zst": Reader(lambda t, p: t.lazy().sink_csv(p, compression="zstd"), pl.read_csv),
    "tsv": Reader(
        lambda t, path: t.write_csv(path, separator="\t"),
        lambda path: pl.read_csv(path, separator="\t"),
    ),
    "ndjson": Reader(lambda t, path: t.write_ndjson(path), pl.read_ndjson),
    "parquet": Reader(lambda t, path: t.write_parquet(path), pl.read_parquet),
    "feather": Reader(
        lambda t, path: t.write_ipc(path), lambda path: pl.read_ipc(Path(path).read_bytes())
    ),
}
