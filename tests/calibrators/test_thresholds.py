"""Thresholds on calibrated forecasts that repeat the decisions of thresholds on forecasts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import NotFittedError

from isoroc import (
    AutoCalibrator,
    IdentityCalibrator,
    InputError,
    IRPCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    MonotoneCalibrator,
    TemperatureCalibrator,
)
from isoroc._input.kinds import kind_of
from isoroc._maps.scaling import SigmoidMap
from zoo import CASES, fitted, forecasts

STRICT = [
    IdentityCalibrator(),
    TemperatureCalibrator(),
    MonotoneCalibrator(),
    AutoCalibrator(members=[IdentityCalibrator(), TemperatureCalibrator()], cv=2, random_state=0),
]


def example(K, n=300, power=2.0, seed=0):
    """An overconfident model: forecasts and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), y


def decide(P, gamma):
    return np.argmax(P - gamma, axis=1)


@pytest.mark.parametrize("calibrator", STRICT, ids=lambda c: type(c).__name__)
@given(st.integers(0, 1000), st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_increasing_maps_repeat_every_decision_on_two_classes(calibrator, t, rows):
    P, y = example(2)
    calibrator.fit(P[:, 1], y)
    t = t / 1000
    p = np.array(rows) / 1000
    carried = calibrator.carry_over(t)
    assert carried.exact
    assert (carried.n_rows, carried.n_changed) == (0, 0)
    above = calibrator.predict_proba(p)[:, 1] > carried.thresholds
    np.testing.assert_array_equal(above, p > t)
    checked = calibrator.carry_over(t, p)
    assert checked.exact
    assert (checked.n_rows, checked.n_changed) == (len(p), 0)
    assert checked.thresholds == carried.thresholds


def test_a_map_that_is_constant_at_the_threshold_is_not_exact_there():
    p = np.random.default_rng(1).random(1000)
    calibrator = MonotoneCalibrator().fit(p, p > 0.5)
    rows = np.linspace(0, 1, 1001)
    q = calibrator.predict_proba(rows)[:, 1]
    assert q[900] == q[950]
    with pytest.raises(InputError, match="constant at the threshold"):
        calibrator.carry_over(0.9)
    carried = calibrator.carry_over(0.9, rows)
    assert not carried.exact
    assert carried.n_changed == np.count_nonzero((q > carried.thresholds) != (rows > 0.9)) > 0
    assert calibrator.carry_over(0.5, rows).exact


def test_all_forms_of_two_class_forecasts_carry_the_same_threshold():
    P, y = example(2)
    columns = TemperatureCalibrator().fit(P, y)
    scores = TemperatureCalibrator().fit(P[:, 1], y)
    expected = columns.predict_proba([[0.7, 0.3]])[0, 1]
    assert columns.carry_over(0.3).thresholds == pytest.approx(expected)
    assert scores.carry_over(0.3).thresholds == pytest.approx(expected)
    odds = np.log(P[:, 1] / P[:, 0])
    for logits in (odds, np.column_stack([np.zeros(len(P)), odds]) + 5):
        calibrator = TemperatureCalibrator().fit(logits, y, unit="logit")
        carried = calibrator.carry_over(1.5, logits)
        assert carried.exact
        q = calibrator.predict_proba(logits)[:, 1]
        np.testing.assert_array_equal(q > carried.thresholds, odds > 1.5)
        value = expit(1.5)
        other = TemperatureCalibrator().fit(P, y).carry_over(value).thresholds
        assert carried.thresholds == pytest.approx(other, abs=0.01)


def test_maps_with_flat_parts_are_not_called_increasing():
    P, y = example(2)
    assert not TemperatureCalibrator(floor=0.6).fit(P, y).map_.is_increasing()
    steps = AutoCalibrator(members=[IRPCalibrator()], cv=2, random_state=0).fit(P, y)
    assert not steps.map_.is_increasing()
    mixed = AutoCalibrator(members=[TemperatureCalibrator()], cv=2, random_state=0).fit(P, y)
    assert mixed.map_.is_increasing()


@pytest.mark.parametrize(
    ("coef", "rest", "floor", "increases"),
    [
        (1.0, 0.5, 1e-6, True),
        (1.0, 0.0, 1e-6, True),
        (0.0, 1.0, 0.5, True),
        (0.0, 0.0, 1e-6, False),
        (0.5, -1.0, 1e-6, False),
        (1.0, 0.5, 0.6, False),
    ],
)
def test_one_positive_coefficient_makes_a_sigmoid_increasing(coef, rest, floor, increases):
    own = SigmoidMap(
        kind=kind_of(1),
        floor=floor,
        coef=np.full(2, coef),
        rest=np.full(2, rest),
        intercept=np.zeros(2),
        linear=False,
    )
    assert own.is_increasing() == increases
    q = own.apply(np.linspace(0.01, 0.99, 99))[:, 1]
    assert (np.diff(q) > 0).all() == increases


@given(st.integers(0, 2**32), st.floats(0, 1))
def test_steps_have_the_fewest_changes_of_all_cuts(seed, t):
    P, y = example(2, n=60, seed=seed)
    p = P[:, 1].round(2)
    y[:2] = 0, 1
    calibrator = IRPCalibrator(min_bin_weight=0, pseudocount=1.0).fit(p, y)
    carried = calibrator.carry_over(t, p)
    q = calibrator.predict_proba(p)[:, 1]
    changes = {cut: np.count_nonzero((q > cut) != (p > t)) for cut in [-1.0, *q]}
    assert carried.n_changed == min(changes.values())
    assert carried.n_changed == np.count_nonzero((q > carried.thresholds) != (p > t))
    assert carried.n_rows == len(p)
    assert not carried.exact


def test_thresholds_between_steps_are_repeated_and_those_inside_are_not():
    p = np.array([0.1, 0.2, 0.3, 0.6, 0.7, 0.8])
    y = np.array([0, 1, 0, 1, 0, 1])
    calibrator = IsotonicCalibrator(pseudocount=0).fit(p, y)
    q = calibrator.predict_proba(p)[:, 1]
    assert len(np.unique(q)) < len(q)
    for t in (0.15, 0.25, 0.45, 0.65, 0.75, 0.05, 0.95):
        carried = calibrator.carry_over(t, p)
        same_step = q[p <= t].max(initial=-1) == q[p > t].min(initial=2)
        assert (carried.n_changed > 0) == same_step


def arrangement_optimum(Q, wanted):
    """Fewest changed decisions of any gamma', three classes: all cells of the arrangement.

    Decisions change where gamma crosses a line on which two classes tie for a row. Every cell
    between such lines has a corner at which two lines meet.
    """
    x, y, d = (np.unique(Q[:, i] - Q[:, j]) for i, j in ((1, 0), (2, 0), (2, 1)))
    corners = np.vstack(
        [
            np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2),
            np.stack(np.meshgrid(x, d), axis=-1).reshape(-1, 2) @ [[1, 1], [0, 1]],
            np.stack(np.meshgrid(y, d), axis=-1).reshape(-1, 2) @ [[1, 1], [-1, 0]],
        ]
    )
    fewest = len(Q)
    for angle in np.deg2rad([20, 60, 110, 150, 200, 245, 290, 335]):
        around = corners + 1e-9 * np.array([np.cos(angle), np.sin(angle)])
        gamma = np.column_stack([np.zeros(len(around)), around])
        changed = (np.argmax(Q - gamma[:, None], axis=2) != wanted).sum(axis=1)
        fewest = min(fewest, changed.min())
    return fewest


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "calibrator",
    [TemperatureCalibrator(), MatrixCalibrator(), IsotonicCalibrator(), IRPCalibrator(top=None)],
    ids=lambda c: type(c).__name__,
)
def test_decisions_of_three_classes_are_repeated_where_that_is_possible(calibrator, seed):
    P, y = example(3, seed=seed)
    gamma = np.random.default_rng(seed).dirichlet([3, 3, 3])
    calibrator.fit(P, y)
    for rows in (P[:8], P[:20]):
        carried = calibrator.carry_over(gamma, rows)
        Q = calibrator.predict_proba(rows)
        wanted = decide(rows, gamma)
        assert carried.n_changed == np.count_nonzero(decide(Q, carried.thresholds) != wanted)
        assert (carried.n_changed == 0) == (arrangement_optimum(Q, wanted) == 0)
        assert carried.thresholds.sum() == pytest.approx(1)


