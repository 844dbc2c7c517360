"""Forecasts of tables of many rows, evaluated batch by batch.

Losses, accuracy and changed decisions are sums over all rows. Areas under ROC curves follow from
counts of the scores of each class. Metrics that need rows, and all intervals, are based on rows
chosen at random.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isoroc._cli.io.batches import read_forecasts
from isoroc._cli.io.classes import arrange_for_model
from isoroc._cli.io.counting import Stream, count_rows, find_scores, stream_samples
from isoroc._cli.io.reading import Selection, find_columns, is_sampled, warn_of_reversal
from isoroc._cli.io.source import Source
from isoroc._cli.judging import Whole, estimate_errors
from isoroc._cli.models import load_models
from isoroc._counts import BinaryCounts, Grid, Tally
from isoroc._counts.grid import MOST_EXACT
from isoroc._counts.samples import sample_of
from isoroc._input import Sample, first_improbable
from isoroc._losses import brier_losses, log_losses
from isoroc._simplex import Floats, Ints
from isoroc._special import expit
from isoroc.metrics._ranking import ranked_columns

#: Number of forecasts of rows that are kept, rows times classes.
KEPT = 2**21


def model_files(model: str | None, compare: str | None) -> dict[str, str | None]:
    """Model files by the name of what they calibrate."""
    return {"after": model, "other": compare if compare and Path(compare).is_file() else None}


def stream_compared(
    source: Source, selection: Selection, model: str | None, compare: str | None = None
) -> tuple[Sample, dict[str, Floats], Whole]:
    """Some rows chosen at random, their forecasts by name, and the metrics of all rows."""
    files = model_files(model, compare)
    selection, models = load_models(source, selection, files)
    first = next(iter(models.values()), None)
    of_model: dict[str, Any] = {}
    if first is not None:
        of_model = {"columns": first.columns, "classes": first.calibrator.classes_}
    same = None
    if compare is not None and "other" not in models:
        same = replace(selection, probs=[compare], classes=None)
    others = [] if same is None else find_columns(source, same, None).forecasts
    stream = stream_samples(source, selection, others=others, **of_model)
    for name, entry in models.items():
        entry.check(files[name], stream.columns.forecasts, stream.classes)
    others = arrange_for_model(others, stream.classes, None, None) if others else []
    kind: Any = "probability" if same is None else find_scores(source, same, others)

    def forecasts_of(sample: Sample, batch: pl.DataFrame) -> dict[str, Sample]:
        found = {"before": sample.on_simplex()}
        for name, entry in models.items():
            Q = entry.calibrator.predict_proba(sample.forecasts)
            found[name] = replace(sample, forecasts=Q, scores="probability")
        if others:
            P = read_forecasts(batch, others, source)
            found["other"] = replace(sample, forecasts=P, scores=kind)
        return found

    return _evaluate(stream, forecasts_of, count_rows(source, selection))


def _evaluate(
    stream: Stream, forecasts_of: Callable[[Sample, pl.DataFrame], dict[str, Sample]], n_all: int
) -> tuple[Sample, dict[str, Floats], Whole]:
    """What `stream_compared` returns, of about `n_all` rows."""
    share = KEPT / (len(stream.classes) * n_all)
    totals: dict[str, _Total] = {}
    kept: list[dict[str, Sample]] = []
    n_rows = 0
    for sample, batch in stream.batches:
        n_rows += len(sample)
        compared = forecasts_of(sample, batch)
        decided = compared["before"].decisions()
        for name, entry in compared.items():
            totals.setdefault(name, _Total(n_all)).add(entry, decided)
        chosen = np.flatnonzero(is_sampled(batch, share))
        kept.append({name: entry.take(chosen) for name, entry in compared.items()})
    together = {name: _concatenate([part[name] for part in kept]) for name in totals}
    warn_of_reversal(together["before"])
    whole = Whole(n_rows, {name: total.values() for name, total in totals.items()})
    return together["before"], {name: part.forecasts for name, part in together.items()}, whole


def _concatenate(parts: Sequence[Sample]) -> Sample:
    weights = [part.weights for part in parts if part.weights is not None]
    return replace(
        parts[0],
        forecasts=np.concatenate([part.forecasts for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
        weights=np.concatenate(weights) if weights else None,
    )


class _Total:
    """Sums over all rows of the same forecasts, and counts of their scores.

    Parameters
    ----------
    n_rows : int
        About how many rows there are.
    """

    def __init__(self, n_rows: int) -> None:
        self._most_distinct = math.isqrt(n_rows)  # as in `isoroc.metrics`
        self._distinct: Tally | None = None  # of distinct forecasts, unless there are too many
        self._is_continuous = False
        self._weight = 0.0
        self._sums = dict.fromkeys(("log_loss", "brier_score_loss", "wrong", "changed"), 0.0)
        self._tallies: list[Tally] = []  # of the scores of each class against the rest

    def add(self, sample: Sample, decided: Ints) -> None:
        """Add rows, and what was decided on them before calibration."""
        weights = sample.row_weights()
        self._weight += float(weights.sum())
        decisions = sample.decisions()
        self._sums["wrong"] += float(weights @ (decisions != sample.codes))
        self._sums["changed"] += float(weights @ (decisions != decided))
        sample = sample.positive()
        if not len(sample):
            return
        losses: dict[str, Any] = {"log_loss": math.nan, "brier_score_loss": math.nan}
        P = sample.forecasts
        if P.ndim == 2 or first_improbable(P) is None:
            P = P if P.ndim == 2 else np.column_stack([1 - P, P])
            losses = {"log_loss": log_losses(P, sample.codes)}
            losses["brier_score_loss"] = brier_losses(P, sample.codes)
            self._count_distinct(replace(sample, forecasts=P))
        for name, loss in losses.items():
            self._sums[name] += float(np.sum(sample.row_weights() * loss))
        self._count_scores(sample)

    def _count_distinct(self, sample: Sample) -> None:
        if self._is_continuous:
            return
        if self._distinct is None:
            self._distinct = Tally(Grid.choose(sample.n_classes, "exact"), sample.n_classes)
        self._distinct.add(*sample.arrays)
        self._is_continuous = len(self._distinct.cells()) > self._most_distinct

    def _count_scores(self, sample: Sample) -> None:
        columns = ranked_columns(sample.forecasts)
        if not self._tallies:
            grid = Grid.choose(1, "auto")
            self._tallies = [Tally(grid, 2, most_exact=MOST_EXACT) for _ in columns]
        for tally, (k, scores) in zip(self._tallies, columns, strict=True):
            is_logit = sample.scores == "logit" and sample.forecasts.ndim == 1
            p = expit(scores) if is_logit else scores.clip(0, 1)
            tally.add(p[:, None], (sample.codes == k).view(np.uint8), sample.weights)

    def values(self) -> dict[str, float]:
        """The metrics of `judge` that are known."""
        mean = {name: total / self._weight for name, total in self._sums.items()}
        found = {
            "log_loss": mean["log_loss"],
            "brier_score_loss": mean["brier_score_loss"],
            "accuracy": 1 - mean["wrong"],
            "decisions_changed": mean["changed"],
            "auc": self._auc(),
        }
        if self._distinct is not None and not self._is_continuous:
            cells, grid = self._distinct.cells(), self._distinct.grid
            rows = sample_of(np.arange(cells.class_weights.shape[1]), grid, cells)
            found |= estimate_errors(rows, "exact")
        return found

    def _auc(self) -> float:
        """Area under the ROC curve; for more classes the mean over one class against the rest."""
        areas = []
        for tally in self._tallies:
            cells = tally.cells()
            if cells.class_weights.any(axis=0).all():
                counts = BinaryCounts.from_sample(sample_of(np.arange(2), tally.grid, cells))
                areas.append(counts.area())
        return float(np.mean(areas)) if areas else math.nan
