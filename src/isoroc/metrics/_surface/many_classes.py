"""The hull of the ROC surface of any number of classes, from its support function.

In a direction u >= 0 the hull reaches as far as the largest sum of u_k p_k(gamma) over all
thresholds. A search for it is a coordinate ascent: on a line of thresholds one sort finds the best
exactly, and lines alternate until no axis improves. An ascent may end in a local maximum, which
lies in the hull, so volumes are lower bounds.

*Up to six classes* the points that ascents reach span a polytope. It begins with the directions
that weigh the classes of one subset equally. Then the normals of its largest faces are searched,
the points beyond are added, and the search continues with the faces of the larger polytope.

*Beyond six classes* a polytope has too many faces. With a class out of reach, the others can only
gain, so the part of the hull in {x_k = 0} is the hull of the other classes. Take the pyramids with
these parts as bases and one ROC point v as their common apex: they lie in the hull and do not
overlap, so

    volume(S) >= 1 / |S| * sum of v_k volume(S without k) over the classes k in S.

The best apex is the point that the hull reaches in the direction of the volumes on the right, one
more ascent. The recursion over all subsets of classes starts with the polytopes of four.
"""

from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from isoroc._core import surface as kernels
from isoroc._core.simplex import sum_to_one
from isoroc._core.special import convex_hull
from isoroc._core.types import Floats, Ints
from isoroc._growth import MIN_GAP
from isoroc._support.progress import Announce
from isoroc.metrics._surface.bodies import OUT_OF_REACH, Cases

#: Up to this number of classes, one polytope. Beyond, pyramids over polytopes of four classes.
MOST_OF_POLYTOPE = 6


class FoundHull(NamedTuple):
    """What was found of a hull, and how much was searched."""

    thresholds: Floats
    points: Floats  # the ROC points of the thresholds
    volume: float  # of the body that they span
    n_directions: int = 0
    n_ascents: int = 0  # 0 if the hull is exact


def default_directions(n_classes: int) -> int:
    """Number of directions to search: as many as take some seconds for 1,000 rows."""
    return {3: 1500, 4: 1500, 5: 1000, 6: 500}.get(n_classes, 10_000)


def search_hull(
    cases: Cases,
    few: Cases,
    n_directions: int,
    random_state: np.random.RandomState,
    report: Announce,
) -> FoundHull:
    """Search the hull of all classes. Ascents see the cases `few`, ROC points are of `cases`."""
    if cases.forecasts.shape[1] <= MOST_OF_POLYTOPE:
        return grow_polytope(cases, few, n_directions, random_state, report)
    return stack_pyramids(cases, few, n_directions, random_state, report)


def ends_of_ascents(few: Cases, directions: Floats, starts: Floats, max_cycles: int = 10) -> Floats:
    """Thresholds at the ends of ascents, with classes of direction 0 out of reach."""
    inside = directions > 0
    highest = np.where(inside, starts, -np.inf).max(axis=1, keepdims=True)
    ends = np.where(inside, starts, highest + OUT_OF_REACH)
    kernels.ascend(*few, np.ascontiguousarray(directions), ends, max_cycles, MIN_GAP)
    return sum_to_one(ends)


