"""Input that is plausible and used to be read wrongly without a word."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import expit, logit, softmax
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

from isoroc import (
    AutoCalibrator,
    IdentityCalibrator,
    InputError,
    IRPCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._calibrators import parts, spline
from isoroc._growth.search import steps_for
from zoo import KINDS, make, takes_classes

each = pytest.mark.parametrize("name", KINDS)


def overconfident(n, K, seed=0, power=2.0):
    """Probabilities that are too sure of themselves, and the columns that came true."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(K, 0.5), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1).clip(max=K - 1)
    P = truth**power
    return P / P.sum(axis=1, keepdims=True), y


# Labels and columns


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_with_columns_b_a_c(frame):
    P, codes = overconfident(500, 3)
    y = np.array(["a", "b", "c"])[codes]
    expected = IsotonicCalibrator().fit(P, y).predict(P)
    shuffled = frame({name: P[:, "abc".index(name)] for name in "bac"})
    calibrator = IsotonicCalibrator().fit(shuffled, y)
    assert calibrator.classes_.tolist() == ["b", "a", "c"]
    assert accuracy_score(y, expected) > 0.6
    assert calibrator.predict(shuffled).tolist() == expected.tolist()


def test_numbers_as_names_of_columns_are_matched_too():
    P, codes = overconfident(300, 3)
    frame = pd.DataFrame(P[:, [2, 0, 1]], columns=["3", "1", "2"])
    calibrator = IsotonicCalibrator().fit(frame, codes + 1)
    assert calibrator.classes_.tolist() == [3, 1, 2]
    by_array = IsotonicCalibrator().fit(P, codes + 1)
    assert calibrator.predict(frame).tolist() == by_array.predict(P).tolist()


def test_a_named_column_of_scores_is_that_of_its_class():
    P, codes = overconfident(300, 2)
    y = np.array(["fraud", "ok"])[codes]
    of_fraud = pd.Series(P[:, 0], name="fraud")
    calibrator = IRPCalibrator().fit(of_fraud, y)
    assert calibrator.classes_.tolist() == ["ok", "fraud"]
    assert (calibrator.predict_proba(of_fraud)[:, 1] > 0.5)[P[:, 0] > 0.9].all()


def test_names_that_contradict_labels_or_are_mixed_are_refused():
    P, codes = overconfident(100, 3)
    frame = pd.DataFrame(P, columns=["b", "a", "c"])
    y = np.array(["b", "a", "c"])[codes]
    with pytest.raises(InputError, match="labels: a, b, c contradicts the names of the columns"):
        IRPCalibrator().fit(frame, y, labels=["a", "b", "c"])
    with pytest.raises(InputError, match="some columns are named like labels and some are not"):
        IRPCalibrator().fit(frame.rename(columns={"c": "p_c"}), y)


@pytest.mark.parametrize("name", [name for name in KINDS if takes_classes(name, 4)])
def test_absent_integer_classes_are_no_column_numbers(name):
    # Labels 1, 2, 3 of four classes 0 to 3, or 1 to 4: only the user knows.
    P, codes = overconfident(600, 3)
    P = np.column_stack([P, np.full(len(P), 1e-9)])[:, [3, 0, 1, 2]]
    P /= P.sum(axis=1, keepdims=True)
    calibrator = make(name)
    with pytest.raises(InputError, match=r"3 of the 4 classes .* labels=, 4 labels in the order"):
        calibrator.fit(P, codes + 1)
    calibrator.fit(P, codes + 1, labels=[0, 1, 2, 3])
    assert accuracy_score(codes + 1, calibrator.predict(P)) > 0.6


# Probabilities and logits


@each
def test_one_score_just_above_one_is_rounding(name):
    P, y = overconfident(300, 2)
    p = P[:, 1].copy()
    p[:2] = 1.0, 0.0
    rounded = p.copy()
    rounded[:2] = 1.0000001, -1e-17
    plain = make(name).fit(p, y)
    other = make(name).fit(rounded, y)
    assert plain.unit_ == other.unit_ == "probability"
    np.testing.assert_allclose(other.predict_proba(rounded), plain.predict_proba(p), atol=1e-6)


@each
def test_probabilities_just_below_zero_are_rounding(name):
    P, y = overconfident(200, 2)
    P[0] = 1.0, 0.0
    rounded = P.copy()
    rounded[0] = 1 + 1e-17, -1e-17
    Q = make(name).fit(P, y).predict_proba(P)
    np.testing.assert_array_equal(make(name).fit(rounded, y).predict_proba(rounded), Q)
    rounded[0] = 1.1, -0.1
    with pytest.raises(InputError, match=r"P: row 0 holds -0\.1"):
        make(name).fit(rounded, y)


