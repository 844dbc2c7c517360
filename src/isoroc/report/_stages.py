"""The path of a report: its stages, with what each of them shows, and the table of bins."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoroc import metrics
from isoroc._calibrators.binned import BinCalibrator
from isoroc._input import Sample
from isoroc._simplex import Floats, Ints
from isoroc._views.stages import kept_stages, staged
from isoroc.report._diagrams import view_of
from isoroc.report._evidence import Evidence
from isoroc.report._maps import MOST_BINS
from isoroc.report._numbers import short

#: Largest number of stages, of points of a diagram, and of rows if a stage needs all rows.
MOST_STAGES, _POINTS, _ROWS = 40, 60, 5000


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
    if len(forecast) > _POINTS:
        group = group * _POINTS // len(forecast)
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
