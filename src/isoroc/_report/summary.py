"""The rows of a report, and its summary: a dictionary with everything that the page shows."""

from __future__ import annotations

import json
import platform
import re
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from isoroc import metrics
from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.binned import BinCalibrator
from isoroc._core.simplex import binary_scores
from isoroc._core.types import Floats, Ints
from isoroc._counts import Counts
from isoroc._evaluation.before_after import Pair, make_pair, pair_of_counts
from isoroc._evaluation.curves import (
    Axis,
    axis_of,
    best_rates,
    event_of,
    has_few_values,
    one_vs_rest,
    reliability,
    thin,
)
from isoroc._evaluation.evaluate import check_options, evaluate_pairs
from isoroc._evaluation.evaluation import MANY_CLASSES, MEASURES, Evaluation, percent
from isoroc._evaluation.forecasts import is_calibration_set, kept_stages, staged
from isoroc._evaluation.measures import most_rows
from isoroc._evaluation.triangle import bin_polygons, cells_of, group_means, triangles
from isoroc._input import InputError, Sample, UnitOption, check_after, check_sample, find_reversal
from isoroc._maps.modelfile.document import plain
from isoroc.metrics._estimation.grouping import distinct_rows, group_equal, group_quantile

#: Changes when a key changes its name or its meaning; new keys do not change it.
VERSION = 3
#: Number of groups of forecasts of equal width, of which the clearest is mentioned, the fewest rows
#: of a group, and from how many standard errors on its gap is more than chance.
_GROUPS, _FEWEST, _CLEAR = 10, 20, 3
#: Changes below this are shown as 0.
_ZERO = 5e-5
#: A class with fewer rows is named in the notes. The largest size of a model or query on the page,
#: and the largest number of classes that are listed.
_FEW_ROWS, _MOST_TEXT, _MOST_CLASSES = 30, 120_000, 20
#: Distinct forecasts up to which they are called few, rows that are looked at for it at most, and
#: the share of certain forecasts from which on they are mentioned.
_FEW_DISTINCT, _DRAWN, _MANY_CERTAIN = 20, 20_000, 0.01
#: Largest number of classes that have a clinical panel.
_MOST_PANELS = 8


@dataclass(frozen=True)
class ReportRows(Pair):
    """Rows of a report, none of weight 0; `input` holds them as the calibrator takes them."""

    calibrator: Any = None
    input: Any = None

    @cached_property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(label) for label in self.before.classes.tolist()]

    @cached_property
    def binned(self) -> BinCalibrator | None:
        """The calibrator if it has bins of forecasts."""
        return self.calibrator if isinstance(self.calibrator, BinCalibrator) else None

    @cached_property
    def reduced(self) -> bool:
        """Whether the bins are those of the largest probabilities and the rest."""
        return getattr(self.binned, "top_", None) is not None

    def heaviest(self, most: int, least: float = 0) -> list[int]:
        """All columns, or `most` of the classes of some weight, the heaviest first."""
        weights, order = self.before.class_weights(), np.arange(self.n_classes)
        if self.n_classes > most:
            order = np.argsort(-weights, kind="stable")[:most]
        return [k for k in order.tolist() if weights[k] >= least]

    def take(self, rows: Any) -> Self:
        """The same with some of the rows."""
        return replace(super().take(rows), input=_safe_indexing(self.input, rows))


def gather(
    y: Any,
    P: Any,
    sample_weight: Any,
    labels: Any,
    unit: UnitOption,
    *,
    calibrator: Any,
    after: Any,
) -> ReportRows:
    """Check the arguments of a report and put them together."""
    _check_calibrator(calibrator)
    if calibrator is not None:
        if after is None:
            after = calibrator.predict_proba(P)
        labels = calibrator.classes_ if labels is None else labels
        unit = calibrator.unit_
    before = check_sample(P, y, sample_weight, labels, unit=unit, name="P")
    changed = None if after is None else check_after(after, before, probabilities=True)
    pair = make_pair(before, changed)
    if before.weights is not None and len(pair.before) < len(before):
        P = _safe_indexing(P, np.flatnonzero(before.weights))
    return ReportRows(pair.before, pair.after, None, calibrator, P)


