"""How CalibratedClassifier splits rows into folds, and what it says where that cannot work."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from isoroc import (
    CalibratedClassifier,
    InputError,
    IRPCalibrator,
    IsotonicCalibrator,
    TemperatureCalibrator,
)
from zoo import KINDS, make

ensembles = pytest.mark.parametrize("ensemble", [False, True])
calibrators = pytest.mark.parametrize(
    "calibrator", [IRPCalibrator(), IsotonicCalibrator(), TemperatureCalibrator()]
)


@pytest.fixture(scope="module")
def data():
    return make_classification(n_samples=200, n_features=6, random_state=42)


def test_more_folds_than_rows(data):
    with pytest.raises(InputError, match=r"cv: Requesting 201-fold cross-validation"):
        CalibratedClassifier(LinearSVC(), cv=201).fit(*data)


@ensembles
def test_splitters_are_used_as_they_are(data, ensemble):
    model = CalibratedClassifier(LinearSVC(), cv=KFold(n_splits=5), ensemble=ensemble).fit(*data)
    assert len(model.estimators_) == len(model.calibrators_) == (5 if ensemble else 1)


def test_folds_too_small_to_calibrate_on_their_own(data):
    X, y = data
    for cv in (LeaveOneOut(), KFold(20)):
        with pytest.raises(InputError, match=r"cv: .* cross-validation"):
            CalibratedClassifier(LinearSVC(), cv=cv).fit(X[:30], y[:30])
        # All folds together will do.
        model = CalibratedClassifier(LinearSVC(), cv=cv, ensemble=False).fit(X[:30], y[:30])
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@ensembles
@calibrators
def test_test_folds_of_one_class(calibrator, ensemble):
    X = np.random.default_rng(0).normal(size=(10, 5))
    y = [1] * 5 + [0] * 5
    model = CalibratedClassifier(LinearSVC(), calibrator=calibrator, cv=KFold(3), ensemble=ensemble)
    if ensemble:
        with pytest.warns(UserWarning, match="cv: 2 of 3 folds hold out rows of one class only"):
            model.fit(X, y)
    else:
        model.fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_training_folds_of_one_class():
    X = np.random.default_rng(0).normal(size=(10, 5))
    y = [1] * 5 + [0] * 5
    with pytest.raises(InputError, match="cv: fold 0 leaves rows of one class only to train on"):
        CalibratedClassifier(LinearSVC(), cv=KFold(2)).fit(X, y)


@ensembles
def test_training_folds_without_some_class(ensemble):
    X = np.random.default_rng(0).normal(size=(12, 5))
    y = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
    model = CalibratedClassifier(DecisionTreeClassifier(), cv=KFold(3), ensemble=ensemble)
    Q = model.fit(X, y).predict_proba(X)
    assert Q.shape == (12, 4)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    # In scikit-learn a class that a fold's classifier has not seen keeps probability 0. Here the
    # held-out rows show that it comes true, and the calibrator learns it.
    if ensemble:
        first = model.calibrators_[0]
        without_0 = model.estimators_[0].predict_proba(X)
        assert (first.predict_proba(np.column_stack([np.zeros(12), without_0]))[:, 0] > 0).all()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_one_calibrator_learns_from_what_cross_val_predict_returns(data, name, method):
    X, y = data
    classifier = LogisticRegression()
    model = CalibratedClassifier(
        classifier, calibrator=make(name), cv=3, ensemble=False, response=method
    ).fit(X, y)
    P = cross_val_predict(classifier, X, y, cv=3, method=method)
    scores = "probability" if method == "predict_proba" else "logit"
    order = np.concatenate([test for _, test in StratifiedKFold(3).split(X, y)])
    by_hand = make(name).fit(P[order], y[order], unit=scores)
    new = getattr(classifier.fit(X, y), method)(X)
    np.testing.assert_allclose(model.predict_proba(X), by_hand.predict_proba(new), atol=1e-12)


@pytest.mark.parametrize("word", ["clusters", "groups"])
@pytest.mark.parametrize("routing", [False, True])
def test_groups_are_held_out_together(data, word, routing):
    X, y = data
    groups = np.arange(200) // 10

    class Recorder(LogisticRegression):
        def fit(self, X, y):
            self.seen_ = {tuple(row) for row in X}
            return super().fit(X, y)

    model = CalibratedClassifier(Recorder(), cv=GroupKFold(4), ensemble=True)
    with sklearn.config_context(enable_metadata_routing=routing):
        model.fit(X, y, **{word: groups})
    assert len(model.estimators_) == 4
    for classifier in model.estimators_:
        seen = np.array([tuple(row) in classifier.seen_ for row in X])
        assert not set(groups[seen]) & set(groups[~seen])
    with pytest.raises(InputError, match=r"cv: cannot split 200 rows .*groups"):
        CalibratedClassifier(LogisticRegression(), cv=GroupKFold(4)).fit(X, y)
    with pytest.raises(InputError, match="groups: is scikit-learn's name for clusters"):
        model.fit(X, y, groups=groups, clusters=groups)
