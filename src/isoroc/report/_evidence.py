"""Evidence: forecasts before and after calibration, outcomes and the calibrator of a report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.binned import BinCalibrator
from isoroc._input import (
    InputError,
    Sample,
    Scores,
    check_forecasts,
    check_length,
    check_sample,
    first_improbable,
)
from isoroc._simplex import Floats, count_classes, two_columns
from isoroc._views.stages import is_calibration_set


@dataclass(frozen=True)
class Evidence:
    """What a report is about; rows of weight 0 are left out.

    Attributes
    ----------
    before : Sample
        Forecasts with one column per class, or scores of two classes that are no probabilities.
    after : Sample or None
        Calibrated forecasts of the same rows, with one column per class.
    calibrator : Calibrator or None
    input : array-like
        The rows as the calibrator takes them.
    """

    before: Sample
    after: Sample | None
    calibrator: Any
    input: Any

    @property
    def n_classes(self) -> int:
        """K."""
        return self.before.n_classes

    @cached_property
    def names(self) -> list[str]:
        """The classes as text."""
        return [str(label) for label in self.before.classes.tolist()]

    @cached_property
    def series(self) -> dict[str, Sample]:
        """Samples of probabilities by name: before, if they are probabilities, and after."""
        found = {"before": self.before} if self.before.forecasts.ndim == 2 else {}
        return found if self.after is None else found | {"after": self.after}

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

    def heaviest(self, most: int) -> list[int]:
        """Columns of the classes with the largest weights, at most so many, in column order."""
        order = np.argsort(-self.before.class_weights(), kind="stable")[:most]
        return sorted(order.tolist())

    def draw(self, most: int) -> Evidence:
        """The same with at most so many rows, drawn at random."""
        n = len(self.before)
        return self if n <= most else self.take(_rows(n, most))

    def take(self, rows: Any) -> Evidence:
        """The same with some of the rows."""
        after = None if self.after is None else self.after.take(rows)
        return replace(
            self,
            before=self.before.take(rows),
            after=after,
            input=_safe_indexing(self.input, rows),
        )


def _rows(n: int, most: int) -> Any:
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def gather(y: Any, P: Any, *, calibrator: Any, Q: Any, labels: Any, sample_weight: Any) -> Evidence:
    """Check the arguments of a report and put them together.

    Examples
    --------
    >>> from isoroc import IRPCalibrator
    >>> p, y = [0.1, 0.4, 0.7], ["no", "yes", "yes"]
    >>> found = gather(y, p, calibrator=IRPCalibrator().fit(p, y), Q=None, labels=None,
    ...                sample_weight=None)
    >>> list(found.series), found.names, found.fitted_on_these_rows
    (['before', 'after'], ['no', 'yes'], True)
    """
    scores: Scores = "auto"
    if calibrator is not None:
        if not isinstance(calibrator, Calibrator):
            problem = f"{type(calibrator).__name__} is not a calibrator of isoroc"
            fix = "pass the forecasts before and after calibration as P and Q"
            raise InputError("calibrator", None, problem, fix)
        if Q is None:
            Q = calibrator.predict_proba(P)
        labels = calibrator.classes_ if labels is None else labels
        if calibrator.n_features_in_ > 1:
            scores = calibrator.scores_
    before = check_sample(P, y, sample_weight, labels, scores=scores, name="P").on_simplex()
    if before.forecasts.ndim == 1 and first_improbable(before.forecasts) is None:
        before = replace(before, forecasts=two_columns(before.forecasts))
    after = None if Q is None else _after(Q, before)
    whole = Evidence(before, after, calibrator, P)
    if before.weights is None or before.weights.all():
        return whole
    return whole.take(np.flatnonzero(before.weights))


def _after(Q: Any, before: Sample) -> Sample:
    forecasts: Floats = check_forecasts(Q, name="Q", unit=True)
    check_length(forecasts, len(before), name="Q", of="P")
    if count_classes(forecasts) != before.n_classes:
        problem = f"{count_classes(forecasts)} classes, but P has {before.n_classes}"
        raise InputError("Q", None, problem, "they must agree")
    return replace(before, forecasts=two_columns(forecasts), scores="probability")
