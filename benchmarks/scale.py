"""Scale: large files, engines, start-up, serving, and sizes of model files. Prints tables.

    python benchmarks/scale.py [PART ...] [--rows 1e6,1e7] [--seconds S]

engines  Counting Parquet files of three classes with polars (streaming) and DuckDB, reading them
         alone (the limit). With ten million rows or fewer also with Dask (two workers) and Spark
         (local mode), where these are installed.
files    fit, apply and evaluate on a Parquet file, by the command line.
startup  Each command on small files.
load     A new process up to its first forecast.
service  Latency of examples/serve.py under uvicorn, one process, clients on the same machine.
sizes    Model files of calibrators that may grow with the rows, 100,000 rows of 100 classes.

Each measurement runs in a process of its own. Seconds and peak memory are those that Linux reports
for it and its children. Files are made in build/bench/scale and kept. benchmarks/gpu.py counts on a
GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import io
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import isoroc
from isoroc._support.table import markdown_table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "bench" / "scale"
PROBS = ["p0", "p1", "p2"]
CHUNK = 10**6


def forecasts(n: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_exponential((n, K)) ** 2
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=K - 1)
    P = truth**1.5
    return P / P.sum(axis=1, keepdims=True), y


def make_file(rows: int) -> Path:
    """A Parquet file of three classes."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    path = FOLDER / f"{rows}.parquet"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    writer = None
    for start in range(0, rows, CHUNK):
        P, y = forecasts(min(CHUNK, rows - start), 3, start)
        columns = {"id": np.arange(start, start + len(y))}
        columns |= {name: P[:, k] for k, name in enumerate(PROBS)}
        table = pa.table(columns | {"y": y.astype(np.int8)})
        writer = writer or pq.ParquetWriter(path.with_suffix(".part"), table.schema)
        writer.write_table(table)
    writer.close()
    path.with_suffix(".part").rename(path)
    return path


# What Linux says about processes


def stat_of(pid: int | str) -> list[str]:
    """Fields of /proc/PID/stat after the name."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()


def cpu_seconds(*pids: int) -> float:
    """User and system time of processes."""
    ticks = sum(int(field) for pid in pids for field in stat_of(pid)[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_megabytes(*pids: int) -> float:
    """Sum of the peaks of processes."""
    status = [Path(f"/proc/{pid}/status").read_text("utf-8") for pid in pids]
    return sum(int(text.split("VmHWM:")[1].split()[0]) for text in status) * 1024 / 1e6


def family() -> list[int]:
    """Number of this process, and of all that descend from it."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            parents[int(folder.name)] = int(stat_of(folder.name)[1])
    found = [os.getpid()]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


