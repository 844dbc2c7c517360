"""Counting Parquet files: ``python benchmarks/scale.py [rows ...]``.

For each number of rows: time and peak memory of counting three classes with polars (streaming) and
DuckDB, of reading the file alone (the limit), and of collecting the file for scikit-learn. Each
runs in a process of its own. Files are made in build/bench/scale and kept.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench" / "scale"
PROBS = ["p0", "p1", "p2"]
CHUNK = 10**6


def make_file(rows: int) -> Path:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = FOLDER / f"{rows}.parquet"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, CHUNK):
        n = min(CHUNK, rows - start)
        truth = rng.standard_exponential((n, 3))
        truth /= truth.sum(axis=1, keepdims=True)
        y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=2).astype(np.int8)
        P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
        table = pa.table({name: P[:, k] for k, name in enumerate(PROBS)} | {"y": y})
        writer = writer or pq.ParquetWriter(path.with_suffix(".part"), table.schema)
        writer.write_table(table)
    writer.close()
    path.with_suffix(".part").rename(path)
    return path


def count_polars(path: Path) -> Any:
    import polars as pl  # noqa: PLC0415

    from isoroc import Counts  # noqa: PLC0415

    pl.Config.set_engine_affinity("streaming")
    return Counts.from_frame(pl.scan_parquet(path), PROBS, "y", resolution=64)


def count_duckdb(path: Path) -> Any:
    import duckdb  # noqa: PLC0415

    from isoroc import Counts  # noqa: PLC0415

    connection = duckdb.connect()
    connection.execute("SET memory_limit = '1GB'; SET threads = 2")
    return Counts.from_frame(connection.read_parquet(str(path)), PROBS, "y", resolution=64)


def read_only(path: Path) -> Any:
    import polars as pl  # noqa: PLC0415

    sums = [pl.col(name).sum() for name in (*PROBS, "y")]
    return pl.scan_parquet(path).select(sums).collect(engine="streaming")


def collect_sklearn(path: Path) -> None:
    import polars as pl  # noqa: PLC0415
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

    df = pl.read_parquet(path)
    for k, name in enumerate(PROBS):
        IsotonicRegression().fit(df[name].to_numpy(), (df["y"] == k).to_numpy())


WAYS = {
    "read only": read_only,
    "polars": count_polars,
    "duckdb": count_duckdb,
    "collect, scikit-learn": collect_sklearn,
}


def run_one(way: str, path: Path) -> None:
    start = time.perf_counter()
    WAYS[way](path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": peak}))


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--one":
        run_one(sys.argv[2], Path(sys.argv[3]))
        return
    print("| rows | way | s | rows per second | peak MB |\n|---|---|---|---|---|")
    for rows in [int(float(word)) for word in sys.argv[1:]] or [10**6, 10**7, 10**8]:
        path = make_file(rows)
        for way in WAYS:
            if way == "collect, scikit-learn" and rows > 10**7:
                continue
            words = [sys.executable, __file__, "--one", way, str(path)]
            ran = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
            found = json.loads(ran.stdout.splitlines()[-1])
            speed = rows / found["seconds"]
            print(
                f"| {rows:,} | {way} | {found['seconds']:.1f} | {speed:,.0f} |"
                f" {found['megabytes']:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
