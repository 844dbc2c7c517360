import numpy as np
import pytest
from hypothesis import given

from isoroc._core.simplex import binary_scores
from isoroc._counts import BinaryCounts, Points
from strategies import labelled_forecasts


@given(labelled_forecasts(min_classes=2))
def test_distinct_forecasts_keep_all_weight(data):
    P, y, weights = data
    counts = Points.from_arrays(P, y, weights)
    assert counts.exact
    w = np.ones(len(P)) if weights is None else weights
    if P.shape[1] == 2:  # forecasts of two classes are their scores
        scores = binary_scores(P)
        P = np.column_stack([1 - scores, scores])
    assert len(counts.forecasts) == len({p.tobytes() for p in P + 0.0})
    for p, row in zip(counts.forecasts, counts.class_weights, strict=True):
        same = (p == P).all(axis=1)
        assert row.tolist() == [w[same & (y == k)].sum() for k in range(P.shape[1])]


@pytest.mark.parametrize("weighted", [False, True])
def test_forecasts_of_blocks_are_sums_over_their_rows(weighted):
    rng = np.random.default_rng(0)
    p = rng.integers(0, 21, 100) / 20  # some blocks have one distinct forecast
    y = (rng.random(100) < p).astype(np.uint8)
    weights = rng.integers(1, 9, 100) / 8 if weighted else None
    counts = BinaryCounts.from_arrays(p, y, weights)
    low, high, _ = counts.isotonic_blocks()
    assert (low == high).any()
    w = np.ones(100) if weights is None else weights
    expected = [(w * p)[(a <= p) & (p <= b)].sum() for a, b in zip(low, high, strict=True)]
    np.testing.assert_allclose(counts.forecasts_in(low, high, "probability"), expected)


def test_cells_are_few_and_lose_nothing_but_place():
    rng = np.random.default_rng(0)
    for K in (3, 5, 40):
        P = rng.dirichlet(np.full(K, 0.5), 20_000)
        y = rng.integers(0, K, 20_000).astype(np.uint8)
        w = rng.integers(1, 9, 20_000) / 8
        counts = Points.from_arrays(P, y, w, max_cells=1000)
        assert not counts.exact
        assert 100 < len(counts.forecasts) <= 1000 or K == 40
        np.testing.assert_allclose(counts.class_weights.sum(axis=0), np.bincount(y, w, minlength=K))
        np.testing.assert_allclose(counts.forecasts.sum(axis=1), 1)


def test_cells_are_finer_next_to_the_vertices():
    grid = np.linspace(0, 1, 200_001)
    P = np.column_stack([1 - grid, grid, 0 * grid])
    counts = Points.from_arrays(P, np.zeros(len(P), dtype=np.uint8), max_cells=200)
    sizes = counts.class_weights[:, 0]
    middle = np.abs(counts.forecasts[:, 1] - 0.5) < 0.2
    edge = counts.forecasts[:, 1] < 0.01
    assert sizes[edge].mean() < sizes[middle].mean() / 3


def test_scores_become_two_columns():
    counts = Points.from_arrays(np.array([0.25, 0.75]), np.array([0, 1], dtype=np.uint8))
    assert counts.forecasts.tolist() == [[0.25, 0.75], [0.75, 0.25]]
