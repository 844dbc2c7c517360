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
    return w.keep([w.guarded(good, score, w.number(0.5))]), good


def check_row(w: Arithmetic[C], columns: Sequence[C], *, ordered: bool = True) -> tuple[list[C], C]:
    """Probabilities of all classes, clipped and normalised, and whether they were a forecast.

    With `ordered`, sums are those of NumPy and probabilities those of `predict_proba` to the last
    bit; otherwise they are equal up to rounding.
    """
    add = w.total if ordered else w.sum
    zero, one = w.number(0.0), w.number(1.0)
    total, smallest = w.keep([add(columns), w.smallest(columns)])
    off = w.absolute(w.subtract(total, one))
    not_far = w.at_most(off, w.number(SUM_TOLERANCE))
    above = w.at_most(w.number(-RANGE_TOLERANCE), smallest)
    # A sum with NaN or NULL is not near one, whatever the smallest is.
    [good] = w.keep([w.both(not_far, above)])
    filler = w.number(1 / len(columns))
    clipped = [w.maximum(column, zero) for column in columns]
    if not ordered:
        clipped = w.keep(clipped)
        [total] = w.keep([w.guarded(good, add(clipped), one)])
        return w.keep(w.guarded(good, w.divide(c, total), filler) for c in clipped), good
    exact = w.at_most(off, w.number(SUM_EXACT))
    [clean] = w.keep([w.both(exact, w.at_most(zero, smallest))])
    # Most rows are clean, and databases compute the rest of a choice for the other rows only.
    [total] = w.keep([w.where(clean, one, w.where(good, add(clipped), one))])
    off = w.absolute(w.subtract(total, one))
    [divisor] = w.keep([w.where(w.at_most(off, w.number(SUM_EXACT)), one, total)])
    scaled = [w.guarded(good, w.divide(c, divisor), filler) for c in clipped]
    return w.keep(w.where(clean, p, c) for p, c in zip(columns, scaled, strict=True)), good
