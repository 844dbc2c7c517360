"""False alarms of CalibrationMonitor, its delay after drifts, and its calibration errors.

python benchmarks/monitor.py [--streams 1000] [--only calm machines fitted drifts errors]
"""

from __future__ import annotations

import argparse
from itertools import product
from math import log

import numpy as np

from isoroc import AutoCalibrator, CalibrationMonitor
from isoroc._evaluation.monitor import Alternatives, Evidence
from isoroc._support.table import markdown_table
from isoroc.metrics._estimation.cell_errors import error_in_cells, sum_in_cells

LIMIT = log(20)  # confidence 0.95
BATCH = 20
DRIFTS: dict[str, dict[str, float]] = {
    "odds of one class x 1.25": {"odds": 1.25},
    "odds of one class x 2": {"odds": 2.0},
    "power 0.8 (overconfident)": {"power": 0.8},
    "power 0.5 (very overconfident)": {"power": 0.5},
    "power 1.5 (underconfident)": {"power": 1.5},
}


def draw(
    n: int, n_classes: int, rng: np.random.Generator, power: float = 1.0, odds: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts, and labels whose odds are a power of theirs; those of the first class change."""
    Q = rng.dirichlet(np.ones(n_classes), size=n)
    truth = Q**power
    truth[:, 0] *= odds
    truth /= truth.sum(axis=1, keepdims=True)
    return Q, (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)


def products(alternatives: Alternatives, Q: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logarithm of the product of ratios in each batch."""
    ratios = alternatives.log_ratios(Q, y)
    return ratios.reshape(-1, BATCH, ratios.shape[1]).sum(axis=1)


def first_alarm(
    alternatives: Alternatives, batches: np.ndarray, start: Evidence, before: int
) -> tuple[int | None, Evidence]:
    """Number of batches until the alarm, or None; and the evidence at the end."""
    evidence = start
    for b, log_products in enumerate(batches):
        evidence = evidence.add(log_products, before + b)
        if evidence.value(alternatives) >= LIMIT:
            return b + 1, evidence
    return None, evidence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    for part in options.only:
        PARTS[part](options.streams)
        print()


def print_calm(streams: int) -> None:
    """How often one monitor raises a false alarm."""
    lines = []
    for n_classes in (2, 3):
        alternatives = Alternatives(n_classes)
        none = Evidence.none(len(alternatives.family))
        alarms = 0
        for seed in range(streams):
            Q, y = draw(1000 * BATCH, n_classes, np.random.default_rng(seed))
            found, _ = first_alarm(alternatives, products(alternatives, Q, y), none, 0)
            alarms += found is not None
        lines.append((str(n_classes), f"{streams:,}", f"{alarms / streams:.3f}"))
    print(f"1,000 batches of {BATCH} rows without drift:\n")
    print(markdown_table(["K", "streams", "streams with an alarm"], lines))


def print_machines(streams: int) -> None:
    """How often monitors of several machines raise a false alarm, alone and merged."""
    lines = []
    n_batches = 50
    for n_classes, n_machines in product((2, 3), (1, 2, 5, 10)):
        alternatives = Alternatives(n_classes)
        none = Evidence.none(len(alternatives.family))
        alone = merged = 0
        for seed in range(streams):
            Q, y = draw(n_machines * n_batches * BATCH, n_classes, np.random.default_rng([4, seed]))
            whole, alarms, looks = none, [], []
            for own in np.split(products(alternatives, Q, y), n_machines):
                found, evidence = first_alarm(alternatives, own, none, 0)
                for b, log_products in enumerate(own[found:] if found else [], found or 0):
                    evidence = evidence.add(log_products, b)
                whole = whole.merge(evidence)
                alarms.append(found is not None)
                looks.append(whole.value(alternatives))
            alone += any(alarms)
            merged += max(looks) >= LIMIT
        figures = f"{alone / streams:.3f}", f"{merged / streams:.3f}"
        lines.append((str(n_classes), str(n_machines), f"{streams:,}", *figures))
    print(f"{n_batches} batches of {BATCH} rows on each machine without drift:\n")
    heads = ["K", "machines", "streams", "an alarm of any machine", "an alarm after merging"]
    print(markdown_table(heads, lines))


def print_fitted(streams: int) -> None:
    """How often the monitor of a fitted calibrator raises an alarm without drift."""
    lines = []
    repetitions = max(streams // 10, 10)
    for n_classes, n in product((2, 3), (500, 2000)):
        alarms, excused = np.zeros(2), 0
        for seed in range(repetitions):
            rng = np.random.default_rng([5, seed])
            Q, y = draw(n, n_classes, rng, power=0.7)
            calibrator = AutoCalibrator(random_state=0).fit(Q, y)
            monitors = [CalibrationMonitor(calibrator, tolerance=t) for t in (0.0, None)]
            for _ in range(100):
                Q, y = draw(n // 5, n_classes, rng, power=0.7)
                for monitor in monitors:
                    monitor.update(y, Q)
            raised = [monitor.alarm_ is not None for monitor in monitors]
            alarms += raised
            if raised[1]:
                excused += excess(calibrator, n_classes) > monitors[1].tolerance
        shares = [f"{share:.2f}" for share in [*alarms / repetitions, excused / repetitions]]
        lines.append((str(n_classes), f"{n:,}", str(repetitions), *shares))
    print("AutoCalibrator of n overconfident rows, then 20 n rows in 100 batches without drift:\n")
    heads = ["K", "n", "streams", "alarms, tolerance 0", "alarms, tolerance 2 K / n (default)"]
    print(markdown_table([*heads, "of these, wrong by more than 2 K / n"], lines))


def excess(calibrator: AutoCalibrator, n_classes: int) -> float:
    """Log loss of calibrated forecasts beyond that of the true probabilities, in nats per row."""
    Q = np.random.default_rng(6).dirichlet(np.ones(n_classes), size=100_000)
    truth = Q**0.7 / (Q**0.7).sum(axis=1, keepdims=True)
    return float((truth * np.log(truth / calibrator.predict_proba(Q))).sum(axis=1).mean())


def print_drifts(streams: int) -> None:
    """How many rows it takes to notice a drift."""
    lines = []
    for n_classes in (2, 3):
        alternatives = Alternatives(n_classes)
        for name, drift in DRIFTS.items():
            for calm in (10, 500):
                delays = []
                for seed in range(max(streams // 10, 10)):
                    rng = np.random.default_rng([1, seed])
                    Q, y = draw(calm * BATCH, n_classes, rng)
                    none = Evidence.none(len(alternatives.family))
                    early, evidence = first_alarm(
                        alternatives, products(alternatives, Q, y), none, 0
                    )
                    if early is not None:
                        continue
                    Q, y = draw(1000 * BATCH, n_classes, rng, **drift)
                    batches = products(alternatives, Q, y)
                    found, _ = first_alarm(alternatives, batches, evidence, calm)
                    delays.append(np.inf if found is None else found * BATCH)
                shown = [f"{np.quantile(delays, q, method='higher'):,.0f}" for q in (0.5, 0.9)]
                lines.append((str(n_classes), name, f"{calm * BATCH:,}", *shown))
    print("Rows until the alarm:\n")
    print(markdown_table(["K", "drift", "calm rows before", "median", "90 % quantile"], lines))


def print_errors(repetitions: int) -> None:
    """Coverage of the intervals of the calibration error of a batch."""
    lines = []
    for n_classes, (name, drift), n in product((2, 3), {"none": {}, **DRIFTS}.items(), (100, 1000)):
        truth = true_error(n_classes, drift)
        found = []
        for seed in range(repetitions):
            Q, y = draw(n, n_classes, np.random.default_rng([2, seed]), **drift)
            found.append(error_in_cells(sum_in_cells(Q, y), 1.96))
        errors, low, high = np.array(found).T
        covered = np.mean((low <= truth) & (truth <= high))
        root = np.sqrt(np.mean(errors**2))
        figures = f"{truth:.3f}", f"{root:.3f}", f"{covered:.3f}"
        lines.append((str(n_classes), name, f"{n:,}", *figures))
    print("Calibration error of one batch, and coverage of its 95 % interval:\n")
    print(markdown_table(["K", "drift", "rows", "truth", "root mean square", "covered"], lines))


def true_error(n_classes: int, drift: dict[str, float], n_bins: int = 200) -> float:
    """Root mean square of the difference between rates and forecasts, in narrow bins."""
    rng = np.random.default_rng(3)
    Q = rng.dirichlet(np.ones(n_classes), size=1_000_000)
    truth = Q ** drift.get("power", 1.0)
    truth[:, 0] *= drift.get("odds", 1.0)
    truth /= truth.sum(axis=1, keepdims=True)
    squares = []
    for q, t in zip(Q.T, truth.T, strict=True):
        cell = np.minimum((q * n_bins).astype(int), n_bins - 1)
        n = np.bincount(cell, minlength=n_bins)
        squares.append(np.sum(np.bincount(cell, t - q, n_bins) ** 2 / n.clip(1)) / n.sum())
    return float(np.sqrt(np.mean(squares)))


PARTS = {
    "calm": print_calm,
    "machines": print_machines,
    "fitted": print_fitted,
    "drifts": print_drifts,
    "errors": print_errors,
}

if __name__ == "__main__":
    main()
