"""Decisions agree with brute force, and their costs are means over rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    FixedThresholdClassifier,
    TunedThresholdClassifierCV,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB

from isoroc import CalibratedClassifier, InputError, TemperatureCalibrator
from isoroc.decisions import best_threshold, decide, expected_cost
from isoroc.metrics import ProbabilityScorer
from truths import distorted


def mean_cost(y, decisions, costs):
    return np.array(costs)[y, decisions].mean()


def quarters(shape):
    """Sums and products of these are exact, so ties are ties."""
    return hnp.arrays(np.float64, shape, elements=st.integers(-20, 20).map(lambda i: i / 4))


@given(st.data(), st.integers(2, 5), st.integers(2, 4))
def test_decisions_are_those_of_brute_force(data, n_classes, n_actions):
    cuts = data.draw(
        st.lists(
            st.lists(st.integers(0, 16), min_size=n_classes - 1, max_size=n_classes - 1),
            min_size=1,
            max_size=8,
        )
    )
    Q = np.diff(np.sort(np.array(cuts), axis=1), axis=1, prepend=0, append=16) / 16
    costs = data.draw(quarters((n_classes, n_actions)))
    names = [f"action {a}" for a in range(n_actions)]
    found = decide(Q, dict(zip(names, costs.T, strict=True)))
    for q, action in zip(Q, found, strict=True):
        expected = [sum(q[k] * costs[k, a] for k in range(n_classes)) for a in range(n_actions)]
        assert action == names[expected.index(min(expected))]  # the first one on ties


def test_two_classes_have_a_threshold():
    p = np.linspace(0, 1, 1001)
    np.testing.assert_array_equal(decide(p, [[0, 1], [3, 0]]), (p > 0.25).astype(int))


def test_abstaining():
    costs = {"no": [0, 1], "yes": [1, 0], "abstain": [0.1, 0.1]}
    np.testing.assert_array_equal(
        decide([0.05, 0.11, 0.89, 0.95], costs), ["no", "abstain", "abstain", "yes"]
    )


def test_costs_are_matched_by_name():
    Q = pd.DataFrame({"b": [0.9, 0.2], "a": [0.1, 0.8]})
    values = {"b": [1.0, 0.0], "a": [0.0, 1.0]}  # of the actions "go" and "stop"
    expected = decide(Q.to_numpy(), pd.DataFrame(values, index=["go", "stop"]).T.to_numpy())
    by_class = {"go": {"a": 0, "b": 1}, "stop": {"a": 1, "b": 0}}
    frame = pd.DataFrame(values, index=["go", "stop"]).T
    for costs in (by_class, frame, frame.loc[["a", "b"]]):
        found = decide(Q, costs)
        np.testing.assert_array_equal(found, np.array(["go", "stop"])[expected])
    in_order = pl.DataFrame({"go": [1.0, 0.0], "stop": [0.0, 1.0]})
    np.testing.assert_array_equal(decide(Q, in_order), found)


def test_actions_are_the_classes_if_there_are_as_many():
    Q = [[0.2, 0.8], [0.9, 0.1]]
    assert decide(Q, [[0, 1], [1, 0]], labels=["no", "yes"]).tolist() == ["yes", "no"]


class TestExpectedCost:
    def test_it_is_the_mean_cost_of_the_decisions(self):
        P, g, y = distorted(500, 3, 2.0, seed=0)
        costs = np.array([[0, 5, 1, 1], [2, 0, 3, 1], [4, 1, 0, 1.0]])
        weights = np.arange(500) % 4
        report = expected_cost(y, P, costs, after=g, sample_weight=weights)
        for row, forecasts in (("before", P), ("after", g)):
            of_actions = costs[y, decide(forecasts, costs)]
            assert report[row] == pytest.approx(np.average(of_actions, weights=weights))
        assert float(report) == report["after"]
        assert report["change"] == pytest.approx(report["after"] - report["before"])
        constants = [np.average(costs[y, a], weights=weights) for a in range(4)]
        assert report["constant"] == pytest.approx(min(constants))
        assert report.constant_action == int(np.argmin(constants))
        assert report["oracle"] == 0
        with pytest.raises(KeyError):
            report["forecasts"]

    def test_weights_are_repetitions_up_to_the_interval(self):
        P, _, y = distorted(100, 2, 2.0, seed=1)
        times = np.arange(100) % 3
        weighted = expected_cost(y, P, [[0, 1], [3, 0]], sample_weight=times)
        repeated = expected_cost(y.repeat(times), P.repeat(times, axis=0), [[0, 1], [3, 0]])
        for column in ("cost", "promised"):
            np.testing.assert_allclose(weighted.table[column], repeated.table[column])

    def test_promises_are_kept_by_calibrated_forecasts_only(self):
        P, g, y = distorted(100_000, 3, 3.0, seed=2)
        costs = [[0, 1, 2], [8, 0, 1], [2, 8, 0]]
        table = expected_cost(y, P, costs, after=g).table
        before, after = table["cost"][:2] - table["promised"][:2]
        assert abs(after) < 0.02 < before

    def test_intervals_cover_the_truth(self):
        costs = np.array([[0, 1.0], [4, 0]])
        P, g, _ = distorted(10**6, 2, 2.0, seed=3)
        truth = (g * costs.T[decide(P, costs)]).sum(axis=1).mean()
        covered = 0
        for seed in range(100):
            P, _, y = distorted(300, 2, 2.0, seed=[4, seed])
            table = expected_cost(y, P, costs).table
            covered += table["low"][0] <= truth <= table["high"][0]
        assert covered > 87  # fewer has probability 0.002 if the coverage is 0.95

    @pytest.mark.parametrize("power", [1.0, 3.0])
    @pytest.mark.parametrize("seed", range(3))
    def test_calibration_does_not_raise_the_cost(self, seed, power):
        P, _, y = distorted(6000, 2, power, seed=seed)  # calibrated forecasts, or too extreme ones
        fit = slice(3000)
        new = slice(3000, None)
        Q = TemperatureCalibrator().fit(P[fit], y[fit]).predict_proba(P[new])
        for costs in ([[0, 1], [6, 0]], [[0, 1, 0.2], [1, 0, 0.2]]):
            table = expected_cost(y[new], P[new], costs, after=Q).table
            assert table["low"][2] <= 0
            assert power == 1 or table["high"][2] < 0

    def test_it_scores_classifiers(self):
        X, y = make_classification(400, random_state=0)
        scorer = ProbabilityScorer(expected_cost, costs=[[0, 1], [5, 0]])
        scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3)
        model = LogisticRegression().fit(X, y)
        assert ((scores > -1) & (scores < 0)).all()
        assert scorer(model, X, y) == -float(
            expected_cost(y, model.predict_proba(X), [[0, 1], [5, 0]])
        )


def test_costs_tune_thresholds():
    X, y = make_classification(2000, flip_y=0.2, random_state=0)
    costs = [[0, 1], [9, 0]]
    scorer = make_scorer(mean_cost, costs=costs, greater_is_better=False)
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer).fit(X, y)
    assert 0 < tuned.best_threshold_ < 0.3  # 0.1 for calibrated forecasts
    by_forecasts = decide(LogisticRegression().fit(X, y).predict_proba(X), costs)
    best = mean_cost(y, tuned.predict(X), costs)
    assert mean_cost(y, by_forecasts, costs) == pytest.approx(best, abs=0.05)


def test_thresholds_behind_calibrated_classifiers():
    """A tuned threshold on calibrated forecasts is the one that follows from the costs."""
    X, y = make_classification(3000, n_informative=4, flip_y=0.2, random_state=0)
    costs = [[0, 1], [4, 0]]
    model = CalibratedClassifier(GaussianNB(), calibrator=TemperatureCalibrator(), cv=3)
    scorer = make_scorer(mean_cost, costs=costs, greater_is_better=False)
    tuned = TunedThresholdClassifierCV(model, scoring=scorer, cv=3).fit(X[:2000], y[:2000])
    fixed = FixedThresholdClassifier(model, threshold=0.2).fit(X[:2000], y[:2000])
    decided = decide(fixed.estimator_.predict_proba(X[2000:]), costs)
    np.testing.assert_array_equal(decided, fixed.predict(X[2000:]))
    found, expected = (mean_cost(y[2000:], m.predict(X[2000:]), costs) for m in (tuned, fixed))
    assert found == pytest.approx(expected, abs=0.05)
    assert 0.1 < tuned.best_threshold_ < 0.35


BAD_COSTS = [
    ([0, 1], r"costs: has shape 2; expected 2 rows, one for each class"),
    ([[0, 1], [1, 0], [1, 1]], r"costs: has shape 3 x 2; expected 2 rows"),
    ([[0], [1]], r"costs: 1 action; two or more"),
    ([[0, np.inf], [1, 0]], r"costs: row 0 holds a number that is not finite"),
    ([["x", "y"], ["z", "w"]], r"costs: expected numbers"),
    ({"go": [0, 1], "stop": [1]}, r"costs\['stop'\]: has shape \(1,\), but there are 2 classes"),
    ({"go": {"a": 1, "c": 2}, "stop": [1, 1]}, r"costs\['go'\]: names a, c, but the classes are"),
    (pd.DataFrame({"x": [1, 2], "y": [2, 1]}, index=["a", "c"]), r"costs\['x'\]: names a, c, but"),
]


@pytest.mark.parametrize(("costs", "message"), BAD_COSTS)
def test_bad_costs(costs, message):
    with pytest.raises(InputError, match=message):
        decide([0.2, 0.7], costs, labels=["a", "b"])


def test_other_bad_input():
    costs = [[0, 1], [1, 0]]
    with pytest.raises(InputError, match="labels: 3 entries; expected a list of 2"):
        decide([0.2], costs, labels=["a", "b", "c"])
    with pytest.raises(InputError, match=r"P: row 1 is 1.5"):
        decide([0.2, 1.5], costs)
    with pytest.raises(InputError, match="after: 3 classes, but y_prob has 2"):
        expected_cost([0, 1], [0.2, 0.7], costs, after=np.full((2, 3), 1 / 3))
    with pytest.raises(InputError, match="confidence: is 2"):
        expected_cost([0, 1], [0.2, 0.7], costs, confidence=2)


def test_the_best_threshold_is_that_of_decide():
    costs = {"wait": {"well": 0, "ill": 8}, "treat": {"well": 2, "ill": 1}}
    threshold = best_threshold(costs, labels=["well", "ill"])
    assert threshold == pytest.approx(2 / 9)
    around = decide([threshold - 1e-9, threshold + 1e-9], costs, labels=["well", "ill"])
    assert around.tolist() == ["wait", "treat"]
    with pytest.raises(InputError, match="costs: has shape 2 x 3; a threshold needs two classes"):
        best_threshold([[0, 1, 2], [1, 0, 2]])
    with pytest.raises(InputError, match="costs: one action is at least as good whatever happens"):
        best_threshold([[0, 1], [0, 1]])
