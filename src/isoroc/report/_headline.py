"""Measures before and after calibration, with intervals, and what they say in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from isoroc import metrics
from isoroc._input import Kind, Sample
from isoroc._intervals import half_width
from isoroc._losses import brier_losses, log_losses
from isoroc._simplex import Floats
from isoroc.metrics._calibration import error_terms
from isoroc.report._evidence import Evidence

#: Title of each measure, and whether lower (-1) or higher (1) values are better.
MEASURES = {
    "log_loss": ("Log loss", -1),
    "calibration_loss": ("… of which miscalibration", -1),
    "brier_score_loss": ("Brier score", -1),
    "classwise_error": ("Calibration error, mean of the classes", -1),
    "top_error": ("Calibration error of the top class", -1),
    "accuracy": ("Accuracy", 1),
    "auc": ("AUC", 1),
    "auc_one_vs_rest": ("AUC, one class against the rest", 1),
    "auc_one_vs_one": ("AUC, pairs of classes", 1),
    "vus": ("Volume under the ROC surface", 1),
    "decisions_changed": ("Decisions changed", 0),
    "pairs_reversed": ("Pairs of rows in reversed order", 0),
    "pairs_tied": ("Pairs of rows that became ties", 0),
}
#: Largest number of rows for the estimate of miscalibration.
_LOSS_ROWS = 20_000
#: Above this number of classes, measures of all classes or pairs of them would take too long.
MANY_CLASSES = 50
_MANY = (
    f"With more than {MANY_CLASSES} classes, only the most probable class has a calibration error, "
    "and order is measured by decisions."
)
CONFIDENCE = 0.95
_Z = half_width(CONFIDENCE)


class Figure(NamedTuple):
    """A value and its standard error; NaN if unknown."""

    value: float
    error: float = math.nan

    def interval(self) -> dict[str, float]:
        """Value and ends of its interval."""
        half = _Z * self.error
        return {"value": self.value, "low": self.value - half, "high": self.value + half}


#: Figures of a measure before, after and of the change.
Figures = dict[str, dict[str, Any]]


def headline(
    evidence: Evidence, judged: Evidence, n_resamples: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Measures with intervals, in the order of `MEASURES`, and notes on how they were computed.

    Mean losses and decisions are those of all rows; whatever takes longer is that of the rows of
    `judged`.
    """
    notes: list[str] = []
    found = _losses(evidence) | _errors(judged)
    if judged.n_rows > 1 and evidence.n_classes <= MANY_CLASSES:
        some = judged.draw(_LOSS_ROWS)
        found |= _miscalibration(some)
        if some.n_rows < evidence.n_rows:
            notes.append(f"Miscalibration is estimated from {_LOSS_ROWS:,} rows.")
    order, more = _order(judged, n_resamples)
    found |= order | _decisions(evidence)
    rows = [
        {"measure": name, "title": title, "better": better, **found[name]}
        for name, (title, better) in MEASURES.items()
        if name in found
    ]
    return rows, notes + more


def options_of(sample: Sample) -> dict[str, Any]:
    """Weights, and codes as labels, of which some may not occur."""
    return {"sample_weight": sample.weights, "labels": np.arange(sample.n_classes)}


def _losses(evidence: Evidence) -> dict[str, Figures]:
    """Mean losses; the loss of each row gives standard errors, also that of the change."""
    found: dict[str, Figures] = {}
    losses: dict[str, Callable[..., float]] = {
        "log_loss": metrics.log_loss,
        "brier_score_loss": metrics.brier_score_loss,
    }
    for name, metric in losses.items():
        figures = {}
        rows = {of: _row_losses(name, sample) for of, sample in evidence.series.items()}
        for of, sample in evidence.series.items():
            value = metric(sample.codes, sample.forecasts, **options_of(sample))
            figures[of] = Figure(value, evidence.standard_error(rows[of])).interval()
        if len(rows) == 2:
            with np.errstate(invalid="ignore"):
                difference = rows["after"] - rows["before"]
                value = figures["after"]["value"] - figures["before"]["value"]
            figures["change"] = Figure(value, evidence.standard_error(difference)).interval()
        if figures:
            found[name] = figures
    return found


