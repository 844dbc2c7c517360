"""Evidence: forecasts before and after calibration, outcomes and the calibrator of a report.

It comes from rows or from counts. Cells of counts are weighted rows: sums over them are sums over
the rows that were counted. Whatever needs single rows, such as a resample, draws them from the
cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from isoroc._calibrators.base import Calibrator
from isoroc._calibrators.binned import BinCalibrator
from isoroc._counts import Counts
from isoroc._input import (
    InputError,
    Sample,
    Scores,
    check_after,
    check_sample,
    first_improbable,
)
from isoroc._simplex import Floats, two_columns
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
    counted : int or None
        If the samples hold cells of counts, the number of rows that were counted.
    """

    before: Sample
    after: Sample | None
    calibrator: Any
    input: Any
    counted: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows, of which cells may hold several."""
        return len(self.before) if self.counted is None else self.counted

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
        """All columns, or so many of the classes with the largest weights, the heaviest first."""
        if self.n_classes <= most:
            return list(range(self.n_classes))
        order: list[int] = np.argsort(-self.before.class_weights(), kind="stable")[:most].tolist()
        return order

    def standard_error(self, values: Floats) -> float:
        """Standard error of the weighted mean of values of the rows; NaN if it is unknown.

        A cell of counts stands for as many rows of the same value as it weighs.
        """
        n = self.n_rows
        if n < 2 or not np.isfinite(values).all():
            return np.nan
        weights = self.before.row_weights()
        total = weights.sum()
        centred = values - weights @ values / total
        squares = weights**2 if self.counted is None else weights * (total / n)
        return float(np.sqrt(n / (n - 1) * (squares @ centred**2)) / total)

    def draw(self, most: int) -> Evidence:
        """The same with at most so many rows, drawn at random; of cells, with rows in place."""
        n = self.n_rows
        rng = np.random.default_rng(0)
        if self.counted is None:
            return self if n <= most else self.take(np.sort(rng.permutation(n)[:most]))
        weights = self.before.row_weights()
        if n <= most and n == weights.sum() and (weights == np.rint(weights)).all():
            times = weights.astype(np.intp)
        else:
            times = rng.multinomial(min(n, most), weights / weights.sum())
        rows = self.take(np.repeat(np.arange(len(times)), times))
        after = None if rows.after is None else replace(rows.after, weights=None)
        return replace(rows, before=replace(rows.before, weights=None), after=after, counted=None)

    def take(self, rows: Any) -> Evidence:
        """The same with some of the rows."""
        after = None if self.after is None else self.after.take(rows)
        return replace(
            self,
            before=self.before.take(rows),
            after=after,
            input=_safe_indexing(self.input, rows),
        )


def gather(
    y: Any, P: Any, *, calibrator: Any, after: Any, labels: Any, sample_weight: Any
) -> Evidence:
    """Check the arguments of a report and put them together.

    Examples
    --------
    >>> from isoroc import IRPCalibrator
    >>> p, y = [0.1, 0.4, 0.7], ["no", "yes", "yes"]
    >>> found = gather(y, p, calibrator=IRPCalibrator().fit(p, y), after=None, labels=None,
    ...                sample_weight=None)
    >>> list(found.series), found.names, found.fitted_on_these_rows
    (['before', 'after'], ['no', 'yes'], True)
    """
    scores: Scores = "auto"
    if calibrator is not None:
        _check_calibrator(calibrator)
        if after is None:
            after = calibrator.predict_proba(P)
        labels = calibrator.classes_ if labels is None else labels
        if calibrator.n_features_in_ > 1:
            scores = calibrator.scores_
    before = check_sample(P, y, sample_weight, labels, scores=scores, name="P").on_simplex()
    if before.forecasts.ndim == 1 and first_improbable(before.forecasts) is None:
        before = replace(before, forecasts=two_columns(before.forecasts))
    changed = None if after is None else check_after(after, before, probabilities=True)
    whole = Evidence(before, changed, calibrator, P)
    if before.weights is None or before.weights.all():
        return whole
    return whole.take(np.flatnonzero(before.weights))


def gather_counts(counts: Any, calibrator: Any) -> Evidence:
    """Evidence of counts, with the forecasts of a calibrator for each cell.

    Examples
    --------
    >>> from isoroc import Counts
    >>> found = gather_counts(Counts.from_arrays([0.2, 0.7, 0.2], ["no", "yes", "no"]), None)
    >>> len(found.before), found.n_rows, len(found.draw(100).before)
    (2, 3, 3)
    """
    if not isinstance(counts, Counts):
        problem = f"is {type(counts).__name__}"
        raise InputError("counts", None, problem, "expected isoroc.Counts")
    cells = replace(counts.sample(per_fold=False), fold=None)
    before = replace(cells, forecasts=two_columns(cells.forecasts))
    if calibrator is None:
        return Evidence(before, None, None, before.forecasts, counts.n_rows)
    _check_calibrator(calibrator)
    if calibrator.classes_.tolist() != counts.classes.tolist():
        problem = f"its classes {calibrator.classes_.tolist()} are not those of the counts"
        raise InputError("calibrator", None, problem, f"expected {counts.classes.tolist()}")
    if calibrator.scores_ == "logit":
        problem = "takes logits, but counts hold probabilities"
        raise InputError("calibrator", None, problem, "pass rows, or fit it to counts")
    P = before.forecasts if calibrator.n_features_in_ > 1 else before.forecasts[:, 1]
    after = replace(before, forecasts=calibrator.predict_proba(P))
    return Evidence(before, after, calibrator, P, counts.n_rows)


def _check_calibrator(calibrator: Any) -> None:
    if not isinstance(calibrator, Calibrator):
        problem = f"{type(calibrator).__name__} is not a calibrator of isoroc"
        fix = "pass the forecasts before and after calibration as P and after"
        raise InputError("calibrator", None, problem, fix)
