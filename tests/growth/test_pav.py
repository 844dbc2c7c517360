from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc._core.pav import irp_path
from isoroc._core.tree import bin_values
from isoroc._counts import BinaryCounts
from isoroc._growth import GrowthOptions
from isoroc._growth.pav import Blocks, grow_isotonic
from strategies import binary_data, isotonic_oracle, truncate

NONE = np.zeros(2)


def grow(data, pseudocounts=NONE, **params):
    scores, y, weights = data
    counts = BinaryCounts.from_arrays(scores, y.astype(np.uint8), weights)
    return grow_isotonic(Blocks.of(counts), GrowthOptions(np.asarray(pseudocounts), **params))[0]


def naive_path(scores, y):
    """IRP from its definition: best-first, all thresholds tried, in exact arithmetic.

    Returns the partitions as sets of frozensets of rows, or stops where a choice is not unique.
    """
    bins = [frozenset(range(len(y)))]
    partitions = [set(bins)]
    while True:
        candidates = []
        for b in bins:
            mean = Fraction(int(sum(y[i] for i in b)), len(b))
            for t in sorted({scores[i] for i in b})[:-1]:
                left = frozenset(i for i in b if scores[i] <= t)
                right = b - left
                below = Fraction(int(sum(y[i] for i in left)), len(left))
                above = Fraction(int(sum(y[i] for i in right)), len(right))
                if below < above:
                    gain = 2 * (len(left) * abs(mean - below) + len(right) * abs(mean - above))
                    candidates.append((gain, b, left, right))
        if not candidates:
            return partitions, True
        best = max(gain for gain, *_ in candidates)
        ties = [c for c in candidates if c[0] == best]
        if len(ties) > 1:
            return partitions, False
        _, b, left, right = ties[0]
        bins = [x for x in bins if x != b] + [left, right]
        partitions.append(set(bins))


def partition_of(bin_of):
    return {frozenset(np.flatnonzero(bin_of == b).tolist()) for b in np.unique(bin_of)}


@given(binary_data(weighted=False, max_rows=25))
def test_the_path_is_best_first_splitting_of_the_points(data):
    scores, y, _ = data
    tree = grow(data)
    expected, complete = naive_path(scores, y)
    stages = [partition_of(nodes[tree.bin_of(scores)]) for nodes in tree.stages()]
    assert stages[: len(expected)] == expected
    if complete:
        assert len(stages) == len(expected)


@given(binary_data())
def test_the_path_ends_at_isotonic_regression(data):
    scores, y, weights = data
    tree = grow(data)
    value = tree.values()[tree.bins, 1]
    assert (np.diff(value) > 0).all()
    expected = np.array(isotonic_oracle(scores, y, weights), dtype=float)
    np.testing.assert_allclose(value[tree.bin_of(scores)], expected, rtol=1e-12)


@given(binary_data(), st.floats(0.01, 50), st.floats(0.01, 0.99))
def test_smoothed_values_rise_at_every_stage(data, pseudocount, prior):
    pseudocounts = pseudocount * np.array([1 - prior, prior])
    tree = grow(data, pseudocounts)
    for m in range(tree.n_splits + 1):
        stage = truncate(tree, m)
        for values in (stage.values(), stage.values(pseudocount, pseudocounts / pseudocount)):
            assert (np.diff(values[stage.bins, 1]) > 0).all()


def reference_path(weights, forecasts, pseudocounts, forecast_pseudocount, gap):
    """Splits of blocks by their definition, with the values of `bin_values`.

    Returns them as (start, cut, stop), up to the first choice that is not unique.
    """

    def value(start, stop):
        total = weights[start:stop].sum(axis=0)
        mean = forecasts[start:stop].sum()
        mean /= total.sum()
        added = pseudocounts + forecast_pseudocount * np.array([1 - mean, mean])
        return bin_values(total, added)[1]

    bins = [(0, len(weights))]
    splits = list[tuple[int, int, int]]()
    while True:
        candidates = []
        for i, (start, stop) in enumerate(bins):
            below = value(*bins[i - 1]) if i else -np.inf
            above = value(*bins[i + 1]) if i + 1 < len(bins) else np.inf
            mean = bin_values(weights[start:stop].sum(axis=0), 0.0)
            for cut in range(start + 1, stop):
                left = value(start, cut)
                right = value(cut, stop)
                if below + gap < left and left + gap < right and right + gap < above:
                    part = weights[start:cut].sum(axis=0)
                    gain = np.abs(part - part.sum() * mean).sum()
                    candidates.append((gain, i, cut))
        candidates.sort(reverse=True)
        if not candidates:
            return splits, True
        if len(candidates) > 1 and candidates[0][0] < candidates[1][0] * (1 + 1e-9):
            return splits, False
        _, i, cut = candidates[0]
        start, stop = bins[i]
        splits.append((start, cut, stop))
        bins[i : i + 1] = [(start, cut), (cut, stop)]


