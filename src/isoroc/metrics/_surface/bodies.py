"""ROC points of given thresholds and of pairs of classes, and the bodies that points span.

*Rows* are ROC points with thresholds that reach them, (p_0 .. p_K-1, gamma_0 .. gamma_K-1).
"""

from itertools import combinations
from typing import NamedTuple, Self

import numpy as np

from isoroc._core import surface as kernels
from isoroc._core.simplex import midpoint, sum_to_one
from isoroc._core.special import convex_hull
from isoroc._core.types import Floats, Ints
from isoroc._counts import BinaryCounts, Points
from isoroc._growth import MIN_GAP

#: If gamma_k exceeds another coordinate by this much, no forecast is in region k.
OUT_OF_REACH = 3.0


class Cases(NamedTuple):
    """Forecasts, each with one class and its weight: `Points` with one row per class."""

    forecasts: Floats
    codes: Ints
    shares: Floats  # weight as a share of the total weight of the class

    @classmethod
    def of(cls, counts: Points) -> Self:
        """The cases of some counts."""
        row, code = (np.ascontiguousarray(index) for index in np.nonzero(counts.class_weights))
        shares = counts.class_weights / counts.class_weights.sum(axis=0)
        return cls(counts.forecasts[row], code, shares[row, code])

    def reach(self, thresholds: Floats) -> Floats:
        """The ROC point of each threshold, shape (m, K)."""
        points = kernels.own_shares(*self, np.ascontiguousarray(thresholds))
        return points.clip(max=1.0)  # shares of a class add up to 1 but for rounding

    def of_classes(self, classes: Ints) -> Self:
        """The cases and columns of some classes, in ascending order."""
        rows = np.flatnonzero(np.isin(self.codes, classes))
        forecasts = np.ascontiguousarray(self.forecasts[np.ix_(rows, classes)])
        codes = np.searchsorted(classes, self.codes[rows])
        return type(self)(forecasts, codes, self.shares[rows])


class Boxes:
    """Union of the boxes between the origin and points. `kept` are those that span it."""

    concave = False  # the border on the last axis, as a function of the other axes

    def __init__(self, points: Floats) -> None:
        order = np.lexsort(-points.T[::-1])
        points = np.ascontiguousarray(points[order])
        undominated, self.volume = kernels.undominated(points)
        kept = np.flatnonzero(undominated)
        self.kept = order[kept]
        self._points = points[kept]

    def heights(self, cells: int, order: Ints) -> Floats:
        """How far the body of three classes reaches on the last axis, shape (cells + 2,) * 2.

        Entry [i, j] is for the line over (i / cells, j / cells) on the other two axes, negative
        where the line misses the body. `order` is the order of the axes.
        """
        table = np.full((cells + 2, cells + 2), -1.0)
        i, j = (cells * self._points[:, order[:2]].T).astype(np.intp)
        np.maximum.at(table, (i, j), self._points[:, order[2]])
        for axis in (0, 1):
            table = np.flip(np.maximum.accumulate(np.flip(table, axis), axis=axis), axis)
        return np.ascontiguousarray(table)


class Hull:
    """Convex hull of the points, the origin and the unit vectors."""

    concave = True

    def __init__(self, points: Floats) -> None:
        K = points.shape[1]
        hull = convex_hull(np.vstack([points, np.zeros(K), np.eye(K)]))
        self.kept = np.sort(hull.vertices[hull.vertices < len(points)]).astype(np.intp)
        self.volume = float(hull.volume)
        self._faces = np.unique(hull.equations, axis=0)

    def heights(self, cells: int, order: Ints) -> Floats:
        """How far the hull reaches on the last axis, see `Boxes`."""
        # A face is normal @ point + offset = 0, the hull on the side where that is negative.
        faces = self._faces[:, [*order, 3]]
        above = faces[:, 2] > 1e-9
        planes = faces[above][:, [0, 1, 3]] / -faces[above][:, 2:3]
        sort = np.argsort(-planes[:, 1])
        table = kernels.lower_envelope(np.ascontiguousarray(planes[sort]), cells)
        axis = np.arange(cells + 2) / cells
        for u, v, _, offset in faces[~above]:
            table[u * axis[:, None] + v * axis + offset > 1e-12] = -1e9
        return table


#: What ROC points span, a set in the unit cube.
Body = Boxes | Hull


def merge_ties(values: Floats) -> Floats:
    """Values in which ties are replaced by the lowest value of the tie."""
    order = np.argsort(values)
    ascending = values[order]
    first = np.append(True, np.diff(ascending) > MIN_GAP)
    merged = np.empty_like(values)
    merged[order] = ascending[first][np.cumsum(first) - 1]
    return merged


def pair_curves(counts: Points, *, hull: bool) -> Floats:
    """Undominated points of the ROC curves of all pairs of classes, or of their hulls, as rows."""
    K = counts.forecasts.shape[1]
    return np.vstack([_pair_curve(counts, i, j, hull=hull) for i, j in combinations(range(K), 2)])


def _pair_curve(counts: Points, i: int, j: int, *, hull: bool) -> Floats:
    n, K = counts.forecasts.shape
    scores = np.tile(merge_ties(counts.forecasts[:, j] - counts.forecasts[:, i]), 2)
    codes = np.repeat(np.array([0, 1], dtype=np.uint8), n)
    binary = BinaryCounts.from_arrays(scores, codes, counts.class_weights[:, [i, j]].T.ravel())
    if hull:
        low, high, weights = binary.isotonic_blocks()
    else:
        low, weights = binary.distinct()
        high = low
    lost = np.vstack([np.zeros(2), np.cumsum(weights, axis=0)]) / weights.sum(axis=0)
    p = lost[:, 0]
    q = 1 - lost[:, 1]
    # One threshold below all, one in each gap, one above all. Forecasts differ by at most 1.
    between = midpoint(np.append(low[0] - 2, high), np.append(low, high[-1] + 2))
    points = np.zeros((len(lost), K))
    points[:, i] = p
    points[:, j] = q
    thresholds = np.full((len(lost), K), OUT_OF_REACH)
    thresholds[:, i] = -between / 2
    thresholds[:, j] = between / 2
    undominated = np.append(True, np.diff(p) > 0) & np.append(np.diff(q) < 0, True)
    return np.asarray(np.hstack([points, sum_to_one(thresholds)])[undominated])
