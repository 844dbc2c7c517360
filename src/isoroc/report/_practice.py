"""What practitioners ask for in a report: the clinical panel and the decision curve."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from isoroc._evaluation.evaluation import Evaluation
from isoroc.report._numbers import short
from isoroc.report._svg import Plane, picture

#: Largest number of classes that have a panel.
MOST_CLASSES = 8
TITLES = {
    "observed_expected": "Observed / expected",
    "intercept": "Intercept (slope 1)",
    "slope": "Slope",
    "ici": "ICI",
    "e50": "E50",
    "e90": "E90",
    "emax": "Emax",
}


def practice_part(evaluation: Evaluation) -> dict[str, Any] | None:
    """Panels of the forecasts, and net benefit of two classes; None for scores and many classes."""
    rows = evaluation.rows
    names = [] if rows is None else list(rows.series)
    if rows is None or not names or len(evaluation.classes) > MOST_CLASSES:
        return None
    panels = {}
    for of in names:
        table = evaluation.calibration_summary(of).table
        shown = {name: short(table[name]) for name in ("value", "low", "high")}
        events = [str(label) for label in table["class"].tolist()]
        titles = [TITLES[measure] for measure in table["measure"].tolist()]
        panels[of] = {"class": events, "measure": titles} | shown
    curve = None
    if len(evaluation.classes) == 2 and len(names) == len(rows.samples):
        found = evaluation.net_benefit()
        curve = {"thresholds": short(found.thresholds)}
        curve |= {of: short(v) for of, v in zip(found.strategies[:-1], found.values, strict=False)}
    return {"panels": panels, "curve": curve}


def benefit_chart(curve: dict[str, list[float]]) -> Markup:
    """Net benefit against the threshold, cut off where acting on all rows loses much."""
    models = [name for name in curve if name in ("forecasts", "before", "after")]
    top = max(max(curve[name]) for name in models)
    low = min(-0.1 * top, max(min(min(curve[name]) for name in models), -top))
    plane = Plane(y=(low, 1.05 * top if top > 0 else 1.0))
    parts = [plane.frame("threshold", "net benefit")]
    for name in ("none", "all", *models):
        xs, ys = zip(
            *((x, y) for x, y in zip(curve["thresholds"], curve[name], strict=True) if y >= low),
            strict=True,
        )
        kind = {"none": "diagonal", "all": "diagonal", "forecasts": "curve before"}
        parts.append(plane.line(xs, ys, class_=kind.get(name, f"curve {name}")))
    return picture(parts, "Net benefit of acting on the forecasts against the threshold")
