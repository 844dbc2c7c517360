"""Estimates come within their own intervals: a fast version of benchmarks/simulations.py."""

import numpy as np
import pytest

from isoroc.metrics import bootstrap, calibration_error, decompose
from truths import distorted


def expected_parts(n_classes, power, loss):
    """Calibration and refinement of the population."""
    P, truth, _ = distorted(100_000, n_classes, power, seed=99)
    if loss == "brier":
        parts = ((truth - P) ** 2).sum(axis=1).mean(), 1 - (truth**2).sum(axis=1).mean()
        return np.array(parts) / (2 if n_classes == 2 else 1)
    logs = np.log(np.maximum(truth, 1e-300))
    divergence = (truth * (logs - np.log(np.maximum(P, 1e-300)))).sum(axis=1).mean()
    return divergence, -(truth * logs).sum(axis=1).mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "power", "n", "loss"),
    [
        (2, 0.7, 800, "log"),
        (2, 1.0, 800, "brier"),
        (2, 2.0, 800, "log"),
        (3, 2.0, 500, "log"),
        (3, 1.3, 500, "brier"),
    ],
)
def test_decomposition(n_classes, power, n, loss):
    truth = expected_parts(n_classes, power, loss)
    runs = [decompose(y, P, loss=loss) for P, _, y in draws(n, n_classes, power)]
    values = np.array([(parts.calibration, parts.refinement) for parts in runs])
    errors = np.array([parts.standard_errors[1:3] for parts in runs])
    covered = np.abs(values - truth) < 1.96 * errors
    assert (covered.sum(axis=0) >= 20).all()  # of 24: fewer have 0.6 % at a rate of 95 %
    bias = (values - truth).mean(axis=0)
    assert (np.abs(bias) < errors.mean(axis=0)).all()


def draws(n, n_classes, power, times=24):
    return (distorted(n, n_classes, power, seed) for seed in range(times))


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_resampled_calibration_error(norm):
    P, truth, _ = distorted(100_000, 2, 2.0, seed=99)
    d = np.abs(P - truth)[:, 1]
    expected = d.mean() if norm == "l1" else np.sqrt((d**2).mean())

    def metric(y, P, sample_weight=None):
        return calibration_error(y, P, norm=norm, bins="irp", sample_weight=sample_weight)

    covered = 0
    for P, _, y in draws(300, 2, 2.0, times=10):
        result = bootstrap(metric, y, P, n_resamples=29, random_state=0)
        covered += result.low <= expected <= result.high
    assert covered >= 8
