"""The engine for any number of classes: what must hold for every tree that it grows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import xlogy

from isoroc._core.simplex import lattice
from isoroc._counts import Points
from isoroc._growth import GrowthOptions, grow_pulled
from isoroc._growth.best_first import Growth, Split, grow, regrow
from isoroc._growth.grow import points_of_leaves
from isoroc._growth.search import GridSearch, Sweep, climb, families
from isoroc._input import Sample
from isoroc._maps import monotonicity
from strategies import isotonic_oracle, labelled_forecasts

OPTIONS = st.fixed_dictionaries(
    {
        "monotonicity": st.sampled_from(["tree", "global", None]),
        "min_bin_weight": st.sampled_from([0.0, 2.0, 5.0]),
        "min_lift": st.sampled_from([0.0, 1.0]),
    }
)


def start(sample, pseudocount=1.0, **options):
    counts = Points.from_arrays(*sample)
    K = counts.class_weights.shape[1]
    return Growth(counts, GrowthOptions(np.full(K, pseudocount / K), **options))


def sweep(seed=0):
    return Sweep(seed)


@given(
    labelled_forecasts(),
    OPTIONS,
    st.sampled_from(["sweep", "grid"]),
    st.sampled_from([0.0, 1.0, 4.0]),
)
def test_every_tree_is_what_it_says(sample, options, how, pseudocount):
    P, codes, weights = sample
    K = P.shape[1]
    growth = start(sample, pseudocount, **options)
    search = sweep() if how == "sweep" else GridSearch(K, {2: 20, 3: 8}.get(K, 4))
    tree = grow(growth, search)
    w = np.ones(len(P)) if weights is None else weights
    bin_of = tree.bin_of(P)

    # Bin weights add up the rows, splits separate, and no bin is empty or too light.
    for b, node in enumerate(tree.bins):
        rows = bin_of == b
        assert rows.any()
        expected = [w[rows & (codes == k)].sum() for k in range(K)]
        np.testing.assert_allclose(tree.class_weights[node], expected, atol=1e-12)
    assert ((tree.children >= 0).sum(axis=1) >= 2).all()
    if tree.n_splits:
        assert tree.class_weights.sum(axis=1).min() >= options["min_bin_weight"]
    # Every point of the simplex gets a value, and values are smoothed means.
    values = tree.values(pseudocount)[tree.bins]
    everywhere = values[tree.bin_of(np.vstack([lattice(K, 3), np.eye(K)]))]
    np.testing.assert_allclose(everywhere.sum(axis=1), 1)
    # ROC monotonicity of raw means and smoothed values, by the checker that knows no growth.
    if options["monotonicity"] is not None:
        for checked in (values, tree.values()[tree.bins]):
            points = P if options["monotonicity"] == "global" else None
            certificate = monotonicity.certify(tree, checked, points)
            assert certificate.verify(tree, checked[tree.bin_of(P)], Sample(P, codes, weights))
            assert (certificate.slack >= -1e-12).all()


@given(labelled_forecasts(n_classes=2), st.sampled_from(["tree", "global"]))
def test_two_classes_give_the_partition_of_isotonic_regression(sample, scope):
    P, codes, weights = sample
    # A grid of 2**-k keeps both columns exact, so that ties are ties in both.
    scores = np.round(P[:, 1] * 64) / 64
    P = np.column_stack([1 - scores, scores])
    tree = grow(start((P, codes, weights), 0.0, monotonicity=scope), sweep())
    expected = np.array(isotonic_oracle(scores, codes, weights), dtype=float)
    np.testing.assert_allclose(tree.values()[tree.bins[tree.bin_of(P)], 1], expected, atol=1e-12)
    assert len(tree.bins) == len(np.unique(np.round(expected, 12)))


@given(st.lists(st.integers(1, 50), min_size=2, max_size=3), st.integers(2, 9))
def test_a_gain_that_is_a_rounding_error_makes_no_split(counts, factor):
    K = len(counts)
    P = np.repeat([np.full(K, 1 / K), np.eye(K)[0]], K, axis=0)
    codes = np.tile(np.arange(K), 2)
    weights = np.r_[counts, factor * np.array(counts)] / 8  # the same mean at both forecasts
    for search in (sweep(), GridSearch(K, 4)):
        assert not grow(start((P, codes, weights), 0.0, monotonicity="global"), search).n_splits


@given(labelled_forecasts(max_rows=30), st.data())
def test_weight_two_is_the_row_twice(sample, data):
    P, codes, _ = sample
    repeats = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(P), max_size=len(P))))
    weighted = (P, codes, repeats.astype(float))
    repeated = (np.repeat(P, repeats, axis=0), np.repeat(codes, repeats), None)
    one, two = (grow(start(s, monotonicity="tree"), sweep()) for s in (weighted, repeated))
    np.testing.assert_array_equal(one.thresholds, two.thresholds)
    np.testing.assert_array_equal(one.class_weights, two.class_weights)


@given(labelled_forecasts(), st.randoms(use_true_random=False))
def test_same_seed_same_tree_and_row_order_does_not_matter(sample, random):
    P, codes, weights = sample
    order = list(range(len(P)))
    random.shuffle(order)
    shuffled = (P[order], codes[order], None if weights is None else weights[order])
    one, two = (grow(start(s, monotonicity="tree"), sweep(7)) for s in (sample, shuffled))
    np.testing.assert_array_equal(one.thresholds, two.thresholds)


@given(labelled_forecasts(), st.sampled_from(["tree", "global"]))
def test_searches_find_what_the_final_check_allows(sample, scope):
    growth = start(sample, monotonicity=scope)
    for search in (sweep(), GridSearch(growth.n_classes, 4)):
        split = search(growth, 0)
        if split is not None:
            plan = growth.plan(0, split.gamma)
            np.testing.assert_allclose(plan.weights, split.children, atol=1e-9)
            assert split.gain == pytest.approx(gain_of(growth, 0, plan))


def gain_of(growth, node, plan):
    mean = growth.class_weights[node] / growth.class_weights[node].sum()
    size = plan.weights.sum(axis=1, keepdims=True)
    return float(np.abs(plan.weights - size * mean).sum())


def brute_force_best(growth, node, candidates):
    best = 0.0
    for gamma in candidates:
        plan = growth.plan(node, gamma)
        if plan is not None:
            best = max(best, gain_of(growth, node, plan))
    return best


@pytest.mark.parametrize("scope", ["tree", "global"])
@pytest.mark.parametrize("seed", range(6))
def test_the_line_search_is_exact_along_an_axis(scope, seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), 80)
    codes = np.array([rng.choice(3, p=p) for p in P]).astype(np.uint8)
    growth = start((P, codes, None), monotonicity=scope)
    first = sweep()(growth, 0)
    assert growth.attempt(0, first.gamma) is not None
    for node in list(growth.members):
        points = growth.points[growth.members[node]]
        _, *pairs = zip(*families((0, 1, 2), pairs=True), strict=True)
        for start_at, axes in pairs:
            found = climb(growth, node, start_at[None].copy(), axes[None])
            # every place for that boundary between two neighbouring points
            i = int(axes[0])
            j = next(k for k in range(3) if k != i and start_at[k] == 0)
            t = np.sort(points[:, i] - points[:, j])
            candidates = []
            for place in (t[1:] + t[:-1]) / 2:
                gamma = start_at.copy()
                gamma[i] = place
                candidates.append(gamma + (1 - gamma.sum()) / 3)
            best = brute_force_best(growth, node, candidates)
            assert (found[0].gain if found else 0.0) == pytest.approx(best)


@pytest.mark.parametrize("scope", ["tree", "global"])
def test_the_grid_takes_the_best_lattice_point(scope):
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), 60)
    codes = np.array([rng.choice(3, p=p) for p in P]).astype(np.uint8)
    growth = start((P, codes, None), monotonicity=scope)
    search = GridSearch(3, 12)
    for _ in range(2):
        for node in list(growth.members):
            tree = growth.tree()
            inside = search.lattice[tree.bins[tree.bin_of(search.lattice)] == node]
            split = search(growth, node)
            best = brute_force_best(growth, node, inside)
            assert (split.gain if split else 0.0) == pytest.approx(best)
        if 0 in growth.members:
            root = search(growth, 0)
            assert root
            growth.attempt(0, root.gamma)
    assert len(growth.members) > 1


def test_near_ties_do_not_trap_growth():
    rng = np.random.default_rng(0)
    P = np.tile([1 / 3, 1 / 3, 1 / 3], (200, 1)) + rng.normal(size=(200, 3)) * 1e-13
    P /= P.sum(axis=1, keepdims=True)
    codes = rng.integers(0, 3, 200).astype(np.uint8)
    growth = start((P, codes, None), monotonicity="tree")
    tree = grow(growth, sweep())
    for b, node in enumerate(tree.bins):
        found = np.bincount(codes[tree.bin_of(P) == b], minlength=3)
        np.testing.assert_array_equal(tree.class_weights[node], found)


def test_points_next_to_a_vertex_are_told_apart():
    # Far below the rounding of 1, yet which of the small classes is ahead tells the label.
    tiny = np.array([1e-20, 1e-25] * 100)
    P = np.column_stack([np.ones(200), tiny, tiny[::-1]])
    codes = np.where(P[:, 1] > P[:, 2], 1, 2).astype(np.uint8)
    tree = grow(start((P, codes, None), monotonicity="tree"), sweep())
    assert len(tree.bins) == 2
    assert (tree.values()[tree.bins][tree.bin_of(P)].argmax(axis=1) == codes).all()


def test_max_bins_is_never_exceeded():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), 400)
    codes = np.array([rng.choice(4, p=p) for p in P]).astype(np.uint8)
    for max_bins in range(1, 12):
        tree = grow(start((P, codes, None), monotonicity="tree", max_bins=max_bins), sweep())
        assert len(tree.bins) <= max_bins
    assert len(tree.bins) >= 10


@pytest.mark.parametrize("min_lift", [1.0, 1.5, 2.0, 3.0])
def test_every_split_lifts_the_likelihood_by_more_than_chance(min_lift):
    """The first split of a tree included: half a nat for each free entry of the bins it adds."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 3000)
    y = np.array([rng.choice(3, p=p) for p in P], dtype=np.uint8)
    tree = grow(start((P, y, None), monotonicity=None, min_lift=min_lift), sweep())
    weights = tree.class_weights
    loss = -xlogy(weights, weights / weights.sum(axis=1, keepdims=True)).sum(axis=1)
    lifts = np.array([loss[node] - loss[below].sum() for node, below in tree.splits])
    added = np.array([len(below) - 1 for _, below in tree.splits])
    assert len(lifts) > 10
    assert 1 <= (lifts / (min_lift * added)).min() < 1.2


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(("share", "n_bins"), [(0.99, 2), (1.01, 1)])
def test_a_split_lifts_the_likelihood_by_half_a_nat_of_min_lift_per_free_entry(K, share, n_bins):
    P = np.full((2, K), 0.3 / (K - 1))
    P[:, 0] = P[:, 1].copy()
    P[[0, 1], [0, 1]] = 0.7
    counts = np.ones((2, K))
    counts[[0, 1], [0, 1]] = 9
    y = np.concatenate([np.repeat(np.arange(K), row.astype(int)) for row in counts])
    lift = Split(np.zeros(K), 0.0, counts).lift
    sample = P.repeat(counts.sum(axis=1).astype(int), axis=0), y.astype(np.uint8), None
    growth = start(sample, monotonicity="tree", min_lift=share * lift / (0.5 * (K - 1)))
    assert len(grow(growth, sweep()).bins) == n_bins