def gather_counts(counts: Any, calibrator: Any) -> ReportRows:
    """Evidence of counts, with the forecasts of a calibrator for each cell."""
    if not isinstance(counts, Counts):
        problem = f"is {type(counts).__name__}"
        raise InputError("counts", None, problem, "expected isoroc.Counts")
    _check_calibrator(calibrator)
    pair = pair_of_counts(counts, calibrator)
    P = pair.before.forecasts
    if calibrator is not None and calibrator.n_features_in_ == 1:
        P = P[:, 1]
    return ReportRows(pair.before, pair.after, pair.counted, calibrator, P)


def _check_calibrator(calibrator: Any) -> None:
    if calibrator is not None and not isinstance(calibrator, Calibrator):
        problem = f"{type(calibrator).__name__} is not a calibrator of isoroc"
        fix = "pass the forecasts before and after calibration as P and after"
        raise InputError("calibrator", None, problem, fix)


def summarize(
    evidence: ReportRows,
    title: str = "Calibration report",
    model_path: str = "model.json",
    columns: list[str] | None = None,
    n_resamples: int = 200,
) -> dict[str, Any]:
    """Summary of the evidence, with plain values only: it can be written as JSON."""
    start = time.perf_counter()
    evaluation = evaluate_pairs([evidence], **check_options(0.95, n_resamples, 0))
    judged = evidence.draw(most_rows(evidence.n_classes))
    parts: dict[str, Any] = {
        "format": "isoroc report",
        "version": VERSION,
        "title": title,
        "verdict": _verdict(evaluation, evidence, judged),
        "headline": _headline(evaluation, evidence, judged),
        "reliability": _reliability_part(judged),
        "map": _map_part(judged),
        "roc": _roc_part(judged),
        "practice": _practice_part(evaluation),
        "path": _path_part(evidence),
        "bins": _bins_part(evidence),
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


#: What the measures of an evaluation mean, in a few words.
_MEANINGS = {
    "log_loss": "minus the logarithm of the probability of what came true, on average (nats)",
    "calibration_loss": "the part of the log loss that perfect calibration would remove",
    "refinement_loss": "the rest of the log loss, which only better separation of classes lowers",
    "brier_score_loss": "squared distance of probabilities and outcomes, on average",
    "calibration_error": "distance of forecasts and observed shares, on average; 0 is calibrated",
    "classwise_calibration_error": "the same for each class alone",
    "top_calibration_error": "the same for the most probable class alone",
    "accuracy": "share of rows whose most probable class came true",
    "auc": "how often a row of the second class is ranked above one of the first",
    "auc_one_vs_rest": "how often a row of a class is ranked above a row of all others",
    "auc_one_vs_one": "how often a row of a class is ranked above a row of another class",
    "vus": "what all thresholds together get right of three classes; 1 is perfect",
    "decisions_changed": "share of rows whose most probable class is another one",
    "pairs_reversed": "share of pairs of rows whose order turned around",
    "pairs_tied": "share of pairs of rows that differed before and are equal now",
}


def _headline(evaluation: Evaluation, evidence: ReportRows, judged: ReportRows) -> dict[str, Any]:
    """The table of an evaluation, one entry per measure."""
    rows = []
    for measure, figures in evaluation.measures.items():
        title, direction = MEASURES[measure][0], evaluation.direction(measure)
        if direction and max(map(abs, figures["change"][1:])) < _ZERO:
            direction = "no clear change"
        row = {"measure": measure, "title": title[0].upper() + title[1:], "direction": direction}
        if measure == "accuracy":  # more of it is no merit: a constant decision may have the most
            row["direction"] = {"better": "higher", "worse": "lower"}.get(direction, direction)
        row["meaning"] = _MEANINGS[measure]
        rows.append(row | {of: figure._asdict() for of, figure in figures.items()})
    weights = evidence.before.class_weights()
    most = int(weights.argmax())
    always = f"{weights[most] / weights.sum():.4f}"
    notes = [f"Always deciding for {evidence.names[most]} would have an accuracy of {always}."]
    notes += evaluation.notes
    if judged.n_rows < evaluation.n_rows:
        notes.append(f"Diagrams and curves show {judged.n_rows:,} rows.")
    return {"rows": rows, "confidence": evaluation.confidence, "notes": notes}


def _verdict(evaluation: Evaluation, evidence: ReportRows, judged: ReportRows) -> dict[str, Any]:
    """Sentences, those of the evaluation first, and the decision.

    The tone is the direction of the log loss; it is empty without calibrated forecasts.
    """
    sentences = [*_came_true(judged), *evaluation.sentences(), *_never_decided(evidence)]
    said = getattr(evidence.calibrator, "verdict_", None)
    if said:
        sentences.append(
            f"The verdict of the calibrator from its own rows, by cross-validation: {said}."
        )
    if is_calibration_set(evidence.calibrator, evidence.input, evidence.before):
        sentences.append(
            "The calibrator was fitted to these very rows, so the figures after calibration are "
            "too good. Use other rows to judge it."
        )
    tone = evaluation.direction("log_loss")
    return {"decision": evaluation.decision, "tone": tone, "sentences": sentences}


def _came_true(evidence: ReportRows) -> list[str]:
    """What came of the forecasts whose gap is clearest, if it is more than chance."""
    if "before" not in evidence.series:
        return []
    event = event_of(evidence.before, 1 if evidence.n_classes == 2 else None)
    p, right, weights = event.arrays
    place = p if has_few_values(p) else np.floor(_GROUPS * axis_of([event]).position(p))
    group = group_equal(place)
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
    name = evidence.names[1] if evidence.n_classes == 2 else TOP
    what = f"In {n[worst]:,} rows {name} had a probability of {level} and came true in "
    what += f"{percent(rate[worst])} of them"
    if evidence.after is None:
        return [f"{what}."]
    best = 1 if evidence.n_classes == 2 else evidence.before.decisions()[rows]
    calibrated = evidence.after.forecasts[rows, best]
    after = np.average(calibrated, weights=None if weights is None else weights[rows])
    return [f"{what}; after calibration its probability is {after:.2g} on average."]


def _never_decided(evidence: ReportRows) -> list[str]:
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


def _data_part(evidence: ReportRows) -> dict[str, Any]:
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


def _notes(evidence: ReportRows) -> list[str]:
    """Notes on rare classes, few rows, scores, and certain, tied or reversed forecasts."""
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
    P, n = rows.forecasts, len(rows)
    certain = np.count_nonzero(P.max(axis=1) == 1) / n if P.ndim == 2 else 0.0
    if certain >= _MANY_CERTAIN:
        notes.append(f"{percent(certain)} of the forecasts before calibration are certain: 0 or 1.")
    n_distinct = len(distinct_rows(P.reshape(n, -1)))
    if n_distinct <= min(_FEW_DISTINCT, n // 2):
        notes.append(f"The forecasts before calibration have only {n_distinct} distinct values.")
    return notes


def _model_part(
    evidence: ReportRows, path: str, columns: list[str] | None
) -> dict[str, Any] | None:
    """The calibrator, its parameters, its certificate in words, and code that applies it."""
    calibrator = evidence.calibrator
    if calibrator is None:
        return None
    certificate = getattr(calibrator, "certificate_", None)
    members = {
        name: short(column) if column.dtype.kind == "f" else column.astype(str)
        for name, column in getattr(calibrator, "member_scores_", {}).items()
    }
    parameters = {
        name: value if isinstance(value, str | int | float | None) else str(value)
        for name, value in calibrator.get_params(deep=False).items()
    }
    single = calibrator.n_features_in_ == 1
    names = columns or (["score"] if single else [f"p_{name}" for name in evidence.names])
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
        "members": members or None,
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


#: Largest number of classes that have diagrams of their own, the heaviest ones, and the weight from
#: which on a diagram of one of several classes says something.
_MOST_DIAGRAMS, _LEAST_WEIGHT = 8, 50
#: Number of simulations for a band. It has a few hundred pixels, so more would not be seen.
_SIMULATIONS = 200
#: Largest number of vertices of a curve and of rows for a surface, and cells along its sides.
_VERTICES, _SURFACE_ROWS, _STEPS = 250, 1000, 24
TOP = "the most probable class"


def _shown(evidence: ReportRows) -> list[int]:
    """The classes that have diagrams: the second of two, or the heaviest."""
    if evidence.n_classes == 2:
        return [1]
    return evidence.heaviest(_MOST_DIAGRAMS, _LEAST_WEIGHT if evidence.n_classes > 4 else 0)


def _reliability_part(evidence: ReportRows) -> dict[str, Any]:
    """Diagrams of the top class and of the heaviest classes, or of the second of two."""
    chosen, several = _shown(evidence), evidence.n_classes > 2
    panels = []
    for k in [None, *chosen] if several else chosen:
        events = {of: event_of(sample, k) for of, sample in evidence.series.items()}
        axis = axis_of(events.values()) if events else Axis()
        series: dict[str, Any] = {}
        for of, event in events.items():
            tables: dict[str, Any] = reliability(event, axis, n_resamples=_SIMULATIONS)
            forecast, rate = tables["curve"].values()
            kept = thin(forecast, rate, _VERTICES)
            tables["curve"] = {"forecast": forecast[kept], "rate": rate[kept]}
            series[of] = short(tables)
        name = TOP if k is None else evidence.names[k]
        panels.append({"name": name, "top": k is None, "axis": axis, "series": series})
    left_out = evidence.n_classes - len(chosen) if several else 0
    return {"panels": panels, "classes_left_out": left_out}


def _roc_part(evidence: ReportRows) -> dict[str, Any]:
    """ROC curves of two classes, or of the heaviest classes against the rest, and the surface."""
    curves = []
    for k, found in one_vs_rest(evidence.samples, _shown(evidence)).items():
        series = {}
        for of, curve in found.items():
            kept = thin(curve.p0, curve.p1, _VERTICES)
            series[of] = {
                "false_positive_rate": short(1 - curve.p0[kept]),
                "true_positive_rate": short(curve.p1[kept]),
                "auc": curve.area(),
            }
        curves.append({"name": evidence.names[k], "series": series})
    surface = None
    if evidence.n_classes == 3:
        few = evidence.draw(_SURFACE_ROWS)
        if few.before.class_weights().all():
            rates = {}
            for of, sample in few.series.items():
                points = sample.measure(metrics.roc_surface).points
                rates[of] = short(best_rates(points, _STEPS)[:-1, :-1], 3)
            surface = {"names": few.names, "rows": len(few.before), "rates": rates}
    return {"curves": curves, "surface": surface}


#: Largest number of points of a curve, of bins, of cells along an edge, of pairs and their points,
#: and the fewest rows of a pair and different shares of its classes.
_POINTS, _MOST_BINS, _CELLS, _PAIRS, _PAIR_POINTS, _PAIR_ROWS = 200, 400, 14, 6, 15, 100


def _map_part(evidence: ReportRows) -> dict[str, Any] | None:
    """From forecasts to calibrated ones; None without calibrated forecasts."""
    if evidence.after is None:
        return None
    P, Q = evidence.before.forecasts, evidence.after.forecasts
    if evidence.n_classes == 2:
        return {"kind": "curve", **_curve(evidence, Q)}
    if evidence.n_classes > 3:
        return {"kind": "pairs", "pairs": _pairs(evidence, P, Q)}
    bins, names = evidence.binned, evidence.names
    if bins is not None and not evidence.reduced and bins.n_bins_ <= _MOST_BINS:
        polygons = [short(polygon, 4) for polygon in bin_polygons(bins.tree_)]
        return {"kind": "bins", "names": names, "polygons": polygons}
    cells, cell = cells_of(P, _CELLS)
    weight, forecast, value = group_means(cell, evidence.before.weights, P, Q)
    return {
        "kind": "cells",
        "names": names,
        "polygons": [short(corners, 4) for corners in triangles(cells, _CELLS)],
        "weight": short(weight),
        "forecast": short(forecast, 4),
        "value": short(value, 4),
    }


def _curve(evidence: ReportRows, Q: Floats) -> Any:
    """Calibrated probability of the second class against the forecast or score.

    That of constant values in bins is a step function; others are drawn through some of the rows.
    """
    before = evidence.before.forecasts
    score = before if before.ndim == 1 else binary_scores(before)
    bins = evidence.binned
    if bins is not None and bins.n_bins_ <= _MOST_BINS and not bins.map_.varies:
        ends = (score.min(), score.max()) if before.ndim == 1 else (0.0, 1.0)
        edges = np.concatenate([ends[:1], bins.tree_.cuts, ends[1:]]).clip(*ends)
        steps = np.column_stack([edges[:-1], edges[1:]]).ravel()
        return short({"forecast": steps, "value": np.repeat(bins.bin_values_[:, 1], 2)})
    order = np.argsort(score, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, _POINTS).astype(np.intp))]
    return short({"forecast": score[chosen], "value": Q[chosen, 1]})


