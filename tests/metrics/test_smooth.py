import numpy as np
import pytest
from hypothesis import given

from isoroc.metrics import smooth_calibration_error
from strategies import labelled_forecasts
from truths import distorted


def smoothed(p, residual, weights, sigma, n_points=4000):
    """The integral from its definition: reflected Gaussian kernels at the midpoints of a grid."""
    t = (np.arange(n_points) + 0.5) / n_points
    total = np.zeros(n_points)
    for shift in range(-8, 9, 2):
        for centre in (p + shift, -p + shift):
            kernel = np.exp(-((t[:, None] - centre) ** 2) / (2 * sigma**2))
            total += kernel @ (weights * residual) / (np.sqrt(2 * np.pi) * sigma)
    return np.abs(total).mean() / weights.sum()


@given(labelled_forecasts(n_classes=2, max_rows=30))
def test_the_bandwidth_is_the_error_at_the_bandwidth(data):
    P, y, weights = data
    value = smooth_calibration_error(y, P, sample_weight=weights)
    w = np.ones(len(y)) if weights is None else weights
    if value > 0.01:  # the resolution of the grid of the oracle
        assert smoothed(P[:, 1], y - P[:, 1], w, value) == pytest.approx(value, abs=2e-4)
    mirrored = smooth_calibration_error(1 - y, P[:, ::-1], sample_weight=weights)
    assert mirrored == pytest.approx(value, abs=1e-6)


def test_weight_two_is_the_row_twice():
    P, _, y = distorted(100, 2, 2.0, seed=0)
    times = np.arange(100) % 3 + 1
    rows = np.repeat(np.arange(100), times)
    value = smooth_calibration_error(y, P, sample_weight=times)
    assert value == pytest.approx(smooth_calibration_error(y[rows], P[rows]))


def test_more_classes_are_a_mean_or_the_largest():
    P, _, y = distorted(500, 3, 3.0, seed=0)
    single = [smooth_calibration_error(y == k, P[:, k]) for k in range(3)]
    assert smooth_calibration_error(y, P) == pytest.approx(np.mean(single))
    right = P.argmax(axis=1) == y
    top = smooth_calibration_error(right, P.max(axis=1))
    assert smooth_calibration_error(y, P, kind="top") == pytest.approx(top)


def test_it_is_continuous_where_binned_errors_are_not():
    y = np.arange(200) % 2
    values = [
        smooth_calibration_error(y, np.where(y == 1, 0.5 + shift, 0.5 - shift), labels=[0, 1])
        for shift in (-1e-6, 1e-6)
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-5)
    assert values[0] < 0.01


def test_range():
    y = np.arange(20) % 2
    assert smooth_calibration_error(y, 1.0 * y) == 0
    # A bandwidth close to 1 mixes both ends of the interval.
    assert 0.25 < smooth_calibration_error(y, 1.0 - y, labels=[0, 1]) < 1


def test_bad_input():
    with pytest.raises(ValueError, match="kind: expected one of"):
        smooth_calibration_error([0, 1], [0.5, 0.5], kind="canonical")  # type: ignore[arg-type]
