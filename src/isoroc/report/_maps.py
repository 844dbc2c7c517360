"""The calibration map of a report: a curve, a simplex, or pairs of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoroc._estimation.grouping import group_quantile
from isoroc._simplex import Floats, Ints, binary_scores
from isoroc._views.geometry import bin_polygons, cells_of, triangles
from isoroc.report._evidence import Evidence
from isoroc.report._numbers import short

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
