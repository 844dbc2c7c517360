"""How often intervals of calibration terms and errors cover the truth, and the level of verdicts.

    python benchmarks/coverage.py [--quick] [--jobs N] [--repetitions N] [--only forecasts]

Draws labels with known probabilities. Forecasts have 2 to 50 distinct values, are continuous, or
are rounded to 6 to 1 digits. They are calibrated, too confident or not confident enough (a power of
the truth, normalised), or forecast events of 1 %, rightly or twice as often. Prints, for each
setting, how often 95 % intervals of the calibration terms of log loss and Brier score and of the l1
calibration error cover the truth. For calibrated forecasts an interval misses only if it lies above
0. Then the verdict of `evaluate` is to calibrate, so its level is 1 less the coverage for the log
loss. Prints tables of docs/coverage.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from isoroc._input import check_probabilities
from isoroc.metrics._estimation.calibration_terms import Parts

Array = np.ndarray
MEASURES = ("log", "brier", "l1")
#: Power of the truth that forecasts are, and by how much the rate of rare events is too large.
POWERS = {"calibrated": 1.0, "over 1.2": 1.2, "over 2": 2.0, "under .8": 0.8, "under .5": 0.5}
RARE = {"1 % events": 1.0, "1 % doubled": 2.0}
KINDS = (*POWERS, *RARE)
#: Number of distinct forecasts; 0 for continuous ones.
VALUES = (2, 5, 10, 20, 50, 0)


class Case(NamedTuple):
    """A setting."""

    n_classes: int
    values: int
    n: int
    kind: str
    digits: int | None = None


def draw_truth(case: Case, size: int, rng: np.random.Generator) -> Array:
    """True probabilities of some forecasts."""
    K = case.n_classes
    if case.kind in POWERS:
        if K == 2 and case.values:
            u = (np.arange(size) + 0.5) / size
            return np.column_stack([1 - u, u])
        return rng.dirichlet(np.ones(K), size)
    event = 0.01 * np.exp(rng.normal(size=size) / 2 - 1 / 8)
    rest = rng.dirichlet(np.ones(K - 1), size) * event[:, None]
    return np.column_stack([1 - event, rest])


def forecast(truth: Array, kind: str) -> Array:
    """The forecasts of true probabilities."""
    if kind in POWERS:
        P = truth ** POWERS[kind]
        return P / P.sum(axis=1, keepdims=True)
    events = RARE[kind] * truth[:, 1:]
    return np.column_stack([1 - events.sum(axis=1), events])


def rounded(P: Array, digits: int | None) -> Array:
    """Forecasts with a number of digits; the first of two classes has the rest."""
    if digits is None:
        return P
    P = P.round(digits)
    P[:, 0] += (P.shape[1] == 2) * (1 - P.sum(axis=1))
    return P / P.sum(axis=1, keepdims=True)


def given(truth: Array, P: Array) -> Array:
    """E[Y | forecast]: the mean truth of the rows with the same forecast."""
    _, group, n = np.unique(P, axis=0, return_inverse=True, return_counts=True)
    group = group.ravel()
    means = [np.bincount(group, column) / n for column in truth.T]
    return np.column_stack(means)[group]


def targets(truth: Array, P: Array) -> dict[str, float]:
    """What is estimated."""
    half = 2 if P.shape[1] == 2 else 1
    square = ((truth - P) ** 2).sum(axis=1).mean()
    least = np.finfo(np.float64).eps  # as in the log loss
    divergence = (xlogy(truth, truth) - xlogy(truth, P.clip(min=least))).sum(axis=1).mean()
    return {
        "log": max(float(divergence), 0.0) if (truth != P).any() else 0.0,
        "brier": float(square / half),
        "l1": float(np.abs(truth - P).sum(axis=1).mean() / 2),
    }


def study(case: Case, repetitions: int) -> dict[str, float]:
    """Share of repetitions in which the intervals cover."""
    rng = np.random.default_rng([KINDS.index(case.kind), *case[:3], case.digits or 0])
    support = draw_truth(case, case.values or 400_000, rng)
    P = rounded(forecast(support, case.kind), case.digits)
    expected = targets(support if case.digits is None else given(support, P), P)
    covered = dict.fromkeys(MEASURES, 0)
    for _ in range(repetitions):
        truth = support[rng.integers(len(support), size=case.n)]
        y = (rng.random((case.n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
        P = rounded(forecast(truth, case.kind), case.digits)
        sample = check_probabilities(y, P, None, range(case.n_classes), keep_zeros=True)
        parts = Parts.of(sample, "canonical")
        for measure in MEASURES:
            if measure == "l1":
                estimate, _ = parts.absolute()
            else:
                estimate, _ = parts.split_loss(measure)["calibration"]
            low, high = estimate.interval(0.95)
            covered[measure] += low <= expected[measure] <= max(high, 0.0)
    return {measure: count / repetitions for measure, count in covered.items()}


def cases(*, quick: bool, only: str) -> Iterator[Case]:
    sizes = (200, 1000) if quick else (200, 1000, 5000, 20_000)
    classes = (2, 3) if quick else (2, 3, 10)
    for K, values, n, kind in product(classes, VALUES, sizes, KINDS):
        if quick and values in (2, 10, 50):
            continue
        if only in ("", "tied" if values else "continuous"):
            yield Case(K, values, n, kind)
    for K, digits, kind in product((2, 3), (6, 4, 3, 2, 1), KINDS):
        for n in (2000,) if quick else (2000, 300_000 if K == 2 else 20_000):
            if only in ("", "rounded"):
                yield Case(K, 0, n, kind, digits)


def name_of(case: Case) -> str:
    """The forecasts of a setting, without their kind."""
    if case.digits is not None:
        return f"{case.digits} digits"
    return str(case.values or "continuous")


def report(found: dict[Case, dict[str, float]]) -> None:
    """The tables, and their extremes."""
    rows: dict[Case, list[Case]] = {}
    for case in found:
        rows.setdefault(case._replace(kind=""), []).append(case)
    for measure in MEASURES:
        print(f"\n### {measure}\n\n| K | values | n | " + " | ".join(KINDS) + " |")
        print("| ---: " * (3 + len(KINDS)) + "|")
        for row, of_kinds in rows.items():
            cells = " | ".join(f"{found[case][measure]:.3f}" for case in of_kinds)
            print(f"| {row.n_classes} | {name_of(row)} | {row.n:,} | {cells} |")
    for name in ("tied", "continuous", "rounded"):
        some = {case: shares for case, shares in found.items() if group_of(case) == name}
        for measure in MEASURES if some else ():
            shares = np.array([value[measure] for value in some.values()])
            right = [v[measure] for c, v in some.items() if c.kind in ("calibrated", "1 % events")]
            within = np.mean((shares >= 0.92) & (shares <= 0.98))
            print(
                f"\n{name}, {measure}: coverage {shares.min():.3f} to {shares.max():.3f}, mean "
                f"{shares.mean():.3f}, in {within:.0%} of the settings .92 to .98; level "
                f"{1 - np.mean(right):.3f} on average, {1 - min(right):.3f} at most"
            )


def group_of(case: Case) -> str:
    if case.digits is not None:
        return "rounded"
    return "tied" if case.values else "continuous"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few settings and repetitions")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    parser.add_argument("--repetitions", type=int, default=None, help="data sets per setting")
    parser.add_argument("--only", choices=("tied", "continuous", "rounded"), default="")
    options = parser.parse_args()
    repetitions = options.repetitions or (20 if options.quick else 400)
    chosen = list(cases(quick=options.quick, only=options.only))
    times = [repetitions] * len(chosen)
    if options.jobs == 1:
        found = list(map(study, chosen, times))
    else:
        with ProcessPoolExecutor(options.jobs) as pool:
            found = list(pool.map(study, chosen, times))
    print(f"{repetitions} data sets for each setting")
    report(dict(zip(chosen, found, strict=True)))


if __name__ == "__main__":
    main()
