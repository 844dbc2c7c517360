"""Time and size of reports: CPU seconds of the summary and of the page, bytes of the page.

``python benchmarks/report.py`` prints the table of docs/report.md; ``--quick`` leaves out the
largest case.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from isoroc import IRPCalibrator
from isoroc._table import markdown_table
from isoroc.report import Report

CASES = [(10, 3), (10_000, 2), (10_000, 3), (1_000_000, 3), (20_000, 100), (20_000, 1000)]
LARGEST = (10_000_000, 3)


def overconfident(n: int, K: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.full(K, 1.0 if K < 20 else 0.05), n)
    y = (P.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P **= 2
    P /= P.sum(axis=1, keepdims=True)
    return P, y


def main() -> None:
    rows = []
    for n, K in CASES if "--quick" in sys.argv else [*CASES, LARGEST]:
        P, y = overconfident(n, K)
        fit = slice(min(n, 100_000))
        labels = np.arange(K)
        # Choosing `top` takes minutes with a thousand classes, and only the report is timed.
        calibrator = IRPCalibrator(random_state=0, top=1 if K > 100 else "auto")
        calibrator.fit(P[fit], y[fit], labels=labels)
        start = time.process_time()
        report = Report(y, P, calibrator=calibrator)
        summary = time.process_time() - start
        page = report.to_html()
        total = time.process_time() - start
        cells = [f"{n:,}", f"{K:,}", f"{summary:.1f}", f"{total - summary:.1f}"]
        rows.append([*cells, f"{len(page.encode()) / 1000:,.0f}"])
        print(rows[-1], flush=True)
    head = ["rows", "classes", "summary (CPU s)", "page (CPU s)", "page (kB)"]
    print(markdown_table(head, rows))


if __name__ == "__main__":
    main()
