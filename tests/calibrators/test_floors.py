"""Forecasts that count as 0."""

import numpy as np
import pytest

from isoroc import KernelCalibrator, SplineCalibrator, TemperatureCalibrator
from isoroc._calibrators.floors import smallest_forecast, zero_level
from isoroc._input import check_sample


def sample_of(p):
    y = np.arange(len(p)) % 2
    return check_sample(np.asarray(p), y)


@pytest.mark.parametrize(
    ("p", "level", "smallest"),
    [
        ([0.2, 0.9, 0.5], 0.0, 0.1),  # no zeros
        ([0.2, 0.9995, 0.0], 1e-6, 5e-4),  # zeros
        ([0.2, 0.9995, 1e-9], 1e-6, 5e-4),  # zeros plus noise
        ([0.2, 1e-7, 1e-9], 0.0, 1e-9),  # no gap
        ([0.2, 1e-12, 1e-15], 1e-6, 0.2),
    ],
)
def test_forecasts_below_a_gap_count_as_zero(p, level, smallest):
    sample = sample_of(p)
    assert zero_level(sample) == level
    assert smallest_forecast(sample) == pytest.approx(min(smallest, 1e-3))


def test_logits_have_no_zero():
    sample = check_sample(np.array([-40.0, 0.0, 3.0]), [0, 1, 1], unit="logit")
    assert zero_level(sample) == 0.0


def votes(K, n=300, n_trees=50):
    """Shares of votes, many of which are 0, and outcomes."""
    rng = np.random.default_rng(K)
    truth = rng.dirichlet(np.full(K, 0.3), size=n)
    P = np.stack([rng.multinomial(n_trees, p) for p in truth]) / n_trees
    return P, np.array([rng.choice(K, p=p) for p in truth])


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("calibrator", [KernelCalibrator, SplineCalibrator, TemperatureCalibrator])
def test_noise_in_place_of_zeros_changes_no_forecast(calibrator, K):
    P, y = votes(K)
    assert (P == 0).mean() > 0.1
    noisy = P + np.random.default_rng(0).uniform(0, 1e-9, size=P.shape)
    noisy /= noisy.sum(axis=1, keepdims=True)
    expected = calibrator().fit(P, y).predict_proba(P)
    np.testing.assert_allclose(calibrator().fit(noisy, y).predict_proba(P), expected, atol=1e-5)