def test_min_lift_leaves_pure_noise_alone():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 1000)
    noise = rng.integers(0, 3, 1000).astype(np.uint8)
    free, held = (
        grow(start((P, noise, None), monotonicity="tree", min_lift=lift), sweep())
        for lift in (0, 8)
    )
    assert len(held.bins) < len(free.bins)


def test_lift_is_the_rise_in_log_likelihood():
    children = np.array([[8.0, 2, 0], [1, 1, 3]])
    split = Split(np.zeros(3), 0.0, children)
    together = children.sum(axis=0)
    before = sum(w * np.log(w / together.sum()) for w in together if w)
    after = sum(w * np.log(w / row.sum()) for row in children for w in row if w)
    assert split.lift == pytest.approx(after - before)


@given(labelled_forecasts(max_rows=40), st.sampled_from(["tree", "global"]))
def test_regrowing_on_the_same_points_changes_nothing(sample, scope):
    tree = grow(start(sample, monotonicity=scope), sweep())
    again = regrow(tree, start(sample, monotonicity=scope))
    np.testing.assert_array_equal(tree.thresholds, again.thresholds)
    np.testing.assert_array_equal(tree.class_weights, again.class_weights)


@given(labelled_forecasts(n_classes=3, max_rows=60))
def test_regrowing_on_other_points_drops_what_they_forbid(sample):
    P, codes, weights = sample
    tree = grow(start(sample, monotonicity="tree"), sweep())
    shuffled = (P, np.roll(codes, 1), weights)
    again = regrow(tree, start(shuffled, monotonicity="tree"))
    values = again.values(1.0)[again.bins]
    calibrated = values[again.bin_of(shuffled[0])]
    assert monotonicity.certify(again, values).verify(again, calibrated, Sample(*shuffled))
    assert {g.tobytes() for g in again.thresholds} <= {g.tobytes() for g in tree.thresholds}
    for b, node in enumerate(again.bins):
        w = np.ones(len(P)) if weights is None else weights
        assert again.class_weights[node].sum() == pytest.approx(w[again.bin_of(P) == b].sum())


