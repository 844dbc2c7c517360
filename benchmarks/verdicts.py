"""Error rate of the verdict of AutoCalibrator: how often calibrated forecasts are to be calibrated.

    python benchmarks/verdicts.py [--repetitions N] [--rows N] [--jobs N]

Draws forecasts, and outcomes with exactly these probabilities, so that there is nothing to
calibrate. Prints in how many repetitions the verdict is "calibrate", and for comparison how often
it is for forecasts that are twice too confident or too timid, or too high for one class.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed

from isoroc import AutoCalibrator
from isoroc._support.progress import progress

#: Number of classes, concentration of the forecasts (small: sharp forecasts), rows.
CASES = [
    (K, concentration, n)
    for K in (2, 3, 10)
    for concentration in (0.1, 1.0)
    for n in (50, 100, 300, 1000, 3000)
]


def draw(
    K: int, concentration: float, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts from a Dirichlet distribution, and outcomes that follow them."""
    P = rng.dirichlet(np.full(K, concentration), size=n)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return P, y


def power(exponent: float) -> Callable[[np.ndarray], np.ndarray]:
    """Forecasts raised to a power: above 1 too confident, below 1 too timid."""

    def change(P: np.ndarray) -> np.ndarray:
        Q = np.maximum(P, 1e-12) ** exponent
        return Q / Q.sum(axis=1, keepdims=True)

    return change


def shifted(P: np.ndarray) -> np.ndarray:
    """Forecasts that give the first class 1.5 times its odds."""
    Q = P * np.append(1.5, np.ones(P.shape[1] - 1))
    return Q / Q.sum(axis=1, keepdims=True)


CHANGES = {"calibrated": power(1.0), "confident": power(1.5), "timid": power(0.7), "bias": shifted}


def verdict(
    case: tuple[int, float, int], change: Callable[[np.ndarray], np.ndarray], seed: int
) -> bool:
    """Whether the verdict is to calibrate."""
    P, y = draw(*case, np.random.default_rng(seed))
    calibrator = AutoCalibrator(random_state=seed)
    calibrator.fit(change(P), y, labels=range(P.shape[1]))
    return calibrator.verdict_.should_calibrate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--rows", type=int, default=3000, help="leave out cases with more rows")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes")
    options = parser.parse_args()
    lines = ["| K | forecasts | rows | " + " | ".join(CHANGES) + " |", "|---" * 7 + "|"]
    rates = []
    jobs = Parallel(n_jobs=options.jobs)
    with progress("verdicts", shown=True) as report:
        for K, concentration, n in [case for case in CASES if case[2] <= options.rows]:
            report(f"K = {K}, {n} rows")
            times = [options.repetitions, *[options.repetitions // 4] * (len(CHANGES) - 1)]
            work = zip(CHANGES.values(), times, strict=True)
            said = jobs(
                delayed(verdict)((K, concentration, n), change, seed)
                for change, n_times in work
                for seed in range(n_times)
            )
            rates.append([np.mean(part) for part in np.split(said, np.cumsum(times)[:-1])])
            cells = " | ".join(f"{r:.3f}" for r in rates[-1])
            kind = "sharp" if concentration < 1 else "even"
            lines.append(f"| {K} | {kind} | {n} | {cells} |")
    print("\n".join(lines))
    wrong = np.array(rates)[:, 0]
    print(f"\nCalibrated forecasts: mean {wrong.mean():.4f}, largest {wrong.max():.3f}")


if __name__ == "__main__":
    main()
