"""The summary of a report: everything that the page shows, as a plain dictionary."""

from __future__ import annotations

import time
from typing import Any

from isoroc.report._about import about_part, data_part, model_part
from isoroc.report._diagrams import reliability_part, roc_part
from isoroc.report._evidence import Evidence
from isoroc.report._headline import CONFIDENCE, headline
from isoroc.report._maps import map_part
from isoroc.report._numbers import jsonable
from isoroc.report._stages import bins_part, path_part
from isoroc.report._verdict import verdict

#: Measures, diagrams and curves are based on at most this many rows.
MOST_ROWS = 2_000_000
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
    start = time.perf_counter()
    judged, n = evidence.draw(MOST_ROWS), len(evidence.before)
    rows, notes = headline(judged, n_resamples)
    if len(judged.before) < n:
        some = f"{len(judged.before):,} of {n:,} rows, drawn at random"
        notes = [f"Measures, diagrams and curves are based on {some}.", *notes]
    parts = {
        "format": "isoroc report",
        "version": VERSION,
        "title": title,
        "verdict": verdict(judged, rows, fitted_on_these_rows=evidence.fitted_on_these_rows),
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
