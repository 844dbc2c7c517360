"""The rows of a report, and its summary: a dictionary with everything that the page shows."""

import json
import platform
import re
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from isoroc._counts import Counts
from isoroc._evaluation import curves
from isoroc._evaluation.before_after import (
    Pair,
    calibrated,
    make_pair,
    pair_of_counts,
    rows_of_fit,
)
from isoroc._evaluation.catalogue import MEASURES
from isoroc._evaluation.decision_curve import thresholds_of
from isoroc._evaluation.evaluate import evaluate_pairs, pair_of_labels
from isoroc._evaluation.evaluation import Evaluation, class_name, rounded_percent
from isoroc._evaluation.measures import most_rows
from isoroc._evaluation.path import measured_path, measures_of
from isoroc._evaluation.risk_coverage import risk_coverage_curve
from isoroc._evaluation.surface import drawn_surface
from isoroc._evaluation.triangle import occupied_cells, triangles
from isoroc._input import (
    InputError,
    UnitOption,
    check_after,
    check_sample,
    find_reversal,
    with_segments,
)
from isoroc._maps.bins import BinMap
from isoroc._maps.loading import LoadedMap, decode_known
from isoroc._maps.modelfile.document import faults_of, plain
from isoroc._support.files import creation_time
from isoroc._support.text import listed
from isoroc._support.threads import in_threads
from isoroc.export._exportable import check_exportable
from isoroc.metrics import roc_auc
from isoroc.metrics._calibration import event_of, has_few_values
from isoroc.metrics._clinical import smooth_curve
from isoroc.metrics._estimation.grouping import distinct_rows, group_equal, group_means

#: Changes when a key changes its name or its meaning. New keys do not change it.
SUMMARY_VERSION = 7
#: Name of the event that the most probable class came true.
MOST_PROBABLE = "the most probable class"


@dataclass(frozen=True)
class ReportRows(Pair):
    """Rows of a report, none of weight 0."""

    calibrator: Any = None

    @property
    def unit(self) -> str:
        """What is counted: rows, or entries of rows and labels."""
        return "entries" if self.multilabel else "rows"

    @cached_property
    def names(self) -> list[str]:
        """The classes as text."""
        if self.multilabel:
            return ["no label", "the label"]
        return [str(label) for label in self.before.classes.tolist()]

    def named(self, k: int) -> str:
        """A class in sentences and pictures."""
        return self.names[k] if self.multilabel else class_name(self.names[k])

    def heaviest(self, most: int) -> list[int]:
        """All columns, or `most` of the classes, the heaviest first."""
        if self.n_classes <= most:
            return list(range(self.n_classes))
        order = np.argsort(-self.before.class_weights(), kind="stable")
        return order[:most].tolist()  # type: ignore[no-any-return]


def gather_rows(
    y: Any,
    P: Any,
    sample_weight: Any,
    labels: Any,
    unit: UnitOption,
    *,
    calibrator: Any,
    after: Any,
    segments: Any = None,
    clusters: Any = None,
    multilabel: bool = False,
) -> ReportRows:
    """Check the arguments of a report and put them together."""
    _check_calibrator(calibrator)
    if calibrator is not None:
        unit = calibrator.unit_
    if multilabel or (calibrator is not None and not calibrator.map_.kind.exclusive):
        after = calibrator if after is None else after
        labels = calibrator.classes_ if labels is None and calibrator is not None else labels
        pair = pair_of_labels(
            y, P, after, sample_weight, labels, unit=unit, segments=segments, clusters=clusters
        )
        return _rows(pair, calibrator)
    if calibrator is not None:
        after = calibrated(calibrator, P, segments) if after is None else after
        labels = calibrator.classes_ if labels is None else labels
    before = check_sample(P, y, sample_weight, labels, clusters=clusters, unit=unit)
    changed = None if after is None else check_after(after, before, probabilities=True)
    if segments is not None:
        before = with_segments(before, segments)
    fitted = rows_of_fit(after if calibrator is None else calibrator)
    return _rows(make_pair(before, changed, fitted=fitted), calibrator)


