"""Ablation of the automatic calibrator on an arena.

    python benchmarks/ablation.py ARENA [--only WORD] [--quick]

ARENA is the same as for quality.py. Prints Markdown tables of the mean test log loss and Brier
score of the mixture, of the mixture without each member, with other weights or combinations, with
other numbers of folds, and with 100 to 3,000 calibration rows, and the number of sets on which each
variant has a lower log loss than the default. --quick leaves out folds and sizes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from quality import CLIP, GROUPS, Set, peers, read_sets, scores_of
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.base import clone

from isoroc import AutoCalibrator
from isoroc._calibrators import auto
from isoroc._calibrators.auto import default_members, mixture_weights
from isoroc._folds import deal_folds
from isoroc._input import Sample, encode_labels
from isoroc._progress import progress

Losses = dict[str, dict[str, tuple[float, float]]]


class Members(NamedTuple):
    """Forecasts of all members for one set."""

    names: list[str]
    unseen: np.ndarray
    """Out-of-fold forecasts of the calibration rows, shape (members, n, K)."""
    test: np.ndarray
    """Forecasts of the test rows by members fitted to all calibration rows."""


def forecasts_of_members(data: Set) -> Members:
    random_state = np.random.RandomState(0)
    members = default_members(data.n_classes)
    _, codes = encode_labels(data.labels_cal, data.n_classes, labels=range(data.n_classes))
    fold = deal_folds(len(codes), 5, random_state, codes)
    sample = Sample(data.probas_cal, codes, None)
    unseen, test = [], []
    for member in members:
        if "random_state" in member.get_params():
            member.set_params(random_state=0)
        unseen.append(member.fit_out_of_fold(sample, fold))
        test.append(member.calibrate(data.probas_test))
    return Members([type(member).__name__ for member in members], np.array(unseen), np.array(test))


def likelihood(Q: np.ndarray, y: np.ndarray) -> np.ndarray:
    return Q[:, np.arange(len(y)), y].T.clip(min=CLIP)


def linear(unseen: np.ndarray, test: np.ndarray, y: np.ndarray) -> np.ndarray:
    weights = mixture_weights(likelihood(unseen, y), np.ones(len(y)))
    return np.tensordot(weights, test, axes=1)


def equal(unseen: np.ndarray, test: np.ndarray, y: np.ndarray) -> np.ndarray:  # noqa: ARG001
    return test.mean(axis=0)


def selected(unseen: np.ndarray, test: np.ndarray, y: np.ndarray) -> np.ndarray:
    return test[np.log(likelihood(unseen, y)).mean(axis=0).argmax()]


def converged(unseen: np.ndarray, test: np.ndarray, y: np.ndarray) -> np.ndarray:
    steps, auto.EM_STEPS = auto.EM_STEPS, 10_000
    try:
        return linear(unseen, test, y)
    finally:
        auto.EM_STEPS = steps


def log_pool(unseen: np.ndarray, test: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Softmax of a weighted sum of log forecasts; weights >= 0, shrunk towards equal."""
    logs, logs_test = np.log(unseen.clip(min=CLIP)), np.log(test.clip(min=CLIP))
    start = np.full(len(unseen), 1 / len(unseen))
    rows = np.arange(len(y))

    def loss(a: np.ndarray) -> tuple[float, np.ndarray]:
        log_q = log_softmax(np.tensordot(a, logs, axes=1), axis=1)
        slope = (np.exp(log_q) * logs).sum(axis=(1, 2)) - logs[:, rows, y].sum(axis=1)
        away = a - start
        return -log_q[rows, y].sum() + 10 * away @ away, slope + 20 * away

    found = minimize(loss, start, jac=True, bounds=[(0, None)] * len(start), method="L-BFGS-B")
    return np.exp(log_softmax(np.tensordot(found.x, logs_test, axes=1), axis=1))


COMBINATIONS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "mixture (default)": linear,
    "EM run to its end": converged,
    "equal weights": equal,
    "the best member alone": selected,
    "log pool": log_pool,
}


