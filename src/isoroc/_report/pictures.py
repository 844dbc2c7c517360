"""What the pictures and tables of a report show: reliability, ROC curves, maps, paths and bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoroc import metrics
from isoroc._calibrators.binned import BinCalibrator
from isoroc._estimation.grouping import group_equal, group_quantile
from isoroc._input import Sample
from isoroc._report.evidence import Evidence
from isoroc._report.numbers import short
from isoroc._simplex import Floats, Ints, binary_scores
from isoroc._table import Table
from isoroc._views.curves import (
    axis_of,
    best_rates,
    compact,
    event_of,
    one_vs_rest,
    reliability,
    thin,
)
from isoroc._views.simplex import bin_polygons, cells_of, group_means, triangles
from isoroc._views.stages import kept_stages, staged

#: Largest number of classes that have diagrams of their own, the heaviest ones, and the weight from
#: which on a diagram of one of several classes says something.
MOST_CLASSES, _LEAST_WEIGHT = 8, 25
#: Number of simulations for a band. It has a few hundred pixels, so more would not be seen.
_SIMULATIONS = 200
#: Largest number of vertices of a curve and of rows for a surface, and cells along its sides.
_VERTICES, _SURFACE_ROWS, _STEPS = 250, 1000, 24
TOP = "the most probable class"


def _shown(evidence: Evidence) -> list[int]:
    """The classes that have diagrams: the second of two, or the heaviest."""
    if evidence.n_classes == 2:
        return [1]
    return evidence.heaviest(MOST_CLASSES, _LEAST_WEIGHT if evidence.n_classes > 4 else 0)


def reliability_part(evidence: Evidence) -> dict[str, Any]:
    """Diagrams of the top class and of the heaviest classes, or of the second of two."""
    chosen, several = _shown(evidence), evidence.n_classes > 2
    panels = []
    for k in [None, *chosen] if several else chosen:
        events = {of: event_of(sample, k) for of, sample in evidence.series.items()}
        axis = axis_of(events.values()) if events else None
        series = {
            of: {
                kind: _columns(kind, table)
                for kind, table in reliability(event, axis, n_resamples=_SIMULATIONS).items()
            }
            for of, event in events.items()
            if axis is not None
        }
        name = TOP if k is None else evidence.names[k]
        panels.append({"name": name, "top": k is None, "axis": axis, "series": series})
    return {
        "panels": panels,
        "classes_left_out": evidence.n_classes - len(chosen) if several else 0,
    }


def _columns(kind: str, table: Table) -> dict[str, list[Any]]:
    if kind == "curve":
        kept = thin(table["forecast"], table["rate"], _VERTICES)
        table = Table({name: column[kept] for name, column in table.items()})
    return {name: short(column) for name, column in table.items()}


def roc_part(evidence: Evidence) -> dict[str, Any]:
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
            surface = {"names": few.names, "rows": len(few.before), "rates": _surface(few)}
    return {"curves": curves, "surface": surface}


def _surface(evidence: Evidence) -> dict[str, list[Any]]:
    """Heat maps of the ROC surface of three classes."""
    found = {}
    for of, sample in evidence.series.items():
        options: dict[str, Any] = {"sample_weight": sample.weights, "labels": range(3)}
        points = metrics.roc_surface(sample.codes, sample.forecasts, **options).points
        found[of] = short(best_rates(points, _STEPS)[:-1, :-1], 3)
    return found


#: Largest number of points of a curve, of bins, of cells along an edge, of pairs and their points,
#: and the fewest rows of a pair and different shares of its classes.
_POINTS, MOST_BINS, _CELLS, _PAIRS, _PAIR_POINTS, _PAIR_ROWS = 200, 400, 14, 6, 15, 100


def map_part(evidence: Evidence) -> dict[str, Any] | None:
    """From forecasts to calibrated ones; None without calibrated forecasts."""
    if evidence.after is None:
        return None
    P, Q = evidence.before.forecasts, evidence.after.forecasts
    if evidence.n_classes == 2:
        return {"kind": "curve", **_curve(evidence, Q)}
    if evidence.n_classes > 3:
        return {"kind": "pairs", "pairs": _pairs(evidence, P, Q)}
    bins, names = evidence.binned, evidence.names
    if bins is not None and not evidence.reduced and bins.n_bins_ <= MOST_BINS:
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


def _curve(evidence: Evidence, Q: Floats) -> dict[str, Any]:
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
    order = np.argsort(score, kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, _POINTS).astype(np.intp))]
    return {"forecast": short(score[chosen]), "value": short(Q[chosen, 1])}


def _pairs(evidence: Evidence, P: Floats, Q: Floats) -> list[dict[str, Any]]:
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
            group = compact(group_quantile(before, weights[rows], _PAIR_POINTS))
            _, forecast, value = group_means(group, weights[rows], before, after)
            names = [evidence.names[i], evidence.names[j]]
            columns = {"forecast": short(forecast), "value": short(value)}
            found.append({"names": names, "weight": float(total[pair]), **columns})
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
    stages = [
        {"n_bins": n, **_scores(sample), **_diagram(sample)}
        for n, sample in staged(calibrator, few.input, few.before, MOST_STAGES)
    ]
    n_stages = len(calibrator.path_["n_bins"])
    part: dict[str, Any] = {"stages": stages, "all_stages": n_stages, "rows": len(few.before)}
    if not evidence.reduced and calibrator.n_bins_ <= MOST_BINS:
        part |= _nodes(calibrator, sorted(kept_stages(n_stages, MOST_STAGES)))
    return part


def _scores(sample: Sample) -> dict[str, float]:
    P, codes = sample.forecasts, sample.codes
    options: dict[str, Any] = {"sample_weight": sample.weights, "labels": range(sample.n_classes)}
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
    event = event_of(sample, 1 if sample.n_classes == 2 else None).positive()
    group = group_equal(event.forecasts.round(6))
    if (n := group.max() + 1) > _STAGE_POINTS:
        group = group * _STAGE_POINTS // n
    weight, mean, rate = group_means(group, event.weights, event.forecasts, event.codes)
    return {"forecast": short(mean, 4), "rate": short(rate, 4), "weight": short(weight)}


def _nodes(calibrator: BinCalibrator, kept: list[int]) -> dict[str, Any]:
    """Values of all nodes of the tree, and the node of each bin in each stage."""
    tree = calibrator.tree_
    values: Floats = tree.values(calibrator.pseudocount_, calibrator.prior_)
    nodes = [node.tolist() for node in tree.stages()]
    part: dict[str, Any] = {
        "node_values": short(values, 4),
        "node_of_bin": [nodes[i] for i in kept],
    }
    if values.shape[1] == 2:
        part["cuts"] = short(tree.cuts, 6)
    return part


def bins_part(evidence: Evidence) -> dict[str, Any] | None:
    """Columns of the table of bins, the heaviest if there are many; None without bins.

    `splits` has for each bin the number of the split that made it, from 1, and its threshold.
    """
    calibrator = evidence.binned
    if calibrator is None:
        return None
    table, tree = calibrator.bins_, calibrator.tree_
    heaviest = np.sort(np.argsort(-table["weight"], kind="stable")[:MOST_BINS])
    columns: dict[str, Any] = {"bin": (heaviest + 1).tolist()}
    columns |= {name: short(column[heaviest]) for name, column in table.items()}
    made = {
        int(child): {"split": s + 1, "threshold": short(tree.thresholds[s], 4)}
        for s, children in enumerate(tree.children)
        for child in children[children >= 0]
    }
    splits = [made.get(node) for node in tree.bins[heaviest].tolist()]
    return {"columns": columns, "n_bins": calibrator.n_bins_, "splits": splits}
