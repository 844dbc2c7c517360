"""Measures of every stage of growth: log loss, and the area or volume under the ROC surface."""

from dataclasses import replace

import numpy as np

from isoroc._evaluation.order import effort_for, volume_of
from isoroc._input import Sample
from isoroc._maps.bins import BinMap
from isoroc._support.table import Table
from isoroc.metrics import log_loss, roc_auc


def measures_of(sample: Sample) -> dict[str, float]:
    """Log loss, unless the forecasts are scores, and AUC or VUS. No VUS beyond six classes."""
    found = {}
    if not sample.kind.single or sample.kind.scores != "logit":
        found["log loss"] = float(sample.measure(log_loss))
    present = bool(sample.class_weights().all())
    if sample.n_classes == 2 and present:
        found["AUC"] = float(sample.measure(roc_auc))
    if (effort := effort_for(sample.n_classes)) is not None and present:
        found["VUS"] = volume_of(sample.draw(effort.rows))
    return found


def measured_path(
    fitted: BinMap, sample: Sample, most_stages: int = 40, most_rows: int = 20_000
) -> Table:
    """Measures of the stages of a map on a sample of forecasts of its kind.

    Columns are ``n_bins`` and the measures. At most `most_stages` stages are measured, with the
    first and the last among them, on at most `most_rows` rows.
    """
    n_bins = fitted.path([str(label) for label in sample.classes])["n_bins"]
    chosen = np.arange(len(n_bins))
    if len(chosen) > most_stages:
        chosen = np.unique(np.geomspace(1, len(n_bins), most_stages).round().astype(np.intp)) - 1
    shown = set(chosen.tolist())
    few = sample.draw(most_rows)
    columns: dict[str, list[float]] = {}
    for stage, Q in enumerate(fitted.stages(few.forecasts)):
        if stage in shown:
            measures = measures_of(replace(few, forecasts=Q, unit="probability"))
            for name, value in {"n_bins": n_bins[stage], **measures}.items():
                columns.setdefault(name, []).append(float(value))
    return Table({name: np.array(values) for name, values in columns.items()})
