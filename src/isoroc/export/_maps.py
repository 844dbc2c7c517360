"""From the forecasts of a row to its calibrated forecasts, in any language that has a writer."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators import written
from isoroc._calibrators.base import Calibrator
from isoroc._input import RANGE_TOLERANCE, SUM_EXACT, SUM_TOLERANCE
from isoroc._writer import C, Writer


def check_exportable(calibrator: Any) -> None:
    """Refuse what is not a fitted calibrator of the package."""
    if not isinstance(calibrator, Calibrator):
        raise TypeError(
            f"calibrator: expected a calibrator of isoroc, got {type(calibrator).__name__}; of a "
            "CalibratedClassifier export calibrators_[0] and put it behind the exported model."
        )
    check_is_fitted(calibrator, "classes_")


def write_map(w: Writer[C], calibrator: Calibrator, columns: Sequence[C]) -> list[C]:
    """Columns of calibrated forecasts, one for each class, from those of forecasts.

    A row that `predict_proba` would refuse becomes a missing value.
    """
    if len(columns) == 1:
        columns, good = _check_score(w, columns[0], unit=calibrator.takes_probabilities())
    elif calibrator.scores_ == "logit":
        columns, good = _check_logits(w, columns)
    else:
        columns, good = _check_row(w, columns)
    missing = w.number(math.nan)
    return [w.where(good, column, missing) for column in calibrator.write(w, columns)]


def _check_score(w: Writer[C], score: C, *, unit: bool) -> tuple[list[C], C]:
    """A score as `predict_proba` sees it, and whether it would take it at all."""
    zero, one = w.number(0.0), w.number(1.0)
    low, high = w.number(-sys.float_info.max), w.number(sys.float_info.max)
    if unit:
        low, high = w.number(-RANGE_TOLERANCE), w.number(1 + RANGE_TOLERANCE)
    [good] = w.keep([w.both(w.at_most(low, score), w.at_most(score, high))])
    if unit:
        score = w.maximum(w.where(w.at_most(one, score), one, score), zero)
    return w.keep([w.where(good, score, w.number(0.5))]), good


def _check_logits(w: Writer[C], columns: Sequence[C]) -> tuple[list[C], C]:
    """Logarithms of forecasts, and whether `predict_proba` would take the logits at all."""
    largest = w.number(sys.float_info.max)
    good = w.at_most(w.absolute(columns[0]), largest)
    for column in columns[1:]:
        good = w.both(good, w.at_most(w.absolute(column), largest))
    [good] = w.keep([good])
    columns = w.keep(w.where(good, column, w.number(0.0)) for column in columns)
    return w.keep(written.log_softmax(w, columns)), good


def _check_row(w: Writer[C], columns: Sequence[C]) -> tuple[list[C], C]:
    """Probabilities as `predict_proba` sees them, and whether it would take the row at all."""
    zero = w.number(0.0)
    [total] = w.keep([w.total(columns)])
    good = w.at_most(w.absolute(w.subtract(total, w.number(1.0))), w.number(SUM_TOLERANCE))
    for column in columns:
        good = w.both(good, w.at_most(w.number(-RANGE_TOLERANCE), column))
    columns = w.keep(w.maximum(column, zero) for column in columns)
    [total] = w.keep([w.total(columns)])
    off = w.absolute(w.subtract(total, w.number(1.0)))
    [exact] = w.keep([w.at_most(off, w.number(SUM_EXACT))])
    columns = [w.where(exact, column, w.divide(column, total)) for column in columns]
    filler = w.number(1 / len(columns))
    [good] = w.keep([good])
    # Refused rows get a harmless value, so that no function fails on them.
    return w.keep(w.where(good, column, filler) for column in columns), good
