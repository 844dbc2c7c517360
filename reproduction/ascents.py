"""The hull of the ROC surface of four classes: a lower bound from coordinate ascents.

In a direction u >= 0 the hull reaches as far as the largest sum of u_k p_k(gamma) over all
thresholds. Begin with the simplex that the unit vectors span, search in the direction of the normal
of each face, add the points reached, and continue with the faces of the larger hull. A search is a
coordinate ascent: on a line of thresholds one sort finds the best exactly, and lines alternate
until no axis improves. An ascent may end in a local maximum, which lies inside the hull, so volumes
are lower bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from isoroc._core.simplex import sum_to_one
from isoroc._core.special import convex_hull
from isoroc._core.types import Floats, Ints
from isoroc._growth import MIN_GAP
from isoroc.metrics._surface.roc_points import OUT_OF_REACH, Cases


class LineSearch:
    """Lines of thresholds: gamma moved along one axis.

    A case is in region k iff gamma_k is moved by no more than its *place*, the lead of k over the
    best other class; beyond, it is in the region of that other class, however far gamma_k moves. No
    forecast may tie between two other classes; thresholds moved by a search satisfy this.
    """

    def __init__(self, cases: Cases) -> None:
        self.cases = cases
        self._columns = np.ascontiguousarray(cases.forecasts.T)
        self._own = cases.codes * len(cases.codes) + np.arange(len(cases.codes))

    def places(self, gamma: Floats, k: int) -> tuple[Ints, Floats]:
        """Cases that enter or, if of class k, leave their own region; their places, ascending."""
        margins = self._columns - gamma[:, None]
        own = margins.ravel()[self._own]
        place = margins[k].copy()
        margins[k] = -np.inf
        best_other = margins.max(axis=0)
        place -= best_other
        cases = np.flatnonzero((self.cases.codes == k) | (own >= best_other))
        cases = cases[np.argsort(place[cases])]
        return cases, place[cases]

    def best(self, gamma: Floats, k: int, value: Floats) -> tuple[float, float]:
        """Move of gamma_k that maximises the value of cases in their own region, and its lift."""
        cases, place = self.places(gamma, k)
        gains = np.where(self.cases.codes[cases] == k, -value[cases], value[cases])
        total = np.append(0.0, np.cumsum(gains))
        total[1:-1][np.diff(place) <= MIN_GAP] = -np.inf
        best = int(total.argmax())
        below, above = place[max(best - 1, 0)], place[min(best, len(place) - 1)]
        move = (below + above) / 2 + (best == len(place)) - (best == 0)
        return float(move), float(total[best])

    def ascend(self, u: Floats, gamma: Floats, max_cycles: int = 10) -> tuple[Floats, float]:
        """A threshold that no move along an axis improves in direction u, and its value there."""
        # Classes with u_k = 0 are put out of reach.
        axes = np.flatnonzero(u)
        gamma = np.where(u > 0, gamma, gamma[axes].max() + OUT_OF_REACH)
        value = u[self.cases.codes] * self.cases.shares
        reached, idle = -np.inf, 0
        for k in np.tile(axes, max_cycles):
            move, lift = self.best(gamma, k, value)
            if u[k] + lift > reached + MIN_GAP:
                gamma[k] += move
                reached, idle = u[k] + lift, 0
            idle += 1
            if idle == len(axes):
                break
        return gamma, reached


def ascend_to_hull(cases: Cases, n_ascents: int) -> Floats:
    """Rows that span the hull of the ROC surface, as far as `n_ascents` ascents find them."""
    search = LineSearch(cases)
    K = cases.forecasts.shape[1]
    # The thresholds are not round, so that they tie with no forecast.
    points, thresholds = np.eye(K), OUT_OF_REACH * (1 - np.eye(K)) + 1.4142e-7 * np.arange(K)
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
