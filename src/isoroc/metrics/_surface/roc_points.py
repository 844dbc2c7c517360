"""ROC points of given thresholds, and of pairs of classes with all others out of reach.

*Rows* are ROC points with thresholds that reach them, (p_0 .. p_K-1, gamma_0 .. gamma_K-1).
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from isoroc._core import surface as kernels
from isoroc._counts import BinaryCounts, Points
from isoroc._growth import MIN_GAP
from isoroc._simplex import Floats, Ints, midpoint

#: If gamma_k exceeds another coordinate by this much, no forecast is in region k.
OUT_OF_REACH = 3.0


class Cases(NamedTuple):
    """Forecasts, each with one class and its weight: `Points` with one row per class."""

    forecasts: Floats
    codes: Ints
    shares: Floats
    """Weight as a share of the total weight of the class."""

    @classmethod
    def of(cls, counts: Points) -> Cases:
        """The cases of some counts."""
        row, code = (np.ascontiguousarray(i) for i in np.nonzero(counts.class_weights))
        shares = counts.class_weights / counts.class_weights.sum(axis=0)
        return cls(counts.forecasts[row], code, shares[row, code])

    def reach(self, thresholds: Floats) -> Floats:
        """The ROC point of each threshold, shape (m, K)."""
        return kernels.own_shares(
            self.forecasts, self.codes, self.shares, np.ascontiguousarray(thresholds)
        )


def merge_ties(values: Floats) -> Floats:
    """Values in which ties are replaced by the lowest value of the tie."""
    order = np.argsort(values)
    ascending = values[order]
    first = np.append(True, np.diff(ascending) > MIN_GAP)
    merged = np.empty_like(values)
    merged[order] = ascending[first][np.cumsum(first) - 1]
    return merged


def sum_to_one(thresholds: Floats) -> Floats:
    """Equivalent thresholds in A_K; only differences of coordinates matter."""
    missing = 1 - thresholds.sum(axis=1, keepdims=True)
    return np.asarray(thresholds + missing / thresholds.shape[1])


def pair_curves(counts: Points, *, hull: bool) -> Floats:
    """Undominated points of the ROC curves of all pairs of classes, or of their hulls, as rows."""
    K = counts.forecasts.shape[1]
    return np.vstack([_pair_curve(counts, i, j, hull=hull) for i, j in combinations(range(K), 2)])


def _pair_curve(counts: Points, i: int, j: int, *, hull: bool) -> Floats:
    difference = merge_ties(counts.forecasts[:, j] - counts.forecasts[:, i])
    binary = BinaryCounts.from_arrays(
        np.tile(difference, 2),
        np.repeat(np.array([0, 1], dtype=np.uint8), len(difference)),
        counts.class_weights[:, [i, j]].T.ravel(),
    )
    if hull:
        low, high, weights = binary.isotonic_blocks()
    else:
        low, weights = binary.distinct()
        high = low
    lost = np.vstack([np.zeros(2), np.cumsum(weights, axis=0)]) / weights.sum(axis=0)
    # One threshold below all, one in each gap, one above all; forecasts differ by at most 1.
    between = midpoint(np.append(low[0] - 2, high), np.append(low, high[-1] + 2))
    K = counts.forecasts.shape[1]
    points = np.zeros((len(lost), K))
    points[:, i], points[:, j] = p, q = lost[:, 0], 1 - lost[:, 1]
    thresholds = np.full((len(lost), K), OUT_OF_REACH)
    thresholds[:, i], thresholds[:, j] = -between / 2, between / 2
    undominated = np.append(True, np.diff(p) > 0) & np.append(np.diff(q) < 0, True)
    return np.hstack([points, sum_to_one(thresholds)])[undominated, :]