def _row_losses(name: str, sample: Sample) -> Floats:
    losses = log_losses if name == "log_loss" else brier_losses
    return losses(sample.forecasts, sample.codes)


def _miscalibration(evidence: Evidence) -> dict[str, Figures]:
    """The part of the log loss that calibration can save, estimated from other rows."""
    figures = {}
    for of, sample in evidence.series.items():
        with np.errstate(invalid="ignore"):
            parts = metrics.decompose(sample.codes, sample.forecasts, **options_of(sample))
        figures[of] = Figure(parts.calibration, float(parts.standard_errors[1])).interval()
    if len(figures) == 2:
        change = figures["after"]["value"] - figures["before"]["value"]
        figures["change"] = Figure(change).interval()
    return {"calibration_loss": figures} if figures else {}


def _errors(evidence: Evidence) -> dict[str, Figures]:
    """Calibration errors of the classes and of the top class."""
    kinds: dict[str, Kind] = {"classwise_error": "classwise", "top_error": "top"}
    if evidence.n_classes > MANY_CLASSES:
        del kinds["classwise_error"]
    found: dict[str, Figures] = {}
    if len(evidence.before) < 2:
        return found
    for name, kind in kinds.items():
        terms = {of: error_terms(sample, kind) for of, sample in evidence.series.items()}
        values = {of: max(_mean(rows, evidence), 0.0) for of, rows in terms.items()}
        if len(terms) == 2:
            values["change"] = values["after"] - values["before"]
            terms["change"] = terms["after"] - terms["before"]
        figures = {
            of: Figure(value, evidence.standard_error(terms[of])).interval()
            for of, value in values.items()
        }
        for of in evidence.series:
            figures[of]["low"] = max(figures[of]["low"], 0.0)
        if figures:
            found[name] = figures
    return found


def _order(evidence: Evidence, n_resamples: int) -> tuple[dict[str, Figures], list[str]]:
    """Decisions and ranking, from `isoroc.metrics.order_report`."""
    if evidence.n_classes > MANY_CLASSES:
        return {}, [_MANY]
    before = evidence.before
    after = before if evidence.after is None else evidence.after
    report = metrics.order_report(
        before.codes,
        before.forecasts,
        after.forecasts,
        **options_of(before),
        n_resamples=n_resamples,
        random_state=0,
    )
    found: dict[str, Figures] = {}
    for measure, of, *figures in zip(*report.table.values(), strict=True):
        if of == "before" or evidence.after is not None:
            value, low, high = map(float, figures)
            entry = {"value": value, "low": low, "high": high}
            found.setdefault(str(measure), {})[str(of)] = entry
    return found, list(report.notes)


def _decisions(evidence: Evidence) -> dict[str, Figures]:
    """Accuracy and the share of changed decisions."""
    before, after = evidence.before, evidence.after
    decisions = before.decisions()
    hits = {"before": (decisions == before.codes).astype(np.float64)}
    found: dict[str, Figures] = {}
    if after is not None:
        later = after.decisions()
        hits["after"] = (later == before.codes).astype(np.float64)
        hits["change"] = hits["after"] - hits["before"]
        changed = (later != decisions).astype(np.float64)
        found["decisions_changed"] = {"change": _share(changed, evidence, 0.0)}
    found["accuracy"] = {
        of: _share(hit, evidence, -1.0 if of == "change" else 0.0) for of, hit in hits.items()
    }
    return found


def _share(values: Floats, evidence: Evidence, least: float) -> dict[str, float]:
    """Mean with an interval that is cut off at what is possible."""
    figure = Figure(_mean(values, evidence), evidence.standard_error(values)).interval()
    return figure | {"low": max(figure["low"], least), "high": min(figure["high"], 1.0)}


def _mean(values: Floats, evidence: Evidence) -> float:
    return float(np.average(values, weights=evidence.before.weights))
