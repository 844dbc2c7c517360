"""Counting forecasts on a GPU: ``python benchmarks/gpu.py [rows] [--resolution 64]``.

Prints seconds and the peak memory of the device for counting rows of three classes that lie there,
for numbering their cells alone, and for one copy of the forecasts. First the counts of a million
rows are compared with counts by NumPy, entry by entry. The program stops if they differ. Runs on
the CPU where torch finds no GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from isoroc import Counts
from isoroc._counts import tensors

BATCH = 10**8
CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


def measured(step: Callable[[], Any], times: int = 3) -> tuple[float, float]:
    """Seconds, the fewest of some runs, and peak memory in GB beyond what was there before."""
    seconds = []
    before = 0
    if CUDA:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    for _ in range(times):
        start = time.perf_counter()
        step()
        if CUDA:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() - before if CUDA else 0
    return min(seconds), peak / 1e9


def make(n: int) -> tuple[Any, Any]:
    """Forecasts of three classes and outcomes."""
    torch.manual_seed(0)
    P = torch.empty(n, 3, device=DEVICE, dtype=torch.float64)
    for start in range(0, n, 2**24):  # the temporary arrays stay small
        part = P[start : start + 2**24]
        part.copy_(torch.softmax(3 * torch.randn(part.shape, device=DEVICE).double(), 1))
    u = torch.rand(n, device=DEVICE, dtype=torch.float64)
    return P, (u > P[:, 0]).long() + (u > P[:, 0] + P[:, 1])


def check(P: Any, y: Any, resolution: int) -> None:
    """Compare counts on the device with counts by NumPy."""
    found = Counts.from_arrays(P, y, resolution=resolution)
    expected = Counts.from_arrays(P.cpu().numpy(), y.cpu().numpy(), resolution=resolution)
    np.testing.assert_array_equal(found.cells.keys, expected.cells.keys)
    for name in ("fold", "rows", "class_weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.forecasts, expected.forecasts, rtol=1e-11)
    print(f"{len(P):,} rows: {len(found):,} entries, equal to those of NumPy")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="?", type=float, default=1e9 if CUDA else 1e7)
    parser.add_argument("--resolution", type=int, default=64)
    given = parser.parse_args()
    n = min(int(given.rows), BATCH)
    times = int(given.rows) // n
    P, y = make(n)
    check(P[: 10**6], y[: 10**6], given.resolution)
    plan = tensors.plan_for("auto", tensors.Grid.choose(3, given.resolution), 5)
    part = P[: 2**26]

    def count() -> None:
        Counts.from_batches(((P, y) for _ in range(times)), resolution=given.resolution)

    share = times * n / len(part)
    rows = {
        "count": (1, count),
        "number the cells": (share, lambda: tensors.number_clean(plan, part.T.contiguous())),
        "copy on the device": (share, part.clone),
    }
    name = torch.cuda.get_device_name() if CUDA else "CPU"
    print(f"{name}, torch {torch.__version__}, {times * n:,} rows of three classes")
    print("| step | seconds | peak memory |\n|---|---|---|")
    for step, (factor, run) in rows.items():
        seconds, memory = measured(run)
        print(f"| {step} | {factor * seconds:.3f} | {memory:.1f} GB |")


if __name__ == "__main__":
    main()
