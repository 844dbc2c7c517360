"""ROC points of pairs of classes, and the bodies that points span."""

from itertools import combinations

import numpy as np

from isoroc._core import surface as kernels
from isoroc._core.special import convex_hull
from isoroc._core.types import Floats, Ints
from isoroc._counts import BinaryCounts, Points
from isoroc._growth import MIN_GAP


def merge_ties(values: Floats) -> Floats:
    """Values in which ties are replaced by the lowest value of the tie."""
    order = np.argsort(values)
    ascending = values[order]
    first = np.append(True, np.diff(ascending) > MIN_GAP)
    merged = np.empty_like(values)
    merged[order] = ascending[first][np.cumsum(first) - 1]
    return merged


def pair_curves(counts: Points) -> Floats:
    """Undominated points of the hulls of the ROC curves of all pairs of classes, shape (m, K)."""
    (n, K), curves = counts.forecasts.shape, []
    codes = np.repeat(np.array([0, 1], dtype=np.uint8), n)
    for i, j in combinations(range(K), 2):
        scores = np.tile(merge_ties(counts.forecasts[:, j] - counts.forecasts[:, i]), 2)
        binary = BinaryCounts.from_arrays(scores, codes, counts.class_weights[:, [i, j]].T.ravel())
        _, _, weights = binary.isotonic_blocks()
        lost = np.vstack([np.zeros(2), np.cumsum(weights, axis=0)]) / weights.sum(axis=0)
        points = np.zeros((len(lost), K))
        points[:, i], points[:, j] = p, q = lost[:, 0], 1 - lost[:, 1]
        undominated = np.append(True, np.diff(p) > 0) & np.append(np.diff(q) < 0, True)
        curves.append(points[undominated])
    return np.vstack(curves)


class Boxes:
    """Union of the boxes between the origin and each point of three classes.

    `kept` has the indices of the points that span it.
    """

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
        where the line misses the body; `order` is the order of the axes.
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
