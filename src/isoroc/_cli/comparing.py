"""Forecasts of a table before and after calibration, all at once or batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from isoroc._cli.io.batches import read_forecasts
from isoroc._cli.io.columns import arrange_for_model
from isoroc._cli.io.reading import (
    find_columns,
    find_scores,
    read_groups,
    read_sample,
    stream_samples,
)
from isoroc._cli.io.source import BATCH, Source
from isoroc._cli.models import Model, calibrate, load_models
from isoroc._cli.options import Selection
from isoroc._input import Names, Sample
from isoroc._simplex import Floats

#: Samples of the same rows by the name of their forecasts: "before", "after" if there is a model,
#: and "other" for what they are compared with.
Compared = dict[str, Sample]


def model_files(model: str | None, compare: str | None) -> dict[str, str | None]:
    """Model files by the name of what they calibrate."""
    return {"after": model, "other": compare if compare and Path(compare).is_file() else None}


def read_compared(
    source: Source, selection: Selection, model: str | None, compare: str | None = None
) -> tuple[Sample, Compared]:
    """Sample, and its rows with the forecasts that are compared."""
    files = model_files(model, compare)
    selection, models = load_models(source, selection, files)
    sample, columns = read_sample(source, selection, **_of_first(models))
    compared = {"before": sample.on_simplex()}
    for name, entry in models.items():
        entry.check(files[name], columns.forecasts, sample.classes, selection)
        groups = None
        if entry.group is not None:
            groups = read_groups(source, selection, entry.group, f"{files[name]}: its groups")
        Q = _calibrate_rows(entry.calibrator, sample.as_given(), groups)
        compared[name] = replace(sample, forecasts=Q, scores="probability")
    if compare is not None and "other" not in models:
        same = replace(selection, probs=[compare], classes=None, by_position=False)
        compared["other"], _ = read_sample(source, same, classes=sample.classes)
    return sample, compared


def stream_compared(
    source: Source, selection: Selection, model: str | None, compare: str | None = None
) -> Iterator[Compared]:
    """Batches of rows with the forecasts that are compared."""
    files = model_files(model, compare)
    selection, models = load_models(source, selection, files)
    others: list[str] = []
    if compare is not None and "other" not in models:
        same = replace(selection, probs=[compare], classes=None, by_position=False)
        others = find_columns(source, same, None).forecasts
    stream = stream_samples(source, selection, others=others, **_of_first(models))
    for name, entry in models.items():
        entry.check(files[name], stream.columns.forecasts, stream.classes, selection)
    kind: Any = "probability"
    if others:
        others = arrange_for_model(others, stream.classes.tolist(), None, None, same)
        kind = find_scores(source, same, others)
    for sample, batch in stream.batches:
        compared = {"before": sample.on_simplex()}
        for name, entry in models.items():
            Q = entry.calibrator.predict_proba(sample.as_given())
            compared[name] = replace(sample, forecasts=Q, scores="probability")
        if others:
            P = read_forecasts(batch, others, source)
            compared["other"] = replace(sample, forecasts=P, scores=kind)
        yield compared


def _of_first(models: dict[str, Model]) -> dict[str, Any]:
    """Columns and classes of the first model."""
    return next((model.of_fit() for model in models.values()), {})


def _calibrate_rows(calibrator: Any, forecasts: Floats, groups: Names | None) -> Floats:
    """Calibrated forecasts, computed batch by batch to save memory."""
    Q = np.empty((len(forecasts), len(calibrator.classes_)))
    for start in range(0, len(Q), BATCH):
        part = slice(start, start + BATCH)
        Q[part] = calibrate(calibrator, forecasts[part], None if groups is None else groups[part])
    return Q
