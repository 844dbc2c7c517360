"""The compiled loops against plain Python. `make sanitize` runs these with all checks on."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoroc._core import growth, pav, rows
from isoroc._counts import BinaryCounts
from strategies import binary_data, forecasts, isotonic_oracle


def test_the_checked_build_is_the_one_under_test():
    assert ("checked-lib" in os.environ.get("PYTHONPATH", "")) == rows.CHECKED


NONE = np.empty(0)
ENTRIES = st.sampled_from([0.0, 0.5, 1.0, 0.25, -1e-17, 1e-13, -0.5, np.nan, np.inf, -np.inf])


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=ENTRIES))
def test_rows_within_bounds(X):
    inside = (X >= 0) & (X <= 1)
    assert rows.are_within(X, 0.0, 1.0, np.inf) == inside.all()
    with np.errstate(invalid="ignore"):
        near = np.abs(X.sum(axis=1) - 1) <= 1e-12
    assert rows.are_within(X, 0.0, 1.0, 1e-12) == (inside.all() and near.all())


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(1, 4)), elements=ENTRIES),
    st.sampled_from([0.0, 0.25, 2.0]),
)
def test_the_smallest_entry_above_a_bound(X, bound):
    assert rows.smallest_above(X, bound) == X[bound < X].min(initial=np.inf)


@given(
    st.lists(st.integers(-9, 9) | st.sampled_from([-(2**63), 2**63 - 1]), max_size=20),
    st.lists(st.integers(0, 5), min_size=1, max_size=6),
    st.integers(-5, 5),
)
def test_values_outside_of_a_table_are_unknown(values, table, low):
    found = rows.look_up(np.array(values, np.int64), low, np.array(table), -1)
    known = dict(enumerate(table, low))
    assert found.tolist() == [known.get(value, -1) for value in values]


def hash_of(numbers):
    """The hash of a forecast in integers without a limit."""
    state = 1
    for bits in np.array([x + 0.0 for x in numbers]).view(np.uint64).tolist():
        x = (state + ((bits + 2**11) >> 12) + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        state = x ^ (x >> 31)
    return state >> 32


@pytest.mark.parametrize("n", [0, 1, 7, 8, 21])
@pytest.mark.parametrize("first", [0, 1])
def test_hashes_of_forecasts(n, first):
    X = np.random.default_rng(n).random((n, 3)) * [1, -1, 0]
    expected = [hash_of(x[first:]) for x in X.tolist()]
    hashes, places = rows.hash_forecasts(X, first, 2**32 - 1)
    assert hashes.tolist() == expected
    assert places.tolist() == list(range(n))
    hashes, places = rows.hash_forecasts(X, first, 2**31)
    assert places.tolist() == [i for i, x in enumerate(expected) if x <= 2**31]
    assert hashes.tolist() == [x for x in expected if x <= 2**31]


@given(st.lists(st.tuples(st.floats(-1e3, 1e3) | st.floats(0, 1), st.integers(0, 2)), min_size=1))
def test_pairs_in_order_are_at_least_those_of_different_cells(data):
    X = np.array([[x, 1 - x] for x, _ in data])
    codes = np.array([code for _, code in data])
    columns = np.array([0, 1, 1])
    n_pairs, in_order = rows.least_concordance(X, columns, codes, np.arange(3))
    for k in range(3):
        zeros, ones = (np.sort(X[(codes == k) == own, columns[k]]) for own in (False, True))
        assert n_pairs[k] == len(zeros) * len(ones)
        apart = (1.2 * np.abs(zeros[:, None]) < ones).sum()  # eight cells for a power of two
        near = (zeros[:, None] < ones).sum()
        assert in_order[k] <= pav.concordance(zeros, NONE, ones, NONE)
        assert in_order[k] <= near
        if X.min() >= 2.0**-32 and X.max() <= 2.0**8:
            assert in_order[k] >= apart


@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(0, 1)
    ),
    st.randoms(use_true_random=False),
)
def test_rows_and_their_outcomes(X, random):
    for P in (X, np.asfortranarray(X)):
        n, K = P.shape
        codes = np.array([random.randrange(K) for _ in range(n)])
        np.testing.assert_array_equal(rows.pick(P, codes), P[np.arange(n), codes])
        values, places = rows.find_largest(P)
        np.testing.assert_array_equal(values, P.max(axis=1))
        np.testing.assert_array_equal(places, P.argmax(axis=1))
        squares = ((P - np.eye(K)[codes]) ** 2).sum(axis=1)
        np.testing.assert_allclose(rows.square_distances(P, codes), squares, rtol=1e-14)


@given(binary_data(weighted=False))
def test_partition_keeps_every_score_with_its_class(data):
    scores, y, _ = data
    parted, n_negative = pav.partition_scores(scores, y.astype(np.uint8))
    assert sorted(parted[:n_negative]) == sorted(scores[y == 0])
    assert sorted(parted[n_negative:]) == sorted(scores[y == 1])


@given(
    st.integers(0, 1000), st.sampled_from([1, 2, 3, 9, 40]), st.sampled_from([1, 2, 12]), st.data()
)
def test_cells_of_rows_leave_the_blocks_unchanged(n, size, digits, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scores = np.round(rng.random(n), digits)
    rates = {"rising": scores, "falling": 1 - scores, "wave": np.sin(9 * scores) / 2 + 0.5}
    rate = rates[data.draw(st.sampled_from(list(rates)))] * data.draw(st.sampled_from([0.05, 1.0]))
    positive = rng.random(n) < rate
    a = np.sort(scores[~positive])
    b = np.sort(scores[positive])
    by_row = pav.pool_adjacent_violators(a, np.ones_like(a), b, np.ones_like(b))
    in_cells = pav.pool_adjacent_violators(a, NONE, b, NONE, size)
    for expected, found in zip(by_row, in_cells, strict=True):
        np.testing.assert_array_equal(found, expected)


@given(binary_data())
def test_merge_and_pool_agree_with_exact_arithmetic(data):
    scores, y, weights = data
    counts = BinaryCounts.from_arrays(scores, y.astype(np.uint8), weights)
    w = np.ones(len(y)) if weights is None else weights

    distinct, class_weights = counts.distinct()
    assert distinct.tolist() == sorted(set(scores.tolist()))
    for value, pair in zip(distinct, class_weights, strict=True):
        assert pair.tolist() == [w[(scores == value) & (y == k)].sum() for k in (0, 1)]

    low, high, block_weights = counts.isotonic_blocks()
    assert (low <= high).all()
    assert (high[:-1] < low[1:]).all()
    block = np.searchsorted(high, scores)
    value = (block_weights[:, 1] / block_weights.sum(axis=1))[block]
    assert (np.diff(block_weights[:, 1] / block_weights.sum(axis=1)) > 0).all()
    np.testing.assert_allclose(value, np.array(isotonic_oracle(scores, y, weights), float))


@given(binary_data())
def test_concordance_counts_pairs(data):
    scores, y, weights = data
    counts = BinaryCounts.from_arrays(scores, y.astype(np.uint8), weights)
    w = np.ones(len(y)) if weights is None else weights
    order = np.sign(scores[y == 1][:, None] - scores[y == 0]) / 2 + 0.5
    expected = w[y == 1] @ order @ w[y == 0]
    found = pav.concordance(
        counts.scores[0], counts.weights[0], counts.scores[1], counts.weights[1]
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_stack_of_blocks_grows_as_far_as_it_must():
    m = 2000  # m groups of rising rate: nothing pools
    scores = np.repeat(np.arange(m, dtype=float), 2)
    y = np.tile([0, 1], m).astype(np.uint8)
    weights = np.where(y == 1, scores + 1.0, 1.0)
    low, high, block_weights = BinaryCounts.from_arrays(scores, y, weights).isotonic_blocks()
    assert low.tolist() == high.tolist() == list(range(m))
    assert block_weights[:, 1].tolist() == list(range(1, m + 1))


@given(st.data(), st.integers(3, 6))
def test_route_follows_the_largest_margin_among_children_that_exist(data, n_classes):
    P = data.draw(forecasts(n_classes))
    thresholds = data.draw(forecasts(n_classes, max_rows=2))
    children = np.full((len(thresholds), n_classes), -1, dtype=np.intp)
    next_node = 1
    for s in range(len(thresholds)):
        kept = data.draw(st.sets(st.integers(0, n_classes - 1), min_size=2))
        for k in sorted(kept):
            children[s, k] = next_node
            next_node += 1
    split_of_node = np.full(next_node, -1, dtype=np.intp)
    split_of_node[0] = 0
    if len(thresholds) > 1:
        split_of_node[data.draw(st.sampled_from(children[0][children[0] >= 0].tolist()))] = 1

    leaves = rows.route(P, thresholds, children, split_of_node)
    for p, leaf in zip(P, leaves, strict=True):
        node = 0
        while (s := split_of_node[node]) >= 0:
            alive = [k for k in range(n_classes) if children[s, k] >= 0]
            node = children[s, max(alive, key=lambda k: (p[k] - thresholds[s, k], -k))]
        assert node == leaf


@given(binary_data(max_rows=12), st.sampled_from([0.25, 1.0, 5.0]))
def test_with_one_more_is_the_isotonic_regression_with_that_row(data, extra):
    scores, y, weights = data
    weights = np.ones(len(y)) if weights is None else weights
    distinct, class_weights = BinaryCounts.from_arrays(
        scores, y.astype(np.uint8), weights
    ).distinct()
    values = pav.with_one_more(class_weights, extra)
    for score, value in zip(distinct, values, strict=True):
        grown = (np.append(scores, score), np.append(y, 1), np.append(weights, extra))
        np.testing.assert_allclose(value, float(isotonic_oracle(*grown)[-1]), atol=1e-12)


@given(st.lists(st.integers(0, 40), max_size=60), st.integers(0, 60))
def test_equal_hashes_share_a_group(numbers, cut):
    hashes = np.array(numbers, dtype=np.uint64) * np.uint64(64)  # which begin at the same places
    slots = np.zeros((128, 2), dtype=np.uint64)
    group, first = rows.find_groups(hashes[:cut], slots, 0)
    larger = np.zeros((256, 2), dtype=np.uint64)
    rows.move_slots(slots, larger)
    others, more = rows.find_groups(hashes[cut:], larger, len(first))
    first = np.append(first, len(group) + more)
    assert first.tolist() == [numbers.index(own) for own in dict.fromkeys(numbers)]
    np.testing.assert_array_equal(hashes[first][np.append(group, others)], hashes)


def test_power_sums_of_weighted_values():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    w = rng.random(2000) * (rng.random(2000) < 0.9)  # some are 0
    s = w * rng.random(2000)
    each = np.divide(s, w, out=np.zeros(2000), where=w > 0)
    powers = np.array([w, s, s * each, s * each**2])
    expected = powers @ np.vander(x - 0.3, 4, increasing=True)
    np.testing.assert_allclose(rows.power_sums(x, w, s, 0.3), expected, rtol=1e-11)


def test_power_sums_without_weights_or_squares():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    w = rng.random(2000)
    nothing = np.empty(0)
    ones = np.ones(2000)
    for passed, weights, squares in (
        ((nothing, nothing), ones, ones),
        ((w, nothing), w, w**2),
    ):
        expected = rows.power_sums(x, weights, squares, 0.3)
        np.testing.assert_allclose(rows.power_sums(x, *passed, 0.3), expected, rtol=1e-13)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_sums_and_leads_of_tilted_forecasts(K):
    rng = np.random.default_rng(K)
    P = rng.dirichlet(np.ones(K), 200)
    tilts = rng.random((4, K))
    bin_of = rng.integers(4, size=200)
    weights = rng.random(200)
    region = rng.integers(K, size=200)
    q = P * tilts[bin_of]
    q /= q.sum(axis=1, keepdims=True)
    wanted = np.array([1, 0, 1, 1], dtype=np.uint8)
    sums, products = growth.tilted_sums(P, bin_of, weights, tilts, wanted)
    everywhere = growth.smallest_leads(P, bin_of, tilts, None)
    in_regions = growth.smallest_leads(P, bin_of, tilts, region)
    for b in range(4):
        here = bin_of == b
        own = q[here] * weights[here, None] * wanted[b]
        np.testing.assert_allclose(sums[b], own.sum(axis=0))
        np.testing.assert_allclose(products[b], own.T @ q[here])
        for i in range(K):
            leads = q[here][:, [i]] - q[here]
            np.testing.assert_allclose(everywhere[b, i], leads.min(axis=0))
            np.testing.assert_allclose(in_regions[b, i], leads[region[here] == i].min(axis=0))


def test_the_largest_cap_leaves_the_slack():
    regions = np.array([0, 1])
    bins = np.array([0, 1])
    constant = np.array([[0.0, 0.4], [0.2, 0.0]])  # the cycle has mean 0.3 at share 0,
    varying = np.array([[0.0, -0.6], [-0.3, 0.0]])  # at share s, 0.3 - 0.75 s
    shares = np.array([1.0, 1.0])
    cap = growth.largest_cap(regions, bins, constant, varying, shares, 0.0, 10**6)
    assert cap == pytest.approx(0.4, abs=1e-6)
    shares[1] = 0.2
    cap = growth.largest_cap(regions, bins, constant, varying, shares, 0.0, 10**6)
    assert cap == pytest.approx(0.5, abs=1e-6)
