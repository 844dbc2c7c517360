"""Formulas that the maps of several calibrators share, for a `Writer`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from isoroc._simplex import LEAST, PRECISE, STEP, Floats
from isoroc._tree import BinTree
from isoroc._writer import C, Writer

#: Columns up to which sums of all but one are products with a matrix.
_FEW = 64


def bin_values(w: Writer[C], tree: BinTree, values: Floats, columns: Sequence[C]) -> list[C]:
    """Values of the bins in which forecasts lie."""
    binary = tree.n_classes == 2
    return w.look_up(values, w.locate(tree.cuts, columns[-1]) if binary else w.route(tree, columns))


def binary_score(w: Writer[C], p0: C, p1: C) -> C:
    """What `isoroc._simplex.binary_scores` returns for a matrix."""
    logs = w.log(w.maximum(p0, w.number(LEAST)))
    fall = w.multiply(w.number(STEP), w.subtract(logs, w.number(math.log(LEAST))))
    exact = w.at_most(w.number(PRECISE), p0)
    return w.where(exact, p1, w.subtract(w.number(1.0), fall))


def mixed(w: Writer[C], q: Sequence[C], smoothing: float) -> list[C]:
    """Forecasts mixed with the uniform one."""
    kept, share = w.number(1 - smoothing), w.number(smoothing / len(q))
    return [w.add(w.multiply(kept, column), share) for column in q]


def log_odds(w: Writer[C], logs: Sequence[C]) -> list[C]:
    """Log odds of each class against the others, from logarithms of forecasts."""
    K = len(logs)
    P = w.keep(w.exp(z) for z in logs)
    others = w.linear(np.ones((K, K)) - np.eye(K), P) if K <= _FEW else _sums_of_others(w, P)
    return [w.subtract(z, w.log(rest)) for z, rest in zip(logs, others, strict=True)]


def _sums_of_others(w: Writer[C], P: Sequence[C]) -> list[C]:
    """For each column the sum of all others, in linear time.

    It is the total less the column. Only for the largest column the difference could be inexact,
    so that its others are added up.
    """
    _, place = w.largest(P)
    [place] = w.keep([place])
    is_largest = w.keep(w.is_at(place, k) for k in range(len(P)))
    zero = w.number(0.0)
    rests = [w.where(here, zero, p) for here, p in zip(is_largest, P, strict=True)]
    total, rest = w.keep([w.sum(P), w.sum(rests)])
    others = [w.subtract(total, p) for p in P]
    return [w.where(here, rest, other) for here, other in zip(is_largest, others, strict=True)]


def log_softmax(w: Writer[C], z: Sequence[C]) -> list[C]:
    """Logarithms of exp(z) normalised to sum to one."""
    z = w.below_zero(z)
    [total] = w.keep([w.log(w.sum([w.exp(column) for column in z]))])
    return [w.subtract(column, total) for column in z]
