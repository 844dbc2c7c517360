"""The hull of the ROC surface of four classes: exact for few forecasts, else a lower bound.

Exactly, from a finite set of thresholds: a row of class k is right iff gamma_k - gamma_j <= p_k -
p_j for every other class j. So the thresholds at which all rows of a given set are right are the
solutions of a system of difference constraints. If the set has a row of some class, called the
*root*, the system has a solution in which all differences gamma_root - gamma_j are as large as
possible at the same time: the lengths of the shortest paths from the root, where the edge k -> j
has length min(p_k - p_j) over the rows of class k in the set. Shortest paths form a tree, and one
row of class k gives the length of each of its edges k -> j. Trying every tree with every choice of
rows therefore reaches, for every set of rows that some threshold gets right, a threshold that gets
all of them right. By Cayley's formula there are n_root * n ** (K - 2) combinations.

Sets without a row of the root are right when the root is out of reach. So the same is done for
every subset of the classes, with all others out of reach.

By coordinate ascents: in a direction u >= 0 the hull reaches as far as the largest sum of u_k
p_k(gamma) over all thresholds. Begin with the simplex that the unit vectors span, search in the
direction of the normal of each face, add the points reached, and continue with the faces of the
larger hull. A search is a coordinate ascent: on a line of thresholds one sort finds the best
exactly, and lines alternate until no axis improves. An ascent may end in a local maximum, which
lies inside the hull, so volumes are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from isoroc._core.simplex import sum_to_one
from isoroc._core.special import convex_hull
from isoroc._core.types import Floats, Ints
from isoroc._counts import Points
from isoroc._growth import MIN_GAP
from isoroc.metrics._estimation.grouping import distinct_rows
from isoroc.metrics._surface import Hull

#: If gamma_k exceeds another coordinate by this much, no forecast is in region k.
OUT_OF_REACH = 3.0


class Cases(NamedTuple):
    """Forecasts, each with one class and its weight: `Points` with one row per class."""

    forecasts: Floats
    codes: Ints
    shares: Floats  #: weight as a share of the total weight of the class

    @classmethod
    def of(cls, counts: Points) -> Cases:
        """The cases of some counts."""
        row, code = np.nonzero(counts.class_weights)
        shares = counts.class_weights / counts.class_weights.sum(axis=0)
        return cls(counts.forecasts[row], code, shares[row, code])

    def reach(self, thresholds: Floats) -> Floats:
        """The ROC point of each threshold, shape (m, K)."""
        own = np.zeros((len(self.codes), self.forecasts.shape[1]))
        own[np.arange(len(own)), self.codes] = self.shares
        points = []
        for some in np.array_split(thresholds, max(1, len(thresholds) * own.size // 2**22)):
            region = (self.forecasts - some[:, None]).argmax(axis=2)
            points.append((region == self.codes) @ own)
        return np.vstack(points)


def hull_volume(cases: Cases, n_ascents: int = 1000, most_thresholds: int = 500_000) -> float:
    """Volume of the hull: exact if few thresholds must be tried, else a lower bound."""
    exact = count_thresholds(cases) <= most_thresholds
    rows = all_points(cases) if exact else ascend_to_hull(cases, n_ascents)
    return Hull(rows[:, : cases.forecasts.shape[1]]).volume


def count_thresholds(cases: Cases) -> int:
    """Number of thresholds of all classes; those of subsets are fewer."""
    sizes = np.bincount(cases.codes, minlength=cases.forecasts.shape[1]).tolist()
    return int(min(sizes) * sum(sizes) ** (len(sizes) - 2))


def all_points(cases: Cases) -> Floats:
    """Rows that include every undominated ROC point of all classes and of every subset of them."""
    K = cases.forecasts.shape[1]
    subsets = (chosen for size in range(2, K + 1) for chosen in combinations(range(K), size))
    rows = np.hstack([np.eye(K), sum_to_one(OUT_OF_REACH * (1 - np.eye(K)))])
    waiting: list[Floats] = []
    n_waiting = 0
    for thresholds in (block for chosen in subsets for block in _thresholds(cases, chosen)):
        waiting.append(thresholds)
        n_waiting += len(thresholds)
        if n_waiting >= 2**15:
            rows = _add_points(rows, cases, waiting)
            waiting = []
            n_waiting = 0
    return _add_points(rows, cases, waiting)


def _add_points(rows: Floats, cases: Cases, blocks: list[Floats]) -> Floats:
    """Rows and those of more thresholds, one for each distinct point."""
    if blocks:
        thresholds = np.vstack(blocks)
        rows = np.vstack([rows, np.hstack([cases.reach(thresholds), sum_to_one(thresholds)])])
    points = np.ascontiguousarray(rows[:, : cases.forecasts.shape[1]])
    return rows[distinct_rows(points)]


def _thresholds(cases: Cases, chosen: Sequence[int]) -> Iterator[Floats]:
    """Thresholds of all trees on some of the classes, one array per tree."""
    K = cases.forecasts.shape[1]
    by_class = [cases.forecasts[cases.codes == k] for k in range(K)]
    # The first one is the root: the fewer rows it has, the fewer combinations there are.
    classes = sorted(chosen, key=lambda k: len(by_class[k]))
    others = [k for k in range(K) if k not in chosen]
    # Rows are right by a margin, so that rounding decides nothing and gaps of MIN_GAP are ties.
    leads = {
        (i, j): np.unique(by_class[i][:, i] - by_class[i][:, j]) - MIN_GAP / 2
        for i in classes
        for j in classes
        if i != j
    }
    for parents in _trees(len(classes)):
        gamma = np.zeros((1, K))
        for child, parent in parents:
            i = classes[parent]
            j = classes[child]
            longer = np.repeat(gamma, len(leads[i, j]), axis=0)
            longer[:, j] = np.subtract.outer(gamma[:, i], leads[i, j]).ravel()
            gamma = longer
        gamma[:, others] = gamma[:, classes].max(axis=1, keepdims=True) + OUT_OF_REACH
        yield gamma


@cache
def _trees(size: int) -> list[list[tuple[int, int]]]:
    """All trees on the nodes 0 to size - 1: pairs (child, parent), each node after its parent."""
    parents = np.array(list(product(range(size), repeat=size - 1)))
    parents = np.insert(parents, 0, 0, axis=1)  # the root is its own parent
    ancestors = parents
    depth = (parents != 0).astype(np.intp)
    for _ in range(size - 2):
        ancestors = np.take_along_axis(parents, ancestors, axis=1)
        depth += ancestors != 0
    is_tree = (ancestors == 0).all(axis=1)
    parents = parents[is_tree]
    order = np.argsort(depth[is_tree, 1:], axis=1, kind="stable") + 1
    return [
        [(child, above[child]) for child in children]
        for above, children in zip(parents.tolist(), order.tolist(), strict=True)
    ]


class LineSearch:
    """Lines of thresholds: gamma moved along one axis.

    A case is in region k iff gamma_k is moved by no more than its *place*, the lead of k over the
    best other class; beyond, it is in the region of that other class, however far gamma_k moves. If
    two others tie, the first is the best, as in `Cases.reach`.
    """

    def __init__(self, cases: Cases) -> None:
        self.cases = cases
        self._columns = np.ascontiguousarray(cases.forecasts.T)

    def places(self, gamma: Floats, k: int) -> tuple[Ints, Floats]:
        """Cases that enter or, if of class k, leave their own region; their places, ascending."""
        margins = self._columns - gamma[:, None]
        place = margins[k].copy()
        margins[k] = -np.inf
        best_other = margins.argmax(axis=0)
        place -= margins[best_other, np.arange(len(best_other))]
        cases = np.flatnonzero((self.cases.codes == k) | (self.cases.codes == best_other))
        cases = cases[np.argsort(place[cases])]
        return cases, place[cases]

    def best(self, gamma: Floats, k: int, value: Floats) -> tuple[float, float]:
        """Move of gamma_k that maximises the value of cases in their own region, and its lift."""
        cases, place = self.places(gamma, k)
        gains = np.where(self.cases.codes[cases] == k, -value[cases], value[cases])
        total = np.append(0.0, np.cumsum(gains))
        total[1:-1][np.diff(place) <= MIN_GAP] = -np.inf
        best = int(total.argmax())
        below = place[max(best - 1, 0)]
        above = place[min(best, len(place) - 1)]
        move = (below + above) / 2 + (best == len(place)) - (best == 0)
        return float(move), float(total[best])

    def ascend(self, u: Floats, gamma: Floats, max_cycles: int = 10) -> tuple[Floats, float]:
        """A threshold that no move along an axis improves in direction u, and its value there."""
        # Classes with u_k = 0 are put out of reach.
        axes = np.flatnonzero(u)
        gamma = np.where(u > 0, gamma, gamma[axes].max() + OUT_OF_REACH)
        value = u[self.cases.codes] * self.cases.shares
        reached = -np.inf
        idle = 0
        for k in np.tile(axes, max_cycles):
            move, lift = self.best(gamma, k, value)
            if u[k] + lift > reached + MIN_GAP:
                gamma[k] += move
                reached = u[k] + lift
                idle = 0
            idle += 1
            if idle == len(axes):
                break
        return gamma, reached


def ascend_to_hull(cases: Cases, n_ascents: int) -> Floats:
    """Rows that span the hull of the ROC surface, as far as `n_ascents` ascents find them."""
    search = LineSearch(cases)
    K = cases.forecasts.shape[1]
    # The thresholds are not round, so that they tie with no forecast.
    points = np.eye(K)
    thresholds = OUT_OF_REACH * (1 - np.eye(K)) + 1.4142e-7 * np.arange(K)
    tried: set[bytes] = set()
    while True:
        hull = convex_hull(np.vstack([points, np.zeros(K)]))
        normals = hull.equations[:, :K].clip(min=0)
        normals[normals < 1e-9] = 0.0
        offsets = -hull.equations[:, K]
        # Faces to search before the hull is computed again.
        most = min(max(32, len(tried)), n_ascents - len(tried))
        faces = _untried(hull, normals, tried, most)
        if not faces:
            rows = np.hstack([points, sum_to_one(thresholds)])
            return np.asarray(rows[hull.vertices[hull.vertices < len(points)]])
        found = []
        for f in faces:
            # Start from the corner of the face with the largest minimum over the classes in u.
            corners = hull.simplices[f]
            start = corners[points[corners][:, normals[f] > 0].min(axis=1).argmax()]
            gamma, reached = search.ascend(normals[f], thresholds[start])
            if reached > offsets[f] + 1e-9:
                found.append(gamma)
        if found:
            thresholds = np.vstack([thresholds, found])
            points = np.vstack([points, cases.reach(np.array(found))])


def _untried(hull: Any, normals: Floats, tried: set[bytes], most: int) -> list[int]:
    """The largest faces away from the origin whose direction has not been searched."""
    offsets = -hull.equations[:, -1]
    # |det| is proportional to offset times area.
    areas = np.abs(np.linalg.det(hull.points[hull.simplices])) / offsets.clip(min=1e-9)
    chosen: list[int] = []
    for f in np.argsort(-areas):
        if len(chosen) >= most:
            break
        key = normals[f].round(9).tobytes()
        if offsets[f] > 1e-9 and key not in tried:
            tried.add(key)
            chosen.append(int(f))
    return chosen
