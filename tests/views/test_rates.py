import numpy as np
import pytest
from hypothesis import given
from scipy.stats import binomtest

from isoroc._input import Sample
from isoroc._views.rates import consistency_band, histogram, isotonic_curve, observed_rates
from strategies import binary_data, isotonic_oracle


def as_sample(scores, y, weights):
    """Sample of scores mapped to [0, 1] with the same order and ties."""
    _, rank = np.unique(scores, return_inverse=True)
    return Sample(rank / (rank.max() + 1), y.astype(np.uint8), weights)


@given(binary_data())
def test_curve_is_isotonic_regression(data):
    sample = as_sample(*data)
    curve = isotonic_curve(sample)
    assert (np.diff(curve["forecast"]) >= 0).all()
    at_rows = np.interp(sample.forecasts, curve["forecast"], curve["rate"])
    expected = isotonic_oracle(sample.forecasts.tolist(), sample.codes.tolist(), sample.weights)
    np.testing.assert_allclose(at_rows, np.array(expected, dtype=float), atol=1e-12)


@given(binary_data())
def test_groups_partition_the_rows(data):
    sample = as_sample(*data)
    rates = observed_rates(sample, n_bins=4, confidence=0.9)
    weights = sample.row_weights()
    assert 1 <= rates.n_rows <= 4
    assert rates["weight"].sum() == pytest.approx(weights.sum())
    assert (rates["weight"] * rates["rate"]).sum() == pytest.approx((weights * sample.codes).sum())
    total = (weights * sample.forecasts).sum()
    assert (rates["weight"] * rates["forecast"]).sum() == pytest.approx(total)
    assert (np.diff(rates["forecast"]) > 0).all()
    assert (rates["low"] <= rates["rate"] + 1e-12).all()
    assert (rates["rate"] <= rates["high"] + 1e-12).all()
    counted = histogram(sample)
    assert counted["percent"].sum() == pytest.approx(100)


def test_intervals_are_wilsons():
    rng = np.random.default_rng(0)
    sample = Sample(np.repeat([0.2, 0.6], 30), (rng.random(60) < 0.4).astype(np.uint8), None)
    rates = observed_rates(sample, n_bins=2, confidence=0.8)
    for group in range(2):
        hits = int(sample.codes[30 * group : 30 * (group + 1)].sum())
        low, high = binomtest(hits, 30).proportion_ci(0.8, method="wilson")
        assert (rates["low"][group], rates["high"][group]) == pytest.approx((low, high))


@pytest.mark.parametrize("weighted", [False, True])
def test_coverage_of_the_band_for_calibrated_forecasts(weighted):
    rng = np.random.default_rng(0)
    inside = []
    for seed in range(60):
        p = np.round(rng.beta(0.7, 0.7, 300), 2)
        y = (rng.random(300) < p).astype(np.uint8)
        sample = Sample(p, y, rng.integers(1, 4, 300).astype(float) if weighted else None)
        band = consistency_band(sample, confidence=0.9, n_resamples=120, seed=seed)
        curve = isotonic_curve(sample)
        rate = np.interp(band["forecast"], curve["forecast"], curve["rate"])
        inside.append(np.mean((rate >= band["low"] - 1e-9) & (rate <= band["high"] + 1e-9)))
    assert 0.87 < np.mean(inside) < 0.97


def test_band_excludes_the_curve_of_miscalibrated_forecasts():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    sample = Sample(p, (rng.random(2000) < p**3).astype(np.uint8), None)
    band = consistency_band(sample, confidence=0.99, n_resamples=200, seed=0)
    curve = isotonic_curve(sample)
    rate = np.interp(band["forecast"], curve["forecast"], curve["rate"])
    assert np.mean(rate < band["low"]) > 0.7


def test_band_of_many_forecasts():
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    sample = Sample(p, np.zeros(40_000, dtype=np.uint8), None)
    band = consistency_band(sample, confidence=0.9, n_resamples=60, seed=0)
    assert band.n_rows == 200
    assert (band["low"] < band["forecast"]).mean() > 0.95
    assert (band["forecast"] < band["high"]).mean() > 0.95
    # The error of isotonic regression is of the order n ** (-1/3).
    assert 0.005 < np.median(band["high"] - band["low"]) < 0.1
