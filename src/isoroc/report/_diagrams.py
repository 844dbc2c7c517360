"""Reliability diagrams and ROC curves of a report."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from isoroc._input import Sample, split_by_kind
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc._views.rates import default_n_bins, reliability
from isoroc._views.thinning import thin
from isoroc.metrics import auc, roc_surface, symmetric_roc_curve
from isoroc.report._evidence import Evidence
from isoroc.report._numbers import short

#: Largest number of classes that have diagrams of their own, the heaviest ones.
MOST_CLASSES = 8
#: Number of simulations for a band. It has a few hundred pixels, so more would not be seen.
_SIMULATIONS = 200
#: Largest number of vertices of a curve, of rows for a surface and of its points.
_VERTICES, _SURFACE_ROWS, _SURFACE_POINTS = 250, 1000, 700
TOP = "the most probable class"


def reliability_part(evidence: Evidence) -> dict[str, Any]:
    """Diagrams of the top class and of the heaviest classes, or of the second of two."""
    panels = []
    K, names = evidence.n_classes, evidence.names
    chosen = [1] if K == 2 else evidence.heaviest(MOST_CLASSES)
    n_bins = default_n_bins(len(evidence.before))
    wanted: list[tuple[str, int | None]] = [(names[k], k) for k in chosen]
    if K > 2:
        wanted = [(TOP, None), *wanted]
    for name, k in wanted:
        series = {}
        for of, sample in evidence.series.items():
            tables = reliability(view_of(sample, k), n_bins=n_bins, n_resamples=_SIMULATIONS)
            series[of] = {kind: _columns(kind, table) for kind, table in tables.items()}
        panels.append({"name": name, "top": k is None, "series": series})
    return {"panels": panels, "classes_left_out": K - len(chosen) if K > 2 else 0}


def view_of(sample: Sample, k: int | None) -> Sample:
    """Sample of one event: class k, or that the most probable class comes true if k is None."""
    if k is None:
        return split_by_kind(sample, "top")[0]
    column = np.ascontiguousarray(sample.forecasts[:, k])
    return Sample(column, (sample.codes == k).view(np.uint8), sample.weights)


def _columns(kind: str, table: Table) -> dict[str, list[Any]]:
    if kind == "curve":
        kept = thin(table["forecast"], table["rate"], _VERTICES)
        table = Table({name: column[kept] for name, column in table.items()})
    return {name: short(column) for name, column in table.items()}


def roc_part(evidence: Evidence) -> dict[str, Any]:
    """ROC curves of two classes, or of the heaviest classes against the rest, and the surface."""
    K, names = evidence.n_classes, evidence.names
    samples = {"before": evidence.before} | evidence.series
    curves = []
    for k in [1] if K == 2 else evidence.heaviest(MOST_CLASSES):
        is_class = evidence.before.codes == k
        if is_class.all() or not is_class.any():  # no curve without both
            continue
        series = {}
        for of, sample in samples.items():
            P = sample.forecasts
            scores = P if P.ndim == 1 else np.ascontiguousarray(P[:, k])
            p0, p1, _ = symmetric_roc_curve(is_class, scores, sample_weight=sample.weights)
            kept = thin(p0, p1, _VERTICES)
            series[of] = {
                "false_positive_rate": short(1 - p0[kept]),
                "true_positive_rate": short(p1[kept]),
                "auc": auc(is_class, scores, sample_weight=sample.weights),
            }
        curves.append({"name": names[k], "series": series})
    part: dict[str, Any] = {"curves": curves, "surface": None}
    if K == 3 and evidence.before.class_weights().all():
        part["surface"] = _surface(evidence.draw(_SURFACE_ROWS))
    return part


def _surface(evidence: Evidence) -> dict[str, Any] | None:
    """Points of the ROC surface of three classes, and the edges of the hull before calibration."""
    if not evidence.before.class_weights().all():
        return None
    points: dict[str, Floats] = {}
    for of, sample in evidence.series.items():
        found = roc_surface(
            sample.codes, sample.forecasts, sample_weight=sample.weights, labels=range(3)
        ).points
        points[of] = _spread(found)
    first = next(iter(points.values()))
    return {
        "names": evidence.names,
        "rows": len(evidence.before),
        "points": {of: short(found, 3) for of, found in points.items()},
        "edges": short(_edges(first), 3),
    }


def _spread(points: Floats) -> Floats:
    """At most so many points, one in each small box, the boxes as small as possible."""
    for steps in (40, 30, 24, 18, 12):
        _, first = np.unique(np.rint(points * steps), axis=0, return_index=True)
        if len(first) <= _SURFACE_POINTS:
            break
    return np.asarray(points[np.sort(first)][:_SURFACE_POINTS])


def _edges(points: Floats) -> Floats:
    """Ends of the edges of the hull of the points, the origin and the unit vectors."""
    corners = np.vstack([points, np.zeros(3), np.eye(3)])
    try:
        hull = ConvexHull(corners)
    except QhullError:
        return np.empty((0, 6))
    sides = hull.simplices[(hull.equations[:, :3] > 1e-9).any(axis=1)]
    pairs = np.sort(np.vstack([sides[:, [0, 1]], sides[:, [1, 2]], sides[:, [0, 2]]]), axis=1)
    a, b = np.unique(pairs, axis=0).T
    return np.hstack([corners[a], corners[b]])
