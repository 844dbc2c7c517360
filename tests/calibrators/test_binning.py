import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve

from isoroc import HistogramCalibrator
from strategies import arbitrary, binary_data


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
    ],
)
def test_bad_input(calibrator, message):
    with pytest.raises(ValueError, match=message):
        calibrator.fit(np.eye(3), [0, 1, 2])
