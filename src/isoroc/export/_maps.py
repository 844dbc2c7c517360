"""From the forecasts of a row to its calibrated forecasts, in any language that has a writer."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators.auto import AutoCalibrator
from isoroc._calibrators.base import Calibrator
from isoroc._input import SUM_EXACT, SUM_TOLERANCE
from isoroc.export import _smooth, _stepped  # noqa: F401  # the maps of all calibrators
from isoroc.export._writer import C, Writer, map_of


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

    A row that `predict_proba` would refuse comes out as missing; one whose sum is off by less is
    normalised as there.
    """
    columns, good = _check_rows(w, columns, unit=_takes_probabilities(calibrator))
    missing = w.number(math.nan)
    return [w.where(good, column, missing) for column in map_of(calibrator, w, columns)]


def _takes_probabilities(calibrator: Calibrator) -> bool:
    """Whether a calibrator of scores, or one inside it, refuses those outside [0, 1]."""
    fitted = [getattr(calibrator, name) for name in calibrator._fitted]  # noqa: SLF001
    inner = [member for value in fitted if isinstance(value, list | tuple) for member in value]
    return getattr(calibrator, "log_odds_", None) is False or any(
        _takes_probabilities(member) for member in inner if isinstance(member, Calibrator)
    )


def _check_rows(w: Writer[C], columns: Sequence[C], *, unit: bool) -> tuple[list[C], C]:
    """Columns as `predict_proba` sees them, and whether it would take the row at all."""
    if len(columns) == 1:
        [score] = columns
        low, high = (0.0, 1.0) if unit else (-sys.float_info.max, sys.float_info.max)
        good = w.both(w.at_most(w.number(low), score), w.at_most(score, w.number(high)))
        filler = w.number(0.5)
    else:
        [total] = w.keep([w.total(columns)])
        off = w.absolute(w.subtract(total, w.number(1.0)))
        good = w.at_most(off, w.number(SUM_TOLERANCE))
        for column in columns:
            good = w.both(good, w.at_most(w.number(0.0), column))
        exact = w.at_most(off, w.number(SUM_EXACT))
        columns = [w.where(exact, column, w.divide(column, total)) for column in columns]
        filler = w.number(1 / len(columns))
    [good] = w.keep([good])
    # Rows that come to nothing in the end must come through until then.
    return w.keep(w.where(good, column, filler) for column in columns), good


@map_of.register
def _(calibrator: AutoCalibrator, w: Writer[C], columns: Sequence[C]) -> list[C]:
    parts = [
        [w.multiply(w.number(weight), q) for q in w.keep(map_of(member, w, columns))]
        for weight, member in zip(calibrator.weights_, calibrator.members_, strict=True)
    ]
    return [w.run(of_members) for of_members in zip(*parts, strict=True)]
