"""The verdict of a report in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoroc._input import Sample
from isoroc.report._diagrams import view_of
from isoroc.report._evidence import Evidence
from isoroc.report._numbers import percent, text_of

#: Half the width of the range of forecasts around a level, and the fewest rows in it.
_HALF, _FEWEST = 0.05, 20


def verdict(evidence: Evidence, judged: Evidence, headline: list[dict[str, Any]]) -> dict[str, Any]:
    """Sentences, the most important first, and whether calibration lowered the log loss.

    `judged` has the rows whose forecasts are compared with outcomes.

    The tone is "better", "worse" or "unclear" by the interval of the change of the log loss, or of
    the Brier score if the log loss is infinite; "none" without calibrated forecasts.
    """
    figures = {row["measure"]: row for row in headline}
    tone, change = _tone(figures)
    sentences = [*_came_true(judged), *change, *_scores(figures), *_impossible(evidence)]
    sentences += _order(figures)
    said = getattr(evidence.calibrator, "verdict_", None)
    if said:
        sentences.append(f"Verdict of the calibrator on its own calibration rows: {said}.")
    if evidence.fitted_on_these_rows:
        sentences.append(
            "The calibrator was fitted to these very rows, so the figures after calibration are "
            "too good. Use other rows to judge it."
        )
    return {"tone": tone, "sentences": sentences}


def _came_true(evidence: Evidence) -> list[str]:
    """How often forecasts of about one level came true, where the gap before is largest."""
    if "before" not in evidence.series:
        return []
    k = 1 if evidence.n_classes == 2 else None
    views = {of: view_of(sample, k) for of, sample in evidence.series.items()}
    levels = np.arange(1, 20) / 20
    gaps = []
    for level in levels:
        found = [_near(view, level) for view in views.values()]
        weight = min(n for n, _ in found)
        gap = abs(found[0][1] - level) * np.sqrt(found[0][0]) if weight >= _FEWEST else -1.0
        gaps.append(gap)
    if max(gaps) < 0:
        return []
    level = float(levels[int(np.argmax(gaps))])
    rates = [percent(_near(view, level)[1]) for view in views.values()]
    of = "" if k is None else f" for {evidence.names[1]}"
    then = f"; after calibration, {rates[1]}" if len(rates) > 1 else ""
    return [f"Forecasts of about {level:.2f}{of} came true {rates[0]} of the time{then}."]


def _near(view: Sample, level: float) -> tuple[int, float]:
    """Number of rows with a forecast near a level, and the rate at which they came true."""
    rows = np.flatnonzero(np.abs(view.forecasts - level) <= _HALF + 1e-9)
    if not len(rows):
        return 0, np.nan
    weights = None if view.weights is None else view.weights[rows]
    return len(rows), float(np.average(view.codes[rows], weights=weights))


def _tone(figures: dict[str, Any]) -> tuple[str, list[str]]:
    for name in ("log_loss", "brier_score"):
        change = figures.get(name, {}).get("change")
        if change is None or not np.isfinite(change["high"]):
            continue
        title = {"log_loss": "log loss", "brier_score": "Brier score"}[name]
        low, high = text_of(change["low"]), text_of(change["high"])
        interval = f"95 % interval of the change {low} to {high}"
        if change["high"] < 0:
            return "better", [f"Calibration lowered the {title} ({interval})."]
        if change["low"] > 0:
            return "worse", [f"Calibration raised the {title} ({interval})."]
        words = f"Whether calibration changed the {title} is not clear ({interval})."
        return "unclear", [words]
    return ("unclear" if "decisions_changed" in figures else "none"), []


def _scores(figures: dict[str, Any]) -> list[str]:
    """Scores before and after in one sentence."""
    parts = []
    for name in ("log_loss", "accuracy", "auc", "auc_one_vs_rest"):
        row = figures.get(name)
        if row is None or "before" not in row:
            continue
        title = row["title"] if name.startswith("auc") else row["title"].lower()
        values = [text_of(_plain(row[of]["value"]), 3) for of in ("before", "after") if of in row]
        parts.append(f"{title} {' → '.join(values)}")
    text = "; ".join(parts)
    return [f"{text[0].upper()}{text[1:]}."] if parts else []


def _impossible(evidence: Evidence) -> list[str]:
    """Why a log loss is infinite."""
    found = []
    for of, sample in evidence.series.items():
        own = sample.forecasts[np.arange(len(sample)), sample.codes]
        # Cells of counts may weigh several rows.
        weights = None if evidence.counted is None else sample.weights
        if n_zero := int(np.bincount(own == 0, weights, 2)[1]):
            rows = "1 row" if n_zero == 1 else f"{n_zero:,} rows"
            found.append(
                f"The log loss {of} calibration is infinite: the class that came true had a "
                f"probability of 0 in {rows}."
            )
    return found


def _plain(value: float) -> Any:
    return None if np.isnan(value) else ("inf" if np.isinf(value) else value)


def _order(figures: dict[str, Any]) -> list[str]:
    if "decisions_changed" not in figures:
        return []
    changed = figures["decisions_changed"]["change"]["value"]
    if "pairs_reversed" not in figures:
        return [f"It changed {percent(changed)} of the decisions."]
    turned = figures["pairs_reversed"]["change"]["value"]
    tied = figures["pairs_tied"]["change"]["value"]
    what = f"It changed {percent(changed)} of the decisions"
    order = f"reversed the order of {percent(turned)} of the pairs of rows"
    return [f"{what}, {order} and made ties of {percent(tied)}."]
