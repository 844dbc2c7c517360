"""The summary of a report: a dictionary with everything that the page shows."""

from __future__ import annotations

import json
import platform
import re
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from isoroc._estimation.grouping import distinct_rows, group_equal
from isoroc._evaluation.evaluate import check_options, evaluate_pair
from isoroc._evaluation.evaluation import MANY_CLASSES, MEASURES, Evaluation, percent
from isoroc._evaluation.measures import most_rows
from isoroc._input import Sample, find_reversal
from isoroc._persistence.document import plain
from isoroc._report.evidence import Evidence
from isoroc._report.numbers import listed, short
from isoroc._report.pictures import bins_part, map_part, path_part, reliability_part, roc_part
from isoroc._views.curves import axis_of, compact, has_few_values
from isoroc._views.simplex import group_means

#: Changes when a key changes its name or its meaning; new keys do not change it.
VERSION = 3
#: Number of groups of forecasts of equal width, of which the clearest is mentioned, the fewest rows
#: of a group, and from how many standard errors on its gap is more than chance.
_GROUPS, _FEWEST, _CLEAR = 10, 20, 3
#: Changes below this are shown as 0.
_ZERO = 5e-5
#: A class with fewer rows is named in the notes. The largest size of a model or query on the page.
_FEW_ROWS, _MOST_TEXT = 30, 120_000
#: Distinct forecasts up to which they are called few, rows that are looked at for it at most, and
#: the share of certain forecasts from which on they are mentioned.
_FEW_DISTINCT, _DRAWN, _MANY_CERTAIN = 20, 20_000, 0.01
#: Largest number of classes that are listed.
_MOST_CLASSES = 20