def grow_polytope(
    cases: Cases,
    few: Cases,
    n_directions: int,
    random_state: np.random.RandomState,
    report: Announce,
) -> FoundHull:
    """A polytope in the hull: search beyond its largest faces and add what is found."""
    K = cases.forecasts.shape[1]
    subsets = np.array(list(np.ndindex(*[2] * K)), dtype=np.float64)
    subsets = subsets[subsets.sum(axis=1) > 1]
    # The starts are not round, so that they tie with no forecast.
    starts = 1e-7 * random_state.random_sample(subsets.shape)
    only_one = sum_to_one(OUT_OF_REACH * (1 - np.eye(K)))
    thresholds = np.vstack([only_one, ends_of_ascents(few, subsets, starts)])
    points = cases.reach(thresholds)
    tried: set[bytes] = set()
    n_ascents = len(subsets)
    while True:
        hull = convex_hull(np.vstack([points, np.zeros(K)]))
        report(f"{n_ascents:,} ascents, volume at least {hull.volume:.4f}")
        # Faces to search before the polytope is computed again.
        most = min(max(32, len(tried) // 2), n_directions - len(subsets) - len(tried))
        faces = _untried(hull, tried, most)
        if not len(faces):
            kept = hull.vertices[hull.vertices < len(points)]
            n_tried = len(subsets) + len(tried)
            return FoundHull(thresholds[kept], points[kept], hull.volume, n_tried, n_ascents)
        directions = np.tile(_normals(hull)[faces], (2, 1))
        starts = _starts(hull, faces, np.vstack([thresholds, np.full(K, 1 / K)]), random_state)
        ends = ends_of_ascents(few, directions, starts)
        n_ascents += len(ends)
        reached = cases.reach(ends)
        beyond = (reached * directions).sum(axis=1) > np.tile(_offsets(hull)[faces], 2) + 1e-9
        points, first = np.unique(np.vstack([points, reached[beyond]]), axis=0, return_index=True)
        thresholds = np.vstack([thresholds, ends[beyond]])[first]


def _normals(hull: Any) -> Floats:
    normals = hull.equations[:, :-1].clip(min=0)
    normals[normals < 1e-9] = 0.0
    return np.asarray(normals)


def _offsets(hull: Any) -> Floats:
    return np.asarray(-hull.equations[:, -1])


def _untried(hull: Any, tried: set[bytes], most: int) -> Ints:
    """The largest faces away from the origin whose direction has not been searched."""
    offsets = _offsets(hull)
    normals = _normals(hull).round(9)
    # |det| is proportional to offset times area.
    areas = np.abs(np.linalg.det(hull.points[hull.simplices])) / offsets.clip(min=1e-9)
    chosen: list[int] = []
    for f in np.argsort(-areas):
        if len(chosen) >= most:
            break
        key = normals[f].tobytes()
        if offsets[f] > 1e-9 and key not in tried:
            tried.add(key)
            chosen.append(int(f))
    return np.array(chosen, dtype=np.intp)


def _starts(
    hull: Any, faces: Ints, thresholds: Floats, random_state: np.random.RandomState
) -> Floats:
    """Two starts for each face: its most balanced corner, and a random mixture of its corners."""
    corners = hull.simplices[faces]
    inside = _normals(hull)[faces][:, None, :] > 0
    smallest = np.where(inside, hull.points[corners], 1.0).min(axis=2)
    balanced = np.take_along_axis(corners, smallest.argmax(axis=1)[:, None], axis=1)[:, 0]
    shares = random_state.dirichlet(np.ones(corners.shape[1]), len(faces))
    mixed = np.einsum("fc,fck->fk", shares, thresholds[corners])
    return np.vstack([thresholds[balanced], mixed])


def stack_pyramids(
    cases: Cases,
    few: Cases,
    n_directions: int,
    random_state: np.random.RandomState,
    report: Announce,
    *,
    base: int = 4,
    n_starts: int = 4,
) -> FoundHull:
    """Pyramids in the hull over polytopes of each `base` of the classes."""
    K = cases.forecasts.shape[1]
    volumes: dict[tuple[int, ...], float] = {}
    rows: list[FoundHull] = []
    each = max(n_directions // comb(K, base), 2**base)
    for chosen in combinations(range(K), base):
        report(f"classes {', '.join(map(str, chosen))} of {K}")
        some = np.array(chosen)
        these = cases.of_classes(some)
        few_of_these = few.of_classes(some)
        found = grow_polytope(these, few_of_these, each, random_state, lambda _: None)
        volumes[chosen] = found.volume
        rows.append(_in_all_classes(found, some, K))
    for size in range(base + 1, K + 1):
        report(f"subsets of {size} of {K} classes")
        for chosen in combinations(range(K), size):
            direction = np.zeros(K)
            for k in chosen:
                direction[k] = volumes[tuple(j for j in chosen if j != k)]
            # Around the centre of the simplex, whose coordinates differ by up to 1.
            starts = 0.2 * random_state.standard_normal((n_starts, K))
            ends = ends_of_ascents(few, np.tile(direction, (n_starts, 1)), starts)
            points = cases.reach(ends)
            best = [int((points @ direction).argmax())]
            volumes[chosen] = float(points[best[0]] @ direction) / size
            rows.append(FoundHull(ends[best], points[best], volumes[chosen], 1, n_starts))
    points, first = np.unique(np.vstack([row.points for row in rows]), axis=0, return_index=True)
    return FoundHull(
        np.vstack([row.thresholds for row in rows])[first],
        points,
        volumes[tuple(range(K))],
        sum(row.n_directions for row in rows),
        sum(row.n_ascents for row in rows),
    )


def _in_all_classes(found: FoundHull, classes: Ints, n_classes: int) -> FoundHull:
    """The same with the other classes out of reach."""
    highest = found.thresholds.max(axis=1, keepdims=True)
    thresholds = np.tile(highest + OUT_OF_REACH, (1, n_classes))
    thresholds[:, classes] = found.thresholds
    points = np.zeros((len(found.points), n_classes))
    points[:, classes] = found.points
    return found._replace(thresholds=sum_to_one(thresholds), points=points)
