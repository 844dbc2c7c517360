"""Forecasts as `predict_proba` sees them, and whether it would take them, for any language."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from isoroc._input import RANGE_TOLERANCE, SUM_EXACT, SUM_TOLERANCE
from isoroc._writer import Arithmetic, C


def check_score(w: Arithmetic[C], score: C, *, unit: bool) -> tuple[list[C], C]:
    """A score of two classes, and whether it is finite and, with `unit`, a probability."""
    zero, one = w.number(0.0), w.number(1.0)
    low, high = w.number(-sys.float_info.max), w.number(sys.float_info.max)
    if unit:
        low, high = w.number(-RANGE_TOLERANCE), w.number(1 + RANGE_TOLERANCE)
    [good] = w.keep([w.both(w.at_most(low, score), w.at_most(score, high))])
    if unit:
        score = w.maximum(w.where(w.at_most(one, score), one, score), zero)
    return w.keep([w.where(good, score, w.number(0.5))]), good


def check_row(w: Arithmetic[C], columns: Sequence[C], *, exact: bool = True) -> tuple[list[C], C]:
    """Probabilities of all classes, clipped and normalised, and whether they were a forecast.

    They are those of `predict_proba` to the last bit or, unless `exact`, up to rounding.
    """
    zero, one, filler = w.number(0.0), w.number(1.0), w.number(1 / len(columns))
    add = w.total if exact else w.sum
    close = w.at_most(w.absolute(w.subtract(add(columns), one)), w.number(SUM_TOLERANCE))
    in_range = w.every([w.at_most(w.number(-RANGE_TOLERANCE), column) for column in columns])
    [good] = w.keep([w.both(close, in_range)])
    # Refused rows get a harmless value, so that no function fails on them.
    columns = w.keep(w.where(good, w.maximum(column, zero), filler) for column in columns)
    [total] = w.keep([add(columns)])
    [sums_to_one] = w.keep([w.at_most(w.absolute(w.subtract(total, one)), w.number(SUM_EXACT))])
    return w.keep(w.where(sums_to_one, column, w.divide(column, total)) for column in columns), good
