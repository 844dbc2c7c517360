from itertools import chain, combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.four_classes import (
    Cases,
    LineSearch,
    _trees,
    all_points,
    ascend_to_hull,
    count_thresholds,
    hull_volume,
)

from isoroc._counts import Points
from isoroc.metrics import volume_under_surface
from isoroc.metrics._surface import Hull, all_lines, pair_curves, scan
from strategies import labelled_forecasts


def sharp(n, K, seed=0):
    """Forecasts sharper than the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.5), n)
    y = np.array([rng.choice(K, p=p) for p in truth])
    y[:K] = np.arange(K)
    P = truth**1.5
    return P / P.sum(axis=1, keepdims=True), y.astype(np.uint8)


def every_class(case):
    P, y, _ = case
    return len(np.unique(y)) == P.shape[1]


@given(labelled_forecasts(min_classes=3).filter(every_class), st.integers(0, 2**32))
def test_a_line_search_finds_the_best_threshold_of_its_line(case, seed):
    P, y, weights = case
    K = P.shape[1]
    search = LineSearch(Cases.of(Points.from_arrays(P, y, weights)))
    rng = np.random.default_rng([seed, 1])
    gamma = rng.dirichlet(np.ones(K))
    u = rng.dirichlet(np.ones(K))
    k = int(rng.integers(K))
    value = u[search.cases.codes] * search.cases.shares
    move, lift = search.best(gamma, k, value)
    axis = np.eye(K)[k]
    assert search.cases.reach(gamma[None] + move * axis) @ u == pytest.approx(u[k] + lift)
    others = gamma + np.linspace(-2, 2, 1001)[:, None] * axis
    assert (search.cases.reach(others) @ u).max() <= u[k] + lift + 1e-9


@given(labelled_forecasts(min_classes=3).filter(every_class), st.integers(0, 2**32))
def test_an_ascent_ends_where_no_axis_improves(case, seed):
    P, y, weights = case
    K = P.shape[1]
    search = LineSearch(Cases.of(Points.from_arrays(P, y, weights)))
    rng = np.random.default_rng([seed, 1])
    u = rng.dirichlet(np.ones(K)) * (np.arange(K) != rng.integers(K + 1))
    gamma, reached = search.ascend(u, rng.dirichlet(np.ones(K)), max_cycles=1000)
    point = search.cases.reach(gamma[None])[0]
    assert point @ u == pytest.approx(reached)
    assert not point[u == 0].any()
    value = u[search.cases.codes] * search.cases.shares
    for k in np.flatnonzero(u).tolist():
        assert u[k] + search.best(gamma, k, value)[1] <= reached + 1e-9


def test_an_ascent_counts_rows_that_tie_between_two_other_classes_as_the_forecasts_do():
    """Midpoints of gaps between forecasts on a lattice tie with other forecasts."""
    P = np.full((20, 5), 0.2)
    P[[0, 17, 18, 19]] = 1 / 6
    P[[0, 17, 18, 19], [0, 3, 0, 0]] = 1 / 3
    y = np.array([3, 0, 2, 3, 3, 3, 1, 0, 4, 1, 0, 2, 3, 0, 0, 2, 3, 3, 4, 0], dtype=np.uint8)
    search = LineSearch(cases_of(P, y))
    rng = np.random.default_rng([1, 1])
    u = rng.dirichlet(np.ones(5)) * (np.arange(5) != rng.integers(6))
    gamma, reached = search.ascend(u, rng.dirichlet(np.ones(5)))
    assert search.cases.reach(gamma[None])[0] @ u == pytest.approx(reached)


@pytest.mark.parametrize("part", ["cal", "test"])
def test_ascents_come_close_to_the_exact_hull_of_three_classes(cover3, part):
    P = cover3[f"probas_{part}"]
    y = cover3[f"labels_{part}"].astype(np.uint8)
    exact = float(volume_under_surface(y, P))
    rows = ascend_to_hull(Cases.of(Points.from_arrays(P, y)), 1000)
    assert exact - 1e-4 < Hull(rows[:, :3]).volume < exact + 1e-12


def test_four_classes_against_every_threshold_of_a_lattice():
    """Thresholds of a fine lattice add at most 0.5 % to the hull that was found."""
    P, y = sharp(60, 4)
    cases = Cases.of(Points.from_arrays(P, y))
    rows = ascend_to_hull(cases, 2000)
    found = Hull(rows[:, :4]).volume
    grid = np.array(list(product(np.linspace(-1, 1, 17), repeat=3)))
    lattice = cases.reach(np.column_stack([np.zeros(len(grid)), grid]))
    assert Hull(np.vstack([rows[:, :4], lattice])).volume <= found * 1.005
    assert Hull(lattice).volume < found


def test_the_number_of_cycles_is_limited():
    P, y = sharp(200, 4)
    search = LineSearch(Cases.of(Points.from_arrays(P, y)))
    u = np.full(4, 0.25)
    gamma = np.full(4, 0.25)
    _, far = search.ascend(u, gamma)
    _, near = search.ascend(u, gamma, max_cycles=1)
    assert near < far


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
    K = P.shape[1]
    n = len(y)
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


def test_three_classes_agree_with_the_line_scan():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 80)
    y = np.array([rng.choice(3, p=p) for p in P], dtype=np.uint8)
    counts = Points.from_arrays(P, y)
    _, hull = scan(all_lines(counts), Hull, pair_curves(counts))
    points = all_points(Cases.of(counts))[:, :3]
    assert Hull(points).volume == pytest.approx(hull.volume, abs=1e-12)


def test_ascents_never_exceed_the_exact_volume():
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(4), 25)
    y = np.append(np.arange(4), rng.integers(0, 4, 21)).astype(np.uint8)
    cases = cases_of(P, y)
    bound = hull_volume(cases, most_thresholds=count_thresholds(cases) - 1)
    assert 0.9 * hull_volume(cases) < bound <= hull_volume(cases) + 1e-12


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
