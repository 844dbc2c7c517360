"""GroupedCalibrator against its common map, by group. Prints the tables of docs/decisions.md.

python benchmarks/groups.py --arena FOLDER [--first 0] [--part 1] [--kinds alike,odds,power]

Every set of the arena is split into groups at random, calibration and test rows alike. In the first
table nothing else is done: all groups are alike. In the others the forecasts of each group are
changed: the odds of the first class, or the sharpness, by a random factor for each group.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from arena import CLIP, Set, read_sets
from scipy.special import ndtr, softmax

from isoroc import GroupedCalibrator
from isoroc._table import markdown_table
from isoroc.metrics._groups import correct_p_values

KINDS = {
    "alike": "groups at random",
    "odds": "odds of the first class times exp(normal(0, 0.7))",
    "power": "forecasts to the power exp(normal(0, 0.6))",
}


def change(P: np.ndarray, code: np.ndarray, kind: str, sizes: np.ndarray) -> np.ndarray:
    """Forecasts that differ by group."""
    if kind == "alike":
        return P
    logs = np.log(np.maximum(P, 1e-9))
    if kind == "odds":
        logs[:, 0] += 0.7 * sizes[code]
    else:
        logs *= np.exp(0.6 * sizes[code])[:, None]
    return softmax(logs, axis=1)


def losses(Q: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -np.log(np.maximum(Q[np.arange(len(y)), y], CLIP))


def compare(found: Set, n_groups: int, kind: str) -> Iterator[tuple[float, ...]]:
    """For each group: rows to fit, weight of its map, mean change of the loss, and its error."""
    rng = np.random.default_rng([n_groups, *found.name.encode()])
    sizes = rng.normal(size=n_groups)
    P, y, P_new, y_new = found[2:]
    code, code_new = (rng.integers(n_groups, size=len(labels)) for labels in (y, y_new))
    P, P_new = change(P, code, kind, sizes), change(P_new, code_new, kind, sizes)
    labels = np.arange(found.n_classes)
    calibrator = GroupedCalibrator(random_state=0).fit(P, y, groups=code, labels=labels)
    weights = dict(zip(calibrator.groups_.tolist(), calibrator.weights_, strict=True))
    Q = calibrator.predict_proba(P_new, code_new)
    change_of_loss = losses(Q, y_new) - losses(calibrator.calibrate(P_new), y_new)
    for group in range(n_groups):
        part = change_of_loss[code_new == group]
        n = np.count_nonzero(code == group)
        error = part.std(ddof=1) / np.sqrt(len(part))
        yield n, weights.get(str(group), 0.0), part.mean(), error


def summarise(rows: np.ndarray) -> tuple[str, ...]:
    _, weight, change_of_loss, error = rows.T
    own = weight > 0
    z = np.divide(change_of_loss, error, out=np.zeros(len(rows)), where=error > 0)
    worse = correct_p_values(1 - ndtr(z)) <= 0.05
    alone = np.count_nonzero(1 - ndtr(z) <= 0.05)
    figures = f"{np.median(rows[:, 0]):,.0f}", f"{len(rows):,}", f"{own.sum():,}"
    means = f"{1e4 * change_of_loss.mean():+.1f}", f"{1e4 * change_of_loss.max():+.1f}"
    return *figures, *means, f"{alone:,}", f"{worse.sum():,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arena", type=Path, required=True)
    parser.add_argument("--first", type=int, default=0, help="number of the first set that is used")
    parser.add_argument("--part", type=int, default=1, help="use every Nth set")
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    sets = list(read_sets(options.arena))[options.first :: options.part]
    head = ["groups per set", "rows per group", "groups", "with a map of their own"]
    head += ["mean change", "largest change", "worse, p <= 0.05", "worse, corrected"]
    for kind in options.kinds.split(","):
        lines = []
        for n_groups in (3, 10):
            rows = [row for s in sets for row in compare(s, n_groups, kind)]
            lines.append((str(n_groups), *summarise(np.array(rows))))
        print(f"\n{KINDS[kind]}, {len(sets)} sets; changes of the log loss in 1e-4 nats:\n")
        print(markdown_table(head, lines), flush=True)


if __name__ == "__main__":
    main()
