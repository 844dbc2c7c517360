"""Calibration by group, with a test that is corrected for the number of groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoroc import InputError
from isoroc.metrics import brier_score_loss, by_group, calibration_test, group_report, log_loss
from isoroc.metrics._groups import correct_p_values
from truths import distorted


@settings(max_examples=50)
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
    report = group_report(
        y, P, groups, after=Q, sample_weight=weights, n_resamples=99, random_state=0
    )
    table = report.table
    assert table["group"].tolist() == ["a", "b", "c"]
    assert table["rows"].tolist() == [200, 200, 200]
    for i, name in enumerate("abc"):
        rows = groups == name
        for ending, forecasts in (("before", P), ("after", Q)):
            options = {"sample_weight": weights[rows], "labels": range(3)}
            loss = log_loss(y[rows], forecasts[rows], **options)
            assert table[f"log_loss_{ending}"][i] == pytest.approx(loss)
    assert (table["low_before"] <= table["calibration_error_before"]).all()
    assert (table["calibration_error_before"] < table["high_before"]).all()
    assert report.miscalibrated() == []
    alone = group_report(y, P, groups, n_resamples=99, random_state=0)
    assert alone.miscalibrated() == ["a", "b", "c"]
    assert alone.table["p_value"].max() <= 0.03
    one = group_report(y[:200], P[:200], np.zeros(200, dtype=int), n_resamples=99, random_state=0)
    seed = np.random.RandomState(0).randint(2**31 - 1)
    by_itself = calibration_test(y[:200], P[:200], n_resamples=99, random_state=seed)
    assert one.table["p_value"][0] == by_itself.p_value


def test_intervals_cover_and_all_groups_together_keep_the_level():
    P, Q, _ = distorted(100_000, 2, 2.0, seed=99)
    expected = np.sqrt(((P - Q)[:, 1] ** 2).mean())
    covered, alarms = [], 0
    for seed in range(12):
        P, Q, y = distorted(1500, 2, 2.0, seed)
        table = group_report(y, P, np.arange(1500) % 3, after=Q, n_resamples=99).table
        low, high = table["low_before"], table["high_before"]
        covered += ((low <= expected) & (expected <= high)).tolist()
        alarms += bool((table["p_value_after"] <= 0.05).any())
    assert np.mean(covered) > 0.85
    assert alarms <= 3  # 4 or more have a probability of 0.002 at a rate of 0.05


def test_metrics_by_group():
    P, _, y = distorted(200, 3, 2.0, seed=1)
    groups, weights = np.arange(200) % 4, np.arange(200) % 3 + 1
    y[groups == 2] = np.minimum(y[groups == 2], 1)  # one class is absent there
    table = by_group(
        brier_score_loss, y, P, groups, sample_weight=weights, n_resamples=20, random_state=0
    )
    for name, rows, value, low, high in zip(*table.values(), strict=True):
        inside = groups == int(name)
        expected = brier_score_loss(
            y[inside], P[inside], sample_weight=weights[inside], labels=range(3)
        )
        assert (rows, value) == (50, pytest.approx(expected))
        assert low < value < high
    plain = by_group(
        lambda y, P: float(np.mean(y == P.argmax(axis=1))), y, P, groups, n_resamples=0
    )
    assert np.isnan(plain["low"]).all()
    with pytest.raises(InputError, match="groups: 3 rows, but y_prob has 200"):
        by_group(brier_score_loss, y, P, [1, 2, 3])


def test_small_groups():
    report = group_report([0, 1, 1], [0.2, 0.6, 0.7], ["a", "b", "b"], labels=[0, 1])
    assert np.isnan(report.table["p_value"]).tolist() == [True, False]
    assert np.isfinite(report.table["log_loss"]).all()
    weights = [0, 1, 1]
    only = group_report([0, 1, 1], [0.2, 0.6, 0.7], [1, 2, 2], sample_weight=weights, labels=[0, 1])
    assert only.table["group"].tolist() == ["2"]


def test_bad_input():
    with pytest.raises(InputError, match="groups: row 1 is missing"):
        group_report([0, 1], [0.2, 0.6], ["a", None])
    with pytest.raises(InputError, match="groups: 1 rows, but y_prob has 2"):
        group_report([0, 1], [0.2, 0.6], ["a"])
    with pytest.raises(InputError, match=r"after: row 1 is 1\.6"):
        group_report([0, 1], [0.2, 0.6], ["a", "b"], after=[0.2, 1.6])
    with pytest.raises(InputError, match="after: 1 rows, but y_prob has 2"):
        group_report([0, 1], [0.2, 0.6], ["a", "b"], after=[0.2])
