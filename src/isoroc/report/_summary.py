"""The summary of a report: a dictionary with everything that the page shows."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from isoroc._evaluation.evaluate import check_options, evaluate_pair
from isoroc._evaluation.evaluation import MEASURES, Evaluation, percent
from isoroc._evaluation.measures import most_rows
from isoroc._input import Sample
from isoroc._persistence.document import plain
from isoroc.report._about import about_part, data_part, model_part
from isoroc.report._evidence import Evidence
from isoroc.report._pictures import (
    bins_part,
    map_part,
    path_part,
    reliability_part,
    roc_part,
    view_of,
)

#: Changes when a key changes its name or its meaning; new keys do not change it.
VERSION = 2
#: Half the width of the range of forecasts around a level, the fewest rows in it, and the largest
#: difference of mean forecasts that are compared.
_HALF, _FEWEST, _ALIKE = 0.05, 20, 0.02


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
    evaluation = evaluate_pair(evidence, **check_options(0.95, n_resamples, 0))
    judged = evidence.draw(most_rows(evidence.n_classes))
    parts = {
        "format": "isoroc report",
        "version": VERSION,
        "title": title,
        "verdict": _verdict(evaluation, evidence, judged),
        "headline": _headline(evaluation, judged),
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
    summary: dict[str, Any] = plain(parts, "summary")
    return summary


def _headline(evaluation: Evaluation, judged: Evidence) -> dict[str, Any]:
    """The table of an evaluation, one entry per measure."""
    rows = [
        {
            "measure": measure,
            "title": MEASURES[measure][0][0].upper() + MEASURES[measure][0][1:],
            "direction": evaluation.direction(measure),
            **{of: figure._asdict() for of, figure in figures.items()},
        }
        for measure, figures in evaluation.measures.items()
    ]
    notes = list(evaluation.notes)
    if judged.n_rows < evaluation.n_rows:
        notes.append(f"Diagrams and curves show {judged.n_rows:,} rows.")
    return {"rows": rows, "confidence": evaluation.confidence, "notes": notes}


def _verdict(evaluation: Evaluation, evidence: Evidence, judged: Evidence) -> dict[str, Any]:
    """Sentences, those of the evaluation first, and the decision.

    The tone is the direction of the log loss; it is empty without calibrated forecasts.
    """
    sentences = [*_came_true(judged), *evaluation.sentences()]
    said = getattr(evidence.calibrator, "verdict_", None)
    if said:
        sentences.append(f"Verdict of the calibrator on its own calibration rows: {said}.")
    if evidence.fitted_on_these_rows:
        sentences.append(
            "The calibrator was fitted to these very rows, so the figures after calibration are "
            "too good. Use other rows to judge it."
        )
    tone = evaluation.direction("log_loss")
    return {"decision": evaluation.decision, "tone": tone, "sentences": sentences}


class _Near(NamedTuple):
    """Rows with a forecast near a level: their number, mean forecast and rate of coming true."""

    n: int
    forecast: float
    rate: float

    @classmethod
    def of(cls, view: Sample, level: float) -> _Near:
        rows = np.flatnonzero(np.abs(view.forecasts - level) <= _HALF + 1e-9)
        if not len(rows):
            return cls(0, np.nan, np.nan)
        weights = None if view.weights is None else view.weights[rows]
        means = (np.average(x[rows], weights=weights) for x in (view.forecasts, view.codes))
        return cls(len(rows), *map(float, means))


def _came_true(evidence: Evidence) -> list[str]:
    """How often forecasts of about one level came true, where the gap before is clearest."""
    if "before" not in evidence.series:
        return []
    k = 1 if evidence.n_classes == 2 else None
    views = {of: view_of(sample, k) for of, sample in evidence.series.items()}
    levels = [
        {of: _Near.of(view, level) for of, view in views.items()} for level in np.arange(1, 20) / 20
    ]
    enough = [near for near in levels if near["before"].n >= _FEWEST]
    if not enough:
        return []
    clearest = max(enough, key=_clearness)
    # Levels at which rates before and after can be compared are preferred if nearly as clear.
    alike = max(filter(_are_alike, enough), key=_clearness, default=clearest)
    if 2 * _clearness(alike) >= _clearness(clearest):
        clearest = alike
    before, after = clearest["before"], clearest.get("after")
    of = "" if k is None else f" for {evidence.names[1]}"
    then = ""
    if after is not None:
        if _are_alike(clearest):
            then = f"; after calibration, {percent(after.rate)}"
        else:
            rows = np.abs(views["before"].forecasts - before.forecast) <= _HALF
            mean = float(views["after"].forecasts[rows].mean())
            then = f"; after calibration they are {mean:.2f} on average"
    what = f"Forecasts of about {before.forecast:.2f}{of} came true {percent(before.rate)}"
    return [f"{what} of the time{then}."]


def _clearness(near: dict[str, _Near]) -> float:
    """How clear it is that rate and mean forecast before calibration differ."""
    before = near["before"]
    return float(abs(before.rate - before.forecast) * np.sqrt(before.n))


def _are_alike(near: dict[str, _Near]) -> bool:
    """Whether there are enough rows before and after, with about the same mean forecast."""
    forecasts = [each.forecast for each in near.values()]
    return min(each.n for each in near.values()) >= _FEWEST and np.ptp(forecasts) <= _ALIKE
