from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isoroc.metrics._surface.many_classes import _trees, all_points, count_thresholds
from scipy.spatial import ConvexHull

from isoroc._core.simplex import regions
from isoroc._counts import Points
from isoroc.metrics import roc_surface, volume_under_surface
from isoroc.metrics._surface import surface
from isoroc.metrics._surface.line_scan import all_lines, scan
from isoroc.metrics._surface.roc_points import Boxes, Cases, Hull, pair_curves


@st.composite
def few_rows(draw, n_classes=None, extra_rows=4):
    """At least one row of each class, on a lattice with many ties or smooth, and weights."""
    K = n_classes or draw(st.integers(3, 5))
    n = K + draw(st.integers(0, extra_rows))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    steps = draw(st.sampled_from([3, 8, None]))
    P = (
        rng.dirichlet(np.ones(K), n)
        if steps is None
        else rng.multinomial(steps, np.full(K, 1 / K), n) / steps
    )
    y = np.append(np.arange(K), rng.integers(0, K, n - K)).astype(np.uint8)
    weights = rng.integers(1, 5, n) / 2 if draw(st.booleans()) else None
    return P, y, weights


def is_separable(P, y):
    """Whether some threshold gets all rows right: the constraints have no cycle of length <= 0."""
    K = P.shape[1]
    bound = np.full((K, K), np.inf)
    for p, k in zip(P, y, strict=True):
        for j in range(K):
            if j != k:
                bound[k, j] = min(bound[k, j], p[k] - p[j])
    for m in range(K):
        bound = np.minimum(bound, bound[:, [m]] + bound[[m], :])
    return (np.diag(bound) > 1e-9).all()


def every_point(P, y, weights):
    """ROC points of all sets of rows that some threshold gets right, by trying all sets."""
    K, n = P.shape[1], len(y)
    w = np.ones(n) if weights is None else weights
    totals = np.bincount(y, w, K)
    subsets = chain.from_iterable(combinations(range(n), m) for m in range(n + 1))
    points = [
        np.bincount(y[rows], w[rows], K) / totals
        for rows in map(list, subsets)
        if is_separable(P[rows], y[rows])
    ]
    return np.unique(points, axis=0)


def cases_of(P, y, weights=None):
    return Cases.of(Points.from_arrays(P, y, weights))


@given(few_rows())
def test_volumes_equal_those_of_all_sets_of_rows(case):
    P, y, weights = case
    K = P.shape[1]
    points = every_point(P, y, weights)
    found = all_points(cases_of(P, y, weights))[:, :K]
    assert set(map(tuple, found.round(9))) <= set(map(tuple, points.round(9)))
    assert Hull(found).volume == pytest.approx(Hull(points).volume, abs=1e-9)
    assert Boxes(found).volume == pytest.approx(Boxes(points).volume, abs=1e-9)


@given(few_rows(n_classes=4))
def test_four_classes_with_few_rows_are_exact(case):
    """Ascents missed up to 21 % of some of these hulls, at any resolution."""
    P, y, weights = case
    points = every_point(P, y, weights)
    hull = volume_under_surface(y, P, sample_weight=weights)
    boxes = volume_under_surface(y, P, volume="boxes", sample_weight=weights)
    assert (hull.exact, boxes.exact) == (True, True)
    assert (hull.resolution, boxes.resolution) == (None, None)
    corners = np.vstack([points, np.zeros(4), np.eye(4)])
    assert float(hull) == pytest.approx(ConvexHull(corners).volume, abs=1e-9)
    assert float(boxes) == pytest.approx(Boxes(points).volume, abs=1e-9)
    assert repr(hull).startswith(f"Volume({hull.value:.6g}, hull, exact, ")


@given(few_rows(extra_rows=12))
def test_thresholds_reach_their_points(case):
    P, y, weights = case
    K = P.shape[1]
    w = np.ones(len(y)) if weights is None else weights
    found = roc_surface(y, P, sample_weight=weights)
    assert found.exact
    np.testing.assert_allclose(found.thresholds.sum(axis=1), 1, atol=1e-12)
    for point, gamma in zip(found.points, found.thresholds, strict=True):
        right = regions(P, gamma) == y
        shares = [w[right & (y == k)].sum() / w[y == k].sum() for k in range(K)]
        assert point == pytest.approx(shares)


def test_three_classes_agree_with_the_line_scan():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 80)
    y = np.array([rng.choice(3, p=p) for p in P], dtype=np.uint8)
    counts = Points.from_arrays(P, y)
    _, hull = scan(all_lines(counts), Hull, pair_curves(counts, hull=True))
    points = all_points(Cases.of(counts))[:, :3]
    assert Hull(points).volume == pytest.approx(hull.volume, abs=1e-12)


@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_ascents_never_exceed_the_exact_volume(n_classes, monkeypatch):
    rng = np.random.default_rng(n_classes)
    P = rng.dirichlet(np.ones(n_classes), 25)
    y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 25 - n_classes))
    exact: dict[Any, Any] = {v: volume_under_surface(y, P, volume=v) for v in ("hull", "boxes")}
    monkeypatch.setattr(surface, "EXACT_THRESHOLDS", 0)
    for volume, best in exact.items():
        bound = volume_under_surface(y, P, volume=volume)
        assert best.exact
        assert bound.exact == (n_classes == 3)
        assert float(bound) <= float(best) + 1e-12


def test_a_resolution_that_covers_all_thresholds_is_exact():
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(4), 12), (np.arange(12) % 4).astype(np.uint8)
    n_thresholds = count_thresholds(cases_of(P, y))
    assert n_thresholds == 3 * 12**2
    exact = volume_under_surface(y, P)
    assert volume_under_surface(y, P, resolution=n_thresholds) == exact
    bound = volume_under_surface(y, P, resolution=n_thresholds - 1)
    assert (bound.exact, bound.resolution) == (False, n_thresholds - 1)


def test_trees_are_counted_by_cayley():
    for size in range(2, 6):
        trees = _trees(size)
        assert len(trees) == len({tuple(sorted(tree)) for tree in trees}) == size ** (size - 2)
        for tree in trees:
            reached = {0}
            for child, parent in tree:
                assert parent in reached
                reached.add(child)
            assert len(reached) == size