#: Runs a command as the only child of a new process, so that the figures are about it alone.
RUNNER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
run = subprocess.run(sys.argv[1:], capture_output=True, text=True)
seconds, used = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
peak = 1024 * used.ru_maxrss / 1e6
print(json.dumps([run.returncode, run.stderr, seconds, used.ru_utime + used.ru_stime, peak]))
"""


def measured(*words: str, repeats: int = 1) -> tuple[float, float, float]:
    """Least seconds, processor seconds and peak megabytes of a command."""
    runs = []
    for _ in range(repeats):
        command = [sys.executable, "-c", RUNNER, sys.executable, *words]
        code, errors, *figures = json.loads(subprocess.check_output(command))  # noqa: S603
        if code:
            raise SystemExit(f"{' '.join(words)} ended with code {code}: {errors}")
        runs.append(figures)
    seconds, processor, peak = np.min(runs, axis=0).tolist()
    return seconds, processor, peak


# Engines. Each way yields once when its libraries and processes have started, and once at its end.


def count(source: Any) -> None:
    isoroc.Counts.from_frame(source, PROBS, "y", resolution=64)


def read_only(path: Path) -> Iterator[None]:
    import polars as pl  # noqa: PLC0415

    yield
    sums = [pl.col(name).sum() for name in (*PROBS, "y")]
    pl.scan_parquet(path).select(sums).collect(engine="streaming")
    yield


def with_polars(path: Path) -> Iterator[None]:
    import polars as pl  # noqa: PLC0415

    pl.Config.set_engine_affinity("streaming")
    yield
    count(pl.scan_parquet(path))
    yield


def with_duckdb(path: Path) -> Iterator[None]:
    import duckdb  # noqa: PLC0415

    connection = duckdb.connect()
    connection.execute("SET memory_limit = '1GB'; SET threads = 2")
    yield
    count(connection.read_parquet(str(path)))
    yield


def with_dask(path: Path) -> Iterator[None]:
    import dask.dataframe as dd  # noqa: PLC0415
    from distributed import Client, LocalCluster  # noqa: PLC0415

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield
        count(dd.read_parquet(path, split_row_groups=1))
        yield


def with_spark(path: Path) -> Iterator[None]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.bindAddress", "spark.driver.host"):
        builder = builder.config(name, "127.0.0.1")
    session = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield
    count(session.read.parquet(str(path)))
    yield
    session.stop()


#: Each way, the package that it needs, and the most rows that it is tried with.
WAYS = {
    "read only": (read_only, "polars", 10**10),
    "polars": (with_polars, "polars", 10**10),
    "duckdb": (with_duckdb, "duckdb", 10**10),
    "dask": (with_dask, "distributed", 10**7),
    "spark": (with_spark, "pyspark", 10**7),
}


def run_way(way: str, path: Path) -> None:
    """Print the figures of one way: it runs in a process of its own."""
    steps = WAYS[way][0](path)
    start = time.perf_counter()
    next(steps)
    started = time.perf_counter()
    before = cpu_seconds(*family())
    next(steps)
    seconds = time.perf_counter() - started
    processor = cpu_seconds(*family()) - before
    peak = peak_megabytes(*family())
    next(steps, None)
    print(json.dumps([started - start, seconds, processor, peak]))


def print_engines(options: argparse.Namespace) -> None:
    lines = []
    for rows in options.rows:
        path = make_file(rows)
        for way, (_, package, most) in WAYS.items():
            if rows <= most and find_spec(package):
                words = [sys.executable, __file__, "--way", way, str(path)]
                ran = subprocess.check_output(words, text=True)  # noqa: S603
                start, seconds, processor, peak = json.loads(ran.splitlines()[-1])
                cells = [f"{start:.1f}", f"{seconds:.1f}", f"{processor:.1f}"]
                lines.append([f"{rows:,}", way, *cells, f"{rows / seconds:,.0f}", f"{peak:,.0f}"])
    head = ["rows", "way", "start-up, s", "s", "processor s", "rows per second", "peak MB"]
    print(markdown_table(head, lines))


# The command line


def print_files(options: argparse.Namespace) -> None:
    lines = []
    for rows in options.rows:
        path = str(make_file(rows))
        for probs in ("p1", "p*"):  # one column is a score of two classes
            with tempfile.TemporaryDirectory() as folder:
                data = path
                if probs == "p1":
                    import polars as pl  # noqa: PLC0415

                    data = f"{folder}/two.parquet"
                    two = pl.scan_parquet(path).with_columns(y=pl.col("y") == 1)
                    two.select("id", "p1", "y").sink_parquet(data)
                model = f"{folder}/model.json"
                out = f"{folder}/out.parquet"
                common = [data, "--label", "y", "--probs", probs]
                for command in (
                    ["fit", *common, "-o", model, "--calibrator", "irp"],
                    ["apply", model, data, "-o", out],
                    ["evaluate", *common, "--model", model, "--json"],
                ):
                    seconds, _, peak = measured("-m", "isoroc", *command)
                    K = "2" if probs == "p1" else "3"
                    cells = [f"{rows:,}", K, command[0], f"{seconds:.1f}", f"{peak:,.0f}"]
                    lines.append(cells)
    print(markdown_table(["rows", "K", "command", "seconds", "peak MB"], lines))


COMMANDS = """--version
--help
apply --help
count march.csv --label animal -o march.counts.parquet
inspect irp.json
inspect model.json
apply irp.json may.csv -o out.csv
apply model.json may.csv -o out.csv
apply model.json may.parquet -o out.parquet
export model.json --sql duckdb -o out.sql
export model.json --onnx out.onnx
monitor model.json april.csv --label animal
evaluate april.csv --model model.json
evaluate april.csv --model model.json
fit march.csv --label animal --calibrator irp -o out.json
fit march.csv --label animal -o out.json
report april.csv --model model.json -o out.html"""


def print_startup(_: argparse.Namespace) -> None:
    from isoroc._cli import main as command  # noqa: PLC0415

    lines = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            command(["demo", "--keep", "."])
            command(shlex.split("fit march.csv --label animal -c irp -o irp.json"))
            command(shlex.split("apply irp.json may.csv --replace -o may.parquet"))
        for line in COMMANDS.splitlines():
            _, processor, peak = measured("-m", "isoroc", *shlex.split(line), repeats=5)
            lines.append([f"`{line}`", f"{processor:.2f}", f"{peak:.0f}"])
    print(markdown_table(["command", "CPU seconds", "peak memory, MB"], lines))


# Serving


@contextlib.contextmanager
def model_file(K: int = 3) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        isoroc.AutoCalibrator(random_state=0).fit(*forecasts(2000, K)).save(path)
        yield path


STARTS = {
    "`import numpy`": "import numpy",
    "`isoroc.load_map`": "import isoroc, sys; isoroc.load_map(sys.argv[1]).predict_proba({row})",
    "`isoroc.load`": "import isoroc, sys; isoroc.load(sys.argv[1]).predict_proba({row})",
}


def print_load(_: argparse.Namespace) -> None:
    lines = []
    with model_file() as path:
        for name, code in STARTS.items():
            words = "-c", code.format(row=[[1 / 3] * 3]), str(path)
            _, processor, peak = measured(*words, repeats=5)
            lines.append([name, f"{processor:.2f}", f"{peak:.0f}"])
    print(markdown_table(["to the first forecast", "CPU seconds", "peak memory, MB"], lines))


#: Runs the example until it is interrupted.
SERVER = """
import sys
sys.path.insert(0, sys.argv[3])
import uvicorn
from serve import create_app
uvicorn.run(create_app(sys.argv[1]), port=int(sys.argv[2]), log_level="error")
"""


def ask(port: int, body: bytes, end: float, latencies: list[float]) -> None:
    """Send requests one after the other on one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.perf_counter() < end:
        start = time.perf_counter()
        connection.request("POST", "/calibrate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        latencies.append(time.perf_counter() - start)
        if answer.status != 200:
            raise SystemExit(f"the service answered {answer.status}")
    connection.close()


def wait_for(port: int) -> None:
    for _ in range(300):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        time.sleep(0.1)
    raise SystemExit("the service did not start")


def print_service(options: argparse.Namespace) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    lines = []
    with model_file() as path:
        words = [sys.executable, "-c", SERVER, str(path), str(port), str(ROOT / "examples")]
        server = subprocess.Popen(words, env=os.environ | {"OMP_NUM_THREADS": "1"})  # noqa: S603
        try:
            wait_for(port)
            for n_rows in (1, 100, 1000):
                body = json.dumps({"forecasts": forecasts(n_rows, 3)[0].tolist()}).encode()
                before = cpu_seconds(server.pid)
                latencies = list[float]()
                ask(port, body, time.perf_counter() + options.seconds, latencies)
                cpu = 1e3 * (cpu_seconds(server.pid) - before) / len(latencies)
                median, late = 1e3 * np.quantile(latencies, [0.5, 0.99])
                rate = len(latencies) / options.seconds
                figures = [f"{median:.1f}", f"{late:.1f}", f"{rate:,.0f}", f"{cpu:.2f}"]
                lines.append([f"{n_rows:,}", *figures])
            peak = peak_megabytes(server.pid)
        finally:
            server.terminate()
            server.wait()
    head = ["rows", "median, ms", "99 %, ms", "requests per second", "CPU, ms"]
    print(markdown_table(head, lines) + f"\n\nThe service: peak memory {peak:.0f} MB.")


def print_sizes(_: argparse.Namespace) -> None:
    P, y = forecasts(100_000, 100)
    lines = []
    for name in ("VennAbers", "Isotonic", "IRP"):
        calibrator = getattr(isoroc, f"{name}Calibrator")()
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calibrator.fit(P, y, labels=range(100))
        seconds = time.process_time() - start
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.json")
            try:
                calibrator.save(path)
                size = f"{path.stat().st_size / 2**20:.2f}"
            except ValueError:
                size = "too large"
        lines.append([name, f"{seconds:.1f}", size])
    print(markdown_table(["calibrator", "CPU seconds of fit", "MiB"], lines))


PARTS = {
    name.removeprefix("print_"): job for name, job in globals().items() if name.startswith("print_")
}
NEEDS = {"engines": "pyarrow", "files": "polars", "startup": "polars", "service": "uvicorn"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rows", default="1e6,1e7", help="of the Parquet files")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--way", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rows = [int(float(word)) for word in options.rows.split(",")]
    if options.way:
        run_way(options.way[0], Path(options.way[1]))
        return
    for name in options.parts or PARTS:
        missing = name in NEEDS and not find_spec(NEEDS[name])
        print(
            f"\n## {name}" + f": left out, it needs {NEEDS.get(name)}" * missing + "\n", flush=True
        )
        if not missing:
            PARTS[name](options)


if __name__ == "__main__":
    main()
