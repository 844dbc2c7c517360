"""GroupedCalibrator against its common map, by group. Prints the tables of docs/coverage.md.

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
from scipy.special import softmax

from isoroc import GroupedCalibrator
from isoroc._evaluation.evaluate import correct_p_values
from isoroc._support.table import markdown_table

#: How often labels are drawn for a p-value.
N_DRAWS = 9999
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


def compare(found: Set, n_groups: int, kind: str) -> Iterator[tuple[float, ...]]:
    """For each group: rows to fit, weight of its map, mean change of the loss, and a p-value."""
    rng = np.random.default_rng([n_groups, *found.name.encode()])
    sizes = rng.normal(size=n_groups)
    P, y, P_new, y_new = found[2:]
    code, code_new = (rng.integers(n_groups, size=len(labels)) for labels in (y, y_new))
    P, P_new = change(P, code, kind, sizes), change(P_new, code_new, kind, sizes)
    labels = np.arange(found.n_classes)
    calibrator = GroupedCalibrator(random_state=0).fit(P, y, groups=code, labels=labels)
    weights = dict(zip(calibrator.groups_.tolist(), calibrator.weights_, strict=True))
    Q = calibrator.predict_proba(P_new, code_new)
    common = calibrator.common_.predict_proba(P_new)
    for group in range(n_groups):
        rows = code_new == group
        changed, p_value = change_of_loss(Q[rows], common[rows], y_new[rows])
        yield np.count_nonzero(code == group), weights.get(str(group), 0.0), changed, p_value


def change_of_loss(Q: np.ndarray, common: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Mean change of the log loss, and how likely one this high is if the labels follow Q.

    A group's map may cost a little on most rows and save much on a few, so the mean is far from
    normal, and labels are drawn. A loss that is not higher has the p-value 1.
    """
    change = np.log(np.maximum(common, CLIP)) - np.log(np.maximum(Q, CLIP))
    rows = np.arange(len(y))
    observed = change[rows, y].mean()
    if observed <= 0:
        return observed, 1.0
    rng, cumulative = np.random.default_rng(0), Q[:, :-1].cumsum(axis=1)
    as_high = 1
    for _ in range(N_DRAWS):
        drawn = (rng.random((len(y), 1)) > cumulative).sum(axis=1)
        as_high += change[rows, drawn].mean() >= observed - 1e-12
    return observed, as_high / (N_DRAWS + 1)


def summarise(found: np.ndarray) -> tuple[str, ...]:
    rows, weight, changed, p_values = found.T
    figures = f"{np.median(rows):,.0f}", f"{len(rows):,}", f"{np.count_nonzero(weight):,}"
    means = f"{1e4 * changed.mean():+.1f}", f"{1e4 * changed.max():+.1f}"
    worse = p_values <= 0.05, correct_p_values(p_values) <= 0.05
    return *figures, *means, *(f"{np.count_nonzero(mark):,}" for mark in worse)


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
