"""What the pictures and tables of a report show: reliability, ROC curves, maps, paths and bins."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from isoroc import metrics
from isoroc._calibrators.binned import BinCalibrator
from isoroc._estimation.grouping import group_quantile
from isoroc._input import Sample, split_by_kind
from isoroc._simplex import Floats, Ints, binary_scores
from isoroc._table import Table
from isoroc._views.geometry import bin_polygons, cells_of, triangles
from isoroc._views.rates import default_n_bins, reliability
from isoroc._views.stages import kept_stages, staged
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
    """A limited number of points, one in each small box, the boxes as small as possible."""
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


#: Largest number of points of a curve, of bins, of cells along an edge, of pairs and their points.
_POINTS, MOST_BINS, _CELLS, _PAIRS, _PAIR_POINTS = 200, 400, 14, 6, 15


def map_part(evidence: Evidence) -> dict[str, Any] | None:
    """From forecasts to calibrated ones; None without calibrated forecasts."""
    if evidence.after is None:
        return None
    if evidence.n_classes == 2:
        return {"kind": "curve", **_curve(evidence)}
    if evidence.n_classes == 3:
        bins = evidence.binned
        if bins is not None and not evidence.reduced and bins.n_bins_ <= MOST_BINS:
            polygons = [short(polygon, 4) for polygon in bin_polygons(bins.tree_)]
            return {"kind": "bins", "names": evidence.names, "polygons": polygons}
        return {"kind": "cells", "names": evidence.names, **_cells(evidence)}
    return {"kind": "pairs", "pairs": _pairs(evidence)}


def _curve(evidence: Evidence) -> dict[str, Any]:
    """Calibrated probability of the second class against the forecast or score.

    That of a calibrator with bins is a step function; others are drawn through some of the rows.
    """
    before = evidence.before.forecasts
    score = before if before.ndim == 1 else binary_scores(before)
    bins = evidence.binned
    if bins is not None and bins.n_bins_ <= MOST_BINS:
        ends = (score.min(), score.max()) if before.ndim == 1 else (0.0, 1.0)
        edges = np.concatenate([ends[:1], bins.tree_.cuts, ends[1:]]).clip(*ends)
        steps = np.column_stack([edges[:-1], edges[1:]]).ravel()
        return {"forecast": short(steps), "value": short(np.repeat(bins.bin_values_[:, 1], 2))}
    value = evidence.after.forecasts[:, 1] if evidence.after is not None else score
    order = np.argsort(score, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, _POINTS).astype(np.intp))]
    return {"forecast": short(score[chosen]), "value": short(value[chosen])}


def _cells(evidence: Evidence) -> dict[str, Any]:
    """Cells of the simplex with their weight, mean forecast and mean calibrated forecast."""
    before, after = evidence.before, evidence.after
    cells, cell = cells_of(before.forecasts, _CELLS)
    weights = before.row_weights()
    weight = np.bincount(cell, weights)
    means = [
        np.column_stack([np.bincount(cell, weights * column) for column in P.T]) / weight[:, None]
        for P in (before.forecasts, before.forecasts if after is None else after.forecasts)
    ]
    return {
        "polygons": [short(corners, 4) for corners in triangles(cells, _CELLS)],
        "weight": short(weight),
        "forecast": short(means[0], 4),
        "value": short(means[1], 4),
    }


def _pairs(evidence: Evidence) -> list[dict[str, Any]]:
    """Pairs of classes that are most often the two most probable ones, and what became of them.

    For these rows, the share of the second class in the sum of both, before and after.
    """
    before, after = evidence.before, evidence.after
    P, Q = before.forecasts, before.forecasts if after is None else after.forecasts
    K = P.shape[1]
    best = np.sort(np.argpartition(P, K - 2, axis=1)[:, K - 2 :], axis=1)
    code: Ints = best[:, 0] * K + best[:, 1]
    weights = before.row_weights()
    total = np.bincount(code, weights, K * K)
    heaviest = np.argsort(-total, kind="stable")[:_PAIRS]
    found = []
    for pair in heaviest[total[heaviest] > 0].tolist():
        i, j = divmod(pair, K)
        rows = np.flatnonzero(code == pair)
        shares = [_share(A[rows], i, j) for A in (P, Q)]
        group = group_quantile(shares[0], weights[rows], _PAIR_POINTS)
        _, group = np.unique(group, return_inverse=True)
        weight = np.bincount(group, weights[rows])
        forecast, value = (np.bincount(group, weights[rows] * s) / weight for s in shares)
        found.append(
            {
                "names": [evidence.names[i], evidence.names[j]],
                "weight": float(total[pair]),
                "forecast": short(forecast),
                "value": short(value),
            }
        )
    return found


def _share(P: Floats, i: int, j: int) -> Floats:
    both = P[:, i] + P[:, j]
    return np.asarray(np.divide(P[:, j], both, out=np.full(len(P), 0.5), where=both > 0))


#: Largest number of stages, of points of a diagram, and of rows if a stage needs all rows.
MOST_STAGES, _STAGE_POINTS, _ROWS = 40, 60, 5000


def path_part(evidence: Evidence) -> dict[str, Any] | None:
    """Stages of the calibrator with their scores on the rows of the report; None without bins."""
    calibrator = evidence.binned
    if calibrator is None or calibrator.n_bins_ < 2:
        return None
    few = evidence.draw(_ROWS) if evidence.reduced else evidence
    n_bins = calibrator.path_["n_bins"]
    kept = kept_stages(len(n_bins), MOST_STAGES)
    stages = []
    for i, sample in enumerate(staged(calibrator, few.input, few.before)):
        if i in kept:
            stages.append({"n_bins": int(n_bins[i]), **_scores(sample), **_diagram(sample)})
    part: dict[str, Any] = {"stages": stages, "all_stages": len(n_bins), "rows": len(few.before)}
    if not evidence.reduced and calibrator.n_bins_ <= MOST_BINS:
        part |= _nodes(calibrator, evidence, sorted(kept))
    return part


def _scores(sample: Sample) -> dict[str, float]:
    P, codes = sample.forecasts, sample.codes
    labels = np.arange(sample.n_classes)
    options: dict[str, Any] = {"sample_weight": sample.weights, "labels": labels}
    right = P.argmax(axis=1) == codes
    scores = {
        "log_loss": metrics.log_loss(codes, P, **options),
        "brier_score_loss": metrics.brier_score_loss(codes, P, **options),
        "accuracy": float(np.average(right, weights=sample.weights)),
    }
    if sample.n_classes == 2 and sample.class_weights().all():
        scores["auc"] = metrics.auc(codes, P, **options)
    return scores


def _diagram(sample: Sample) -> dict[str, Any]:
    """Observed rate of each distinct forecast of the second of two classes or of the top class."""
    view = view_of(sample, 1 if sample.n_classes == 2 else None).positive()
    forecast, group = np.unique(view.forecasts.round(6), return_inverse=True)
    if len(forecast) > _STAGE_POINTS:
        group = group * _STAGE_POINTS // len(forecast)
    weights = view.row_weights()
    weight = np.bincount(group, weights)
    filled = weight > 0
    sums = (np.bincount(group, weights * column) for column in (view.forecasts, view.codes))
    mean, rate = (total[filled] / weight[filled] for total in sums)
    return {"forecast": short(mean, 4), "rate": short(rate, 4), "weight": short(weight[filled])}


def _nodes(calibrator: BinCalibrator, evidence: Evidence, kept: list[int]) -> dict[str, Any]:
    """Values of all nodes of the tree, and the node of each bin in each stage."""
    tree = calibrator.tree_
    values: Floats = tree.values(calibrator.pseudocount_, calibrator.prior_)
    nodes = [node.tolist() for node in tree.stages()]
    part: dict[str, Any] = {
        "node_values": short(values, 4),
        "node_weights": short(tree.class_weights.sum(axis=1)),
        "node_of_bin": [nodes[i] for i in kept],
    }
    if evidence.n_classes == 2:
        part["cuts"] = short(tree.cuts, 6)
    return part


def bins_part(evidence: Evidence) -> dict[str, Any] | None:
    """Columns of the table of bins, the heaviest if there are many; None without bins."""
    calibrator = evidence.binned
    if calibrator is None:
        return None
    table = calibrator.bins_
    heaviest = np.sort(np.argsort(-table["weight"], kind="stable")[:MOST_BINS])
    columns: dict[str, Any] = {"bin": (heaviest + 1).tolist()}
    columns |= {name: short(column[heaviest]) for name, column in table.items()}
    return {
        "columns": columns,
        "n_bins": calibrator.n_bins_,
        "splits": _splits(calibrator, heaviest),
    }


def _splits(calibrator: BinCalibrator, bins: Ints) -> list[Any]:
    """For each bin the number of the split that made it, from 1, and its threshold."""
    tree = calibrator.tree_
    made = {
        int(child): s
        for s, children in enumerate(tree.children)
        for child in children[children >= 0]
    }
    found: list[Any] = []
    for node in tree.bins[bins].tolist():
        s = made.get(node)
        found.append(
            None if s is None else {"split": s + 1, "threshold": short(tree.thresholds[s], 4)}
        )
    return found
