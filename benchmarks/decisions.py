"""Coverage of class shares, and costs on real sets. Prints the tables of docs/coverage.md.

python benchmarks/decisions.py [--repetitions 500] [--arena FOLDER]
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from arena import GROUPS, Set, read_sets

from isoroc import AutoCalibrator, CalibrationMonitor, adjust_prior, estimate_prior
from isoroc._evaluation.evaluate import correct_p_values
from isoroc._support.table import markdown_table
from isoroc.decisions import decide, expected_cost

MEANS = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
OLD = {2: np.array([0.5, 0.5]), 4: np.array([0.25, 0.25, 0.25, 0.25])}
NEW = {
    2: {"none": OLD[2], "small": np.array([0.55, 0.45]), "large": np.array([0.9, 0.1])},
    4: {
        "none": OLD[4],
        "small": np.array([0.3, 0.2, 0.25, 0.25]),
        "large": np.array([0.7, 0.1, 0.1, 0.1]),
    },
}
#: Random cost matrices for each set of the arena.
N_COSTS = 5
#: How often labels are drawn for a p-value.
N_DRAWS = 9999


def draw(
    n: int, old: np.ndarray, new: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the new population: labels, and forecasts that are exact for the old one."""
    K = len(old)
    y = rng.choice(K, size=n, p=new)
    x = MEANS[y] + rng.normal(size=(n, 2))
    joint = old * np.exp(-((x[:, None] - MEANS[:K]) ** 2).sum(axis=2) / 2)
    return y, joint / joint.sum(axis=1, keepdims=True)


def are_right(y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """For each class whether the interval of observed minus forecast share covers 0."""
    shares = CalibrationMonitor(range(Q.shape[1])).update(y, Q).shares
    return (shares["low"] <= 0) & (shares["high"] >= 0)


def print_shares(repetitions: int) -> None:
    lines = []
    n = 300
    for n_classes, shift in product((2, 4), ("none", "small", "large")):
        old, new = OLD[n_classes], NEW[n_classes][shift]
        errors, covered, found, adjusted, left = [], [], [], [], []
        for seed in range(repetitions):
            y, Q = draw(n, old, new, np.random.default_rng(seed))
            estimate = estimate_prior(Q, old)
            errors.append(estimate.prior - new)
            covered.append((estimate.low <= new) & (new <= estimate.high))
            found.append(estimate.p_value < 0.05)
            adjusted.append(are_right(y, adjust_prior(Q, old, new)))
            left.append(are_right(y, Q))
        error = np.sqrt(np.mean(np.square(errors)))
        means = [f"{np.mean(values):.3f}" for values in (covered, found, adjusted, left)]
        lines.append((str(n_classes), f"{n:,}", shift, f"{error:.3f}", *means))
    head = [
        "K",
        "rows",
        "shift",
        "error",
        "covered",
        "found",
        "adjusted right",
        "not adjusted right",
    ]
    print(markdown_table(head, lines))


def costs_for(n_classes: int, rng: np.random.Generator) -> np.ndarray:
    """Random costs of deciding for a class if another occurs, and of abstaining."""
    costs = np.exp(rng.normal(scale=1.5, size=(n_classes, n_classes + 1)))
    costs[np.arange(n_classes), np.arange(n_classes)] = 0.0
    costs[:, -1] = 0.3 * np.median(costs[costs > 0])
    return costs


def changes(found: Set) -> list[tuple[float, float, float]]:
    """For each cost matrix the relative change of the mean cost, its z value and a p-value."""
    rng = np.random.default_rng(list(found.name.encode()))
    labels = np.arange(found.n_classes)
    calibrator = AutoCalibrator(random_state=0)
    calibrator.fit(found.probas_cal, found.labels_cal, labels=labels)
    P, y, Q = found.probas_test, found.labels_test, calibrator.predict_proba(found.probas_test)
    result = []
    for _ in range(N_COSTS):
        costs = costs_for(found.n_classes, rng)
        report = expected_cost(y, P, costs, after=Q, labels=labels)
        change, low = (report.table[name][2] for name in ("cost", "low"))
        error = (change - low) / 1.96
        z = change / error if error > 0 else 0.0
        p_value = chance_of_higher(y, Q, costs[:, decide(Q, costs)] - costs[:, decide(P, costs)])
        relative = np.divide(change, report["before"]) if change else 0.0  # 0 of 0 changes nothing
        result.append((relative, z, p_value))
    return result


def chance_of_higher(y: np.ndarray, Q: np.ndarray, change: np.ndarray) -> float:
    """How likely a change of cost this high is if labels have the calibrated probabilities.

    Few decisions change, and a rare label may change the cost by much: the change is far from
    normal, so labels are drawn. `change` has one column per row, and one entry per class in it. A
    cost that is not higher has the p-value 1.
    """
    rows = np.flatnonzero(change.any(axis=0))
    change, cumulative = change[:, rows], Q[rows, :-1].cumsum(axis=1)
    observed = change[y[rows], np.arange(len(rows))].sum()
    if observed <= 0:
        return 1.0
    rng = np.random.default_rng(0)
    as_high = 1
    for _ in range(N_DRAWS):
        drawn = (rng.random((len(rows), 1)) > cumulative).sum(axis=1)
        as_high += change[drawn, np.arange(len(rows))].sum() >= observed - 1e-9
    return as_high / (N_DRAWS + 1)


def print_costs(arena: Path) -> None:
    lines = []
    sets = list(read_sets(arena))
    for name, belongs in GROUPS.items():
        chosen = [s for s in sets if belongs(s.n_classes)]
        relative, z, p_values = np.array([entry for s in chosen for entry in changes(s)]).T
        corrected = correct_p_values(p_values)
        figures = f"{len(chosen)}", f"{len(z)}", f"{np.median(relative):+.1%}"
        marks = (z < -1.96, p_values <= 0.025, corrected <= 0.05)
        lines.append((name, *figures, *(f"{np.count_nonzero(mark)}" for mark in marks)))
    head = ["", "sets", "cost matrices", "median change", "lower", "higher", "higher, corrected"]
    print(markdown_table(head, lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--arena", type=Path)
    options = parser.parse_args()
    if options.repetitions:
        print_shares(options.repetitions)
    if options.arena is not None:
        print_costs(options.arena)


if __name__ == "__main__":
    main()
