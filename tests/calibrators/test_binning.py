import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from isoroc import HistogramCalibrator, RecursiveBinningCalibrator
from isoroc._core.simplex import lattice, regions
from strategies import arbitrary, binary_data, labelled_forecasts


@arbitrary
@given(labelled_forecasts(min_classes=2), st.integers(0, 3))
def test_recursive_binning_splits_lattices_at_their_centroids(data, depth):
    P, y, weights = data
    K = P.shape[1]
    cal = RecursiveBinningCalibrator(depth=depth, pseudocount=0, grid_size=12)
    cal.fit(P, y, labels=range(K), sample_weight=weights)
    # Routing by hand, level by level. A region that its centroid does not divide, or that has
    # rows but no lattice points, is done.
    groups, done = [(np.arange(len(P)), lattice(K, 12))], []
    for _ in range(depth):
        next_groups = []
        for rows, grid in groups:
            gamma = grid.mean(axis=0)
            by_row, by_grid = regions(P[rows], gamma), regions(grid, gamma)
            if len(np.unique(by_row)) < 2:
                done.append((rows, grid))
                continue
            next_groups += [(rows[by_row == k], grid[by_grid == k]) for k in np.unique(by_row)]
        groups = [g for g in next_groups if len(g[1])]
        done += [g for g in next_groups if not len(g[1])]
    bin_of = cal.apply(P)
    assert {frozenset(rows.tolist()) for rows, _ in groups + done} == {
        frozenset(np.flatnonzero(bin_of == b).tolist()) for b in np.unique(bin_of)
    }


def test_recursive_binning_depth_four_of_three_classes():
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 3000)
    y = np.array([rng.choice(3, p=p) for p in P])
    for depth in range(5):
        cal = RecursiveBinningCalibrator(depth=depth).fit(P, y)
        assert 3 ** max(depth - 1, 0) < cal.n_bins_ + (depth == 0) <= 3**depth + (depth == 0)
    np.testing.assert_allclose(cal.predict_proba(P).sum(axis=1), 1)


def test_uniform_histogram_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    y = (rng.random(2000) < p**2).astype(int)
    cal = HistogramCalibrator(n_bins=10, pseudocount=0).fit(p, y)
    rate, _ = calibration_curve(y, p, n_bins=10)
    np.testing.assert_allclose(cal.bins_["rate"], rate)
    np.testing.assert_allclose(cal.tree_.cuts, np.arange(1, 10) / 10)


def test_quantile_histogram_has_bins_of_equal_weight():
    rng = np.random.default_rng(0)
    p = rng.beta(0.3, 0.3, 5000)
    y = (rng.random(5000) < p).astype(int)
    cal = HistogramCalibrator(n_bins=8, strategy="quantile").fit(p, y)
    assert cal.n_bins_ == 8
    np.testing.assert_allclose(cal.bins_["weight"], 625, atol=2)


@arbitrary
@given(binary_data(), st.integers(1, 12), st.sampled_from(["uniform", "quantile"]))
def test_histograms_of_any_scores(data, n_bins, strategy):
    scores, y, weights = data
    scores = np.clip(scores, -1e12, 1e12)
    cal = HistogramCalibrator(n_bins=n_bins, strategy=strategy, pseudocount=0)
    cal.fit(scores, y, sample_weight=weights)
    assert 1 <= cal.n_bins_ <= n_bins
    w = np.ones(len(y)) if weights is None else weights
    bin_of, Q = cal.apply(scores), cal.predict_proba(scores)
    for b in range(cal.n_bins_):
        rows = bin_of == b
        np.testing.assert_allclose(Q[rows, 1], np.average(y[rows], weights=w[rows]))


@pytest.mark.parametrize(
    ("calibrator", "message"),
    [
        (HistogramCalibrator(), "P: 3 columns. Only binary"),
        (HistogramCalibrator(n_bins=0), "n_bins"),
        (HistogramCalibrator(strategy="log"), "strategy: expected"),  # type: ignore[arg-type]
        (RecursiveBinningCalibrator(depth=-1), "depth"),
        (RecursiveBinningCalibrator(grid_size=0), "grid_size"),
        (RecursiveBinningCalibrator(prior="flat"), "prior"),
    ],
)
def test_bad_input(calibrator, message):
    with pytest.raises(ValueError, match=message):
        calibrator.fit(np.eye(3), [0, 1, 2])
