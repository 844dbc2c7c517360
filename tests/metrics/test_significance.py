from typing import Any

import numpy as np
import pytest

from isoroc.metrics import calibration_test
from isoroc.metrics._significance import _standardise
from truths import distorted


@pytest.mark.parametrize(("n_classes", "spread"), [(2, 1.0), (2, 0.1), (4, 0.3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_level_is_kept(n_classes, spread, weighted):
    p_values = []
    for seed in range(100):
        P, _, y = distorted(80, n_classes, 1.0, seed, spread)
        weights = 1.0 / (P[:, 0] + 0.1) if weighted else None
        result = calibration_test(
            y, P, n_resamples=19, random_state=seed, sample_weight=weights, labels=range(n_classes)
        )
        p_values.append(result.p_value)
    # P-values are 0.05, ..., 1, equally likely or, with ties, larger.
    assert np.mean(np.array(p_values) <= 0.05) <= 0.12
    assert np.mean(np.array(p_values) <= 0.5) <= 0.65
    assert np.mean(p_values) > 0.45


@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("kind", ["canonical", "top"])
def test_distorted_forecasts_are_rejected(n_classes, kind):
    for power in (0.5, 2.0):
        P, _, y = distorted(1500, n_classes, power, seed=0)
        result = calibration_test(y, P, kind=kind, n_resamples=99, random_state=0)
        assert result.p_value == 0.01
        assert result.statistic > 3
        assert result.n_cells in {1, 2, 4, 8, 16, 32}


def test_a_shift_shows_in_large_cells_and_a_local_error_in_small_ones():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    shifted = calibration_test(rng.random(4000) < 0.9 * p, p, n_resamples=49, random_state=0)
    local = rng.random(4000) < np.where(np.sin(60 * p) > 0, p / 2, (1 + p) / 2)
    wavy = calibration_test(local, p, n_resamples=49, random_state=0)
    assert shifted.p_value == wavy.p_value == 0.02
    assert shifted.n_cells <= 4
    assert wavy.n_cells >= 16


def test_weights_select_the_rows_that_are_tested():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    wrong = p > 0.8
    y = rng.random(2000) < np.where(wrong, p - 0.2, p)
    options: dict[str, Any] = {"n_resamples": 99, "random_state": 0}
    assert calibration_test(y, p, sample_weight=1.0 * wrong, **options).p_value == 0.01
    assert calibration_test(y, p, sample_weight=1.0 * ~wrong, **options).p_value > 0.05
    scaled = calibration_test(y, p, sample_weight=1000.0 * ~wrong, **options)
    assert scaled == calibration_test(y, p, sample_weight=1.0 * ~wrong, **options)


def test_certain_forecasts():
    y = np.arange(100) % 3
    right = calibration_test(y, np.eye(3)[y], n_resamples=19)
    assert (right.p_value, right.statistic) == (1, 0)
    y[7] = 0
    wrong = calibration_test(y, np.eye(3)[np.arange(100) % 3], n_resamples=19)
    assert wrong.p_value == 0.05


def test_one_row_and_one_value():
    assert calibration_test([0], [0.5], labels=[0, 1], n_resamples=9).n_cells == 1
    half = calibration_test(np.arange(400) % 2, np.full(400, 0.5), n_resamples=9)
    assert (half.p_value, half.n_cells) == (1, 1)


def test_cells_of_equal_forecasts_are_not_divided():
    p = np.append(np.linspace(0, 0.4, 100), np.full(300, 0.5))
    rng = np.random.default_rng(0)
    assert calibration_test(rng.random(400) < p, p, n_resamples=99, random_state=0).p_value > 0.01


def test_standardising_leaves_each_row_out_of_its_own_mean():
    sizes = np.random.default_rng(0).random((6, 3))
    found = _standardise(sizes)
    for i in range(6):
        others = np.delete(sizes, i, axis=0)
        expected = (sizes[i] - others.mean(axis=0)) / others.std(axis=0)
        np.testing.assert_allclose(found[i], expected)


def test_text():
    text = str(calibration_test([0, 1], [0.5, 0.5], n_resamples=9, random_state=0))
    assert text.startswith("p = ")
    assert text.endswith("(9 resamples)")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "classwise"}, "kind: expected one of"),
        ({"n_resamples": 0}, "n_resamples: is 0; expected .* >= 1"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        calibration_test([0, 1], [0.5, 0.5], **options)
