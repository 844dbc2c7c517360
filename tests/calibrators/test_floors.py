"""Noise in place of forecasts that are 0."""

import numpy as np
import pytest

from isoroc import AutoCalibrator, KernelCalibrator, SplineCalibrator, TemperatureCalibrator
from isoroc._calibrators.floors import without_noise
from isoroc._input import check_sample


def cleaned(p, **options):
    y = np.arange(len(p)) % 2
    return without_noise(check_sample(np.asarray(p), y, **options)).forecasts.tolist()


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        ([0.2, 0.9995, 0.0], [0.2, 0.9995, 0.0]),
        ([0.2, 0.9995, 1e-9], [0.2, 0.9995, 0.0]),
        ([0.2, 1 - 1e-9, 1e-15], [0.2, 1.0, 0.0]),  # the other class may have the zeros
        ([0.2, 1e-7, 1e-9], [0.2, 1e-7, 1e-9]),  # no gap
        ([0.2, 1e-9, 1e-20], [0.2, 1e-9, 1e-20]),  # the smallest is no noise
        ([0.2, 1e-6, 1e-9], [0.2, 1e-6, 0.0]),
    ],
)
def test_noise_below_a_gap_becomes_zero(p, expected):
    assert cleaned(p) == expected


def test_columns_keep_their_other_forecasts():
    P = [[0.5, 0.5 - 1e-10, 1e-10], [0.2, 0.1, 0.7]]
    assert cleaned(P, labels=[0, 1, 2]) == [[0.5, 0.5 - 1e-10, 0.0], [0.2, 0.1, 0.7]]


def test_logits_have_no_noise():
    assert cleaned([-20.0, 0.0, 3.0], unit="logit") == [-20.0, 0.0, 3.0]


def votes(K, n=300, n_trees=50):
    """Shares of votes, many of which are 0, and outcomes."""
    rng = np.random.default_rng(K)
    truth = rng.dirichlet(np.full(K, 0.3), size=n)
    P = np.stack([rng.multinomial(n_trees, p) for p in truth]) / n_trees
    return P, np.array([rng.choice(K, p=p) for p in truth])


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize(
    "calibrator", [AutoCalibrator, KernelCalibrator, SplineCalibrator, TemperatureCalibrator]
)
def test_noise_in_place_of_zeros_changes_no_forecast(calibrator, K):
    P, y = votes(K)
    assert (P == 0).mean() > 0.1
    noisy = P + np.random.default_rng(0).uniform(0, 1e-9, size=P.shape)
    noisy /= noisy.sum(axis=1, keepdims=True)
    expected = calibrator().fit(P, y).predict_proba(P)
    np.testing.assert_allclose(calibrator().fit(noisy, y).predict_proba(P), expected, atol=1e-5)


def test_zeros_count_in_the_verdict_as_they_are():
    P, y = votes(3, n_trees=10)
    n_impossible = (P[np.arange(len(y)), y] == 0).sum()
    assert n_impossible > 0
    noisy = (P + 1e-9) / (1 + 3e-9)
    assert AutoCalibrator().fit(P, y).verdict_.impossible == n_impossible
    assert AutoCalibrator().fit(noisy, y).verdict_.impossible == 0