def _pairs(evidence: ReportRows, P: Floats, Q: Floats) -> list[dict[str, Any]]:
    """Pairs of classes that are most often the two most probable ones, and what became of them.

    For these rows, the share of the second class in the sum of both, before and after. Pairs with
    few rows are left out.
    """
    K, weights = P.shape[1], evidence.before.row_weights()
    best = np.sort(np.argpartition(P, K - 2, axis=1)[:, K - 2 :], axis=1)
    code: Ints = best[:, 0] * K + best[:, 1]
    total = np.bincount(code, weights, K * K)
    found = []
    for pair in np.argsort(-total, kind="stable")[:_PAIRS].tolist():
        rows = np.flatnonzero(code == pair)
        if len(rows) >= _PAIR_ROWS:
            i, j = divmod(pair, K)
            before, after = (_share(A[rows], i, j) for A in (P, Q))
            group = group_quantile(before, weights[rows], _PAIR_POINTS)
            _, forecast, value = group_means(group, weights[rows], before, after)
            names = [evidence.names[i], evidence.names[j]]
            columns = short({"forecast": forecast, "value": value})
            found.append({"names": names, "weight": float(total[pair]), **columns})
    return found


def _share(P: Floats, i: int, j: int) -> Floats:
    both = P[:, i] + P[:, j]
    return np.asarray(np.divide(P[:, j], both, out=np.full(len(P), 0.5), where=both > 0))