@pytest.mark.parametrize("forecast_pseudocount", [0.0, 3.0, 40.0])
@pytest.mark.parametrize("seed", range(8))
def test_the_compiled_path_has_the_values_of_bin_values(seed, forecast_pseudocount):
    rng = np.random.default_rng(seed)
    p = rng.random(150)
    scores = p**2
    y = (rng.random(150) < p).astype(np.uint8)
    pseudocounts = rng.random(2) * 4
    counts = BinaryCounts.from_arrays(scores, y, rng.random(150) + 0.5)
    blocks = Blocks.of(counts, "probability").pool(pseudocounts, forecast_pseudocount)
    expected, complete = reference_path(
        blocks.weights, blocks.forecasts, pseudocounts, forecast_pseudocount, 1e-14
    )
    limits = 1e-14 if forecast_pseudocount else 0.0, 0.0, 0.0, 150
    _, splits = irp_path(blocks.sums(), pseudocounts, forecast_pseudocount, *limits)
    found = list(map(tuple, splits.tolist()))
    assert found[: len(expected)] == expected
    assert len(expected) > 1
    if complete:
        assert len(found) == len(expected)


# With smoothing, a tie of gains can lead the two to different bins.
@given(binary_data())
def test_swapping_the_classes_mirrors_the_bins(data):
    scores, y, weights = data
    tree = grow(data)
    mirrored = grow((-scores, 1 - y, weights))
    np.testing.assert_array_equal(
        tree.class_weights[tree.bins], mirrored.class_weights[mirrored.bins][::-1, ::-1]
    )


@given(binary_data(), st.floats(0, 20))
def test_node_weights_add_up(data, pseudocount):
    scores, y, weights = data
    tree = grow(data, np.full(2, pseudocount / 2))
    w = np.ones(len(y)) if weights is None else weights
    np.testing.assert_array_equal(tree.class_weights[0], [w[y == 0].sum(), w[y == 1].sum()])
    np.testing.assert_array_equal(
        tree.class_weights[tree.split_nodes], tree.class_weights[tree.children].sum(axis=1)
    )
    bin_of = tree.bin_of(scores)
    for b, node in enumerate(tree.bins):
        for k in (0, 1):
            assert tree.class_weights[node, k] == w[(bin_of == b) & (y == k)].sum()


@given(binary_data(), st.integers(1, 6), st.floats(0, 8))
def test_max_bins_and_min_bin_weight_bound_the_bins(data, max_bins, min_bin_weight):
    tree = grow(data, max_bins=max_bins, min_bin_weight=min_bin_weight)
    assert len(tree.bins) <= max_bins
    if len(tree.bins) > 1:
        assert tree.class_weights[tree.bins].sum(axis=1).min() >= min_bin_weight
    free = grow(data)
    capped = grow(data, max_bins=max_bins)
    assert len(capped.bins) == min(max_bins, len(free.bins))
    np.testing.assert_array_equal(capped.thresholds, free.thresholds[: capped.n_splits])


def test_light_blocks_that_smoothing_puts_out_of_order_are_pooled():
    # rates 0.9 of 100 rows and 1 of one row: smoothed 0.896 and 0.75, so they pool
    scores = np.r_[np.zeros(50), np.ones(100), 2.0]
    y = np.r_[np.zeros(50), np.zeros(10), np.ones(90), 1].astype(int)
    tree = grow((scores, y, None), [0.5, 0.5])
    assert tree.cuts.tolist() == [0.5]
    np.testing.assert_array_equal(tree.class_weights[tree.bins], [[50, 0], [10, 91]])


@pytest.mark.parametrize("pseudocount", [0.1, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("seed", range(5))
def test_with_smoothing_the_path_ends_at_the_pooled_blocks(pseudocount, seed):
    # Not a theorem: greedy growth could get stuck earlier, but thousands of such draws never did.
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 0.5, size=5000)
    y = (rng.random(5000) < scores**1.5).astype(np.uint8)
    pseudocounts = np.full(2, pseudocount / 2)
    pooled = Blocks.of(BinaryCounts.from_arrays(scores, y)).pool(pseudocounts).weights
    tree = grow((scores, y, None), pseudocounts)
    np.testing.assert_array_equal(tree.class_weights[tree.bins], pooled)


@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_weights_of_any_allowed_size(scale):
    rng = np.random.default_rng(1)
    scores = rng.random(200)
    y = rng.integers(0, 2, 200)
    weights = rng.integers(1, 9, 200) / 8
    plain = grow((scores, y, weights))
    scaled = grow((scores, y, weights * scale))
    assert plain.cuts.tolist() == scaled.cuts.tolist()
