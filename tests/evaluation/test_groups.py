"""Evaluations by group, with a test that is corrected for the number of groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc import InputError, evaluate
from isoroc._evaluation.evaluate import correct_p_values
from isoroc.metrics import calibration_test, log_loss
from truths import distorted


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0.001, 0.5))
def test_corrected_p_values_reject_as_holm_does(p_values, level):
    found = correct_p_values(np.array(p_values))
    rejected = np.zeros(len(p_values), dtype=bool)
    for step, i in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[i] * (len(p_values) - step) > level:
            break
        rejected[i] = True
    np.testing.assert_array_equal(found <= level, rejected)


def test_each_group_is_measured_by_itself():
    P, Q, y = distorted(600, 3, 2.0, seed=0)
    groups = np.array(["b", "a", "c"])[np.arange(600) % 3]
    weights = np.arange(600) % 5
    result = evaluate(y, P, Q, groups=groups, sample_weight=weights, n_resamples=0)
    assert list(result.groups) == ["a", "b", "c"]
    for name, group in result.groups.items():
        rows = (groups == name) & (weights > 0)
        assert group.n_rows == rows.sum()
        alone = evaluate(y[rows], P[rows], Q[rows], sample_weight=weights[rows], n_resamples=0)
        assert group.to_dict()["measures"] == alone.to_dict()["measures"]
        assert group["log_loss", "after"] == pytest.approx(
            log_loss(y[rows], Q[rows], sample_weight=weights[rows])
        )
    assert result.miscalibrated_groups() == []
    assert "No group shows miscalibration (corrected for 3 tests)." in repr(result)
    before = evaluate(y, P, groups=groups, n_resamples=0)
    assert before.miscalibrated_groups() == ["a", "b", "c"]
    assert "Not calibrated in 3 of 3 groups: a, b, c." in repr(before)
    one = evaluate(y[:200], P[:200], groups=np.zeros(200, dtype=int), n_resamples=0)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    p_value = calibration_test(y[:200], P[:200], random_state=seed).p_value
    assert one.groups["0"].p_value == p_value
    assert one.to_dict()["groups"]["0"]["p_value"] == p_value


@pytest.mark.slow
def test_all_groups_together_keep_the_level():
    alarms = 0
    for seed in range(12):
        _, Q, y = distorted(600, 2, 2.0, seed)
        result = evaluate(y, Q, groups=np.arange(600) % 3, n_resamples=0, random_state=seed)
        alarms += bool(result.miscalibrated_groups())
    assert alarms <= 3  # 4 or more have a probability of 0.002 at a rate of 0.05


def test_small_groups():
    result = evaluate([0, 1, 1], [0.2, 0.6, 0.7], groups=["a", "b", "b"], labels=[0, 1])
    assert [np.isnan(group.p_value) for group in result.groups.values()] == [True, False]
    assert np.isfinite([group["log_loss", "before"] for group in result.groups.values()]).all()
    weights = [0, 1, 1]
    only = evaluate(
        [0, 1, 1], [0.2, 0.6, 0.7], groups=[1, 2, 2], sample_weight=weights, labels=[0, 1]
    )
    assert list(only.groups) == ["2"]


def test_bad_input():
    with pytest.raises(InputError, match="groups: row 1 is missing"):
        evaluate([0, 1], [0.2, 0.6], groups=np.array(["a", None]))
    with pytest.raises(InputError, match="groups: 1 rows, but y_prob has 2"):
        evaluate([0, 1], [0.2, 0.6], groups=["a"])
