"""The summary of a report: a dictionary with everything that the page shows."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from isoroc._estimation.grouping import group_equal
from isoroc._evaluation.evaluate import check_options, evaluate_pair
from isoroc._evaluation.evaluation import MEASURES, Evaluation, percent
from isoroc._evaluation.measures import most_rows
from isoroc._input import Sample
from isoroc._persistence.document import plain
from isoroc._views.curves import axis_of, compact, has_few_values
from isoroc._views.simplex import group_means
from isoroc.report._about import about_part, data_part, model_part
from isoroc.report._evidence import Evidence
from isoroc.report._numbers import listed
from isoroc.report._pictures import bins_part, map_part, path_part, reliability_part, roc_part
from isoroc.report._practice import practice_part

#: Changes when a key changes its name or its meaning; new keys do not change it.
VERSION = 3
#: Number of groups of forecasts of equal width, of which the clearest is mentioned, the fewest rows
#: of a group, and from how many standard errors on its gap is more than chance.
_GROUPS, _FEWEST, _CLEAR = 10, 20, 3
#: Changes below this are shown as 0.
_ZERO = 5e-5


def summarize(
    evidence: Evidence, title: str, model_path: str, columns: list[str] | None, n_resamples: int
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
        "practice": practice_part(evaluation),
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
    rows = []
    for measure, figures in evaluation.measures.items():
        title, direction = MEASURES[measure][0], evaluation.direction(measure)
        if direction and max(map(abs, figures["change"][1:])) < _ZERO:
            direction = "no clear change"
        row = {"measure": measure, "title": title[0].upper() + title[1:], "direction": direction}
        if measure == "accuracy":  # more of it is no merit: a constant decision may have the most
            row["direction"] = {"better": "higher", "worse": "lower"}.get(direction, direction)
        rows.append(row | {of: figure._asdict() for of, figure in figures.items()})
    notes = list(evaluation.notes)
    if judged.n_rows < evaluation.n_rows:
        notes.append(f"Diagrams and curves show {judged.n_rows:,} rows.")
    return {"rows": rows, "confidence": evaluation.confidence, "notes": notes}


def _verdict(evaluation: Evaluation, evidence: Evidence, judged: Evidence) -> dict[str, Any]:
    """Sentences, those of the evaluation first, and the decision.

    The tone is the direction of the log loss; it is empty without calibrated forecasts.
    """
    sentences = [*_came_true(judged), *evaluation.sentences(), *_never_decided(evidence)]
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


def _came_true(evidence: Evidence) -> list[str]:
    """What came of the forecasts whose gap is clearest, if it is more than chance.

    Forecasts are those of the second of two classes, or of the most probable class of each row. A
    group holds the rows of one forecast where forecasts have few distinct values.
    """
    if "before" not in evidence.series:
        return []
    P, codes, weights = evidence.before.arrays
    best = np.ones(len(P), np.intp) if evidence.n_classes == 2 else P.argmax(axis=1)
    p, right = P[np.arange(len(P)), best], codes == best
    if has_few_values(p):
        group = group_equal(p)
    else:
        place = axis_of([Sample(p, right.view(np.uint8), weights)]).position(p)
        group = compact(np.floor(_GROUPS * place).astype(np.intp))
    n = np.bincount(group)
    _, mean, rate = group_means(group, weights, p, right)
    gap = np.abs(rate - mean) * np.sqrt(n) * (n >= _FEWEST)
    worst = int(gap.argmax())
    spread = np.sqrt(max(mean[worst] * (1 - mean[worst]), 1 / n[worst]))
    if gap[worst] < _CLEAR * spread:
        return []
    rows = np.flatnonzero(group == worst)
    low, level, high = (f"{v:.2g}" for v in (p[rows].min(), mean[worst], p[rows].max()))
    level = level if low == high else f"{low} to {high} (mean {level})"
    event = evidence.names[1] if evidence.n_classes == 2 else "the most probable class"
    what = f"In {n[worst]:,} rows {event} had a probability of {level} and came true in "
    what += f"{percent(rate[worst])} of them"
    if evidence.after is None:
        return [f"{what}."]
    calibrated = evidence.after.forecasts[rows, best[rows]]
    after = np.average(calibrated, weights=None if weights is None else weights[rows])
    return [f"{what}; after calibration its probability is {after:.2g} on average."]


def _never_decided(evidence: Evidence) -> list[str]:
    """Classes that have rows but are the most probable class of none after calibration."""
    if "before" not in evidence.series or evidence.after is None:
        return []
    weights = evidence.before.class_weights()
    counts = [
        np.bincount(sample.decisions(), sample.weights, evidence.n_classes)
        for sample in evidence.series.values()
    ]
    lost = np.flatnonzero((counts[-1] == 0) & (weights > 0))
    if not len(lost):
        return []
    names = listed([evidence.names[k] for k in lost.tolist()], 5)
    n = counts[0][lost].sum()
    found = f"No row is predicted as {names}, neither before nor after calibration"
    if n:
        before = f"{n:,.0f} of {weights.sum():,.0f} rows before"
        found = f"After calibration no row is predicted as {names} any more ({before})"
    if np.count_nonzero(counts[-1]) == 1:
        most = int(counts[-1].argmax())
        share = percent(weights[most] / weights.sum())
        found += f": the accuracy is just the share of {evidence.names[most]}, {share}"
    advice = "Where errors have different costs, decide by expected cost: isoroc.decisions.decide"
    return [f"{found}. {advice}."]