@pytest.mark.parametrize(
    "kind", [IdentityCalibrator, TemperatureCalibrator, MatrixCalibrator, SplineCalibrator]
)
def test_logits_inside_0_and_1_can_be_declared(kind):
    rng = np.random.default_rng(0)
    z = rng.random(2000)
    y = rng.random(2000) < expit(z)
    declared = kind().fit(z, y, unit="logit")
    assert declared.unit_ == "logit"
    assert np.abs(declared.predict_proba(z)[:, 1] - expit(z)).mean() < 0.03
    assert declared.predict_proba([-3.0, 3.0]).shape == (2, 2)
    with pytest.raises(InputError, match=r'P: row 1 is 3, but scores are .* unit="logit"'):
        kind().fit(z, y, unit="probability").predict_proba([0.5, 3.0])


def test_auto_warns_where_it_is_in_doubt_and_says_what_settles_it():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    p[7] = 1.2
    with pytest.warns(UserWarning, match=r'row 7 is 1\.2 and .*unit="logit", "probability"'):
        TemperatureCalibrator().fit(p, y)
    assert TemperatureCalibrator().fit(p, y, unit="logit").unit_ == "logit"
    with pytest.raises(InputError, match=r"P: row 7 is 1\.2"):
        TemperatureCalibrator().fit(p, y, unit="probability")
    IRPCalibrator().fit(p, y)  # only their order counts: no doubt that matters


