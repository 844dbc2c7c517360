"""Quality: every calibrator on every set of real forecasts, evaluated on test rows.

    python benchmarks/quality.py ARENA [--rows N] [--only WORD] [--methods A,B] [--fresh A,B]
                                       [--out FOLDER]

ARENA is a folder of sets dataset-model.npz, each with probas_cal, labels_cal, probas_test and
labels_test, or an HDF5 file that contains them as dataset/model/probas_cal and so on. With --rows,
calibrators see a random part of the calibration rows. Writes to FOLDER (build/quality by default):
results.csv, one row per method and set; losses/, the losses of all test rows; summary.md, win rates
and comparisons; winrates.png. benchmarks/requirements.txt lists the peers. Results in FOLDER are
reused, except those of isoroc's own methods and of the methods in --fresh. --methods also takes
"peers", "own" and "none": only write the summary.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from arena import Set, losses_of, read_sets, scores_of
from comparison import Results, draw, summary
from peers import Method, Uncalibrated, own_methods, peers

from isoroc._support.progress import progress

METRICS = ("log_loss", "brier", "ece_top", "ece_classwise", "accuracy", "auc", "changed")
TIMES = ("fit_seconds", "predict_seconds")


def run(method: Method, data: Set) -> tuple[dict[str, float], np.ndarray]:
    """Scores of one method on one set, and the losses of all test rows."""
    with warnings.catch_warnings(), silence():
        warnings.simplefilter("ignore")
        start = perf_counter()
        calibrator = method.make()
        calibrator.fit(data.probas_cal, data.labels_cal)
        fitted = perf_counter()
        Q = np.asarray(calibrator.predict_proba(data.probas_test), dtype=np.float64)
        predicted = perf_counter()
    if Q.shape != data.probas_test.shape or not np.isfinite(Q).all():
        raise ValueError("the forecasts are not finite, or classes are missing")
    times = dict(zip(TIMES, (fitted - start, predicted - fitted), strict=True))
    return scores_of(data, Q) | times, losses_of(data.labels_test, Q).astype(np.float32)


@contextlib.contextmanager
def silence() -> Any:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield


def load_results(folder: Path) -> Results:
    """Rows of an earlier run, by method and set."""
    path = folder / "results.csv"
    if not path.exists():
        return {}
    numbers = (*METRICS, *TIMES)
    with path.open(newline="") as file:
        rows = [
            row
            | {name: float(row[name]) for name in numbers}
            | {"n_classes": int(row["n_classes"])}
            for row in csv.DictReader(file)
        ]
    return {(row["method"], f"{row['dataset']}-{row['model']}"): row for row in rows}


def save_results(results: Results, folder: Path) -> None:
    temporary = folder / "results.new"
    with temporary.open("w", newline="") as file:
        fields = ["method", "dataset", "model", "n_classes", *METRICS, *TIMES]
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows(results.values())
    temporary.replace(folder / "results.csv")


def load_losses(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Losses of all test rows of a set by method, shape (2, n)."""
    path = folder / "losses" / f"{name}.npz"
    if not path.exists():
        return {}
    with np.load(path) as arrays:
        return dict(arrays)


def run_all(arena: Path, options: argparse.Namespace, methods: list[Method]) -> Results:
    """Results of all methods on all sets, saved after each set."""
    results = load_results(options.out)
    (options.out / "losses").mkdir(parents=True, exist_ok=True)
    fresh = options.fresh.split(",")
    with progress("arena", shown=True) as report:
        for whole in read_sets(arena):
            data = whole.part(options.rows) if options.rows else whole
            if data is None or options.only not in data.name:
                continue
            losses = load_losses(options.out, data.name)
            for method in methods:
                again = method.ours or method.name in fresh
                known = (method.name, data.name) in results and method.name in losses
                if (known and not again) or (method.binary_only and data.n_classes > 2):
                    continue
                report(f"{data.name}, {method.name}")
                try:
                    scores, losses[method.name] = run(method, data)
                except Exception as error:  # noqa: BLE001  a peer that fails is left out
                    print(f"{method.name} failed on {data.name}: {error!r:.200}")
                    continue
                about = {"method": method.name, "dataset": data.dataset, "model": data.model}
                results[method.name, data.name] = about | {"n_classes": data.n_classes} | scores
            np.savez_compressed(options.out / "losses" / f"{data.name}.npz", **losses)
            save_results(results, options.out)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arena", type=Path)
    parser.add_argument("--rows", type=int, default=0, help="calibration rows; all by default")
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--methods", default="", help="methods to run, separated by commas")
    parser.add_argument("--fresh", default="", help="peers to run again")
    parser.add_argument("--out", type=Path, default=Path("build/quality"))
    options = parser.parse_args()
    found, missing = peers()
    own = [Method("Uncalibrated", Uncalibrated), *own_methods()]
    groups = {"": [*own, *found], "own": own, "peers": found, "none": []}
    chosen = options.methods.split(",")
    named = [method for method in groups[""] if method.name in chosen]
    results = run_all(options.arena, options, groups.get(options.methods, named))
    losses = {name: load_losses(options.out, name) for name in {name for _, name in results}}
    text = summary(results, losses, missing)
    (options.out / "summary.md").write_text(text)
    draw(results, options.out / "winrates.png")
    print(text)


if __name__ == "__main__":
    main()
