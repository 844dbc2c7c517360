"""The figures of ``isoroc evaluate``: metrics of several forecasts of the same rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri

from isoroc import metrics
from isoroc._cli.io.reading import Outcomes
from isoroc._cli.terminal import Advance, progress_bar
from isoroc._simplex import Floats, count_classes

#: What is shown for each metric.
TITLES = {
    "log_loss": "log loss",
    "calibration_loss": "  of it calibration",
    "refinement_loss": "  of it refinement",
    "brier_score": "Brier score",
    "calibration_error": "calibration error",
    "classwise_calibration_error": "  classwise",
    "top_calibration_error": "  of the top label",
    "auc": "AUC",
    "vus": "volume under the ROC surface",
}


@dataclass(frozen=True)
class Figure:
    """A value and half the width of its interval; NaN where there is none."""

    value: float
    error: float

    def __str__(self) -> str:
        if math.isnan(self.value):
            return "-"
        return f"{self.value:.4f}" + ("" if math.isnan(self.error) else f" ± {self.error:.4f}")


class Effort(NamedTuple):
    """What is spent on some metrics.

    Where there are more rows than are resampled, the interval is that of so many, narrowed by the
    root of the ratio: that is how standard errors shrink.
    """

    n_resamples: int
    resampled_rows: int
    judged_rows: float = math.inf


#: Metrics by name of ``(codes, forecasts, weights)``.
Part = Callable[[Any, Floats, Floats | None], dict[str, float]]


def judge(
    data: Outcomes,
    forecasts: Mapping[str, Floats],
    *,
    n_resamples: int,
    confidence: float,
) -> tuple[dict[str, dict[str, Figure]], dict[str, dict[str, Figure]]]:
    """Figures of each of some forecasts, and of each less the one before.

    Parameters
    ----------
    data : Outcomes
    forecasts : mapping
        Names and forecasts of the rows of `data`, in the order in which they are compared.
    n_resamples : int
        How often rows are resampled for the intervals of what is quick to compute, a fraction of it
        for the rest; 0 for none.
    confidence : float
        Probability that an interval covers the truth.

    Returns
    -------
    figures : dict
        Name of the forecasts, metric, figure.
    differences : dict
        ``"after - before"``, metric, figure.
    """
    K = len(data.classes)
    few = max(n_resamples // 8, min(n_resamples, 16))
    parts: list[tuple[Part, Effort]] = [
        (_scores, Effort(n_resamples, 10_000)),
        (_errors, Effort(2 * few, 2000) if K == 2 else Effort(few, 500)),
    ]
    if K == 3:
        parts.append((_surface, Effort(few, 500, 2000)))
    names = list(forecasts)
    pairs = list(zip(names[1:], names[:-1], strict=True))
    figures: dict[str, dict[str, Figure]] = {name: {} for name in names}
    differences: dict[str, dict[str, Figure]] = {f"{a} - {b}": {} for a, b in pairs}
    z = float(ndtri(0.5 + confidence / 2))
    total = len(names) * sum(effort.n_resamples for _, effort in parts)
    with progress_bar("resampling", total, unit="resamples") as advance:
        for part, effort in parts:
            found = {P: _estimate(part, data, forecasts[P], effort, advance) for P in names}
            for name, (values, draws) in found.items():
                figures[name] |= _figures(values, draws, z)
            for after, before in pairs:
                (a, draws_a), (b, draws_b) = found[after], found[before]
                with np.errstate(invalid="ignore"):
                    change = {metric: a[metric] - b[metric] for metric in a}
                    differences[f"{after} - {before}"] |= _figures(change, draws_a - draws_b, z)
    return _in_order(figures), _in_order(differences)


def _in_order(tables: dict[str, dict[str, Figure]]) -> dict[str, dict[str, Figure]]:
    return {
        name: {metric: table[metric] for metric in TITLES if metric in table}
        for name, table in tables.items()
    }


def _figures(values: Mapping[str, float], draws: Floats, z: float) -> dict[str, Figure]:
    errors = np.full(len(values), np.nan)
    if len(draws) > 1:
        with np.errstate(invalid="ignore"):
            errors = z * draws.std(axis=0, ddof=1)
    return {
        metric: Figure(value, float(error) if np.isfinite(error) else np.nan)
        for (metric, value), error in zip(values.items(), errors, strict=True)
    }


def _estimate(
    part: Part, data: Outcomes, P: Floats, effort: Effort, advance: Advance
) -> tuple[dict[str, float], Floats]:
    """Metrics, and the same on resamples, one row a resample, scaled to the number of rows.

    The same rows are drawn for all forecasts of the same data, so differences are paired.
    """
    codes, P, weights = _some(data.codes, P, data.weights, effort.judged_rows)
    n_rows = len(codes)
    values = part(codes, P, weights)
    if effort.n_resamples < 2:
        return values, np.empty((0, len(values)))
    codes, P, weights = _some(codes, P, weights, effort.resampled_rows)

    def figures(codes: Any, P: Floats, sample_weight: Floats | None = None) -> list[float]:
        advance(1)
        return list(part(codes, P, sample_weight).values())

    draws = metrics.bootstrap(
        figures,
        codes,
        P,
        sample_weight=weights,
        n_resamples=effort.n_resamples,
        random_state=0,
    ).distribution
    return values, draws * math.sqrt(len(codes) / n_rows)


def _some(
    codes: Any, P: Floats, weights: Floats | None, most: float
) -> tuple[Any, Floats, Floats | None]:
    """The rows, or so many of them drawn at random."""
    if len(codes) <= most:
        return codes, P, weights
    rows = np.sort(np.random.default_rng(0).choice(len(codes), int(most), replace=False))
    return codes[rows], P[rows], None if weights is None else weights[rows]


def _is_score(P: Floats) -> bool:
    """Whether forecasts are no probabilities and can only rank."""
    return P.ndim == 1 and bool(P.min() < 0 or P.max() > 1)


def _scores(codes: Any, P: Floats, weights: Floats | None) -> dict[str, float]:
    """What is quick to compute."""
    losses: dict[str, Callable[..., float]] = {
        "log_loss": metrics.cross_entropy,
        "brier_score": metrics.brier_score,
    }
    found = {
        name: math.nan if _is_score(P) else loss(codes, P, sample_weight=weights)
        for name, loss in losses.items()
    }
    return found | {"auc": _auc(codes, P, weights)}


def _errors(codes: Any, P: Floats, weights: Floats | None) -> dict[str, float]:
    """What rests on an estimate of E[Y | p], which takes long for three classes or more."""
    kinds: dict[str, Literal["canonical", "classwise", "top"]] = {
        "calibration_error": "canonical",
        "classwise_calibration_error": "classwise",
        "top_calibration_error": "top",
    }
    if count_classes(P) == 2:
        del kinds["classwise_calibration_error"]  # the same
    n_rows = len(codes) if weights is None else np.count_nonzero(weights)
    if _is_score(P) or n_rows < 2:  # the estimate is made from other rows
        return dict.fromkeys(["calibration_loss", "refinement_loss", *kinds], math.nan)
    with np.errstate(invalid="ignore"):
        parts = metrics.decompose(codes, P, sample_weight=weights)
    return {"calibration_loss": parts.calibration, "refinement_loss": parts.refinement} | {
        name: metrics.calibration_error(codes, P, kind=kind, sample_weight=weights)
        for name, kind in kinds.items()
    }


def _auc(codes: Any, P: Floats, weights: Floats | None) -> float:
    """Area under the ROC curve; with more classes its mean over each of them against the rest."""
    if count_classes(P) == 2:
        tasks = [(codes, P)]
    else:
        tasks = [((codes == k).view(np.uint8), P[:, k]) for k in range(P.shape[1])]
    areas = [
        metrics.auc(right, score, sample_weight=weights)
        for right, score in tasks
        if np.bincount(right, weights, 2).all()
    ]
    return float(np.mean(areas)) if areas else math.nan


def _surface(codes: Any, P: Floats, weights: Floats | None) -> dict[str, float]:
    """Volume under the ROC surface, which takes long."""
    if not np.bincount(codes, weights, P.shape[1]).all():
        return {"vus": math.nan}
    return {"vus": float(metrics.volume_under_surface(codes, P, sample_weight=weights))}
