"""Evidence: the rows of a report with both forecasts, and the calibrator that made the second."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.utils import _safe_indexing

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.binned import BinCalibrator
from isoroc._counts import Counts
from isoroc._evaluation.pair import Pair, make_pair, pair_of_counts
from isoroc._input import InputError, Scores, check_after, check_sample
from isoroc._views.stages import is_calibration_set


@dataclass(frozen=True)
class Evidence(Pair):
    """What a report is about; `input` holds the rows as the calibrator takes them.

    Rows of weight 0 are left out.
    """

    calibrator: Any = None
    input: Any = None

    @cached_property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(label) for label in self.before.classes.tolist()]

    @cached_property
    def binned(self) -> BinCalibrator | None:
        """The calibrator if it has bins of forecasts."""
        return self.calibrator if isinstance(self.calibrator, BinCalibrator) else None

    @cached_property
    def reduced(self) -> bool:
        """Whether the bins are those of the largest probabilities and the rest."""
        return getattr(self.binned, "top_", None) is not None

    @cached_property
    def fitted_on_these_rows(self) -> bool:
        """Whether the calibrator is known to have been fitted to the rows of the report."""
        return self.binned is not None and is_calibration_set(self.binned, self.input, self.before)

    def heaviest(self, most: int, least: float = 0) -> list[int]:
        """All columns, or `most` of the classes of some weight, the heaviest first."""
        weights = self.before.class_weights()
        order = np.arange(self.n_classes)
        if self.n_classes > most:
            order = np.argsort(-weights, kind="stable")[:most]
        chosen: list[int] = order[weights[order] >= least].tolist()
        return chosen

    def take(self, rows: Any) -> Self:
        """The same with some of the rows."""
        return replace(super().take(rows), input=_safe_indexing(self.input, rows))


def gather(
    y: Any, P: Any, sample_weight: Any, *, calibrator: Any, after: Any, labels: Any, scores: Scores
) -> Evidence:
    """Check the arguments of a report and put them together."""
    _check_calibrator(calibrator)
    if calibrator is not None:
        if after is None:
            after = calibrator.predict_proba(P)
        labels = calibrator.classes_ if labels is None else labels
        scores = calibrator.scores_
    before = check_sample(P, y, sample_weight, labels, scores=scores, name="P")
    changed = None if after is None else check_after(after, before, probabilities=True)
    pair = make_pair(before, changed)
    if before.weights is not None and len(pair.before) < len(before):
        P = _safe_indexing(P, np.flatnonzero(before.weights))
    return Evidence(pair.before, pair.after, None, calibrator, P)


def gather_counts(counts: Any, calibrator: Any) -> Evidence:
    """Evidence of counts, with the forecasts of a calibrator for each cell."""
    if not isinstance(counts, Counts):
        problem = f"is {type(counts).__name__}"
        raise InputError("counts", None, problem, "expected isoroc.Counts")
    _check_calibrator(calibrator)
    pair = pair_of_counts(counts, calibrator)
    P = pair.before.forecasts
    if calibrator is not None and calibrator.n_features_in_ == 1:
        P = P[:, 1]
    return Evidence(pair.before, pair.after, pair.counted, calibrator, P)


def _check_calibrator(calibrator: Any) -> None:
    if calibrator is not None and not isinstance(calibrator, Calibrator):
        problem = f"{type(calibrator).__name__} is not a calibrator of isoroc"
        fix = "pass the forecasts before and after calibration as P and after"
        raise InputError("calibrator", None, problem, fix)
