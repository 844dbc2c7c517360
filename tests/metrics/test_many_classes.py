from functools import partial
from itertools import chain, combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reproduction.data import Rows, load

from isoroc._core import surface as kernels
from isoroc._counts import Points
from isoroc._growth import MIN_GAP
from isoroc.metrics import bootstrap, roc_surface, volume_under_surface
from isoroc.metrics._surface import surface as public
from isoroc.metrics._surface.bodies import Cases, Hull, pair_curves
from isoroc.metrics._surface.few_rows import _trees, all_points, are_few
from isoroc.metrics._surface.many_classes import ends_of_ascents, grow_polytope, stack_pyramids
from isoroc.metrics._surface.three_classes import all_lines, scan
from strategies import labelled_forecasts

few_directions = partial(volume_under_surface, resolution=30)


def silent(_):
    """Report nothing."""


def polytope(cases, n_directions, seed=0):
    state = np.random.RandomState(seed)
    return grow_polytope(cases, cases, n_directions, state, silent)


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
def test_an_ascent_ends_where_no_axis_improves(case, seed):
    P, y, weights = case
    K = P.shape[1]
    cases = cases_of(P, y, weights)
    rng = np.random.default_rng([seed, 1])
    u = rng.dirichlet(np.ones(K)) * (np.arange(K) != rng.integers(K + 1))
    (gamma,) = ends_of_ascents(cases, u[None], rng.dirichlet(np.ones(K))[None], max_cycles=1000)
    (point,) = cases.reach(gamma[None])
    assert not point[u == 0].any()
    for k in np.flatnonzero(u):
        others = gamma + np.linspace(-2, 2, 1001)[:, None] * np.eye(K)[k]
        assert (cases.reach(others) @ u).max() <= point @ u + 1e-9


@given(labelled_forecasts(min_classes=3).filter(every_class), st.integers(0, 2**32))
def test_the_value_of_an_ascent_is_that_of_its_threshold(case, seed):
    """Also if forecasts are on a lattice: no row may tie between two other classes."""
    P, y, weights = case
    K = P.shape[1]
    cases = cases_of(P, y, weights)
    rng = np.random.default_rng([seed, 1])
    u = rng.dirichlet(np.ones(K), 3)
    ends = rng.dirichlet(np.ones(K), 3)
    P, codes, shares = cases
    reached = kernels.ascend(P, codes, shares, u, ends, 10, MIN_GAP)
    np.testing.assert_allclose((cases.reach(ends) * u).sum(axis=1), reached, atol=1e-9)


def test_shares_are_those_of_the_definition():
    P, y = sharp(50, 4)
    cases = cases_of(P, y)
    gammas = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    for gamma, point in zip(gammas, cases.reach(gammas), strict=True):
        right = (P - gamma).argmax(axis=1) == y
        assert point.tolist() == pytest.approx([right[y == k].mean() for k in range(4)])


@pytest.mark.parametrize("part", ["cal", "test"])
def test_ascents_come_close_to_the_exact_hull_of_three_classes(cover3, part):
    P = cover3[f"probas_{part}"]
    y = cover3[f"labels_{part}"].astype(np.uint8)
    exact = float(volume_under_surface(y, P))
    assert exact - 1e-4 < polytope(cases_of(P, y), 1000).volume < exact + 1e-12


def test_four_classes_against_every_threshold_of_a_lattice():
    """Thresholds of a fine lattice add at most 0.5 % to the hull that was found."""
    P, y = sharp(60, 4)
    cases = cases_of(P, y)
    found = polytope(cases, 2000)
    grid = np.array(list(product(np.linspace(-1, 1, 17), repeat=3)))
    lattice = cases.reach(np.column_stack([np.zeros(len(grid)), grid]))
    assert Hull(np.vstack([found.points, lattice])).volume <= found.volume * 1.005
    assert Hull(lattice).volume < found.volume


def test_more_directions_find_more_and_the_seed_decides():
    P, y = sharp(300, 4)
    few, more = (volume_under_surface(y, P, resolution=m) for m in (50, 400))
    assert float(few) < float(more)
    assert (few.exact, few.resolution, few.n_directions) == (False, 50, 50)
    assert few.n_ascents > few.n_directions
    text = f"lower bound, 50 directions, {few.n_ascents} ascents, {few.n_points} points"
    assert repr(few) == f"Volume({few.value:.6g}, hull, {text})"
    again = volume_under_surface(y, P, resolution=50, random_state=0)
    assert float(again) == float(few)
    other = volume_under_surface(y, P, resolution=50, random_state=1)
    assert float(other) == pytest.approx(float(few), rel=0.03)
    assert float(other) != float(few)


@pytest.mark.parametrize("K", [4, 5, 7])
def test_the_surface_has_the_points_of_the_volume(K):
    P, y = sharp(120, K)
    weights = np.random.default_rng(1).integers(1, 4, 120)
    surface = roc_surface(y, P, resolution=60, sample_weight=weights)
    volume = volume_under_surface(y, P, resolution=60, sample_weight=weights)
    assert surface.volume() == volume
    assert surface.shares.shape == surface.thresholds.shape == (volume.n_points, K)
    for gamma, point in zip(surface.thresholds[::7], surface.shares[::7], strict=True):
        right = (P - gamma).argmax(axis=1) == y
        share = [np.average(right[y == k], weights=weights[y == k]) for k in range(K)]
        assert point.tolist() == pytest.approx(share)
    assert surface.spans.all()
    if K <= 6:
        hull = Hull(surface.shares)
        assert hull.volume == pytest.approx(float(volume))
        mixed = (surface.shares > 0).sum(axis=1) > 1  # the unit vectors are in every hull
        assert set(np.flatnonzero(mixed)) <= set(hull.kept)