@pytest.mark.parametrize("calibrator", [MatrixCalibrator(), IRPCalibrator()])
def test_carried_thresholds_change_fewer_decisions_than_those_before(calibrator):
    P, y = example(3, n=1000)
    gamma = np.array([0.5, 0.3, 0.2])
    calibrator.fit(P[:500], y[:500])
    carried = calibrator.carry_over(gamma, P[500:])
    Q = calibrator.predict_proba(P[500:])
    wanted = decide(P[500:], gamma)
    assert 0 < carried.n_changed < np.count_nonzero(decide(Q, gamma) != wanted)


def test_identity_changes_no_decision_of_several_classes():
    P, y = example(4)
    carried = IdentityCalibrator().fit(P, y).carry_over([0.4, 0.3, 0.2, 0.1], P)
    assert carried.n_changed == 0
    assert not carried.exact  # known on the rows only


def test_only_differences_of_thresholds_matter():
    P, y = example(3)
    calibrator = TemperatureCalibrator().fit(P, y)
    one = calibrator.carry_over([0.5, 0.3, 0.2], P)
    shifted = calibrator.carry_over([2.5, 2.3, 2.2], P)
    assert one.n_changed == shifted.n_changed
    never = calibrator.carry_over([0.5, 0.5, 9.0], P)
    assert never.n_changed <= 0.02 * len(P)
    assert not (decide(calibrator.predict_proba(P), never.thresholds) == 2).any()


