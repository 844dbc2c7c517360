"""Time and size of reports: CPU seconds of the summary and of the page, bytes of the page.

``python benchmarks/report.py`` prints a table; ``--quick`` leaves out the
largest case.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from isoroc import Counts, IRPCalibrator, Report
from isoroc._support.table import markdown_table
from isoroc.export import to_sql

CASES = [
    *((n, K) for K in (2, 3, 10) for n in (10, 10_000, 1_000_000)),
    *((n, 1000) for n in (10, 10_000)),
]
LARGEST = (10_000_000, 3)


def overconfident(n: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, 1.0 if K < 20 else 0.05), n)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P **= 2
    P /= P.sum(axis=1, keepdims=True)
    return P, y


def measure(make: Callable[[], Report]) -> list[str]:
    """CPU seconds of the summary and of the page, and kilobytes of the page."""
    start = time.process_time()
    report = make()
    summary = time.process_time() - start
    page = report.to_html()
    total = time.process_time() - start
    return [f"{summary:.1f}", f"{total - summary:.1f}", f"{len(page.encode()) / 1000:,.0f}"]


def main() -> None:
    rows = []
    to_sql(IRPCalibrator().fit([0.2, 0.8], [0, 1]), ["p"], dialect="duckdb")  # loads sqlglot
    for n, K in CASES if "--quick" in sys.argv else [*CASES, LARGEST]:
        P, y = overconfident(n, K)
        fit = slice(min(n, 100_000))
        labels = np.arange(K)
        # Choosing `top` takes minutes with a thousand classes, and only the report is timed.
        calibrator = IRPCalibrator(random_state=0, top=1 if K > 100 else "auto")
        calibrator.fit(P[fit], y[fit], labels=labels)
        make = partial(Report, y, P, calibrator=calibrator)
        rows.append([f"{n:,}", f"{K:,}", *measure(make)])
        print(rows[-1], flush=True)
    if "--quick" not in sys.argv:
        counts = Counts.from_arrays(P, y)
        del P, y
        make = partial(Report.from_counts, counts, calibrator=calibrator)
        rows.append([f"{n:,}, counted", f"{K:,}", *measure(make)])
    head = ["rows", "classes", "summary (CPU s)", "page (CPU s)", "page (kB)"]
    print(markdown_table(head, rows))


if __name__ == "__main__":
    main()