def of_parts(data: Set, losses: Losses) -> None:
    """Other combinations of the members, and the default without each member."""
    members = forecasts_of_members(data)
    variants = {
        name: combine(members.unseen, members.test, data.labels_cal)
        for name, combine in COMBINATIONS.items()
    }
    for m, name in enumerate(members.names):
        rest = np.arange(len(members.names)) != m
        variants[f"without {name}"] = linear(
            members.unseen[rest], members.test[rest], data.labels_cal
        )
    for name, Q in variants.items():
        add(losses, name, data, Q)


def of_folds(data: Set, losses: Losses) -> None:
    for cv in (3, 10):
        calibrator = AutoCalibrator(cv=cv, random_state=0)
        calibrator.fit(data.probas_cal, data.labels_cal, labels=range(data.n_classes))
        add(losses, f"cv={cv}", data, calibrator.predict_proba(data.probas_test))


def of_sizes(data: Set, losses: Losses) -> None:
    """The mixture, SMS and the uncalibrated forecasts, with fewer calibration rows."""
    peer = next((method for method in peers()[0] if method.name == "SMS"), None)
    order = np.random.default_rng(0).permutation(len(data.labels_cal))
    for n in (100, 300, 1000, 3000):
        rows = order[:n]
        if n > len(order) or len(np.unique(data.labels_cal[rows])) < data.n_classes:
            continue
        P, y = data.probas_cal[rows], data.labels_cal[rows]
        add(losses, f"{n} rows, uncalibrated", data, data.probas_test)
        fitted = clone(AutoCalibrator(random_state=0)).fit(P, y)
        add(losses, f"{n} rows, mixture", data, fitted.predict_proba(data.probas_test))
        if peer is not None:
            calibrator = peer.make()
            calibrator.fit(P, y)
            Q = np.asarray(calibrator.predict_proba(data.probas_test), dtype=np.float64)
            add(losses, f"{n} rows, SMS", data, Q)


def add(losses: Losses, variant: str, data: Set, Q: np.ndarray) -> None:
    scores = scores_of(data.labels_test, Q)
    losses.setdefault(variant, {})[data.name] = scores["log_loss"], scores["brier"]


def table(losses: Losses, names: set[str], *, against: str | None) -> str:
    """Means over the sets that all variants have in common, and wins against one variant."""
    shared = sorted(names.intersection(*(set(of_sets) for of_sets in losses.values())))
    lines = ["| | log loss | Brier |" + (" sets where it beats the default |" if against else "")]
    lines += ["|---" * (4 if against else 3) + "|"]
    for variant, of_sets in losses.items():
        mean = np.mean([of_sets[name] for name in shared], axis=0)
        line = f"| {variant} | {mean[0]:.4f} | {mean[1]:.4f} |"
        if against:
            wins = sum(of_sets[name][0] < losses[against][name][0] for name in shared)
            line += f" {wins} of {len(shared)} |"
        lines.append(line)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arena", type=Path)
    parser.add_argument("--only", default="", help="sets whose name contains this")
    parser.add_argument("--quick", action="store_true", help="leave out folds and sizes")
    options = parser.parse_args()
    parts: Losses = {}
    sizes: Losses = {}
    groups: dict[str, set[str]] = {group: set() for group in GROUPS}
    with progress("ablation", shown=True) as report:
        for data in read_sets(options.arena):
            if options.only not in data.name:
                continue
            report(data.name)
            groups[next(g for g, where in GROUPS.items() if where(data.n_classes))].add(data.name)
            of_parts(data, parts)
            if not options.quick:
                of_folds(data, parts)
                of_sizes(data, sizes)
    for group, names in groups.items():
        if names:
            print(f"\n## {group}\n\n{table(parts, names, against='mixture (default)')}")
        for n in (100, 300, 1000, 3000):
            of_size = {k: v for k, v in sizes.items() if k.startswith(f"{n} rows")}
            if of_size and names & set(next(iter(of_size.values()))):
                print(f"\n{table(of_size, names, against=None)}")


if __name__ == "__main__":
    main()