def gather_counts(counts: Any, calibrator: Any) -> ReportRows:
    """Cells of counts, with the forecasts of a calibrator for each of them."""
    if not isinstance(counts, Counts):
        problem = f"is {type(counts).__name__}"
        raise InputError("counts", None, problem, "expected isoroc.Counts")
    _check_calibrator(calibrator)
    return _rows(pair_of_counts(counts, calibrator), calibrator)


def _rows(pair: Pair, calibrator: Any) -> ReportRows:
    return ReportRows(
        pair.before, pair.after, pair.counted, pair.multilabel, pair.fitted, calibrator
    )


def _check_calibrator(calibrator: Any) -> None:
    if calibrator is None or isinstance(calibrator, LoadedMap):
        return
    from isoroc._calibrators.base import Calibrator  # noqa: PLC0415  # imports scikit-learn, 1 s

    if not isinstance(calibrator, Calibrator):
        problem = f"{type(calibrator).__name__} is not a calibrator of isoroc"
        fix = "pass the forecasts before and after calibration as P and after"
        raise InputError("calibrator", None, problem, fix)


def summarize(
    evidence: ReportRows,
    title: str = "Calibration report",
    model_path: str = "model.json",
    *,
    clinical: bool = False,
) -> dict[str, Any]:
    """Summary of the rows, with plain values only: it can be written as JSON."""
    evaluation = evaluate_pairs([evidence])
    judged = evidence.draw(most_rows(evidence.n_classes))
    classes = _classes_part(evidence, judged)
    shown = _shown(judged, classes)
    few = shown if classes is None else shown[:3]
    versions = {"isoroc": version("isoroc"), "Python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    summary: dict[str, Any] = {
        "format": "isoroc report",
        "version": SUMMARY_VERSION,
        "title": title,
        "verdict": _verdict(evaluation, evidence, judged),
        "headline": _headline(evaluation, evidence, judged),
        "reliability": _reliability_part(judged, shown),
        "classes": classes,
        "map": _map_part(judged, few, evaluation),
        "roc": _roc_part(judged, few),
        "surface": _surface_part(judged),
        "path": _path_part(judged),
        "benefit": _benefit_part(evaluation),
        "clinical": _clinical_part(evaluation) if clinical else None,
        "coverage": _coverage_part(judged),
        "segments": _segments_part(evaluation),
        "data": _data_part(evidence, evaluation),
        "model": _model_part(evidence, model_path),
        "about": {
            "created": creation_time().strftime("%Y-%m-%d %H:%M UTC"),
            "versions": versions,
        },
    }
    return plain(summary, "summary")  # type: ignore[no-any-return]


def _headline(evaluation: Evaluation, evidence: ReportRows, judged: ReportRows) -> dict[str, Any]:
    """The table of an evaluation, one entry per measure."""
    rows = []
    for name, figures in evaluation.measures.items():
        measure = MEASURES[name]
        direction: str = evaluation.direction(name)
        if direction and max(map(abs, figures["change"][1:])) < 5e-5:  # shown as 0
            direction = "no clear change"
        elif not measure.is_merit:
            direction = {"better": "higher", "worse": "lower"}.get(direction, direction)
        title = measure.title[0].upper() + measure.title[1:]
        row = {"measure": name, "title": title, "direction": direction, "meaning": measure.meaning}
        rows.append(row | {stage: figure._asdict() for stage, figure in figures.items()})
    weights = evidence.before.class_weights()
    most = int(weights.argmax())
    always = f"{weights[most] / weights.sum():.4f}"
    notes = [f"Always deciding for {evidence.named(most)} would have an accuracy of {always}."]
    notes += evaluation.notes
    if judged.n_rows < evaluation.n_rows:
        notes.append(f"Diagrams and curves show {judged.n_rows:,} rows.")
    return {"rows": rows, "confidence": evaluation.confidence, "notes": notes}


