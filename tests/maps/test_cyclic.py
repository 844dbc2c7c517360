import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from isoroc._maps import cyclic as _cyclic
from isoroc._maps.cyclic import check_cyclic, has_negative_cycle


def best_assignment_is_the_own(z, Q, tolerance=1e-9):
    """Cyclic monotonicity by another theorem: no permutation of the rows of Q fits z better."""
    rows, columns = linear_sum_assignment(z @ Q.T, maximize=True)
    return (z @ Q.T)[rows, columns].sum() <= np.einsum("nk,nk->", z, Q) + tolerance


def random_rows(seed, n, K):
    rng = np.random.default_rng(seed)
    return rng.normal(scale=3, size=(n, K)), rng


@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 30),
    K=st.integers(3, 6),
    noise=st.sampled_from([0.0, 1e-3, 1e-2, 0.1, 1.0]),
)
def test_agrees_with_optimal_assignment(seed, n, K, noise):
    z, rng = random_rows(seed, n, K)
    Q = np.exp(z / 2)
    Q = Q / Q.sum(axis=1, keepdims=True) + noise * rng.dirichlet(np.ones(K), n)
    Q /= Q.sum(axis=1, keepdims=True)
    assert bool(check_cyclic(z, Q)) == best_assignment_is_the_own(z, Q)


@pytest.mark.parametrize(("degrees", "monotone"), [(0, True), (30, False), (60, False)])
def test_a_rotation_is_monotone_in_pairs_but_not_round_a_cycle(degrees, monotone):
    # In the plane of differences: <z - z', R (z - z')> = cos(angle) |z - z'|^2 > 0 for each pair.
    plane = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    turn = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    z = np.column_stack([np.cos(turn), np.sin(turn)]) @ plane
    turned = turn + np.radians(degrees)
    Q = 1 / 3 + np.column_stack([np.cos(turned), np.sin(turned)]) @ plane / 10
    pairs = [(z[i] - z[j]) @ (Q[i] - Q[j]) for i in range(24) for j in range(24)]
    assert min(pairs) >= -1e-12
    assert bool(check_cyclic(z, Q)) == monotone == best_assignment_is_the_own(z, Q)


def test_two_classes_are_in_order():
    odds = np.array([0.0, -1.0, 2.0, 0.0, 5.0])
    z = np.column_stack([np.zeros(5), odds])
    q = np.array([0.4, 0.1, 0.6, 0.4, 1.0])
    assert check_cyclic(z, np.column_stack([1 - q, q]))
    for other in ([0.4, 0.1, 0.6, 0.5, 1.0], [0.1, 0.4, 0.6, 0.1, 1.0]):  # a tie torn, a reversal
        q = np.array(other)
        assert not check_cyclic(z, np.column_stack([1 - q, q]))


def test_reversals_of_tiny_forecasts_are_found():
    z = np.column_stack([np.zeros(3), [1.0, 2.0, 3.0]])
    small = np.array([2e-20, 1e-20, 3e-20])
    assert not check_cyclic(z, np.column_stack([1 - small, small]))
    assert not check_cyclic(-z, np.column_stack([small, 1 - small]))


def test_of_many_rows_a_random_part_is_checked_and_it_says_so(monkeypatch):
    monkeypatch.setattr(_cyclic, "MOST_CHECKED", 50)
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 51)
    check = check_cyclic(np.log(P), P)
    assert (check.monotone, check.rows, check.exact) == (True, 50, False)
    assert check_cyclic(np.log(P[:50]), P[:50]).exact


@given(seed=st.integers(0, 2**32), n=st.integers(1, 7))
def test_negative_cycles_against_walks_of_all_lengths(seed, n):
    steps = np.random.default_rng(seed).integers(-2, 9, size=(n, n)).astype(float)
    shortest = steps.copy()
    for k in range(n):  # Floyd and Warshall
        shortest = np.minimum(shortest, shortest[:, [k]] + shortest[[k], :])
    assert has_negative_cycle(steps) == (np.diag(shortest) < 0).any()
