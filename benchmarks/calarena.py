"""Calibrators of isoroc for CalArena (arXiv:2605.30188), in the shape of its custom calibrators.

    cp benchmarks/calarena.py CALARENA/custom_calibrators.py
    cd CALARENA && python run_benchmark.py --benchmark tabrepo-binary --calibrator isoroc-Auto

CALARENA is a clone of the benchmark with its data. This file needs nothing but isoroc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import isoroc


class IsorocCalibrator:
    """A calibrator of isoroc with the methods that the benchmark calls.

    Forecasts of two classes come as the probability of the second one, of shape (n,) or (n, 1),
    those of more classes with a column for each. Labels are the numbers of the columns, and some
    may be absent. Rows are divided by their sums, which differ from one if digits were lost.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def fit(self, p_cal: np.ndarray, y_cal: np.ndarray) -> None:
        """Fit to calibration rows."""
        P = columns(p_cal)
        labels = range(P.shape[1])
        self.fitted_ = self.make().fit(P, np.asarray(y_cal).reshape(-1), labels=labels)

    def predict_proba(self, p_test: np.ndarray) -> np.ndarray:
        """Calibrated forecasts, shape (n, K)."""
        return self.fitted_.predict_proba(columns(p_test))


def columns(p: np.ndarray) -> np.ndarray:
    """Forecasts with a column for each class and rows that sum to one."""
    P = np.asarray(p, dtype=np.float64)
    if P.ndim == 1 or P.shape[1] == 1:
        P = np.column_stack([1 - P.reshape(-1), P.reshape(-1)])
    P = np.maximum(P, 0)
    return P / P.sum(axis=1, keepdims=True)


CUSTOM_CALIBRATORS: dict[str, Callable[[], IsorocCalibrator]] = {
    "isoroc-Auto": lambda: IsorocCalibrator(lambda: isoroc.AutoCalibrator(random_state=0)),
    "isoroc-IRP": lambda: IsorocCalibrator(lambda: isoroc.IRPCalibrator(random_state=0)),
    "isoroc-Monotone": lambda: IsorocCalibrator(isoroc.MonotoneCalibrator),
}