#: Measures of the clinical panel in words.
_PANEL_TITLES = {
    "observed_expected": "Observed / expected",
    "intercept": "Shift of the log odds (intercept)",
    "ici": "Mean distance (ICI)",
    "e50": "Median distance (E50)",
    "e90": "90 % quantile of distances (E90)",
    "emax": "Largest distance (Emax)",
}


def _practice_part(evaluation: Evaluation) -> dict[str, Any] | None:
    """Panels of the forecasts, and net benefit of two classes; None for scores and many classes."""
    series, K = evaluation.series, len(evaluation.classes)
    if not series or K > _MOST_PANELS:
        return None
    panels, curve = {}, None
    for of in series:
        table = evaluation.calibration_summary(of).table
        names = table["measure"].tolist()
        titles = [_PANEL_TITLES.get(name, name.capitalize()) for name in names]
        panels[of] = {"class": [str(label) for label in table["class"].tolist()], "measure": titles}
        panels[of] |= {name: short(table[name]) for name in ("value", "low", "high")}
    if K == 2 and len(series) == 1 + evaluation.is_paired:
        found = evaluation.net_benefit()
        curve = {"thresholds": short(found.thresholds)}
        curve |= {of: short(v) for of, v in zip(found.strategies[:-1], found.values, strict=False)}
    return {"panels": panels, "curve": curve}


