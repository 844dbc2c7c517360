"""The summary of a report: everything that the page shows, as a plain dictionary."""

from __future__ import annotations

import numbers
import time
from typing import Any

from isoroc._input import check_number
from isoroc.report._about import about_part, data_part, model_part
from isoroc.report._diagrams import reliability_part, roc_part
from isoroc.report._evidence import Evidence
from isoroc.report._headline import CONFIDENCE, headline
from isoroc.report._maps import map_part
from isoroc.report._numbers import jsonable
from isoroc.report._stages import bins_part, path_part
from isoroc.report._verdict import verdict

#: Losses and decisions are those of all rows; everything that has to be sorted, resampled or drawn
#: is based on at most this many probabilities, and at least so many rows.
MOST_VALUES, LEAST_ROWS = 600_000, 20_000
#: Changes when a key changes its name or its meaning; new keys do not change it.
VERSION = 1


def summarize(
    evidence: Evidence,
    *,
    title: str,
    model_path: str,
    columns: list[str] | None,
    n_resamples: int,
) -> dict[str, Any]:
    """Summary of the evidence, with plain values only: it can be written as JSON."""
    check_number("n_resamples", n_resamples, numbers.Integral, minimum=0)
    n_resamples = max(n_resamples, 2) if n_resamples else 0  # a single resample has no deviation
    start = time.perf_counter()
    judged = evidence.draw(max(LEAST_ROWS, MOST_VALUES // evidence.n_classes))
    n = evidence.n_rows
    rows, notes = headline(evidence, judged, n_resamples)
    if judged.n_rows < n:
        some = f"{judged.n_rows:,} of {n:,} rows, drawn at random"
        what = "Calibration errors, ranking, diagrams and curves"
        notes = [f"{what} are based on {some}; losses and decisions on all rows.", *notes]
    if evidence.counted is not None:
        notes.append("The rows were counted: each has the mean forecast of its cell.")
    parts = {
        "format": "isoroc report",
        "version": VERSION,
        "title": title,
        "verdict": verdict(evidence, judged, rows),
        "headline": {"rows": rows, "confidence": CONFIDENCE, "notes": notes},
        "reliability": reliability_part(judged),
        "map": map_part(judged),
        "roc": roc_part(judged),
        "path": path_part(evidence),
        "bins": bins_part(evidence),
        "data": data_part(evidence),
        "model": model_part(evidence, model_path, columns),
    }
    seconds = time.perf_counter() - start
    parts["about"] = about_part(n_resamples=n_resamples, seconds=seconds)
    summary: dict[str, Any] = jsonable(parts)
    return summary
