"""Forecasts with few distinct values: estimates without bias, intervals that cover, verdicts."""

import numpy as np
import pytest
from scipy import stats

from isoroc import evaluate
from isoroc._input import Sample
from isoroc.metrics import calibration_error, decompose
from isoroc.metrics._estimation.calibration_terms import Ties
from truths import distorted, draw_labels


def expected(metric, n, p):
    """Mean and deviation of a metric of n rows with the forecast p that are calibrated."""
    counts = np.arange(n + 1)
    chance = stats.binom.pmf(counts, n, p)
    found = np.array([metric((np.arange(n) < c).astype(int), np.full(n, p)) for c in counts])
    mean = chance @ found
    return mean, np.sqrt(chance @ (found - mean) ** 2)


@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize(("n", "p"), [(5, 0.3), (12, 0.02), (30, 0.5), (40, 0.97)])
def test_calibration_is_0_on_average_if_forecasts_are_calibrated(loss, n, p):
    def metric(y, forecast):
        return decompose(y, forecast, loss=loss, bins="ties", labels=[0, 1]).calibration

    mean, deviation = expected(metric, n, p)
    assert abs(mean) < (0.1 if loss == "log" else 1e-9) * deviation


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_the_standard_error_is_the_deviation(loss):
    def metric(y, forecast):
        return decompose(y, forecast, loss=loss, bins="ties", labels=[0, 1]).calibration

    _, deviation = expected(metric, 50, 0.3)
    parts = decompose(np.arange(50) < 15, np.full(50, 0.3), loss=loss)
    assert parts.standard_errors[1] == pytest.approx(deviation, rel=0.1)


def tied(n, n_classes, n_values, power, seed):
    """Forecasts of a few values, E[Y | forecast] of these values, and labels."""
    _, values, _ = distorted(n_values, n_classes, 1.0, seed=1000)
    rng = np.random.default_rng(seed)
    truth = values[rng.integers(n_values, size=n)]
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), values, draw_labels(truth, rng)


@pytest.mark.parametrize(
    ("n_classes", "n_values"), [(2, 20), pytest.param(3, 20, marks=pytest.mark.slow)]
)
def test_calibrated_ties_are_left_alone_and_covered(n_classes, n_values):
    said = covered = 0
    for seed in range(40):
        P, _, y = tied(1000, n_classes, n_values, 1.0, seed)
        labels = range(n_classes)
        said += evaluate(y, P, labels=labels).decision == "calibrate"
        for loss in ("log", "brier"):
            parts = decompose(y, P, loss=loss, labels=labels)
            assert parts.bins == "ties"
            frame = parts.table()
            covered += frame["low"][1] <= 0 <= frame["high"][1]
    assert said <= 4  # more has 1 % at a rate of 2.5 %
    assert covered >= 71  # of 80


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("power", [0.5, 1.2, 2.0])
def test_intervals_of_ties_cover(n_classes, power):
    covered = np.zeros(3)
    for seed in range(30):
        P, values, y = tied(1000, n_classes, 20, power, seed)
        Q = values**power
        Q /= Q.sum(axis=1, keepdims=True)
        square = ((values - Q) ** 2).sum(axis=1).mean() / (2 if n_classes == 2 else 1)
        truth = [
            (values * np.log(values / Q)).sum(axis=1).mean(),
            square,
            np.abs(values - Q).sum(axis=1).mean() / 2,
        ]
        labels = range(n_classes)
        frames = [decompose(y, P, loss=loss, labels=labels).table() for loss in ("log", "brier")]
        ends = [(frame["low"][1], frame["high"][1]) for frame in frames]
        figure = evaluate(y, P, labels=labels).measures["calibration_error"]["before"]
        ends.append((figure.low, figure.high))
        covered += [low <= t <= high for (low, high), t in zip(ends, truth, strict=True)]
    assert (covered >= 25).all()  # of 30: fewer have a chance of 0.3 % at a rate of 95 %


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_classes", "power", "n", "times"), [(2, 1.2, 2000, 12), (3, 1.2, 2000, 5), (2, 2.0, 200, 40)]
)
def test_intervals_of_absolute_errors_cover(n_classes, power, n, times):
    P, truth, _ = distorted(100_000, n_classes, power, seed=99)
    error = np.abs(P - truth).sum(axis=1).mean() / 2
    covered = 0
    for seed in range(times):
        P, _, y = distorted(n, n_classes, power, seed)
        figure = evaluate(y, P).measures["calibration_error"]["before"]
        covered += figure.low <= error <= figure.high
    assert covered >= 0.9 * times


@pytest.mark.slow
def test_the_log_loss_term_of_many_rows_is_covered():
    P, truth, _ = distorted(200_000, 3, 2.0, seed=99)
    logs = np.log(np.maximum(truth, 1e-300)) - np.log(np.maximum(P, 1e-300))
    term = (truth * logs).sum(axis=1).mean()
    covered = 0
    for seed in range(4):
        P, _, y = distorted(20_000, 3, 2.0, seed)
        frame = decompose(y, P).table()
        covered += frame["low"][1] <= term <= frame["high"][1]
    assert covered == 4


def test_doubled_rare_events():
    found = []
    truth = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        event = 0.01 * np.exp(rng.normal(size=1000) / 2 - 1 / 8)
        y = rng.random(1000) < event
        frame = decompose(y, 2 * event, loss="brier", labels=[False, True]).table()
        truth.append(np.mean(event**2))
        found.append([frame[name][1] for name in ("value", "low", "high")])
    value, low, high = np.array(found).T
    term = np.mean(truth)
    assert value.mean() > 0.75 * term
    assert ((low <= term) & (term <= high)).sum() >= 36


def test_weights_are_effective_numbers_of_rows():
    P, _, y = tied(2000, 3, 10, 1.5, seed=0)
    weights = np.where(np.arange(2000) < 1000, 1.0, 1e-9)
    for loss in ("log", "brier"):
        some = decompose(y[:1000], P[:1000], loss=loss).table()
        all_rows = decompose(y, P, loss=loss, sample_weight=weights).table()
        for name in ("value", "low", "high"):
            np.testing.assert_allclose(all_rows[name], some[name], rtol=0.02, atol=1e-5)


def test_forecasts_that_only_tie_by_weight_0_are_the_same():
    P, _, y = tied(400, 2, 10, 2.0, seed=0)
    weights = np.where(np.arange(400) % 2, 1.0, 0.0)
    for norm in ("l1", "l2"):
        some = calibration_error(y[1::2], P[1::2], norm=norm, bins="ties")
        assert calibration_error(y, P, norm=norm, sample_weight=weights) == pytest.approx(some)


def test_the_variance_of_the_divergence_is_what_it_is_in_repeated_samples():
    rng = np.random.default_rng(0)
    p = np.array([0.2, 0.3, 0.5])
    n = 120
    found = [
        Ties(Sample(np.tile(p, (n, 1)), rng.choice(3, n, p=p).astype(np.uint8))).calibration("log")
        for _ in range(400)
    ]
    values, variances, _ = np.transpose(found)
    assert np.mean(variances) == pytest.approx(np.var(values), rel=0.25)
