import numpy as np
from hypothesis import given

from isoroc._core.tree import bin_values
from strategies import trees, truncate


@given(trees())
def test_calibration_points_are_routed_to_the_bin_that_holds_them(drawn):
    sample, members, tree = drawn
    P = sample.forecasts
    bin_of = tree.bin_of(P)
    for b, node in enumerate(tree.bins):
        assert sorted(np.flatnonzero(bin_of == b)) == sorted(members[node])


@given(trees())
def test_every_point_of_the_simplex_lands_in_a_bin_with_data(drawn):
    _, _, tree = drawn
    rng = np.random.default_rng(0)
    P = np.vstack([np.eye(tree.n_classes), rng.dirichlet(np.ones(tree.n_classes), 50)])
    bin_of = tree.bin_of(P)
    assert ((bin_of >= 0) & (bin_of < len(tree.bins))).all()
    assert (tree.class_weights[tree.bins][bin_of].sum(axis=1) > 0).all()


@given(trees())
def test_stages_are_the_truncated_trees(drawn):
    sample, _, tree = drawn
    P = sample.forecasts
    bin_of = tree.bin_of(P)
    stages = list(tree.stages())
    assert len(stages) == tree.n_splits + 1
    for m, node_of_bin in enumerate(stages):
        short = truncate(tree, m)
        assert short.bins[short.bin_of(P)].tolist() == node_of_bin[bin_of].tolist()
        assert (short.split_of_node[short.bins] == -1).all()


@given(trees())
def test_values_are_smoothed_means(drawn):
    _, _, tree = drawn
    weight = tree.class_weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tree.values() * weight, tree.class_weights)
    prior = np.arange(1, tree.n_classes + 1) / np.arange(1, tree.n_classes + 1).sum()
    smoothed = tree.values(2.0, prior)
    np.testing.assert_allclose(smoothed * (weight + 2), tree.class_weights + 2 * prior)
    np.testing.assert_allclose(smoothed.sum(axis=1), 1)
    assert (tree.values(1.0) > 0).all()
    uniform = np.full(tree.n_classes, 1 / tree.n_classes)
    np.testing.assert_array_equal(tree.values(3.0), bin_values(tree.class_weights, 3.0 * uniform))


@given(trees())
def test_gains_are_those_of_the_definition(drawn):
    _, members, tree = drawn
    mean = tree.class_weights / tree.class_weights.sum(axis=1, keepdims=True)
    for s, gain in enumerate(tree.gains()):
        parent = mean[tree.split_nodes[s]]
        kept = tree.children[s][tree.children[s] >= 0]
        expected = sum(len(members[c]) * np.abs(parent - mean[c]).sum() for c in kept)
        np.testing.assert_allclose(gain, expected, atol=1e-9)
