"""The verdict of a report in plain words."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from isoroc._input import Sample
from isoroc._losses import are_impossible
from isoroc.report._diagrams import view_of
from isoroc.report._evidence import Evidence
from isoroc.report._numbers import percent, text_of

#: Half the width of the range of forecasts around a level, the fewest rows in it, and the largest
#: difference of mean forecasts that are compared.
_HALF, _FEWEST, _ALIKE = 0.05, 20, 0.02


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


def _tone(figures: dict[str, Any]) -> tuple[str, list[str]]:
    for name in ("log_loss", "brier_score_loss"):
        change = figures.get(name, {}).get("change")
        if change is None or not np.isfinite(change["high"]):
            continue
        title = {"log_loss": "log loss", "brier_score_loss": "Brier score"}[name]
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
    """Rows whose outcome was given probability 0."""
    found = []
    for of, sample in evidence.series.items():
        # Cells of counts may weigh several rows.
        weights = None if evidence.counted is None else sample.weights
        impossible = are_impossible(sample.forecasts, sample.codes)
        if n_zero := int(np.bincount(impossible, weights, 2)[1]):
            rows = "1 row" if n_zero == 1 else f"{n_zero:,} rows"
            found.append(
                f"The class that came true had a probability of 0 {of} calibration in {rows}; "
                "each counts as 36 nats in the log loss."
            )
    return found


def _plain(value: float) -> Any:
    return None if np.isnan(value) else ("inf" if np.isinf(value) else value)


def _order(figures: dict[str, Any]) -> list[str]:
    if "decisions_changed" not in figures:
        return []
    changed = figures["decisions_changed"]["change"]["value"]
    what = f"It changed {percent(changed)} of the decisions"
    if "pairs_reversed" not in figures:
        return [f"{what}."]
    turned = figures["pairs_reversed"]["change"]["value"]
    tied = figures["pairs_tied"]["change"]["value"]
    if not turned and not tied:
        return [f"{what} and kept the order of all pairs of rows."]
    if not turned:
        return [f"{what} and turned {percent(tied)} of the pairs of rows into ties."]
    order = f"reversed the order of {percent(turned)} of the pairs of rows"
    if not tied:
        return [f"{what} and {order}."]
    return [f"{what}, {order} and turned {percent(tied)} into ties."]
