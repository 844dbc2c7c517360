"""What holds for every calibrator that is neither grown as one tree nor a choice of others."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from isoroc import (
    BaggedIRPCalibrator,
    CalibratedClassifier,
    IdentityCalibrator,
    IsotonicCalibrator,
    MatrixCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)
from sklearn_checks import INAPPLICABLE_ON_FEATURES, on_features
from strategies import binary_data, labelled_forecasts

BAG = {"n_trees": 3, "random_state": 0}
CALIBRATORS = [
    IdentityCalibrator(),
    TemperatureCalibrator(),
    MatrixCalibrator(),
    MatrixCalibrator(structure="vector", quadratic=False, penalty=1.0),
    IsotonicCalibrator(),
    VennAbersCalibrator(),
    BaggedIRPCalibrator(**BAG),
]


def parametrize(calibrators):
    return pytest.mark.parametrize(
        "calibrator", calibrators, ids=lambda c: str(c).partition("(")[0]
    )


each = parametrize(CALIBRATORS)
exact = parametrize(CALIBRATORS[:-1])  # a bag draws rows one by one, whatever they weigh
few = settings(max_examples=25)


@each
@few
@given(data=labelled_forecasts(max_rows=30))
def test_rows_sum_to_one_and_nothing_but_the_identity_is_certain(calibrator, data):
    P, y, weights = data
    Q = clone(calibrator).fit(P, y, sample_weight=weights).predict_proba(P)
    assert Q.shape == P.shape
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-12)
    if not isinstance(calibrator, IdentityCalibrator):
        assert ((Q > 0) & (Q < 1)).all()


@each
@few
@given(data=binary_data(max_rows=20), rest=st.data())
def test_any_real_scores_of_two_classes(calibrator, data, rest):
    scores, y, weights = data
    cal = clone(calibrator).fit(scores, y, sample_weight=weights)
    new = rest.draw(st.lists(st.sampled_from([*scores]), min_size=1))
    Q = cal.predict_proba(new)
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(cal.predict(new), cal.classes_[Q.argmax(axis=1)])


@exact
@few
@given(data=labelled_forecasts(max_rows=30), rest=st.data())
def test_weight_two_is_the_row_twice(calibrator, data, rest):
    P, y, _ = data
    counts = np.array(rest.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    counts[-2:] = 1
    weighted = clone(calibrator).fit(P, y, sample_weight=counts)
    repeated = clone(calibrator).fit(np.repeat(P, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.predict_proba(P), repeated.predict_proba(P), atol=1e-6)


@each
def test_probabilities_and_their_second_column_give_the_same_fit(calibrator):
    rng = np.random.default_rng(0)
    p = rng.integers(0, 21, 300) / 20  # zeros and ones among them
    y = rng.random(300) < p**2
    P = np.column_stack([1 - p, p])
    Q = clone(calibrator).fit(P, y).predict_proba(P)
    np.testing.assert_allclose(clone(calibrator).fit(p, y).predict_proba(p), Q, rtol=1e-12)


@each
def test_a_class_that_never_came_true(calibrator):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(4), size=200)
    y = rng.choice([0, 1, 3], size=200)
    cal = clone(calibrator).fit(P, y)
    Q = cal.predict_proba(P)
    assert cal.classes_.tolist() == [0, 1, 2, 3]
    if not isinstance(calibrator, IdentityCalibrator | TemperatureCalibrator):
        assert Q[:, 2].mean() < P[:, 2].mean() / 2


@each
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", [GaussianNB(), LogisticRegression()], ids=str)
def test_behind_any_classifier(calibrator, n_classes, classifier):
    X, y = make_classification(
        300, n_features=6, n_informative=4, n_classes=n_classes, random_state=0
    )
    response = "auto" if isinstance(classifier, GaussianNB) else "decision_function"
    clf = CalibratedClassifier(classifier, clone(calibrator), response=response).fit(X, y)
    Q = clf.predict_proba(X)
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-12)
    assert clf.score(X, y) > 0.7


@each
def test_pickles_and_refits(calibrator):
    P = np.random.default_rng(0).dirichlet(np.ones(3), size=60)
    y = P.argmax(axis=1)
    y[:20] = 0
    cal = clone(calibrator).fit(P, y)
    Q = cal.predict_proba(P)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cal)).predict_proba(P), Q)
    with pytest.raises(ValueError, match="one class only"):
        cal.fit(P, np.zeros(60, dtype=int))
    np.testing.assert_array_equal(cal.predict_proba(P), Q)
    np.testing.assert_array_equal(cal.fit(P, y).predict_proba(P), Q)


@pytest.mark.parametrize("kind", [IdentityCalibrator, TemperatureCalibrator, MatrixCalibrator])
def test_scores_beyond_probabilities_are_log_odds_if_they_were_so_at_first(kind):
    cal = kind().fit([0.1, 0.4, 0.5, 0.9], [0, 1, 0, 1])
    assert not cal.log_odds_
    with pytest.raises(ValueError, match=r"P: row 1 is 1\.5, .* fit it to log odds"):
        cal.predict_proba([0.5, 1.5])
    cal = kind().fit([-1.0, 0.4, 0.5, 0.9], [0, 1, 0, 1])
    assert cal.log_odds_
    assert cal.predict_proba([0.5, 1.5]).shape == (2, 2)


DRAWN = "rows are drawn one by one, whatever they weigh"


def inapplicable(estimator):
    failures = dict(INAPPLICABLE_ON_FEATURES)
    if isinstance(estimator, BaggedIRPCalibrator):
        failures["check_sample_weight_equivalence_on_dense_data"] = DRAWN
    return failures


@parametrize_with_checks(
    [
        on_features(IdentityCalibrator)(),
        on_features(TemperatureCalibrator)(),
        on_features(MatrixCalibrator)(),
        on_features(IsotonicCalibrator)(),
        on_features(VennAbersCalibrator)(),
        on_features(BaggedIRPCalibrator)(**BAG),
    ],
    expected_failed_checks=inapplicable,
)
def test_scikit_learn_checks_on_forecasts(estimator, check):
    check(estimator)
