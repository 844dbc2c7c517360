"""What each calibrator does to decisions and to the order of test rows, over the sets of the arena.

    python benchmarks/order.py ARENA [--only WORD] [--rows N] [--out FOLDER]

ARENA is what benchmarks/quality.py takes. Prints one table for two classes, one for three and four
and one for five and more: means over the sets of the measures of `isoroc.evaluate`.
Writes one row per calibrator and set to FOLDER/order.csv (build/order by default). With --rows each
calibrator is fitted to N random calibration rows of each set that has more.
"""

from __future__ import annotations

import argparse
import csv
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from arena import Set, read_sets

import isoroc
from isoroc._support.progress import progress
from isoroc.metrics import log_loss

GROUPS = {"K = 2": (2, 2), "K = 3, 4": (3, 4), "K >= 5": (5, np.inf)}
MEASURES = ("accuracy", "auc", "decisions_changed", "pairs_reversed", "pairs_tied", "log_loss")
#: Forecasts are clipped at this value for the log loss, as in benchmarks/quality.py.
CLIP = 1e-6


def calibrators() -> dict[str, Callable[[], Any]]:
    return {
        "before calibration": isoroc.IdentityCalibrator,
        "TemperatureCalibrator": isoroc.TemperatureCalibrator,
        "TemperatureCalibrator(compatible=True)": lambda: isoroc.TemperatureCalibrator(
            compatible=True
        ),
        "MonotoneCalibrator": isoroc.MonotoneCalibrator,
        "AutoCalibrator(monotone=True)": lambda: isoroc.AutoCalibrator(
            monotone=True, random_state=0
        ),
        "AutoCalibrator": lambda: isoroc.AutoCalibrator(random_state=0),
        "KernelCalibrator": isoroc.KernelCalibrator,
        "MatrixCalibrator": isoroc.MatrixCalibrator,
        "SplineCalibrator": isoroc.SplineCalibrator,
        "IsotonicCalibrator": isoroc.IsotonicCalibrator,
        "VennAbersCalibrator": isoroc.VennAbersCalibrator,
        "IRPCalibrator": lambda: isoroc.IRPCalibrator(random_state=0),
        "BaggedIRPCalibrator": lambda: isoroc.BaggedIRPCalibrator(random_state=0),
        "RecursiveBinningCalibrator": isoroc.RecursiveBinningCalibrator,
    }


def measure(of: Set, n_rows: int | None) -> Iterator[dict[str, Any]]:
    """One row per calibrator."""
    P, y = of.probas_cal, of.labels_cal
    if n_rows is not None:
        rng = np.random.default_rng([n_rows, zlib.crc32(of.name.encode())])
        rows = rng.permutation(len(y))[:n_rows]
        P, y = P[rows], y[rows]
    labels = np.arange(of.n_classes)
    for name, make in calibrators().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forecasts may be no better than chance
            Q = make().fit(P, y, labels=labels).predict_proba(of.probas_test)
            report = isoroc.evaluate(
                of.labels_test, of.probas_test, Q, labels=labels, n_resamples=0
            )
        area = "auc" if of.n_classes == 2 else "auc_one_vs_rest"
        clipped = Q.clip(min=CLIP)
        clipped /= clipped.sum(axis=1, keepdims=True)
        yield {
            "set": of.name,
            "classes": of.n_classes,
            "calibrator": name,
            "accuracy": report["accuracy", "after"],
            "auc": report[area, "after"],
            "decisions_changed": report["decisions_changed", "change"],
            "pairs_reversed": report["pairs_reversed", "change"],
            "pairs_tied": report["pairs_tied", "change"],
            "log_loss": log_loss(of.labels_test, clipped, labels=labels),
        }


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of Markdown: means over the sets, and on how many sets the AUC fell."""
    head = ["calibrator", "accuracy", "AUC", "AUC lower", "decisions changed"]
    head += ["pairs reversed", "pairs tied", "log loss"]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    of = {name: [r for r in rows if r["calibrator"] == name] for name in calibrators()}
    before = [r["auc"] for r in of["before calibration"]]
    for name, found in of.items():
        mean = {m: float(np.mean([r[m] for r in found])) for m in MEASURES}
        lower = sum(r["auc"] < b - 1e-9 for r, b in zip(found, before, strict=True))
        shares = (
            f"{100 * mean[m]:.2f} %" for m in ("decisions_changed", "pairs_reversed", "pairs_tied")
        )
        cells = [name, f"{mean['accuracy']:.4f}", f"{mean['auc']:.4f}", f"{lower}", *shares]
        yield "| " + " | ".join([*cells, f"{mean['log_loss']:.4f}"]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arena", type=Path)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--rows", type=int, help="random calibration rows to fit to")
    parser.add_argument("--out", type=Path, default=Path("build/order"))
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with progress("order", shown=True) as report:
        for of in read_sets(arguments.arena):
            if arguments.only in of.name:
                report(of.name)
                rows += measure(of, arguments.rows)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "order.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for group, (least, most) in GROUPS.items():
        found = [r for r in rows if least <= r["classes"] <= most]
        if found:
            print(f"\n{group}, {len({r['set'] for r in found})} sets\n")
            print("\n".join(table(found)))


if __name__ == "__main__":
    main()