def test_logits_of_several_classes():
    P, y = example(3)
    z = np.log(P)
    calibrator = TemperatureCalibrator().fit(z, y, unit="logit")
    gamma = np.array([0.5, -0.2, 0.1])
    carried = calibrator.carry_over(gamma, z + 3)
    Q = calibrator.predict_proba(z)
    assert carried.n_changed == np.count_nonzero(decide(Q, carried.thresholds) != decide(z, gamma))
    assert carried.n_changed < 0.2 * len(P)


def test_many_rows_are_all_counted():
    P, y = example(3, n=12_000)
    calibrator = TemperatureCalibrator().fit(P[:1000], y[:1000])
    gamma = np.array([0.5, 0.3, 0.2])
    carried = calibrator.carry_over(gamma, P)
    changed = decide(calibrator.predict_proba(P), carried.thresholds) != decide(P, gamma)
    assert carried.n_rows == len(P)
    assert carried.n_changed == np.count_nonzero(changed)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_every_calibrator_counts_its_changes(name, shape):
    calibrator = fitted(name, shape)
    P = forecasts(shape, 80, seed=3)
    K = max(P.shape[1], 2)
    if K == 2:
        scores = P[:, -1]
        t = float(np.median(scores))
        carried = calibrator.carry_over(t, P)
        changed = (calibrator.predict_proba(P)[:, 1] > carried.thresholds) != (scores > t)
    else:
        gamma = P.mean(axis=0)
        carried = calibrator.carry_over(gamma, P)
        changed = decide(calibrator.predict_proba(P), carried.thresholds) != decide(P, gamma)
    assert carried.n_changed == np.count_nonzero(changed)
    assert carried.n_changed < 0.5 * len(P)


def test_columns_of_dataframes_are_matched_by_name():
    P, y = example(3)
    names = ["a", "b", "c"]
    calibrator = MatrixCalibrator().fit(pd.DataFrame(P, columns=names), np.array(names)[y])
    gamma = [0.5, 0.3, 0.2]
    swapped = pd.DataFrame(P, columns=names)[["c", "a", "b"]]
    expected = calibrator.carry_over(gamma, pd.DataFrame(P, columns=names))
    np.testing.assert_array_equal(
        calibrator.carry_over(gamma, swapped).thresholds, expected.thresholds
    )


def test_results_say_what_they_found():
    P, y = example(2)
    exact = TemperatureCalibrator().fit(P, y).carry_over(0.3)
    assert "the same decision for every forecast" in str(exact)
    P, y = example(3)
    carried = IRPCalibrator().fit(P, y).carry_over([0.5, 0.3, 0.2], P)
    assert f"{carried.n_changed} of 300 decisions change" in str(carried)


@pytest.mark.parametrize(
    ("K", "thresholds", "named"),
    [
        (2, 1.5, "thresholds"),
        (2, np.nan, "thresholds"),
        (2, [0.5, 0.5], "thresholds"),
        (2, "high", "thresholds"),
        (3, 0.5, "thresholds"),
        (3, [0.5, 0.5], "thresholds"),
        (3, [0.5, 0.5, np.inf], "thresholds"),
        (3, [0.5, 0.3, 0.2], "P"),
    ],
)
def test_bad_input_is_named(K, thresholds, named):
    P, y = example(K)
    with pytest.raises(InputError) as caught:
        TemperatureCalibrator().fit(P, y).carry_over(thresholds)
    assert caught.value.argument == named


def test_rows_are_asked_for_where_they_are_needed():
    P, y = example(2)
    with pytest.raises(InputError, match="not known to be strictly increasing; pass rows P"):
        IRPCalibrator().fit(P, y).carry_over(0.5)
    with pytest.raises(InputError, match="fitted to 2 columns"):
        IRPCalibrator().fit(P, y).carry_over(0.5, P[:, 1])
    with pytest.raises(NotFittedError):
        IRPCalibrator().carry_over(0.5, P)


@pytest.mark.parametrize("calibrator", STRICT, ids=lambda c: type(c).__name__)
def test_rows_at_the_threshold_do_not_exceed_it_alone_or_with_others(calibrator):
    P, y = example(2)
    calibrator.fit(P[:, 1], y)
    for t in np.arange(1, 1000, 37) / 1000:
        carried = calibrator.carry_over(t).thresholds
        for n in (1, 2, 5):
            assert (calibrator.predict_proba(np.full(n, t))[:, 1] <= carried).all()
