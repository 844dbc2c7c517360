"""Counting forecasts on a GPU: ``python benchmarks/gpu.py [rows]``.

Prints the time to count rows of three classes on the device, to copy them once on it (the limit),
and to copy a part of them to the host and sort one column there, scaled to all rows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from isoroc import Counts

BATCH = 10**8


def timed(step: Callable[[], Any]) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**9
    if not torch.cuda.is_available():
        sys.exit("benchmarks/gpu.py needs a GPU that torch can use")
    n = min(rows, BATCH)
    z = 3 * torch.randn(n, 3, device="cuda", dtype=torch.float64)
    P = torch.softmax(z, 1)
    del z
    y = torch.multinomial(P[: 2**23].sqrt(), 1)[:, 0].repeat(-(-n // 2**23))[:n]
    times = rows // n

    def count() -> Counts:
        return Counts.from_batches(((P, y) for _ in range(times)), resolution=64)

    Counts.from_arrays(P[:1000], y[:1000], resolution=64)
    part = slice(0, 10**7)
    figures = {
        "count on the device": timed(count),
        "copy on the device": times * timed(P.clone),
        "to the host, sort one column": rows / 10**7 * timed(lambda: np.sort(P[part, 0].cpu())),
    }
    print(f"{torch.cuda.get_device_name()}, {times * n:,} rows of three classes")
    for name, seconds in figures.items():
        print(f"| {name} | {seconds:.2f} s | {seconds / (times * n) * 1e11:.0f} ms per 10^8 rows |")


if __name__ == "__main__":
    main()
