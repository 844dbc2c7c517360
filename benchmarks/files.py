"""Seconds and peak memory of fit, apply and evaluate on a large Parquet file.

Each command runs in its own process; the peak resident memory is the one that the operating system
reports for it.

    python benchmarks/files.py [--rows N] [--classes 2,3] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import polars as pl

Row = dict[str, str | int | float]

#: Rows that are generated at a time.
PART = 500_000

#: Runs the command as the only child of a new process, so that the peak is that of the command.
RUNNER = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
code = subprocess.run([sys.executable, "-m", "isoroc", *sys.argv[1:]]).returncode
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
peak = unit * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps({"code": code, "seconds": seconds, "peak": peak}))
"""


def write_forecasts(path: Path, n_rows: int, n_classes: int) -> None:
    """Write overconfident forecasts, labels, and a column that the commands only copy."""
    parts = path.with_suffix(".parts")
    parts.mkdir()
    for k, start in enumerate(range(0, n_rows, PART)):
        rng = np.random.default_rng(k)
        n = min(PART, n_rows - start)
        truth = rng.dirichlet(np.full(n_classes, 0.5), n)
        y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).astype(np.int16)
        P = truth**1.5
        P /= P.sum(axis=1, keepdims=True)
        columns = {f"p_{j}": P[:, j] for j in range(n_classes)}
        table = pl.DataFrame({"id": np.arange(start, start + n)} | columns | {"y": y})
        table.write_parquet(parts / f"{k:05d}.parquet")
    pl.scan_parquet(parts / "*.parquet").sink_parquet(path)


def measured(job: str, n_rows: int, *words: str) -> Row:
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", RUNNER, *words], stdout=subprocess.PIPE, text=True, check=True
    )
    found = json.loads(run.stdout.splitlines()[-1])
    if found["code"]:
        raise SystemExit(f"isoroc {' '.join(words)} ended with code {found['code']}")
    return {
        "job": job,
        "rows": n_rows,
        "seconds": round(found["seconds"], 1),
        "peak MB": round(found["peak"] / 1e6),
    }


def commands(folder: Path, n_rows: int, n_classes: int) -> Iterator[Row]:
    """Fit, apply and evaluate; with two classes the forecasts are one column of scores."""
    data, model, out = (
        str(folder / f"{name}{n_classes}{end}")
        for name, end in (("forecasts", ".parquet"), ("model", ".json"), ("out", ".parquet"))
    )
    write_forecasts(Path(data), n_rows, n_classes)
    size = Path(data).stat().st_size / 1e6
    print(f"{data}: {size:.0f} MB", file=sys.stderr)
    probs = ["--probs", "p_1" if n_classes == 2 else "p_*"]
    common = [data, "--label", "y", *probs]
    name = f"K = {n_classes}"
    fit = ["fit", *common, "-o", model, "--calibrator", "irp"]
    yield measured(f"fit, {name}", n_rows, *fit)
    yield measured(f"apply, {name}", n_rows, "apply", model, data, "-o", out)
    evaluate = ["evaluate", *common, "--model", model, "--resamples", "0", "--json"]
    yield measured(f"evaluate, {name}", n_rows, *evaluate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--classes", default="2,3", help="numbers of classes")
    parser.add_argument("--out", type=Path, default=Path("build/bench/files.json"))
    options = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for n_classes in map(int, options.classes.split(",")):
            for found in commands(Path(folder), options.rows, n_classes):
                rows.append(found)
                print("  ".join(f"{key} {value}" for key, value in found.items()), flush=True)
    packages = ("isoroc", "numpy", "scikit-learn", "polars")
    versions = {"python": platform.python_version()} | {name: version(name) for name in packages}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"versions": versions, "rows": rows}, indent=2) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
