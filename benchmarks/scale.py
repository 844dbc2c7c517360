"""Counting Parquet files: ``python benchmarks/scale.py [rows ...]``.

For each number of rows: time and peak memory of counting three classes with polars (streaming) and
DuckDB, of reading the file alone (the limit), and of collecting the file for scikit-learn; with ten
million rows or fewer also with Dask (two workers) and Spark (local mode), where these are
installed. Each runs in a process of its own on two cores, with its start-up apart. Processor
seconds and peak memory include child processes. Files are made in build/bench/scale and kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "build" / "bench" / "scale"
PROBS = ["p0", "p1", "p2"]
RESOLUTION = 64
CHUNK = 10**6
#: Rows up to which the ways marked so are tried.
FEW = 10**7


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


# Each way yields once when its libraries and processes have started, and once when it is done.


def read_only(path: Path) -> Iterator[None]:
    import polars as pl  # noqa: PLC0415

    yield
    sums = [pl.col(name).sum() for name in (*PROBS, "y")]
    pl.scan_parquet(path).select(sums).collect(engine="streaming")
    yield


def count_polars(path: Path) -> Iterator[None]:
    import polars as pl  # noqa: PLC0415

    from isoroc import Counts  # noqa: PLC0415

    pl.Config.set_engine_affinity("streaming")
    yield
    Counts.from_frame(pl.scan_parquet(path), PROBS, "y", resolution=RESOLUTION)
    yield


def count_duckdb(path: Path) -> Iterator[None]:
    import duckdb  # noqa: PLC0415

    from isoroc import Counts  # noqa: PLC0415

    connection = duckdb.connect()
    connection.execute("SET memory_limit = '1GB'; SET threads = 2")
    yield
    relation = connection.read_parquet(str(path))
    Counts.from_frame(relation, PROBS, "y", resolution=RESOLUTION)
    yield


def collect_sklearn(path: Path) -> Iterator[None]:
    import polars as pl  # noqa: PLC0415
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415

    yield
    df = pl.read_parquet(path)
    for k, name in enumerate(PROBS):
        IsotonicRegression().fit(df[name].to_numpy(), (df["y"] == k).to_numpy())
    yield


def count_dask(path: Path) -> Iterator[None]:
    import dask.dataframe as dd  # noqa: PLC0415
    from distributed import Client, LocalCluster  # noqa: PLC0415

    from isoroc import Counts  # noqa: PLC0415

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield
        df = dd.read_parquet(path, split_row_groups=1)
        Counts.from_frame(df, PROBS, "y", resolution=RESOLUTION)
        yield


def count_spark(path: Path) -> Iterator[None]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from isoroc import Counts  # noqa: PLC0415

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "4")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield
    Counts.from_frame(session.read.parquet(str(path)), PROBS, "y", resolution=RESOLUTION)
    yield
    session.stop()


#: Each way, the package that it needs, and whether it is for few rows only.
WAYS = {
    "read only": (read_only, "polars", False),
    "polars": (count_polars, "polars", False),
    "duckdb": (count_duckdb, "duckdb", False),
    "collect, scikit-learn": (collect_sklearn, "polars", True),
    "dask": (count_dask, "distributed", True),
    "spark": (count_spark, "pyspark", True),
}


def family() -> list[int]:
    """Number of the process, and of all that descend from it."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(fields[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def processor_seconds() -> float:
    ticks = 0
    for pid in family():
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_megabytes() -> float:
    """Sum of the peaks of all processes."""
    status = [Path(f"/proc/{pid}/status").read_text(encoding="utf-8") for pid in family()]
    return sum(int(text.split("VmHWM:")[1].split()[0]) for text in status) / 1024


def run_one(way: str, path: Path) -> None:
    steps = WAYS[way][0](path)
    start = time.perf_counter()
    next(steps)
    started, before = time.perf_counter(), processor_seconds()
    next(steps)
    found = {"start": started - start, "seconds": time.perf_counter() - started}
    found |= {"processor": processor_seconds() - before, "megabytes": peak_megabytes()}
    next(steps, None)
    print(json.dumps(found))


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--one":
        run_one(sys.argv[2], Path(sys.argv[3]))
        return
    print("| rows | way | start-up, s | s | processor s | rows per second | peak MB |")
    print("|---|---|---|---|---|---|---|")
    for rows in [int(float(word)) for word in sys.argv[1:]] or [10**6, 10**7, 10**8]:
        path = make_file(rows)
        for way, (_, package, for_few) in WAYS.items():
            if (for_few and rows > FEW) or find_spec(package) is None:
                continue
            words = [sys.executable, __file__, "--one", way, str(path)]
            ran = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
            found = json.loads(ran.stdout.splitlines()[-1])
            print(
                f"| {rows:,} | {way} | {found['start']:.1f} | {found['seconds']:.1f} |"
                f" {found['processor']:.1f} | {rows / found['seconds']:,.0f} |"
                f" {found['megabytes']:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
