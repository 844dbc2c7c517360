"""Figures of ``isoroc fit``: what its conditions compare and its JSON says."""

from __future__ import annotations

from typing import Any

import numpy as np

from isoroc._cli.errors import CommandError
from isoroc._cli.models import Model, calibrate
from isoroc._input import Sample, first_improbable
from isoroc._intervals import half_width
from isoroc._losses import log_losses

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
        "before": {"log_loss": mean_log_loss(sample)},
        "after": {"log_loss": mean_log_loss(sample, model)},
    }
    if old is not None:
        found["old"] = {"log_loss": mean_log_loss(sample, _load(old, sample))}
    common = model.common_ if getattr(model, "grouped_", False) else model
    scores = getattr(common, "member_scores_", None)
    if scores is not None:
        found["unseen"] = {"log_loss": _interval(scores, "log_loss")}
        found["gain"] = _interval(scores, "gain")
    return found


def mean_log_loss(sample: Sample, model: Any = None) -> float | None:
    """Mean log loss, before or after calibration; None if the scores are not probabilities."""
    total = weight = 0.0
    for start in range(0, len(sample), _BATCH):
        part = sample.take(np.arange(start, min(start + _BATCH, len(sample))))
        raw = part.on_simplex().forecasts
        P = raw if model is None else calibrate(model, part.forecasts, part.groups)
        if P.ndim == 1:
            if first_improbable(P) is not None:
                return None
            P = np.column_stack([1 - P, P])
        weights = part.row_weights()
        total += float(weights @ log_losses(P, part.codes))
        weight += float(weights.sum())
    return total / weight


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
