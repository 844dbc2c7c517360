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


def check_row(w: Arithmetic[C], columns: Sequence[C]) -> tuple[list[C], C]:
    """Probabilities of all classes, clipped and normalised, and whether they were a forecast."""
    zero = w.number(0.0)
    [total] = w.keep([w.total(columns)])
    good = w.at_most(w.absolute(w.subtract(total, w.number(1.0))), w.number(SUM_TOLERANCE))
    for column in columns:
        good = w.both(good, w.at_most(w.number(-RANGE_TOLERANCE), column))
    [good] = w.keep([good])
    columns = w.keep(w.maximum(column, zero) for column in columns)
    # PostgreSQL does not divide by zero, not even where the result is not used.
    [total] = w.keep([w.where(good, w.total(columns), w.number(1.0))])
    off = w.absolute(w.subtract(total, w.number(1.0)))
    [exact] = w.keep([w.at_most(off, w.number(SUM_EXACT))])
    columns = [w.where(exact, column, w.divide(column, total)) for column in columns]
    filler = w.number(1 / len(columns))
    # Refused rows get a harmless value, so that no function fails on them.
    return w.keep(w.where(good, column, filler) for column in columns), good
