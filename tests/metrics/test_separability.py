from itertools import permutations, product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings

from isoroc.metrics import pairwise_separability, roc_auc
from strategies import binary_data, labelled_forecasts


def exhaustive(P, y, weights=None):
    """The share over all tuples, by trying all assignments; ties get their share."""
    K = P.shape[1]
    w = np.ones(len(y)) if weights is None else weights
    total = credit = 0.0
    for rows in product(*(np.flatnonzero(y == k) for k in range(K))):
        sums = [
            sum(P[r, k] for r, k in zip(rows, order, strict=True))
            for order in permutations(range(K))
        ]
        best = np.isclose(sums, max(sums), rtol=0, atol=1e-9)
        weight = float(np.prod(w[list(rows)]))
        total += weight
        credit += weight * best[0] / best.sum()
    return credit / total


def within(found, expected):
    return abs(found.value - expected) <= 4.5 * found.standard_error + 1e-12


@settings(max_examples=50)
@given(binary_data())
def test_two_classes_are_the_area_under_the_curve(data):
    scores, y, weights = data
    found = pairwise_separability(y, scores, sample_weight=weights)
    assert float(found) == roc_auc(y, scores, sample_weight=weights)
    assert (found.standard_error, found.n_samples) == (0, 0)


@pytest.mark.parametrize("K", [3, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_samples_agree_with_all_tuples(K, weighted):
    rng = np.random.default_rng(K)
    P = rng.dirichlet(np.full(K, 0.7), 6 * K)
    y = np.array([rng.choice(K, p=p) for p in P**1.5 / (P**1.5).sum(axis=1, keepdims=True)])
    y[:K] = np.arange(K)
    weights = rng.integers(0, 5, len(y)) + (np.arange(len(y)) < K) if weighted else None
    found = pairwise_separability(y, P, sample_weight=weights, n_samples=20_000, random_state=0)
    assert within(found, exhaustive(P, y, weights))
    assert 0 < found.standard_error < 0.01


def test_pairs_that_tie_count_one_half():
    P = np.array([[0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    found = pairwise_separability([0, 1, 2], P, n_samples=20_000, random_state=0)
    assert exhaustive(P, np.arange(3)) == 0.5
    assert within(found, 0.5)


@pytest.mark.parametrize("K", [3, 4, 5])
def test_uninformative_and_perfect_forecasts(K):
    y = np.tile(np.arange(K), 50)
    rng = np.random.default_rng(0)
    constant = pairwise_separability(y, np.full((len(y), K), 1 / K), random_state=0)
    assert within(constant, 1 / factorial(K))
    known = pairwise_separability(y, 0.9 * np.eye(K)[y] + 0.1 / K, random_state=0)
    assert (known.value, known.standard_error) == (1, 0)
    # Noise separates tuples by chance; the mean over many sets of rows is 1 / K!.
    values = [
        pairwise_separability(y, rng.dirichlet(np.ones(K), len(y)), n_samples=1000, random_state=0)
        for _ in range(40)
    ]
    spread = np.std([v.value for v in values]) / 40**0.5
    assert np.mean([v.value for v in values]) == pytest.approx(1 / factorial(K), abs=4 * spread)


@settings(max_examples=20)
@given(labelled_forecasts(n_classes=3, max_rows=10))
def test_shares_of_all_orders_of_the_classes_sum_to_one(case):
    """Each tuple is separated under exactly one permutation of the columns."""
    P, y, _ = case
    y[:3] = np.arange(3)
    found = [
        pairwise_separability(y, P[:, order], n_samples=4000, random_state=0)
        for order in permutations(range(3))
    ]
    error = sum(f.standard_error**2 for f in found) ** 0.5
    assert sum(f.value for f in found) == pytest.approx(1, abs=5 * error + 0.005)


def test_seed_and_repr():
    rng = np.random.default_rng(0)
    P, y = rng.dirichlet(np.ones(3), 30), np.arange(30) % 3
    one, two = (pairwise_separability(y, P, n_samples=500, random_state=1) for _ in range(2))
    assert one == two
    assert repr(one) == f"Separability({one.value:.6g} +- {one.standard_error:.2g}, 500 tuples)"
    assert repr(pairwise_separability([0, 1], [0.2, 0.4])) == "Separability(1 +- 0, exact)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples: is 0; expected .* >= 1"),
        (
            {"y_true": [0, 0, 1], "labels": [0, 1, 2]},
            "y_true: no row of class 2 .*; a tuple needs a row of each class",
        ),
        ({"sample_weight": [1, 0, 1]}, "y_true: no row of class .*1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        pairwise_separability(**{"y_true": [0, 1, 2], "y_prob": np.eye(3)} | arguments)
