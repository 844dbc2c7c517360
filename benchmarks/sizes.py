"""Sizes of model files for many classes and rows.

python benchmarks/sizes.py [--classes K] [--rows N] [--calibrators VennAbers,Isotonic,...]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import isoroc

#: Those whose models may grow with the number of rows.
GROWING = "VennAbers,Isotonic,IRP,BaggedIRP"


def make_forecasts(n_rows: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = rng.standard_exponential((n_rows, n_classes)) ** 3
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    P = truth**1.5
    P /= P.sum(axis=1, keepdims=True)
    return P, y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--calibrators", default=GROWING)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    P, y = make_forecasts(given.rows, given.classes)
    print("| calibrator | CPU seconds of fit | MiB |\n|---|---|---|")
    for name in given.calibrators.split(","):
        calibrator = getattr(isoroc, f"{name}Calibrator")()
        if "random_state" in calibrator.get_params():
            calibrator.set_params(random_state=0)
        start = time.process_time()
        calibrator.fit(P, y)
        seconds = time.process_time() - start
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.json")
            try:
                calibrator.save(path)
                size = f"{path.stat().st_size / 2**20:.2f}"
            except ValueError:
                size = "too large"
        print(f"| {name} | {seconds:.1f} | {size} |", flush=True)


if __name__ == "__main__":
    main()
