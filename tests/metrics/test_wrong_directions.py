"""Metrics find forecasts that point in the wrong direction, where a monotone map sees nothing."""

import numpy as np
import pytest

from isoroc.metrics import calibration_error, calibration_test, decompose
from truths import distorted, draw_labels


def uninformative(truth):
    return truth, np.full_like(truth, 1 / truth.shape[1])


def swapped(truth):
    return truth[:, [1, 0, *range(2, truth.shape[1])]], truth


def inverted(truth):
    return (1 - truth) / (truth.shape[1] - 1), truth


def nearly_constant(P):
    K = P.shape[1]
    rates = np.arange(1.0, K + 1) / np.arange(1, K + 1).sum()
    return (1 + 1e-3 * P) / (K + 1e-3), np.tile(rates, (len(P), 1))


def folded(P):
    """The first class is most likely where its forecast is close to one half."""
    first = 1 - np.abs(2 * P[:, :1] - 1)
    return P, np.hstack([first, (1 - first) * P[:, 1:] / P[:, 1:].sum(axis=1, keepdims=True)])


CASES = [inverted, swapped, uninformative, nearly_constant, folded]
numbers_of_classes = pytest.mark.parametrize(
    "n_classes", [2, 3, pytest.param(10, marks=pytest.mark.slow)]
)


def draw(case, n, n_classes, seed=0):
    """Forecasts, E[Y | forecast], and labels."""
    _, truth, _ = distorted(n, n_classes, 1.0, seed)
    P, truth = case(truth)
    return P, truth, draw_labels(truth, np.random.default_rng([seed, 1]))


def distance(P, truth, norm):
    if norm == "l1":
        return np.abs(P - truth).sum(axis=1).mean() / 2
    return np.sqrt(((P - truth) ** 2).sum(axis=1).mean() / 2)


@numbers_of_classes
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_calibration_error(case, n_classes, norm):
    P, truth, y = draw(case, 3000, n_classes)
    expected = distance(P, truth, norm)
    assert expected > 0.06
    found = calibration_error(y, P, norm=norm, labels=range(n_classes))
    assert found == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("case", [inverted, uninformative])
@numbers_of_classes
def test_calibration_error_of_few_rows(case, n_classes):
    found = []
    expected = []
    for seed in range(10):
        P, truth, y = draw(case, 200, n_classes, seed)
        found.append(calibration_error(y, P, labels=range(n_classes)))
        expected.append(distance(P, truth, "l1"))
    assert np.mean(found) == pytest.approx(np.mean(expected), abs=0.05)


def test_inverted_scores_have_error_one_half():
    rng = np.random.default_rng(0)
    p = rng.random(10_000)
    y = rng.random(10_000) < 1 - p
    for kind in ("canonical", "classwise", "top"):
        assert calibration_error(y, p, kind=kind, labels=[0, 1]) == pytest.approx(0.5, abs=0.02)


def test_many_rows_of_noise():
    rng = np.random.default_rng(0)
    p = rng.random(200_000)
    y = rng.integers(0, 2, 200_000)
    assert calibration_error(y, p) == pytest.approx(0.25, abs=0.005)
    assert calibration_error(y, p, norm="l2") == pytest.approx(12**-0.5, abs=0.005)


def test_classwise_error_of_inverted_forecasts():
    """E[Y_k | p_k] = 1 - 2 p_k for p = (1 - truth) / 2."""
    P, _, y = draw(inverted, 3000, 3)
    expected = np.abs(1 - 3 * P).mean()
    error = calibration_error(y, P, kind="classwise", labels=range(3))
    assert error == pytest.approx(expected, abs=0.02)


@numbers_of_classes
@pytest.mark.parametrize("case", CASES)
def test_decomposition(case, n_classes):
    P, truth, y = draw(case, 3000, n_classes)
    parts = decompose(y, P, loss="brier", labels=range(n_classes))
    square = ((P - truth) ** 2).sum(axis=1).mean() / (2 if n_classes == 2 else 1)
    assert parts.calibration == pytest.approx(square, abs=0.1 * square + 0.02)
    log = decompose(y, P, loss="log", labels=range(n_classes))
    divergence = (truth * np.log(truth / P)).sum(axis=1).mean()
    assert log.calibration == pytest.approx(divergence, abs=0.1 * divergence + 0.02)
    assert log.refinement == pytest.approx(-(truth * np.log(truth)).sum(axis=1).mean(), abs=0.1)


def test_inversion_does_not_change_refinement():
    P, _, y = draw(inverted, 5000, 2)
    found, expected = (decompose(y, Q, labels=[0, 1]) for Q in (P, 1 - P))
    assert found.refinement == pytest.approx(expected.refinement, abs=0.01)
    assert found.calibration > 0.5
    assert expected.calibration < 0.01


@numbers_of_classes
@pytest.mark.parametrize("case", CASES)
def test_calibration_is_rejected(case, n_classes):
    P, _, y = draw(case, 1000, n_classes)
    result = calibration_test(y, P, n_resamples=99, random_state=0, labels=range(n_classes))
    assert result.p_value <= 0.05


@numbers_of_classes
@pytest.mark.parametrize("power", [0.5, 2.0])
def test_over_and_underconfidence(n_classes, power):
    P, truth, y = distorted(3000, n_classes, power, seed=1)
    for norm in ("l1", "l2"):
        expected = distance(P, truth, norm)
        assert calibration_error(y, P, norm=norm) == pytest.approx(expected, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "n"), [(2, 200), (3, 200), (10, 200)])
def test_calibrated_forecasts_have_a_small_error_by_chance(n_classes, n):
    values = []
    for seed in range(40):
        P, _, y = distorted(n, n_classes, 1.0, seed)
        values.append(calibration_error(y, P, labels=range(n_classes)))
    assert np.mean(values) < 0.03
    assert np.median(values) < 0.02
