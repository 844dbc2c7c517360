"""Counts against rows in test log loss: ``python benchmarks/counts.py [rows]``.

Rows of 2, 3, 4 and 10 classes are generated with overconfident forecasts. Each calibrator is fitted
to them and to their counts at the default resolution, and both maps forecast as many new rows. The
table shows the log loss on these and its standard error, and the mean difference, counts less rows,
with the standard error of paired rows. At last, by how much cells move isotonic values.
"""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

import numpy as np

from isoroc import (
    AutoCalibrator,
    Counts,
    IRPCalibrator,
    IsotonicCalibrator,
    KernelCalibrator,
    MatrixCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)


def make_rows(n: int, K: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.5), n)
    y = (truth.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=K - 1)
    P = truth**1.5
    return P / P.sum(axis=1, keepdims=True), y


def calibrators(n: int) -> list[Any]:
    return [
        TemperatureCalibrator(),
        MatrixCalibrator(),
        SplineCalibrator(),
        KernelCalibrator(),
        IsotonicCalibrator(),
        IRPCalibrator(random_state=0),
        AutoCalibrator(random_state=0, max_cells=n + 1),  # no cells of its own
    ]


def losses(calibrator: Any, P: np.ndarray, y: np.ndarray) -> np.ndarray:
    Q = calibrator.predict_proba(P[:, 1] if P.shape[1] == 2 else P)
    return -np.log(Q[np.arange(len(y)), y])


def shifts(n: int = 3_000_000) -> np.ndarray:
    """By how much cells move isotonic values of two classes, in standard errors of the values."""
    P, y = make_rows(n, 2, 0)
    p = P[:, 1]
    calibrator = IsotonicCalibrator()
    values = calibrator.fit(p, y).predict_proba(p)[:, 1]
    new = make_rows(20_000, 2, 1)[0][:, 1]
    of_rows = calibrator.predict_proba(new)[:, 1]
    of_counts = calibrator.fit_counts(Counts.from_arrays(p, y)).predict_proba(new)[:, 1]
    steps, sizes = np.unique(values, return_counts=True)
    size = sizes[np.searchsorted(steps, of_rows).clip(max=len(steps) - 1)]
    return np.abs(of_counts - of_rows) / np.sqrt(of_rows * (1 - of_rows) / size)


def main() -> None:
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000
    print("| K | calibrator | test log loss, rows | counts - rows | s, rows | s, counts |")
    print("|---|---|---|---|---|---|")
    for K in (2, 3, 4, 10):
        P, y = make_rows(n, K, 0)
        P_test, y_test = make_rows(n, K, 1)
        forecasts = P[:, 1] if K == 2 else P
        counts = Counts.from_arrays(forecasts, y)
        for calibrator in calibrators(n):
            start = process_time()
            of_rows = losses(calibrator.fit(forecasts, y), P_test, y_test)
            middle = process_time()
            of_counts = losses(calibrator.fit_counts(counts), P_test, y_test)
            end = process_time()
            difference = of_counts - of_rows
            error, of_difference = (part.std() / np.sqrt(n) for part in (of_rows, difference))
            print(
                f"| {K} | `{type(calibrator).__name__}` | {of_rows.mean():.4f} ± {error:.4f} |"
                f" {difference.mean():+.6f} ± {of_difference:.6f} | {middle - start:.1f} |"
                f" {end - middle:.1f} |",
                flush=True,
            )
    found = shifts()
    print(
        f"\nIsotonic values of 3,000,000 rows of two classes move by {found.mean():.3f} standard "
        f"errors, {np.mean(found < 0.1):.1%} by less than a tenth"
    )


if __name__ == "__main__":
    main()
