"""Figures of ``isoroc evaluate``: metrics of several forecasts of the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from isoroc import metrics
from isoroc._cli.terminal import Advance, progress_bar
from isoroc._counts import BinaryCounts
from isoroc._input import (
    Kind,
    Sample,
    check_forecasts,
    first_improbable,
    resolve_scores,
    split_by_kind,
    to_columns,
)
from isoroc._intervals import half_width
from isoroc._losses import brier_losses, log_losses, mean
from isoroc._simplex import Floats
from isoroc.metrics._calibration import error_of_parts
from isoroc.metrics._decomposition import decompose_parts
from isoroc.metrics._parts import Parts
from isoroc.metrics._resampling import resampled_weights

#: Titles of the metrics, in the order in which they are shown.
TITLES = {
    "log_loss": "log loss",
    "calibration_loss": "calibration loss",
    "refinement_loss": "refinement loss",
    "brier_score_loss": "Brier score",
    "calibration_error": "calibration error",
    "classwise_calibration_error": "classwise calibration error",
    "top_calibration_error": "top-label calibration error",
    "accuracy": "accuracy",
    "decisions_changed": "decisions changed from before",
    "auc": "AUC",
    "vus": "volume under the ROC surface",
}


@dataclass(frozen=True)
class Figure:
    """A value and half the width of its interval; NaN if unknown."""

    value: float
    error: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "-"
        return f"{self.value:.4f}" + (f" ± {self.error:.4f}" if self.has_interval else "")

    @property
    def has_interval(self) -> bool:
        """Whether the width of the interval is known."""
        return not math.isnan(self.error)


#: Figures by metric.
Figures = dict[str, Figure]


class Effort(NamedTuple):
    """How much work is done for some metrics.

    If there are more rows than `resampled_rows`, so many of them are resampled and the interval is
    narrowed by the square root of the ratio, as standard errors shrink with the number of rows.
    """

    n_resamples: int
    resampled_rows: int
    judged_rows: float = math.inf


class Whole(NamedTuple):
    """Metrics of all rows of a table, of which a sample holds only some."""

    n_rows: int
    values: dict[str, dict[str, float]]
    """By name of the forecasts and metric."""

    def put(
        self, name: str, values: dict[str, float], draws: Floats, n_kept: int
    ) -> tuple[dict[str, float], Floats]:
        """Metrics of some rows, and of resamples of them, as those of all rows where known."""
        known = self.values[name]
        found = {metric: known.get(metric, value) for metric, value in values.items()}
        if "calibration_loss" in found:  # the two parts add up to the loss of all rows
            found["refinement_loss"] = known["log_loss"] - found["calibration_loss"]
        shrink = math.sqrt(n_kept / self.n_rows)
        return found, draws * [shrink if metric in known else 1.0 for metric in values]


#: Metrics of a sample, by name.
Part = Callable[[Sample], dict[str, float]]


def judge(
    sample: Sample,
    forecasts: Mapping[str, Floats],
    *,
    n_resamples: int,
    confidence: float,
    whole: Whole | None = None,
) -> tuple[dict[str, Figures], dict[str, Figures]]:
    """Figures of several forecasts of the same rows, and of the differences between them.

    Parameters
    ----------
    sample : Sample
        Outcomes and weights.
    forecasts : mapping of str to forecast arrays
        Forecasts of the rows of `sample`, in the order in which they are compared.
    n_resamples : int
        How often rows are resampled for the intervals of metrics that are quick to compute; others
        are resampled less often. 0 for no intervals.
    confidence : float
        Probability that an interval covers the true value.
    whole : Whole, default=None
        Metrics of all rows, if `sample` holds only some of them.

    Returns
    -------
    figures : dict
        By name of the forecasts and metric.
    differences : dict
        By ``"after - before"`` and metric: each forecasts less the one before.
    """
    K = sample.n_classes
    few = max(n_resamples // 8, min(n_resamples, 16))
    names = list(forecasts)
    samples = _samples(sample, forecasts)
    parts: list[tuple[Part, Effort, dict[str, Sample]]] = [
        (_scores, Effort(n_resamples, 10_000), samples),
        (estimate_errors, Effort(2 * few, 2000) if K == 2 else Effort(few, 500), samples),
    ]
    if len(names) > 1:
        decided = samples[names[0]].decisions().astype(sample.codes.dtype)
        against = {name: replace(entry, codes=decided) for name, entry in samples.items()}
        parts.append((_changes, Effort(n_resamples, 10_000), against))
    if K == 3:
        parts.append((_surface, Effort(few, 500, 2000), samples))
    pairs = list(zip(names[1:], names[:-1], strict=True))
    figures: dict[str, Figures] = {name: {} for name in names}
    differences: dict[str, Figures] = {f"{a} - {b}": {} for a, b in pairs}
    z = half_width(confidence)
    total = len(names) * sum(effort.n_resamples for _, effort, _ in parts)
    with progress_bar("resampling", total, unit="resamples") as advance:
        for part, effort, judged in parts:
            found = {name: _estimate(part, judged[name], effort, advance) for name in names}
            if whole is not None:
                found = {name: whole.put(name, *found[name], len(sample)) for name in names}
            for name, (values, draws) in found.items():
                figures[name] |= _figures(values, draws, z)
            for after, before in pairs:
                (a, draws_a), (b, draws_b) = found[after], found[before]
                with np.errstate(invalid="ignore"):
                    change = {metric: a[metric] - b[metric] for metric in a}
                    differences[f"{after} - {before}"] |= _figures(change, draws_a - draws_b, z)
    return _in_order(figures), _in_order(differences)


def _samples(sample: Sample, forecasts: Mapping[str, Floats]) -> dict[str, Sample]:
    """Samples of several forecasts of the same rows; the first are those of the sample.

    They are validated here once and not on each resample.
    """
    samples: dict[str, Sample] = {}
    for name, P in forecasts.items():
        kind = resolve_scores(P, "auto") if samples else sample.scores
        samples[name] = replace(sample, forecasts=check_forecasts(P, name=name), scores=kind)
    return samples


def _in_order(tables: dict[str, Figures]) -> dict[str, Figures]:
    return {
        name: {metric: table[metric] for metric in TITLES if metric in table}
        for name, table in tables.items()
    }


def _figures(values: Mapping[str, float], draws: Floats, z: float) -> Figures:
    errors = np.full(len(values), np.nan)
    if len(draws) > 1:
        with np.errstate(invalid="ignore"):
            errors = z * draws.std(axis=0, ddof=1)
    return {
        metric: Figure(value, float(error) if np.isfinite(error) else np.nan)
        for (metric, value), error in zip(values.items(), errors, strict=True)
    }


def _estimate(
    part: Part, sample: Sample, effort: Effort, advance: Advance
) -> tuple[dict[str, float], Floats]:
    """Metrics, and the same on resamples, one row per resample, scaled to the number of rows.

    All forecasts of the same rows are resampled alike, so that differences are paired.
    """
    judged = _subsample(sample, effort.judged_rows)
    values = part(judged)
    if effort.n_resamples < 2:
        return values, np.empty((0, len(values)))
    resampled = _subsample(judged, effort.resampled_rows)

    draws = []
    for weights in resampled_weights(
        len(resampled), resampled.weights, effort.n_resamples, random_state=0
    ):
        draws.append(list(part(replace(resampled, weights=weights)).values()))
        advance(1)
    return values, np.array(draws) * math.sqrt(len(resampled) / len(judged))


def _subsample(sample: Sample, most: float) -> Sample:
    """The sample, or `most` rows of it chosen at random."""
    if len(sample) <= most:
        return sample
    rows = np.random.default_rng(0).choice(len(sample), int(most), replace=False)
    return sample.take(np.sort(rows))


def _are_scores(sample: Sample) -> bool:
    """Whether the forecasts are scores that are not probabilities and only rank the rows."""
    return sample.forecasts.ndim == 1 and first_improbable(sample.forecasts) is not None


def _scores(sample: Sample) -> dict[str, float]:
    """Metrics that are quick to compute."""
    found = {"log_loss": math.nan, "brier_score_loss": math.nan}
    if not _are_scores(sample):
        drawn = to_columns(sample.positive())  # a row that was not drawn may have an infinite loss
        losses = {"log_loss": log_losses, "brier_score_loss": brier_losses}
        for name, loss in losses.items():
            found[name] = mean(loss(drawn.forecasts, drawn.codes), drawn.weights)
    return found | {"accuracy": 1 - _share_wrong(sample), "auc": _auc(sample)}


def _changes(sample: Sample) -> dict[str, float]:
    """What changed against the decisions that stand in place of the labels."""
    return {"decisions_changed": _share_wrong(sample)}


def _share_wrong(sample: Sample) -> float:
    """Share of rows whose decision is not their label."""
    return float(np.average(sample.decisions() != sample.codes, weights=sample.weights))


def estimate_errors(sample: Sample, bins: Literal["exact"] | None = None) -> dict[str, float]:
    """Metrics that estimate E[Y | p], which takes long for three classes or more.

    With ``bins="exact"`` it is the mean outcome of the rows with the same forecast; by default it
    is so where forecasts have few distinct values.
    """
    kinds: dict[str, Kind] = {
        "calibration_error": "canonical",
        "classwise_calibration_error": "classwise",
        "top_calibration_error": "top",
    }
    if sample.n_classes == 2:
        del kinds["classwise_calibration_error"]  # equals calibration_error
    n_rows = len(sample) if sample.weights is None else np.count_nonzero(sample.weights)
    if _are_scores(sample) or n_rows < 2:  # the estimate for a row is made from other rows
        return dict.fromkeys(["calibration_loss", "refinement_loss", *kinds], math.nan)
    sample = to_columns(sample)
    found: dict[str, float] = {}
    for name, kind in kinds.items():
        parts = Parts.of(sample, kind, bins)
        if kind == "canonical":
            with np.errstate(invalid="ignore"):
                loss = decompose_parts(parts)
            found |= {"calibration_loss": loss.calibration, "refinement_loss": loss.refinement}
        found[name] = error_of_parts(parts)
    return found


def _auc(sample: Sample) -> float:
    """Area under the ROC curve; for more classes the mean over one class against the rest."""
    tasks = [sample] if sample.n_classes == 2 else split_by_kind(sample, "classwise")
    areas = [BinaryCounts.from_sample(task).area() for task in tasks if task.class_weights().all()]
    return float(np.mean(areas)) if areas else math.nan


def _surface(sample: Sample) -> dict[str, float]:
    """Volume under the ROC surface, which takes long."""
    if not sample.class_weights().all():
        return {"vus": math.nan}
    volume = metrics.volume_under_surface(
        sample.codes,
        sample.forecasts,
        sample_weight=sample.weights,
        labels=np.arange(sample.n_classes),
    )
    return {"vus": float(volume)}
