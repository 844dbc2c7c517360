"""From the forecasts of a row to its calibrated forecasts, in any language that has a writer."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from isoroc._checks import check_row, check_score
from isoroc._maps import written
from isoroc._maps.base import CalibrationMap
from isoroc._maps.grouped import GroupedMap
from isoroc._maps.identity import IdentityMap
from isoroc._writer import C, Writer


def check_exportable(calibrator: Any) -> None:
    """Refuse what is not a fitted calibrator of the package."""
    if not isinstance(calibrator, CalibrationMap):
        raise TypeError(
            f"calibrator: expected a calibrator of isoroc, got {type(calibrator).__name__}; of a "
            "CalibratedClassifier export calibrators_[0] and put it behind the exported model."
        )
    calibrator.check_is_fitted()


def is_grouped(calibrator: CalibrationMap) -> bool:
    """Whether a calibrator was fitted with groups, so that it takes the group of a row."""
    return isinstance(calibrator, GroupedMap) and calibrator.grouped_


def write_map(
    w: Writer[C],
    calibrator: CalibrationMap,
    columns: Sequence[C],
    groups: tuple[C, C | None] | None = None,
) -> list[C]:
    """Columns of calibrated forecasts, one for each class, from those of forecasts.

    A row that `predict_proba` would refuse becomes a missing value. Parameters are those of
    `write_checked`.
    """
    calibrated, good = write_checked(w, calibrator, columns, groups)
    missing = w.number(math.nan)
    return [w.where(good, column, missing) for column in calibrated]


def write_checked(
    w: Writer[C],
    calibrator: CalibrationMap,
    columns: Sequence[C],
    groups: tuple[C, C | None] | None = None,
) -> tuple[list[C], C]:
    """Columns of calibrated forecasts, and whether `predict_proba` would take the row.

    Parameters
    ----------
    w : Writer
    calibrator : CalibrationMap
        Fitted.
    columns : sequence of columns
        Forecasts.
    groups : pair of columns, default=None
        For each row the place of its group among `groups_` of a `GroupedCalibrator`, and whether it
        has a group, if that is in doubt.
    """
    if len(columns) == 1:
        columns, good = check_score(w, columns[0], unit=calibrator.takes_probabilities())
    elif calibrator.scores_ == "logit":
        columns, good = _check_logits(w, columns)
    else:
        # Forecasts that are returned as they are keep their last bit, too.
        exact = calibrator.has_steps() or isinstance(calibrator, IdentityMap)
        columns, good = check_row(w, columns, ordered=exact)
    if groups is not None and isinstance(calibrator, GroupedMap):
        place, known = groups
        good = good if known is None else w.both(good, known)
        calibrated = calibrator.write_groups(w, columns, place)
    else:
        calibrated = calibrator.write(w, columns)
    return calibrated, good


def _check_logits(w: Writer[C], columns: Sequence[C]) -> tuple[list[C], C]:
    """Logarithms of forecasts, and whether `predict_proba` would take the logits at all."""
    largest = w.number(sys.float_info.max)
    [good] = w.keep([w.every([w.at_most(w.absolute(column), largest) for column in columns])])
    columns = w.keep(w.guarded(good, column, w.number(0.0)) for column in columns)
    return w.keep(written.log_softmax(w, columns)), good