def test_weights_are_repetitions():
    P, y = sharp(90, 4)
    weights = np.random.default_rng(1).integers(1, 4, 90)
    rows = np.repeat(np.arange(90), weights)
    found = few_directions(y, P, sample_weight=weights)
    assert float(found) == pytest.approx(float(few_directions(y[rows], P[rows])), abs=1e-9)


def test_certain_soft_labels_are_labels_and_others_are_weights():
    P, y = sharp(90, 4)
    expected = few_directions(y, P)
    assert few_directions(np.eye(4)[y], P) == expected
    soft = 0.8 * np.eye(4)[y] + 0.05
    parts = np.repeat(np.arange(90), 4)
    labels = np.tile(np.arange(4), 90)
    weighted = few_directions(labels, P[parts], sample_weight=soft.ravel())
    assert float(few_directions(soft, P)) == pytest.approx(float(weighted), abs=1e-9)
    assert float(weighted) < float(expected)


def test_pyramids_lie_in_the_polytope():
    """Both are lower bounds. The pyramids have one apex, so they are smaller."""
    P, y = sharp(80, 5)
    cases = cases_of(P, y)
    state = np.random.RandomState(0)
    pyramids = stack_pyramids(cases, cases, 1000, state, silent)
    whole = polytope(cases, 600).volume
    assert 0.7 * whole < pyramids.volume < whole
    assert Hull(pyramids.points).volume >= pyramids.volume - 1e-9


def test_many_rows_are_searched_in_cells(monkeypatch):
    P, y = sharp(3000, 4)
    expected = few_directions(y, P)
    monkeypatch.setattr(public, "_search", partial(public._search, max_cells=500))
    found = few_directions(y, P)
    assert 0.95 * float(expected) < float(found) < 1.05 * float(expected)
    surface = roc_surface(y, P, resolution=30)
    right = (P - surface.thresholds[-1]).argmax(axis=1) == y
    share = [right[y == k].mean() for k in range(4)]
    assert surface.shares[-1].tolist() == pytest.approx(share)


def test_progress_is_shown(capsys):
    P, y = sharp(60, 4)
    few_directions(y, P)
    assert not capsys.readouterr().err
    few_directions(y, P, verbose=1)
    assert "ROC surface: 11 ascents, volume at least 0." in capsys.readouterr().err


def test_bootstrap_makes_an_interval():
    P, y = sharp(150, 4)
    result = bootstrap(few_directions, y, P, n_resamples=20)
    assert result.low <= result.value <= result.high + 0.1
    assert result.standard_error > 0


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
    points = every_point(P, y, weights)
    thresholds, found = all_points(cases_of(P, y, weights))
    np.testing.assert_array_equal(cases_of(P, y, weights).reach(thresholds), found)
    assert set(map(tuple, found.round(9))) <= set(map(tuple, points.round(9)))
    assert Hull(found).volume == pytest.approx(Hull(points).volume, abs=1e-9)
    if P.shape[1] > 3:
        volume = volume_under_surface(y, P, sample_weight=weights)
        assert volume.exact
        assert float(volume) == pytest.approx(Hull(points).volume, abs=1e-9)


def test_three_classes_agree_with_the_line_scan():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 80)
    y = np.array([rng.choice(3, p=p) for p in P], dtype=np.uint8)
    counts = Points.from_arrays(P, y)
    _, hull = scan(all_lines(counts), Hull, pair_curves(counts, hull=True))
    _, points = all_points(Cases.of(counts))
    assert Hull(points).volume == pytest.approx(hull.volume, abs=1e-12)


def test_ascents_never_exceed_the_exact_volume():
    rng = np.random.default_rng(4)
    P = rng.dirichlet(np.ones(4), 25)
    y = np.append(np.arange(4), rng.integers(0, 4, 21)).astype(np.uint8)
    exact = volume_under_surface(y, P)
    assert exact.exact
    bound = volume_under_surface(y, P, resolution=1000)
    assert not bound.exact
    assert 0.99 * float(exact) < float(bound) <= float(exact) + 1e-12
    assert not are_few(cases_of(P, y), most_thresholds=100)


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


@pytest.mark.slow
@pytest.mark.project
def test_the_papers_forecasts_of_four_classes():
    source = Path(__file__).parents[3] / "shared" / "data" / "covtypesmall.csv.gz"
    if not source.exists():
        pytest.skip("Covertype is not part of the repository")
    rows = load(str(source))
    assert isinstance(rows, Rows)
    P_cal, y_cal, P_test, y_test, _ = rows.forecasts(4)
    # Forecasts of a solver that has not converged differ a little between machines.
    assert float(volume_under_surface(y_cal, P_cal)) > 0.6895 - 5e-4
    assert float(volume_under_surface(y_test, P_test)) > 0.6075 - 5e-4