#: Largest number of stages, of points of a diagram, and of rows if a stage needs all rows.
_MOST_STAGES, _STAGE_POINTS, _ROWS = 40, 60, 5000


def _path_part(evidence: ReportRows) -> dict[str, Any] | None:
    """Stages of the calibrator with their scores on the rows of the report; None without bins.

    Each stage also has the rates of its bins. If it can be drawn, there are the values of all nodes
    of the tree, the node that stands for each bin in each stage, and the cuts of two classes.
    """
    calibrator = evidence.binned
    if calibrator is None or calibrator.n_bins_ < 2:
        return None
    few = evidence.draw(_ROWS) if evidence.reduced else evidence
    tree, varies = calibrator.tree_, calibrator.map_.varies
    n_stages = tree.n_splits + 1
    kept = kept_stages(n_stages, _MOST_STAGES)
    nodes = [node for i, node in enumerate(tree.stages()) if i in kept]
    bin_of = calibrator.apply(few.input) if varies else None
    found = zip(staged(calibrator, few.input, few.before, _MOST_STAGES), nodes, strict=True)
    stages = [
        {"n_bins": n, **_scores(sample), **_diagram(sample, node[bin_of] if varies else None)}
        for (n, sample), node in found
    ]
    part: dict[str, Any] = {"stages": stages, "all_stages": n_stages, "rows": len(few.before)}
    steps = tree.n_classes == 2
    if not evidence.reduced and calibrator.n_bins_ <= _MOST_BINS and not (steps and varies):
        values = tree.values(calibrator.pseudocount_, calibrator.prior_)
        part |= {"node_values": short(values, 4), "node_of_bin": [n.tolist() for n in nodes]}
        part |= {"cuts": short(tree.cuts, 6)} if steps else {}
    return part