def _verdict(evaluation: Evaluation, evidence: ReportRows, judged: ReportRows) -> dict[str, Any]:
    """The sentences and the decision.

    The tone is the direction of the log loss. It is empty without calibrated forecasts.
    """
    wrong = _came_true(evidence, judged) if evaluation.miscalibrated.get("before") else []
    sentences = [*wrong, *evaluation.sentences(), *_never_decided(evidence)]
    if verdict := _learned(evidence.calibrator, "verdict_"):
        start = "The verdict of the calibrator from its own rows, by cross-validation"
        if verdict.decision != evaluation.decision and not evaluation.seen:
            start = "On its own rows the calibrator came to another verdict, by cross-validation"
        sentences.append(f"{start}: {verdict}.")
    tone = "" if evaluation.seen else evaluation.direction("log_loss")
    return {"decision": evaluation.decision, "tone": tone, "sentences": sentences}


def _came_true(evidence: ReportRows, judged: ReportRows) -> list[str]:
    """The group of forecasts that is most clearly wrong, if by three standard errors or more.

    Groups are tenths of the axis of the rows judged. All rows are counted, and a group needs 20.
    """
    if "before" not in evidence.series:
        return []
    k = 1 if evidence.n_classes == 2 else None
    name = MOST_PROBABLE if k is None else evidence.named(1)
    drawn = event_of(judged.before, k)
    p, right, weights = event_of(evidence.before, k).arrays
    few = has_few_values(drawn.forecasts)
    group = group_equal(p if few else np.floor(10 * curves.axis_of([drawn]).position(p)))
    n = np.bincount(group, evidence.row_counts()).astype(np.int64)
    _, mean, rate = group_means(group, weights, p, right)
    gap = np.abs(rate - mean) * np.sqrt(n) * (n >= 20)
    worst = int(gap.argmax())
    if gap[worst] < 3 * np.sqrt(max(mean[worst] * (1 - mean[worst]), 1 / n[worst])):
        return []
    rows = np.flatnonzero(group == worst)
    low, level, high = (f"{v:.2g}" for v in (p[rows].min(), mean[worst], p[rows].max()))
    level = level if low == high else f"{low} to {high} (mean {level})"
    text = f"In {n[worst]:,} {evidence.unit} {name} had a probability of {level} and came true in "
    text += f"{rounded_percent(rate[worst])} of them"
    if evidence.after is None:
        return [f"{text}."]
    column = evidence.before.decisions()[rows] if k is None else k
    Q = evidence.after.forecasts[rows, column]
    after = np.average(Q, weights=None if weights is None else weights[rows])
    return [f"{text}; after calibration its probability is {after:.2g} on average."]


def _never_decided(evidence: ReportRows) -> list[str]:
    """Classes that have rows but are the most probable class of none after calibration."""
    if "before" not in evidence.series or evidence.after is None:
        return []
    weights = evidence.before.class_weights()
    total = evidence.before.row_weights().sum()
    before, after = (
        np.bincount(sample.decisions(), sample.weights, evidence.n_classes)
        for sample in evidence.both
    )
    lost = np.flatnonzero((after == 0) & (weights > 0))
    if not len(lost):
        return []
    names = listed([evidence.names[k] for k in lost.tolist()], 5)
    text = f"No row is predicted as {names}, neither before nor after calibration"
    if n := before[lost].sum():
        text = f"After calibration no row is predicted as {names} any more"
        text += f" ({n:,.0f} of {total:,.0f} rows before)"
    if np.count_nonzero(after) == 1:
        most = int(after.argmax())
        share = rounded_percent(weights[most] / total)
        text += f": the accuracy is just the share of {evidence.names[most]}, {share}"
    advice = "Where errors have different costs, decide by expected cost: isoroc.decisions.decide"
    return [f"{text}. {advice}."]


