"""Calibration errors in cells: mergeable, without bias, with intervals that cover."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoroc.metrics import calibration_error
from isoroc.metrics._estimation.cell_errors import (
    N_CELLS,
    error_in_cells,
    probability_cells,
    sum_in_cells,
)
from truths import distorted


@settings(max_examples=20)
@given(st.integers(2, 4), st.integers(0, 10**6), st.integers(1, 49))
def test_sums_can_be_merged(n_classes, seed, cut):
    P, _, y = distorted(50, n_classes, 2.0, seed)
    parts = [sum_in_cells(P[rows], y[rows]) for rows in (slice(cut), slice(cut, None))]
    np.testing.assert_allclose(parts[0] + parts[1], sum_in_cells(P, y), atol=1e-12)
    assert (sum_in_cells(P, y)[:, :, 0].sum(axis=1) == 50).all()


def test_cells_cover_the_unit_interval():
    q = np.linspace(0, 1, 1001)
    assert np.unique(probability_cells(q)).tolist() == list(range(N_CELLS))
    assert (np.diff(probability_cells(q)) >= 0).all()


def test_the_error_of_one_cell_is_that_of_the_metric():
    rng = np.random.default_rng(0)
    p = np.full(300, 0.45)
    y = rng.random(300) < 0.6
    P = np.column_stack([1 - p, p])
    error, low, high = error_in_cells(sum_in_cells(P, y), 1.96)
    expected = calibration_error(y, p, norm="l2", bins="ties")
    # The metric divides by the number of pairs n (n - 1), the sums by n * n.
    assert error == pytest.approx(expected * np.sqrt(299 / 300))
    assert low < error < high


@pytest.mark.parametrize(("n_classes", "power"), [(2, 1.0), (2, 2.0), (3, 1.3)])
def test_intervals_cover(n_classes, power):
    P, truth, _ = distorted(200_000, n_classes, power, seed=99)
    expected = np.mean([binned(P[:, k], truth[:, k]) for k in range(n_classes)]) ** 0.5
    covered = []
    for seed in range(60):
        P, _, y = distorted(500, n_classes, power, seed)
        _, low, high = error_in_cells(sum_in_cells(P, y), 1.96)
        covered.append(low <= expected <= high)
    assert np.mean(covered) >= 0.86


def binned(q, truth):
    """Mean square of E[Y | q] - q, from narrow bins of many rows."""
    bins = np.floor(q * 200).astype(int).clip(max=199)
    n = np.bincount(bins, minlength=200)
    return (np.bincount(bins, truth - q, 200) ** 2 / n.clip(1)).sum() / n.sum()