def summarize(
    evidence: Evidence,
    *,
    title: str = "Calibration report",
    model_path: str = "model.json",
    columns: list[str] | None = None,
    n_resamples: int = 200,
) -> dict[str, Any]:
    """Summary of the evidence, with plain values only: it can be written as JSON."""
    start = time.perf_counter()
    evaluation = evaluate_pair(evidence, **check_options(0.95, n_resamples, 0))
    judged = evidence.draw(most_rows(evidence.n_classes))
    parts: dict[str, Any] = {
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
        "data": _data_part(evidence),
        "model": _model_part(evidence, model_path, columns),
    }
    versions = {"isoroc": version("isoroc"), "Python": platform.python_version()}
    parts["about"] = {
        "created": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "versions": versions | {name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "n_resamples": n_resamples,
        "seconds": round(time.perf_counter() - start, 1),
    }
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


def _data_part(evidence: Evidence) -> dict[str, Any]:
    """Numbers of rows and classes, and notes on the quality of the data."""
    before, counted = evidence.before, evidence.counted
    weights = before.class_weights()
    shown = evidence.heaviest(_MOST_CLASSES)
    shares = weights / weights.sum()
    return {
        "rows": evidence.n_rows,
        "weight": float(weights.sum()),
        "weighted": before.weights is not None and before.weights.sum() != counted,
        "counted": counted is not None,
        "n_classes": evidence.n_classes,
        "classes": [
            {"name": evidence.names[k], "weight": float(weights[k]), "share": float(shares[k])}
            for k in shown
        ],
        "other_classes": evidence.n_classes - len(shown),
        "notes": _notes(evidence) or ["Nothing unusual was found."],
    }


def _notes(evidence: Evidence) -> list[str]:
    notes = []
    before, n = evidence.before, evidence.n_rows
    counts = np.bincount(before.codes, minlength=evidence.n_classes)
    if evidence.counted is not None:
        counts = before.class_weights() * (n / before.row_weights().sum())
    rare = f"fewer than {_FEW_ROWS} rows. Figures of single classes are uncertain"
    for few, words in (
        (counts == 0, "no rows. Nothing can be said about them"),
        ((counts > 0) & (counts < _FEW_ROWS), rare),
    ):
        names = [evidence.names[k] for k in np.flatnonzero(few).tolist()]
        if names:
            which = listed(names) if len(names) <= 8 else f"{len(names)} of {len(few)} classes"
            notes.append(f"{which} {'have' if names[1:] else 'has'} {words}.")
    if n < 200:
        notes.append(f"There are only {n} rows: intervals are wide and approximate.")
    if before.forecasts.ndim == 1:
        notes.append(
            "The forecasts before calibration are scores and not probabilities: they have an order "
            "but no reliability."
        )
    rows = evidence.draw(_DRAWN).before
    if (reversal := find_reversal(rows)) is not None:
        notes.append(f"Warning: {reversal}.")
    return notes + _certain(rows)


def _certain(sample: Sample) -> list[str]:
    """Notes on forecasts that are certain, and on forecasts with few distinct values."""
    P, n, notes = sample.forecasts, len(sample), []
    certain = np.count_nonzero(P.max(axis=1) == 1) / n if P.ndim == 2 else 0.0
    if certain >= _MANY_CERTAIN:
        notes.append(f"{percent(certain)} of the forecasts before calibration are certain: 0 or 1.")
    n_distinct = len(distinct_rows(P.reshape(n, -1)))
    if n_distinct <= min(_FEW_DISTINCT, n // 2):
        notes.append(f"The forecasts before calibration have only {n_distinct} distinct values.")
    return notes


def _model_part(evidence: Evidence, path: str, columns: list[str] | None) -> dict[str, Any] | None:
    """The calibrator, its parameters, its certificate in words, and code that applies it."""
    calibrator = evidence.calibrator
    if calibrator is None:
        return None
    certificate, members = (
        getattr(calibrator, f"{n}_", None) for n in ("certificate", "member_scores")
    )
    if members is not None:
        members = {
            n: short(c) if c.dtype.kind == "f" else c.astype(str) for n, c in members.items()
        }
    parameters = {
        name: value if isinstance(value, str | int | float | None) else str(value)
        for name, value in calibrator.get_params(deep=False).items()
    }
    names = columns or [f"p_{name}" for name in evidence.names]
    if calibrator.n_features_in_ == 1 and columns is None:
        names = ["score"]
    quoted = json.dumps(path, ensure_ascii=False)
    given, what = "P", "P: new forecasts, one column per class"
    if getattr(calibrator, "grouped_", False):
        given, what = "P, groups", f"{what}; the group of each"
    applied = f"calibrator.predict_proba({given})  # {what}"
    word = path if re.fullmatch(r"[A-Za-z0-9._/-]*", path) else quoted
    return {
        "calibrator": type(calibrator).__name__,
        "parameters": parameters,
        "n_bins": None if evidence.binned is None else evidence.binned.n_bins_,
        "certificate": None if certificate is None else str(certificate),
        "members": members,
        "path": path,
        "python": f"import isoroc\n\ncalibrator = isoroc.load({quoted})\nQ = {applied}\n",
        "command": f"isoroc apply {word} new.parquet -o calibrated.parquet",
        "sql": _sql(calibrator, names),
        "file": _file(calibrator),
    }


def _sql(calibrator: Any, columns: list[str]) -> str | None:
    """Query for DuckDB; None if it is long, cannot be written, or sqlglot is missing."""
    n_values = len(columns) * getattr(calibrator, "n_bins_", 1)
    if len(columns) > MANY_CLASSES or n_values > _MOST_TEXT // 130:  # long, and slow to write
        return None
    try:
        from isoroc.export import to_sql  # noqa: PLC0415 -- sqlglot may be missing

        group = calibrator.summary_.get("group_column")
        query = to_sql(calibrator, columns, dialect="duckdb", table="forecasts", group=group)
    except (ImportError, ValueError):
        return None
    return query if len(query) <= _MOST_TEXT else None


def _file(calibrator: Any) -> str | None:
    """The model file; None if it is long."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "model.json")
        calibrator.save(target)
        text = target.read_text(encoding="utf-8")
    return text if len(text) <= _MOST_TEXT else None