def _data_part(evidence: ReportRows, evaluation: Evaluation) -> dict[str, Any]:
    """Numbers of rows and classes, and notes on the quality of the data."""
    before = evidence.before
    counted = evidence.counted
    names = evidence.names
    weights = before.class_weights()
    shown = evidence.heaviest(20)
    total = weights.sum()
    return {
        "rows": evidence.n_rows,
        "multilabel": evidence.multilabel,
        "weight": total,
        "weighted": before.weights is not None and bool(before.weights.sum() != counted),
        "counted": counted is not None,
        "n_classes": evidence.n_classes,
        "classes": [
            {"name": names[k], "weight": weights[k], "share": weights[k] / total} for k in shown
        ],
        "other_classes": evidence.n_classes - len(shown),
        "notes": [*_zeros(evaluation), *_notes(evidence)] or ["Nothing unusual was found."],
    }


def _zeros(evaluation: Evaluation) -> list[str]:
    """Notes on outcomes that were given probability 0."""
    notes = []
    for stage, n in evaluation.impossible.items():
        if n:
            when = f" {stage} calibration" if evaluation.is_paired else ""
            outcomes = "1 outcome was" if n == 1 else f"{n:,} outcomes were"
            notes.append(f"{outcomes} given probability 0{when}.")
    return notes