def _scores(sample: Sample) -> dict[str, float]:
    right = sample.decisions() == sample.codes
    scores = {
        "log_loss": sample.measure(metrics.log_loss),
        "brier_score_loss": sample.measure(metrics.brier_score_loss),
        "accuracy": float(np.average(right, weights=sample.weights)),
    }
    if sample.n_classes == 2 and sample.class_weights().all():
        scores["auc"] = sample.measure(metrics.roc_auc)
    return scores


def _diagram(sample: Sample, bin_of: Ints | None) -> dict[str, Any]:
    """Observed rates of the bins, those of the second of two classes or of the top class.

    Without `bin_of` rows with the same forecast share a bin.
    """
    event = event_of(sample, 1 if sample.n_classes == 2 else None)
    if bin_of is None:
        event = event.positive()
        group = group_equal(event.forecasts.round(6))
    else:
        _, group = np.unique(bin_of, return_inverse=True)
        _, mean = group_means(group, event.weights, event.forecasts)
        group = mean.argsort().argsort()[group]  # by ascending forecast
    if (n := group.max() + 1) > _STAGE_POINTS:
        group = group * _STAGE_POINTS // n
    weight, mean, rate = group_means(group, event.weights, event.forecasts, event.codes)
    return {"forecast": short(mean, 4), "rate": short(rate, 4), "weight": short(weight)}


def _bins_part(evidence: ReportRows) -> dict[str, Any] | None:
    """Columns of the table of bins, the heaviest if there are many; None without bins.

    `splits` has for each bin the number of the split that made it, from 1, and its threshold.
    """
    calibrator = evidence.binned
    if calibrator is None:
        return None
    table, tree = calibrator.bins_, calibrator.tree_
    heaviest = np.sort(np.argsort(-table["weight"], kind="stable")[:_MOST_BINS])
    columns: dict[str, Any] = {"bin": (heaviest + 1).tolist()}
    columns |= {name: short(column[heaviest]) for name, column in table.items()}
    if evidence.before.forecasts.ndim == 2 and "lower" in columns:  # probabilities
        columns |= {name: np.clip(columns[name], 0, 1).tolist() for name in ("lower", "upper")}
    made = {
        int(child): {"split": s + 1, "threshold": short(tree.thresholds[s], 4)}
        for s, children in enumerate(tree.children)
        for child in children[children >= 0]
    }
    splits = [made.get(node) for node in tree.bins[heaviest].tolist()]
    part = {"columns": columns, "n_bins": calibrator.n_bins_, "splits": splits}
    return part | {"varies": calibrator.map_.varies, "reduced": evidence.reduced}


def listed(names: list[str], most: int = 8) -> str:
    """Names in a sentence, some of them if there are many."""
    shown = names if len(names) <= most else [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)


def short(values: Any, digits: int = 5) -> Any:
    """Numbers, also in dictionaries, with a number of significant digits, for drawing."""
    if isinstance(values, dict):
        return {name: short(entry, digits) for name, entry in values.items()}
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [short(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") for value in array.tolist()]