def test_large_log_odds_keep_their_information():
    rng = np.random.default_rng(0)
    z = rng.normal(size=1000)
    y = rng.random(1000) < expit(2 * z)
    losses = [
        log_loss(y, TemperatureCalibrator().fit(s, y, unit="logit").predict_proba(s))
        for s in (z, 1000 * z)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def test_logits_of_three_classes_stay_in_log_space():
    P, y = overconfident(1000, 3)
    z = np.log(P) + np.random.default_rng(0).normal(size=(1000, 1))
    with pytest.raises(InputError, match=r'For logits pass unit="logit"'):
        TemperatureCalibrator().fit(z, y)
    plain = TemperatureCalibrator().fit(P, y)
    for scale in (1, 1000):  # probabilities of the second would be 0 and 1
        cal = TemperatureCalibrator().fit(scale * z, y, unit="logit")
        loss = log_loss(y, cal.predict_proba(scale * z))
        assert loss == pytest.approx(log_loss(y, plain.predict_proba(P)), abs=0.01)
    assert log_loss(y, softmax(1000 * z, axis=1)) > loss + 1


def test_two_columns_tell_apart_what_the_second_cannot():
    # As naive Bayes forecasts: odds far beyond the digits of 1 - p.
    rng = np.random.default_rng(0)
    odds = rng.normal(loc=20, scale=60, size=4000)
    y = rng.random(4000) < expit(odds / 60)
    P = np.column_stack([expit(-odds), expit(odds)])
    assert len(np.unique(P[:, 1])) < 3000
    lost, kept = (
        roc_auc_score(y, IRPCalibrator().fit(forecasts, y).predict_proba(forecasts)[:, 1])
        for forecasts in (P[:, 1], P)
    )
    assert kept > lost + 0.002
    reversed_columns = IRPCalibrator().fit(P[:, ::-1], y, labels=[True, False])
    assert kept == pytest.approx(roc_auc_score(y, reversed_columns.predict_proba(P[:, ::-1])[:, 0]))


def test_one_column_fitted_and_two_predicted():
    P, y = overconfident(100, 2)
    with pytest.raises(InputError, match=r"2 columns, but .* fitted to one column of scores"):
        IRPCalibrator().fit(P[:, 1], y).predict_proba(P)
    with pytest.raises(InputError, match=r"one column of scores, but .* fitted to 2 columns"):
        IRPCalibrator().fit(P, y).predict_proba(P[:, 1])


# Weights


@each
def test_frequencies_that_sum_to_one_are_refused(name):
    P, y = overconfident(200, 2)
    shares = np.random.default_rng(0).uniform(0.5, 1.5, 200)
    shares /= shares.sum()
    with pytest.raises(InputError, match=r'200 rows .* weight of 1; .* weighting="importance"'):
        make(name).fit(P, y, sample_weight=shares, weighting="frequency")
    with pytest.raises(InputError, match=r"weighting: .* got 'counts'"):
        make(name).fit(P, y, sample_weight=shares, weighting="counts")
    fixed = make(name).fit(P, y, sample_weight=shares)
    plain = make(name).fit(P, y)
    assert np.abs(fixed.predict_proba(P) - plain.predict_proba(P)).mean() < 0.1


def test_weights_that_span_more_than_the_digits_of_a_double():
    # Light rows at high scores beside one row of weight 1e30: sums from the left would lose them.
    scores = np.arange(101.0)
    y = np.r_[0, np.tile([0, 1], 25), np.tile([0, 1, 1, 1, 1], 10)]
    weights = np.r_[1e30, np.ones(100)]
    calibrator = IRPCalibrator(pseudocount=0).fit(scores, y, sample_weight=weights)
    light = IRPCalibrator(pseudocount=0).fit(scores[1:], y[1:])
    Q = calibrator.predict_proba(scores)
    np.testing.assert_allclose(Q[1:], light.predict_proba(scores[1:]))
    assert Q[0, 1] == 0
    assert (np.diff(Q[:, 1]) >= 0).all()
    path = calibrator.path_
    assert path["n_bins"].tolist() == list(range(1, calibrator.n_bins_ + 1))
    assert (path["gain"][1:] > 0).all()
    *_, last = calibrator.staged_predict_proba(scores)
    np.testing.assert_array_equal(last, Q)


# Sampling and memory


def test_labels_in_round_robin_order(monkeypatch):
    # A tenth of the rows is looked at. Every tenth row would be of the same class.
    monkeypatch.setattr(parts, "PART_NUMBERS", 10 * 1000)
    monkeypatch.setattr(parts, "PART_ROWS", 1000)
    monkeypatch.setattr(spline.SplineLoss, "most_features", 1000 * 10 * 9)
    rng = np.random.default_rng(0)
    P, y = overconfident(13_000, 10)
    in_turn = np.column_stack([np.flatnonzero(y == k)[:1000] for k in range(10)]).ravel()
    assert (y[in_turn] == np.tile(np.arange(10), 1000)).all()
    new, outcomes = overconfident(2000, 10, seed=1)
    for calibrator in (SplineCalibrator(), TemperatureCalibrator(), MatrixCalibrator()):
        losses = [
            log_loss(outcomes, calibrator.fit(P[rows], y[rows]).predict_proba(new))
            for rows in (in_turn, rng.permutation(in_turn))
        ]
        assert losses[0] == pytest.approx(losses[1], abs=0.1)
        assert losses[0] < log_loss(outcomes, new)


@pytest.mark.slow
@pytest.mark.parametrize("K", [20, 50])
def test_lattices_of_many_classes_fit_into_memory(K):
    P, y = overconfident(3 * K, K)
    y[:K] = range(K)
    one_split = {"max_bins": K, "values": "constant"}
    options = {"search": "grid", "top": None, **one_split}
    assert math.comb(steps_for(K) + K - 1, K - 1) <= 100_000
    Q = IRPCalibrator(**options).fit(P, y).predict_proba(P)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    with pytest.raises(InputError, match=f"a lattice of {K} classes with step 1/12 has"):
        IRPCalibrator(**options, grid_size=12).fit(P, y)


# Orientation


def test_forecasts_of_the_other_class_warn_and_labels_settle_it():
    P, codes = overconfident(300, 2)
    y = np.array(["fraud", "ok"])[codes]
    of_fraud = P[:, 0]
    with pytest.warns(UserWarning, match=r"class 'ok' worse .* scores of 'fraud'. labels="):
        IRPCalibrator().fit(of_fraud, y)
    calibrator = IRPCalibrator().fit(of_fraud, y, labels=["ok", "fraud"])
    assert calibrator.predict([0.99, 0.01]).tolist() == ["fraud", "ok"]


def test_columns_yes_no_with_labels_0_and_1_warn():
    P, y = overconfident(300, 2)
    frame = pd.DataFrame(P[:, ::-1], columns=["p_yes", "p_no"])
    with pytest.warns(UserWarning, match=r"class 1 worse than chance .* another order. labels="):
        TemperatureCalibrator().fit(frame, y)
    calibrator = TemperatureCalibrator().fit(frame, y, labels=[1, 0])
    assert accuracy_score(y, calibrator.predict(frame)) > 0.7


def test_swapped_columns_of_three_classes_warn():
    P, y = overconfident(400, 3)
    with pytest.warns(UserWarning, match="worse than chance"):
        IRPCalibrator().fit(P[:, [1, 2, 0]], y)


def test_noise_does_not_warn():
    rng = np.random.default_rng(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (20, 200, 2000):
            IRPCalibrator().fit(rng.random(n), np.arange(n) % 2)
            tied = np.r_[0.1, np.full(n - 1, 0.9)]  # one odd row decides nothing
            IRPCalibrator().fit(tied, np.r_[1, np.zeros(n - 2), 1][:n])
    assert not caught


# Members


def test_a_mixture_wants_a_list_of_calibrators():
    P, y = overconfident(50, 2)
    wrong: list[Any] = [IRPCalibrator(), "all", [], ["isotonic"], [IRPCalibrator]]
    for members in wrong:
        with pytest.raises(InputError, match="members: "):
            AutoCalibrator(members=members).fit(P, y)


def test_odds_of_probabilities_are_logits_again():
    P, y = overconfident(300, 2)
    p = P[:, 1].clip(1e-6, 1 - 1e-6)
    of_odds = MatrixCalibrator().fit(logit(p), y, unit="logit").predict_proba(logit(p))
    np.testing.assert_allclose(of_odds, MatrixCalibrator().fit(p, y).predict_proba(p), atol=1e-6)