def _notes(evidence: ReportRows, few_rows: int = 30) -> list[str]:
    """Notes on rare classes, few rows, scores, and certain, tied or reversed forecasts."""
    notes = []
    before = evidence.before
    n = evidence.n_rows
    counts = np.bincount(before.codes, minlength=evidence.n_classes)
    if evidence.counted is not None:
        counts = before.class_weights() * (n / before.row_weights().sum())
    rare = f"fewer than {few_rows} rows. Figures of single classes are uncertain"
    kinds = {"no rows. Nothing can be said about them": counts == 0}
    kinds[rare] = (counts > 0) & (counts < few_rows)
    for words, few in kinds.items():
        names = [evidence.names[k] for k in np.flatnonzero(few).tolist()]
        if names:
            which = listed(names) if len(names) <= 8 else f"{len(names)} of {len(few)} classes"
            notes.append(f"{which} {'have' if names[1:] else 'has'} {words}.")
    if n < 200:
        notes.append(f"There are only {n} rows: intervals are wide and approximate.")
    if before.forecasts.ndim == 1:
        text = "The forecasts before calibration are scores and not probabilities"
        notes.append(f"{text}: they have an order but no reliability.")
    rows = evidence.draw(20_000).before
    if (reversal := find_reversal(rows)) is not None:
        notes.append(f"Warning: {reversal}.")
    P = rows.forecasts
    n = len(rows)
    certain = np.count_nonzero(P.max(axis=1) == 1) / n if P.ndim == 2 else 0.0
    if certain >= 0.01:
        notes.append(
            f"{rounded_percent(certain)} of the forecasts before calibration are certain: 0 or 1."
        )
    n_distinct = len(distinct_rows(P.reshape(n, -1)))
    if n_distinct <= min(20, n // 2):
        notes.append(f"The forecasts before calibration have only {n_distinct} distinct values.")
    return notes


def _model_part(evidence: ReportRows, path: str) -> dict[str, Any] | None:
    """The calibrator, its parameters, its certificate in words, and code that applies it."""
    calibrator = evidence.calibrator
    if calibrator is None:
        return None
    fitted = calibrator.map_
    certificate = _learned(calibrator, "certificate_") or fitted.certificate(evidence.n_classes)
    members = {
        name: short(column) if column.dtype.kind == "f" else column.astype(str)
        for name, column in (_learned(calibrator, "member_scores_") or {}).items()
    }
    parameters = {
        name: value if isinstance(value, str | int | float | None) else str(value)
        for name, value in _parameters(calibrator, path).items()
    }
    quoted = json.dumps(path, ensure_ascii=False)
    given = "P"
    what = f"P: new forecasts, one column per {'label' if evidence.multilabel else 'class'}"
    if segments := list(fitted.segments):
        given = "P, segments"
        what = f"{what}; segments: {', '.join(segments)}"
    code = f"import isoroc\n\ncalibrator = isoroc.load({quoted})\n"
    word = path if re.fullmatch(r"[A-Za-z0-9._/-]*", path) else quoted
    return {
        "calibrator": check_exportable(calibrator),
        "parameters": parameters,
        "n_bins": len(fitted.tree.bins) if isinstance(fitted, BinMap) else None,
        "certificate": None if certificate is None else str(certificate),
        "members": members or None,
        "path": path,
        "python": f"{code}Q = calibrator.predict_proba({given})  # {what}\n",
        "command": f"isoroc apply {word} new.parquet -o calibrated.parquet",
    }


def _learned(calibrator: Any, name: str) -> Any:
    """A fitted attribute of a calibrator or a loaded map, or None."""
    if isinstance(calibrator, LoadedMap):
        return calibrator.state.get(name)
    return getattr(calibrator, name, None)


def _parameters(calibrator: Any, path: str) -> dict[str, Any]:
    """Parameters of a calibrator or a loaded map, which comes from the file `path`."""
    if not isinstance(calibrator, LoadedMap):
        return calibrator.get_params(deep=False)  # type: ignore[no-any-return]
    given = calibrator.parameters
    with faults_of(path):
        return decode_known(given, given, "model.parameters", _unfitted)


def _unfitted(document: dict[str, Any], place: str) -> Any:
    from isoroc._calibrators.registry import unfitted  # noqa: PLC0415  # imports scikit-learn, 1 s

    return unfitted(document, place)


def _shown(
    evidence: ReportRows, classes: dict[str, Any] | None, most: int = 5, least: float = 50
) -> list[int]:
    """Classes with diagrams: the second of two, all of a few, or the worst of many.

    Of many classes, those with a weight below `least` have no diagram, since it would show chance.
    """
    if evidence.n_classes == 2:
        return [1]
    if classes is None:
        return list(range(evidence.n_classes))
    weights = evidence.before.class_weights()
    return [k for k in classes["order"] if weights[k] >= least][:most]


def _classes_part(
    evidence: ReportRows, judged: ReportRows, few_classes: int = 4, few_rows: int = 20
) -> dict[str, Any] | None:
    """All classes of many, the worst first. None for a few classes, which have diagrams.

    The worst class has the largest mean distance (ICI) of its last forecasts from a smooth
    calibration curve. Classes with fewer than `few_rows` rows are not measured and come last.
    """
    K = evidence.n_classes
    if few_classes >= K:
        return None
    weights = evidence.before.class_weights()
    counts = np.bincount(judged.before.codes, minlength=K)
    measured = np.flatnonzero((counts >= few_rows) & (counts < len(judged.before))).tolist()
    drawn = judged.draw(max(4000, 200_000 // K))  # curves of all classes take long
    table = {"weight": weights, "observed": weights / weights.sum()}
    last = np.zeros(K)
    for stage, sample in evidence.series.items():
        table[f"{stage}_forecast"] = np.average(sample.forecasts, axis=0, weights=sample.weights)
        ici = np.full(K, np.nan)
        auc = np.full(K, np.nan)
        for k in measured:
            _, ici[k] = smooth_curve(event_of(drawn.series[stage], k))
            auc[k] = event_of(judged.series[stage], k).measure(roc_auc)
        table[f"{stage}_ici"] = ici
        table[f"{stage}_auc"] = auc
        last = np.nan_to_num(ici, nan=-1.0)
    order = np.lexsort((-weights, -last))
    columns = {name: short(column[order]) for name, column in table.items()}
    return {
        "order": order,
        "columns": {"name": [evidence.names[k] for k in order.tolist()], **columns},
        "series": list(evidence.series),
        "few_rows": few_rows,
        "unmeasured": K - len(measured),
    }


def _reliability_part(evidence: ReportRows, chosen: list[int]) -> dict[str, Any]:
    """Diagrams of the top class and of the chosen classes, or of the second of two."""
    events: dict[str, int | None] = {MOST_PROBABLE: None} if evidence.n_classes > 2 else {}
    events |= {evidence.named(k): k for k in chosen}
    drawn = curves.reliability_panels(evidence.series, events) if evidence.series else []
    panels = [panel._asdict() | {"series": short(panel.series)} for panel in drawn]
    return {"panels": panels}


def _roc_part(evidence: ReportRows, chosen: list[int], n_vertices: int = 250) -> dict[str, Any]:
    """ROC curves of two classes, or of the chosen classes against the rest."""
    drawn = []
    for k, by_stage in curves.one_vs_rest(evidence.samples, chosen).items():
        series = {}
        for stage, curve in by_stage.items():
            kept = curves.thin(curve.p0, curve.p1, n_vertices)
            series[stage] = {
                "false_positive_rate": short(1 - curve.p0[kept]),
                "true_positive_rate": short(curve.p1[kept]),
                "auc": curve.area(),
            }
        drawn.append({"name": evidence.named(k), "series": series})
    return {"curves": drawn}


def _surface_part(evidence: ReportRows) -> dict[str, Any] | None:
    """Hulls of the ROC surfaces of three classes. None if a class is absent."""
    if evidence.n_classes != 3 or not evidence.before.class_weights().all():
        return None
    rows = evidence.draw(2000)
    series = dict(zip(rows.samples, in_threads(drawn_surface, rows.samples.values()), strict=True))
    drawn = {
        stage: {
            "faces": [short(face, 4) for face in surface.faces],
            "corners": short(surface.corners, 4),
            "volume": surface.volume,
        }
        for stage, surface in series.items()
    }
    return {"names": evidence.names, "series": drawn, "rows": rows.n_rows}


def _path_part(evidence: ReportRows) -> dict[str, Any] | None:
    """Measures of these rows at every stage of growth of three classes. None without bins."""
    fitted = None if evidence.calibrator is None else evidence.calibrator.map_
    if evidence.n_classes != 3 or not isinstance(fitted, BinMap):
        return None
    if fitted.kind.unit != "probability":  # the rows are probabilities, which it does not take
        return None
    rows = evidence.draw(2000).before
    path = measured_path(fitted, rows)
    before = {name: [value] for name, value in measures_of(rows).items()}
    return {"stages": short(dict(path)), "before": short(before), "rows": rows.n_rows}


def _map_part(
    evidence: ReportRows, chosen: list[int], evaluation: Evaluation, n_cells: int = 14
) -> dict[str, Any] | None:
    """Calibrated against uncalibrated forecasts. None without calibrated forecasts."""
    if evidence.after is None:
        return None
    P = evidence.before.forecasts
    Q = evidence.after.forecasts
    names = evidence.names
    if evidence.n_classes != 3:
        drawn = [_curve(evidence, k) | {"name": evidence.named(k)} for k in chosen]
        turned = evaluation["pairs_reversed", "change"]
        return {"kind": "curves", "curves": drawn, "pairs_reversed": turned}
    cells, cell = occupied_cells(P, n_cells)
    weight, forecast, value = group_means(cell, evidence.before.weights, P, Q)
    return {
        "kind": "cells",
        "names": names,
        "polygons": [short(corners, 4) for corners in triangles(cells, n_cells)],
        "weight": short(weight),
        "forecast": short(forecast, 4),
        "value": short(value, 4),
    }


def _curve(evidence: ReportRows, k: int) -> dict[str, Any]:
    """Calibrated probability of a class against its forecast or score.

    For bins of two classes it is a step function, otherwise a line through means of rows with
    similar forecasts, and where 80 % of these rows lie.
    """
    before, after = evidence.both
    fitted = None if evidence.calibrator is None else evidence.calibrator.map_
    is_score = before.forecasts.ndim == 1
    if is_score:
        event = replace(before, classes=None)
        x = curves.Axis("linear", float(event.forecasts.min()), float(event.forecasts.max()) + 1e-9)
    else:
        event = event_of(before, k)
        x = curves.axis_of([event, event_of(after, k)])
    if evidence.n_classes == 2 and isinstance(fitted, BinMap) and not fitted.varies:
        ends = (0.0, 1.0) if x.scale == "logit" else (x.low, x.high)
        edges = np.concatenate([ends[:1], fitted.tree.cuts, ends[1:]]).clip(*ends)
        line = {"before": np.column_stack([edges[:-1], edges[1:]]).ravel()}
        line["after"] = np.repeat(fitted.bin_values[:, 1], 2)
    else:
        line = curves.calibration_map(event, after.forecasts[:, k], x)
    return {"x": x, "y": curves.Axis() if is_score else x, **short(dict(line))}


def _clinical_part(evaluation: Evaluation, most_classes: int = 8) -> dict[str, Any] | None:
    """The clinical panels of the forecasts. None for scores and for many classes."""
    if not evaluation.series or most_classes < len(evaluation.classes):
        return None
    titles = {
        "observed_expected": "Observed / expected",
        "intercept": "Shift of the log odds (intercept)",
        "slope": "Slope",
        "ici": "Mean distance (ICI)",
        "e50": "Median distance (E50)",
        "e90": "90 % quantile of distances (E90)",
        "emax": "Largest distance (Emax)",
    }
    panels = {}
    for stage in evaluation.series:
        table = evaluation.calibration_summary(stage).table
        panels[stage] = {
            "class": table["class"].astype(str),
            "measure": [titles[name] for name in table["measure"].tolist()],
            **{name: short(table[name]) for name in ("value", "low", "high")},
        }
    return panels


def _benefit_part(evaluation: Evaluation) -> dict[str, Any] | None:
    """Net benefit of two classes, with the interval of the last forecasts. None for scores."""
    series = evaluation.series
    if len(evaluation.classes) != 2 or len(series) < 1 + evaluation.is_paired:
        return None
    curve = evaluation.net_benefit(thresholds_of(evaluation.rows.series.values()))
    band = curve.benefit(curve.strategies[len(series) - 1])
    lines = dict(zip([*series, "none", "all"], curve.values, strict=False))
    return {
        "event": "the label" if evaluation.rows.multilabel else class_name(evaluation.classes[1]),
        "limits": short(curve.limits()),
        "thresholds": short(curve.thresholds),
        "lines": short(lines),
        "band": short({"low": band["low"], "high": band["high"]}),
    }


def _coverage_part(evidence: ReportRows) -> dict[str, Any] | None:
    """Error of the surest rows against their share. None for scores and for several labels."""
    if not evidence.series or evidence.multilabel:
        return None
    curve = risk_coverage_curve(evidence.series, confidence=0.95)
    series = {}
    for stage in evidence.series:
        rows = curve.table["of"] == stage
        names = ("coverage", "error", "low", "high")
        series[stage] = {name: short(curve.table[name][rows]) for name in names}
        series[stage]["area"] = curve.area[stage].value
    return {"series": series}


def _segments_part(evaluation: Evaluation) -> dict[str, Any] | None:
    """The segments that cost most, before and after. None without segments."""
    if not evaluation.segments:
        return None
    columns: dict[str, Any] = {
        name: column if name in ("name", "rows") else short(column)
        for name, column in evaluation.worst_segments().items()
    }
    if evaluation.rows.multilabel:
        columns["name"] = [name.removeprefix("label: ") for name in columns["name"].tolist()]
    n_tested = next(iter(evaluation.segments.values())).n_rows
    return {"columns": columns, "series": list(evaluation.segments), "n_tested": n_tested}


def short(values: Any, digits: int = 5) -> Any:
    """Numbers, also in dictionaries, with a number of significant digits, for drawing."""
    if isinstance(values, dict):
        return {name: short(entry, digits) for name, entry in values.items()}
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [short(row, digits) for row in array]
    return [float(f"{value:.{digits}g}") for value in array.tolist()]
