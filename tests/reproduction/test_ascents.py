from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.ascents import LineSearch, ascend_to_hull

from isoroc._counts import Points
from isoroc.metrics import volume_under_surface
from isoroc.metrics._surface.roc_points import Cases, Hull
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
    gamma, u, k = rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K)), int(rng.integers(K))
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
    gamma, reached = search.ascend(u, rng.dirichlet(np.ones(K)))
    point = search.cases.reach(gamma[None])[0]
    assert point @ u == pytest.approx(reached)
    assert not point[u == 0].any()
    value = u[search.cases.codes] * search.cases.shares
    for k in np.flatnonzero(u).tolist():
        assert u[k] + search.best(gamma, k, value)[1] <= reached + 1e-9


@pytest.mark.parametrize("part", ["cal", "test"])
def test_ascents_come_close_to_the_exact_hull_of_three_classes(cover3, part):
    P, y = cover3[f"probas_{part}"], cover3[f"labels_{part}"].astype(np.uint8)
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
    u, gamma = np.full(4, 0.25), np.full(4, 0.25)
    _, far = search.ascend(u, gamma)
    _, near = search.ascend(u, gamma, max_cycles=1)
    assert near < far
