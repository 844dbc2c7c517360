from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import linprog

from isoroc._core.simplex import regions
from isoroc._maps import monotonicity
from strategies import trees


@st.composite
def digraphs(draw, max_classes=5):
    """Weights of complete digraphs, some edges missing, in eighths so that sums are exact."""
    K = draw(st.integers(2, max_classes))
    elements = st.one_of(st.integers(-8, 16).map(lambda k: k / 8), st.just(np.inf))
    W = draw(hnp.arrays(np.float64, (2, K, K), elements=elements))
    W[:, range(K), range(K)] = np.inf
    return W


def smallest_cycle_mean(W, longest):
    K = len(W)
    return min(
        sum(W[c[m], c[(m + 1) % length]] for m in range(length)) / length
        for length in range(2, longest + 1)
        for c in permutations(range(K), length)
    )


@given(digraphs())
def test_slack_is_the_smallest_cycle_mean(W):
    K = W.shape[-1]
    expected = [smallest_cycle_mean(w, K) for w in W]
    np.testing.assert_allclose(monotonicity.largest_slack(W), expected)


@given(digraphs())
def test_slack_is_the_optimum_of_the_linear_program(W):
    W = W[0]
    K = len(W)
    edges = [(i, j) for i in range(K) for j in range(K) if np.isfinite(W[i, j])]
    assume(edges)
    rows = np.zeros((len(edges), K + 1))
    for row, (i, j) in zip(rows, edges, strict=True):
        row[[i, j, K]] = 1, -1, 1
    program = linprog(
        np.r_[np.zeros(K), -1],
        rows,
        [W[e] for e in edges],
        bounds=[(None, None)] * K + [(None, 99)],
    )
    slack = monotonicity.largest_slack(W[None])[0]
    np.testing.assert_allclose(min(slack, 99), -program.fun, atol=1e-9)


@given(digraphs())
def test_solutions_satisfy_every_constraint_with_that_slack(W):
    gamma, slack = monotonicity.solve(W)
    for w, g, s in zip(W, gamma, slack, strict=True):
        assert np.isnan(g).all() == (s < 0)
        if s >= 0:
            np.testing.assert_allclose(g.sum(), 1)
            slack = w - (g[:, None] - g[None, :])
            assert slack.min() >= (s if np.isfinite(s) else 0) - 1e-12


@given(trees(), st.floats(0, 3))
def test_bounds_are_minima_over_points(drawn, pseudocount):
    sample, _, tree = drawn
    P = sample.forecasts
    values = tree.values(pseudocount)[tree.bins]
    calibrated = values[tree.bin_of(P)]
    everywhere = monotonicity.bounds_of(values, monotonicity.regions_held(tree, P))
    below = monotonicity.bounds_of(values, monotonicity.regions_held(tree))
    for s, gamma in enumerate(tree.thresholds):
        region = regions(P, gamma)
        reached = list(tree.stages())[s][tree.bin_of(P)] == tree.split_nodes[s]
        for W, rows in ((everywhere[s], reached | ~reached), (below[s], reached)):
            for i in range(tree.n_classes):
                for j in set(range(tree.n_classes)) - {i}:
                    inside = calibrated[rows & (region == i)]
                    expected = (inside[:, i] - inside[:, j]).min() if len(inside) else np.inf
                    assert W[i, j] == expected


@given(trees())
def test_certificates_verify_where_there_is_slack_and_only_there(drawn):
    sample, _, tree = drawn
    P = sample.forecasts
    values = tree.values(1.0)[tree.bins]
    for points in (None, P):
        certificate = monotonicity.certify(tree, values, points)
        if (certificate.slack > 1e-9).all():
            assert certificate.verify(tree, values[tree.bin_of(sample.forecasts)], sample)
        elif (certificate.slack < -1e-9).any():
            with np.errstate(invalid="ignore"):
                assert not certificate.verify(tree, values[tree.bin_of(sample.forecasts)], sample)


@given(trees(n_classes=2))
def test_for_two_classes_all_roads_lead_to_isotony(drawn):
    sample, _, tree = drawn
    P = sample.forecasts
    values = tree.values(1.0)[tree.bins]
    isotone = (np.diff(values[:, 1]) >= 0).all()
    for W in (
        monotonicity.bounds_of(values, monotonicity.regions_held(tree)),
        monotonicity.bounds_of(values, monotonicity.regions_held(tree, P)),
    ):
        slack = monotonicity.largest_slack(W)
        np.testing.assert_allclose(slack, [smallest_cycle_mean(w, 2) for w in W])
        assert (slack >= -1e-12).all() == isotone
    if isotone:
        certificate = monotonicity.certify(tree, values)
        np.testing.assert_allclose(certificate.slack, slack, atol=1e-12)
        gamma, _ = monotonicity.solve(W)
        np.testing.assert_allclose(certificate.calibrated_thresholds, gamma, atol=1e-12)


@given(trees(n_classes=3), st.sampled_from(["global", "tree"]))
def test_a_false_certificate_is_refuted(drawn, scope):
    sample, _, tree = drawn
    assume(tree.n_splits > 0 and tree.children[0, 0] >= 0)
    everyone_in_region_0 = np.tile([-9.0, 5.0, 5.0], (tree.n_splits, 1))
    slack = np.ones(tree.n_splits)
    false = monotonicity.Certificate(scope, tree.thresholds, everyone_in_region_0, slack)
    calibrated = tree.values(1.0)[tree.bins][tree.bin_of(sample.forecasts)]
    assert not false.verify(tree, calibrated, sample)


@pytest.mark.parametrize(("scope", "words"), [("global", "on the boundary"), ("tree", "reaches")])
def test_certificates_speak(scope, words):
    gamma = np.array([[0.2, 0.3, 0.5]])
    certificate = monotonicity.Certificate(scope, gamma, gamma, np.array([0.125]))
    assert words in str(certificate)
    assert "smallest slack 0.125" in str(certificate)
    assert list(certificate.table())[:3] == ["split", "threshold_0", "calibrated_0"]
    empty = monotonicity.Certificate(scope, gamma[:0], gamma[:0], np.empty(0))
    assert "one bin" in str(empty)
