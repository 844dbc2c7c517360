import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from isoroc import InputError, evaluate
from isoroc.metrics import (
    brier_score_loss,
    calibration_error,
    log_loss,
    ranked_probability_score,
)
from strategies import labelled_forecasts


@given(labelled_forecasts())
def test_scores_are_those_of_scikit_learn(data):
    P, y, weights = data
    options = {"sample_weight": weights, "labels": np.arange(P.shape[1])}
    for halved in (False, True, "auto"):
        ours = brier_score_loss(y, P, scale_by_half=halved, **options)
        theirs = sklearn.metrics.brier_score_loss(y, P, scale_by_half=halved, **options)
        assert ours == pytest.approx(theirs, abs=1e-12)
    assert brier_score_loss(y, P, **options) == ours
    # scikit-learn also keeps probabilities below 1 - eps
    assert log_loss(y, P, **options) == pytest.approx(
        sklearn.metrics.log_loss(y, P, **options), abs=1e-12
    )


@given(labelled_forecasts())
def test_weight_two_is_the_row_twice(data):
    P, y, _ = data
    times = np.arange(len(y)) % 3 + 1
    rows = np.repeat(np.arange(len(y)), times)
    for metric in (brier_score_loss, log_loss):
        expected = metric(y[rows], P[rows], labels=np.arange(P.shape[1]))
        found = metric(y, P, sample_weight=times, labels=np.arange(P.shape[1]))
        assert found == pytest.approx(expected)


def test_the_log_loss_of_an_outcome_of_probability_0_is_bounded():
    P = [[1.0, 0.0], [0.5, 0.5]]
    bound = -np.log(np.finfo(float).eps)
    assert log_loss([1, 0], P) == pytest.approx((bound + np.log(2)) / 2)
    assert log_loss([1, 0], P, eps=0) == np.inf
    assert log_loss([1, 0], P, sample_weight=[0, 1]) == pytest.approx(np.log(2))
    assert log_loss([1, 0], P, eps=0.01) == pytest.approx((np.log(100) + np.log(2)) / 2)


def test_range():
    certain = np.eye(4)
    assert log_loss(range(4), certain) == brier_score_loss(range(4), certain) == 0
    assert str(log_loss(range(4), certain)) == "0.0"
    assert brier_score_loss([1, 2, 3, 0], certain) == 2
    assert log_loss(range(4), np.full((4, 4), 0.25)) == pytest.approx(np.log(4))


def test_one_column_is_the_probability_of_the_second_class():
    p = np.array([0.25, 0.5, 0.9])
    for metric in (brier_score_loss, log_loss):
        both = metric(["a", "b", "b"], np.column_stack([1 - p, p]))
        assert metric(["a", "b", "b"], p) == both
        assert metric(["a", "b", "b"], 1 - p, labels=["b", "a"]) == pytest.approx(both)


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (ValueError, {"y_prob": [0.1, 1.5]}, "y_prob: row 1 is 1.5; probabilities lie between"),
        (ValueError, {"y_true": [0, 1, 1]}, "y_true: 3 rows, but y_prob has 2"),
        (ValueError, {"sample_weight": [1, -1]}, "sample_weight: row 1 is -1"),
        (ValueError, {"labels": ["a", "b"]}, "y_true: row 0 is .*0.* not among the labels"),
        (ValueError, {"eps": -1}, "eps: is -1; expected .* >= 0"),
        (ValueError, {"eps": "tiny"}, "eps: is .*; expected a finite number"),
    ],
)
def test_bad_input(error, options, message):
    with pytest.raises(error, match=message):
        log_loss(**{"y_true": [0, 1], "y_prob": [0.2, 0.7]} | options)


def test_a_reversed_class_is_named():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = np.where(rng.random(300) < p, "fraud", "ok")
    for metric in (log_loss, brier_score_loss, calibration_error, evaluate):
        with pytest.warns(UserWarning, match="rank class 'ok' worse than chance .* 'fraud'"):
            metric(y, p)
    assert log_loss(y, p, labels=["ok", "fraud"]) < 0.5  # the order was stated: no warning


class TestRankedProbabilityScore:
    @given(labelled_forecasts())
    def test_is_the_mean_brier_score_of_the_thresholds(self, data):
        P, y, weights = data
        K = P.shape[1]
        options = {"sample_weight": weights, "labels": range(K)}
        F = P.cumsum(axis=1).clip(0, 1)
        expected = [np.average((F[:, k] - (y <= k)) ** 2, weights=weights) for k in range(K - 1)]
        score = ranked_probability_score(y, P, **options)
        assert score == pytest.approx(np.mean(expected), abs=1e-12)
        reverse = ranked_probability_score(K - 1 - y.astype(int), P[:, ::-1], **options)
        assert reverse == pytest.approx(score, abs=1e-12)
        if K == 2:
            assert score == pytest.approx(brier_score_loss(y, P, **options), abs=1e-12)

    @given(st.integers(2, 6), st.integers(0, 2**32))
    def test_is_proper(self, K, seed):
        truth, other = np.random.default_rng(seed).dirichlet(np.ones(K), 2)
        scores = [
            ranked_probability_score(range(K), np.tile(p, (K, 1)), sample_weight=truth)
            for p in (truth, other)
        ]
        assert scores[0] <= scores[1]

    def test_names_need_an_order(self):
        P = np.eye(3)
        with pytest.raises(InputError, match="the order of the classes"):
            ranked_probability_score(["low", "mid", "high"], P)
        y = pd.Categorical(["low", "mid", "high"], ["low", "mid", "high"], ordered=True)
        assert ranked_probability_score(y, P) == 0
        assert ranked_probability_score(y, P, labels=["mid", "low", "high"]) > 0