@given(labelled_forecasts(n_classes=3), labelled_forecasts(n_classes=3), st.sampled_from([0, 3]))
def test_regrowing_on_leaves_is_regrowing_on_all_rows(sample, others, least):
    tree = grow(start(sample, monotonicity="tree"), sweep())
    options = GrowthOptions(np.ones(3), min_bin_weight=least)
    rows = Sample(*others)
    on_rows = regrow(tree, Growth(Points.of_rows(rows), options))
    on_leaves = regrow(tree, Growth(points_of_leaves(tree, rows)[0], options))
    assert on_leaves.thresholds.tolist() == on_rows.thresholds.tolist()
    assert on_leaves.children.tolist() == on_rows.children.tolist()
    np.testing.assert_allclose(on_leaves.class_weights, on_rows.class_weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_forecasts_are_those_of_the_rows_in_each_bin(weighted):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 3000)
    codes = np.array([rng.choice(3, p=p) for p in P]).astype(np.uint8)
    rows = Sample(P, codes, rng.random(3000) if weighted else None)
    options = GrowthOptions(np.full(3, 1 / 3), max_cells=100)
    pulled = grow_pulled(rows, options, 1.0)
    tree = pulled.tree
    weights = rows.row_weights()
    assert tree.n_splits > 3
    assert pulled.means is not None
    np.testing.assert_array_equal(pulled.bin_of, tree.bin_of(P))
    np.testing.assert_allclose(pulled.means[0], np.average(P, axis=0, weights=weights))
    for b, node in enumerate(tree.bins):
        here = tree.bin_of(P) == b
        expected = np.average(P[here], axis=0, weights=weights[here])
        np.testing.assert_allclose(pulled.means[node], expected)


def test_a_split_that_no_longer_fits_is_searched_again():
    # On such data some bins lose their best split to others' growth. All certificates hold still.
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.full(3, 0.7), 600)
    codes = np.array([rng.choice(3, p=0.8 * p + 0.2 / 3) for p in P]).astype(np.uint8)
    calls = []
    search = sweep()

    def counted(growth, node):
        calls.append(node)
        return search(growth, node)

    tree = grow(start((P, codes, None), monotonicity="global"), counted)
    assert len(calls) > len(set(calls))
    values = tree.values(1.0)[tree.bins]
    certificate = monotonicity.certify(tree, values, P)
    assert certificate.verify(tree, values[tree.bin_of(P)], Sample(P, codes))
    broken = replace(certificate, calibrated_thresholds=certificate.thresholds[:, [1, 2, 0]])
    assert not broken.verify(tree, values[tree.bin_of(P)], Sample(P, codes))
