"""Speed and memory against peers, measured in one run: a table on screen and a JSON file.

Every row is one job done by several contestants on the same data; times are medians in seconds,
and ratios say how many times as long as isoroc a peer takes.

    python benchmarks/speed.py [--quick] [--out build/bench/speed.json]
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import scipy
import sklearn
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression

import isoroc
from isoroc import IRPCalibrator

Row = dict[str, str | int | float | None]


def seconds(job: Callable[[], object], *, budget: float = 4.0, most: int = 15) -> float:
    """Median time of a job: at least three runs, more while the budget lasts."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < budget and len(times) < most):
        start = perf_counter()
        job()
        times.append(perf_counter() - start)
    return median(times)


def row(job: str, n: int, ours: Callable[[], object], **peers: Callable[[], object]) -> Row:
    times = {name: seconds(run) for name, run in {"isoroc": ours, **peers}.items()}
    ratios = {f"{name} / isoroc": times[name] / times["isoroc"] for name in peers}
    return {"job": job, "n": n, **times, **ratios}


def binary_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of a model that is somewhat overconfident."""
    rng = np.random.default_rng(0)
    scores = rng.random(n)
    return scores, (rng.random(n) < 0.2 + 0.6 * scores).astype(np.int64)


def argsort_and_pool(scores: np.ndarray, y: np.ndarray) -> object:
    order = np.argsort(scores)
    return isotonic_regression(y[order].astype(np.float64))


def binary_fits(sizes: list[int]) -> Iterator[Row]:
    for n in sizes:
        scores, y = binary_data(n)
        sources = {"probabilities": scores, "logits": np.log(scores / (1 - scores))}
        for kind, values in sources.items():
            yield row(
                f"binary fit, {kind}",
                n,
                lambda values=values, y=y: IRPCalibrator().fit(values, y),
                numpy_sort=lambda values=values: np.sort(values),
                sklearn=lambda values=values, y=y: IsotonicRegression().fit(values, y),
                scipy=lambda values=values, y=y: argsort_and_pool(values, y),
            )


def binary_predictions(sizes: list[int]) -> Iterator[Row]:
    for n in sizes:
        scores, y = binary_data(n)
        ours = IRPCalibrator().fit(scores, y)
        theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, y)
        new = np.random.default_rng(1).random(n)
        yield row(
            f"binary predict, {ours.n_bins_} bins",
            n,
            lambda ours=ours, new=new: ours.predict_proba(new),
            sklearn=lambda theirs=theirs, new=new: theirs.predict(new),
        )


def peak_memory(n: int) -> Row:
    """Peak resident memory of a process that loads the arrays and fits, over those arrays."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        scores, y = binary_data(n)
        np.savez(path, scores=scores, y=y)
        run = subprocess.run(  # noqa: S603
            [sys.executable, __file__, "--fit-once", str(path)],
            capture_output=True,
            text=True,
            check=True,
        )
    return {
        "job": "binary fit, peak memory / input arrays",
        "n": n,
        "ratio": float(run.stdout) / (scores.nbytes + y.nbytes),
    }


def fit_once(path: Path) -> None:
    """Print by how many bytes loading the arrays and fitting raised this process's peak."""

    def peak() -> int:
        status = Path("/proc/self/status").read_text()
        return 1024 * int(status.split("VmHWM:")[1].split()[0])

    IRPCalibrator().fit([0.0, 1.0], [0, 1])
    before = peak()
    with np.load(path) as data:
        scores, y = data["scores"], data["y"]
    IRPCalibrator().fit(scores, y)
    print(peak() - before)


def show(rows: list[Row]) -> None:
    for found in rows:
        figures = "  ".join(
            f"{name} {value:.3g}"
            for name, value in found.items()
            if name not in ("job", "n") and value is not None
        )
        print(f"{found['job']:<40} n = {found['n']:>11,}  {figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave the largest sizes out")
    parser.add_argument("--out", type=Path, default=Path("build/bench/speed.json"))
    parser.add_argument("--fit-once", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit_once:
        fit_once(options.fit_once)
        return

    sizes = [10**5, 10**6] if options.quick else [10**5, 10**6, 10**7]
    rows: list[Row] = []
    for found in [*binary_fits(sizes), *binary_predictions(sizes), peak_memory(sizes[-1])]:
        rows.append(found)
        show([found])
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    versions |= {m.__name__: m.__version__ for m in (isoroc, np, scipy, sklearn)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"versions": versions, "rows": rows}, indent=2) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
