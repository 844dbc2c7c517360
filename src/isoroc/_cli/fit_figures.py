"""Figures of ``isoroc fit``: what its conditions compare and its JSON says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isoroc._cli.errors import CommandError
from isoroc._cli.models import Model, calibrate
from isoroc._evaluation.pair import make_pair
from isoroc._evaluation.totals import Totals
from isoroc._input import Sample
from isoroc._intervals import half_width

#: Number of rows for which losses are computed at once.
_BATCH = 1 << 17
#: With fewer rows, a calibrator can only repeat what it was given.
FEW = 10


def figures_of_fit(model: Any, sample: Sample, old: str | None, *, counted: bool) -> dict[str, Any]:
    """Rows, log losses before and after, and what cross-validation says about unseen rows.

    Parameters
    ----------
    model : calibrator
        Fitted.
    sample : Sample
        The rows that it was fitted to, or cells of them.
    old : str or None
        Another model file, which is applied to the same rows.
    counted : bool
        Whether `sample` holds cells, whose weights are numbers of rows.
    """
    K = sample.n_classes
    per_class = sample.class_weights() if counted else np.bincount(sample.codes, minlength=K)
    found: dict[str, Any] = {
        "rows": int(model.summary_["rows"]),
        "class_rows": float(per_class.min()),
    }
    losses = total_losses(sample, model)
    for of in ("before", "after"):
        loss = losses.means.get(("log_loss", of))
        found[of] = {"log_loss": None if loss is None else loss.value}
    found["impossible"] = losses.impossible
    if old is not None:
        losses = total_losses(sample, _load(old, sample))
        found["old"] = {"log_loss": losses.means["log_loss", "after"].value}
    common = model.common_ if getattr(model, "grouped_", False) else model
    scores = getattr(common, "member_scores_", None)
    if scores is not None:
        found["unseen"] = {"log_loss": _interval(scores, "log_loss")}
        found["gain"] = _interval(scores, "gain")
    return found


def total_losses(sample: Sample, model: Any) -> Totals:
    """Losses of rows or cells before and after calibration, added up in batches."""
    totals = Totals()
    for start in range(0, len(sample), _BATCH):
        part = sample.take(np.arange(start, min(start + _BATCH, len(sample))))
        Q = calibrate(model, part.forecasts, part.groups)
        totals.add(make_pair(part, replace(part, forecasts=Q, scores="probability")))
    return totals


def _load(path: str, sample: Sample) -> Any:
    old = Model.load(path)
    own, found = old.calibrator.classes_.tolist(), sample.classes.tolist()
    n_columns = 1 if sample.forecasts.ndim == 1 else sample.forecasts.shape[1]
    if own != found or old.calibrator.n_features_in_ != n_columns:
        raise CommandError(f"--compare {path}: it was fitted to other classes or columns.")
    if (old.group is None) != (sample.groups is None):
        raise CommandError(f"--compare {path}: one of the two models has groups, the other not.")
    return old.calibrator


def _interval(scores: Any, name: str) -> dict[str, float]:
    """Out-of-fold figure of the mixture, the last row, with its 95 % interval."""
    value, error = (float(scores[column][-1]) for column in (name, f"{name}_se"))
    half = half_width(0.95) * error
    return {"value": value, "low": value - half, "high": value + half}
