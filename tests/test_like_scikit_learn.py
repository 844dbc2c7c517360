"""What scikit-learn guarantees for CalibratedClassifierCV holds for CalibratedClassifier.

Where it does not, a comment says why:

- There is no default estimator: a classifier that nobody chose would be calibrated in silence.
- There is no `method="sigmoid"`; `MatrixCalibrator` contains it. Methods are calibrators.
- Array API input (CuPy, PyTorch) becomes NumPy arrays: the calibrators are compiled for the CPU.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from isoroc import (
    CalibratedClassifier,
    InputError,
    IRPCalibrator,
    IsotonicCalibrator,
    TemperatureCalibrator,
)
from zoo import KINDS, make, takes_classes

ensembles = pytest.mark.parametrize("ensemble", [False, True])
not_converged = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
calibrators = pytest.mark.parametrize(
    "calibrator", [IRPCalibrator(), IsotonicCalibrator(), TemperatureCalibrator()]
)


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(n_samples=200, n_features=6, random_state=42)
    return X - X.min(), y  # counts for naive Bayes are not negative


def folds_of(X, y, n_splits):
    """What an integer `cv` stands for."""
    return list(StratifiedKFold(n_splits).split(X, y))


def brier(y, Q):
    return np.mean((np.eye(Q.shape[1])[y] - Q) ** 2)


# Calibration improves forecasts, whatever the labels are called


@ensembles
@calibrators
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_naive_bayes_gets_a_lower_brier_score(data, calibrator, ensemble, container):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.5, 1.5, 100)
    before = MultinomialNB().fit(X[:100], y[:100], weights).predict_proba(X[100:])[:, 1]
    model = CalibratedClassifier(MultinomialNB(), calibrator, ensemble=ensemble)
    train, test = container(X[:100]), container(X[100:])
    after = model.fit(train, y[:100], sample_weight=weights).predict_proba(test)[:, 1]
    assert brier_score_loss(y[100:], after) < brier_score_loss(y[100:], before)
    for first, second in [(1, 2), (-1, 1), ("a", "b")]:
        named = np.where(y[:100] == 1, np.array(second), np.array(first))
        again = model.fit(train, named, sample_weight=weights).predict_proba(test)
        np.testing.assert_allclose(again[:, 1], after)
    # Unlike isotonic calibration in scikit-learn, ours treats the two classes alike.
    turned = model.fit(train, 1 - y[:100], sample_weight=weights).predict_proba(test)
    np.testing.assert_allclose(turned[:, 0], after, atol=1e-8)


@not_converged
@ensembles
@calibrators
def test_three_classes_of_a_decision_function(calibrator, ensemble):
    X, y = make_blobs(500, n_features=100, random_state=0, centers=10, cluster_std=15.0)
    y = y.clip(max=2)  # eight clusters are one class
    train, test = slice(0, None, 2), slice(1, None, 2)
    for classifier in (LinearSVC(random_state=7), RandomForestClassifier(30, random_state=42)):
        plain = clone(classifier).fit(X[train], y[train])
        model = CalibratedClassifier(classifier, calibrator, ensemble=ensemble)
        Q = model.fit(X[train], y[train]).predict_proba(X[test])
        np.testing.assert_allclose(Q.sum(axis=1), 1)
        if isinstance(classifier, LinearSVC):
            P = softmax(plain.decision_function(X[test]), axis=1)
            assert model.score(X[test], y[test]) > 0.93 * plain.score(X[test], y[test])
        else:
            P = plain.predict_proba(X[test])
        assert brier(y[test], Q) < 1.1 * brier(y[test], P)


@ensembles
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_temperature_scaling_keeps_the_decisions(n_classes, ensemble):
    X, y = make_classification(
        1000, 10, n_informative=10, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1,
        class_sep=2.0, random_state=42,
    )  # fmt: skip
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(X[:750], y[:750])
    plain = TemperatureCalibrator(floor=1e-300, pseudocount=0)
    calibrated = CalibratedClassifier(FrozenEstimator(model), plain, cv=3, ensemble=ensemble)
    calibrated.fit(X[750:], y[750:])
    [calibrator] = calibrated.calibrators_  # a frozen classifier has one, whatever cv says
    assert calibrator.temperature_ > 0
    P, Q = model.predict_proba(X[750:]), calibrated.predict_proba(X[750:])
    np.testing.assert_array_equal(calibrated.predict(X[750:]), model.predict(X[750:]))
    assert log_loss(y[750:], Q) <= log_loss(y[750:], P)
    if n_classes == 2:
        P, Q = P[:, 1], Q[:, 1]
    before, after = (roc_auc_score(y[750:], p, multi_class="ovr") for p in (P, Q))
    # A temperature keeps the order of the classes in a row, and for two classes that of the rows.
    assert after == pytest.approx(before, abs=0.01 if n_classes > 2 else 1e-12)
    # A logistic regression without penalty is calibrated on its own training set.
    trained = clone(plain).fit(model.predict_proba(X[:750]), y[:750])
    assert trained.temperature_ == pytest.approx(1, abs=1e-4)


@not_converged
def test_large_decision_functions():
    y = np.repeat([1, 0], [134, 66])
    X = 1e5 * y.reshape(-1, 1) + np.random.default_rng(0).normal(size=(200, 1))
    svm = SGDClassifier(loss="squared_hinge", tol=1e-2, random_state=0)
    assert (svm.fit(X, y).decision_function(X) > 1e4).any()
    for calibrator in (TemperatureCalibrator(), IsotonicCalibrator()):
        Q = CalibratedClassifier(svm, calibrator).fit(X, y).predict_proba(X)
        assert np.isfinite(Q).all()
        assert roc_auc_score(y, Q[:, 1]) == 1


def test_rows_where_all_maps_are_near_zero():
    # Each class against the rest: the maps say about 0 for the last row, which still sums to 1.
    P = np.vstack([np.eye(3)[np.arange(300) % 3], [[0.34, 0.33, 0.33]]])
    y = np.append(np.arange(300) % 3, 0)
    for name in KINDS:
        if takes_classes(name, 3):
            Q = make(name).fit(P, y).predict_proba([[0.34, 0.33, 0.33], [0.0, 0.5, 0.5]])
            np.testing.assert_allclose(Q.sum(axis=1), 1, err_msg=name)


# Weights and other parameters of fit


@ensembles
@calibrators
def test_weights_change_the_forecasts(data, calibrator, ensemble):
    X, y = data
    weights = np.random.default_rng(42).uniform(size=200)
    model = CalibratedClassifier(LinearSVC(random_state=42), calibrator, ensemble=ensemble)
    weighted = model.fit(X, y, sample_weight=weights).predict_proba(X)
    assert np.linalg.norm(weighted - model.fit(X, y).predict_proba(X)) > 0.1


@ensembles
@calibrators
def test_weight_two_is_every_row_twice(data, calibrator, ensemble):
    X, y = StandardScaler().fit_transform(data[0]), data[1]
    model = CalibratedClassifier(LogisticRegression(tol=1e-8), calibrator, cv=2, ensemble=ensemble)
    weighted = clone(model).fit(X, y, sample_weight=np.full(200, 2.0))
    repeated = model.fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    for one, other in zip(weighted.estimators_, repeated.estimators_, strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-4)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


class Checking(LogisticRegression):
    """Asserts that its fit gets what it expects."""

    def fit(self, X, y, sample_weight=None, a=None, b=None):
        self.got_ = {"sample_weight": sample_weight, "a": a, "b": b}
        return super().fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize("container", [list, np.asarray])
def test_parameters_of_fit_reach_the_classifier(data, container):
    X, y = data
    model = CalibratedClassifier(Checking())
    model.fit(X, y, sample_weight=container(np.ones(200)), a=container(y), b=np.ones(201))
    got = model.estimators_[0].got_
    assert len(got["sample_weight"]) == len(got["a"]) == 200
    assert len(got["b"]) == 201  # not one per row, so it is passed as it is
    ensemble = CalibratedClassifier(Checking(), ensemble=True).fit(X, y, a=container(y))
    for (train, _), classifier in zip(folds_of(X, y, 5), ensemble.estimators_, strict=True):
        np.testing.assert_array_equal(classifier.got_["a"], y[train])


# Whatever the classifier takes


def test_missing_values_are_the_classifiers_business():
    X, y = make_classification(n_samples=40, random_state=42)
    X[0, 0] = np.nan
    forest = make_pipeline(SimpleImputer(), RandomForestClassifier(5, random_state=0))
    assert CalibratedClassifier(forest, cv=2).fit(X, y).predict(X).shape == (40,)


class Tensors(ClassifierMixin, BaseEstimator):
    """A classifier of arrays of any dimension."""

    def fit(self, X, y):  # noqa: ARG002
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X.reshape(len(X), -1).sum(axis=1)


@pytest.mark.parametrize("shape", [(40, 5, 2), (40, 5, 2, 6)])
def test_arrays_of_any_dimension(shape):
    X = np.random.default_rng(0).normal(size=shape)
    y = (X.reshape(40, -1).sum(axis=1) > 0).astype(int)
    assert CalibratedClassifier(Tensors()).fit(X, y).predict_proba(X).shape == (40, 2)


def test_dictionaries_in_a_fitted_pipeline():
    rows = [{"state": s, "age": a} for s in ("NY", "TX", "VT") for a in ("adult", "child")] * 5
    y = [int(row["state"] == "NY") for row in rows]
    pipeline = make_pipeline(DictVectorizer(), RandomForestClassifier(5, random_state=0))
    model = CalibratedClassifier(FrozenEstimator(pipeline.fit(rows, y))).fit(rows, y)
    assert not hasattr(model, "n_features_in_")
    assert model.classes_.tolist() == [0, 1]
    assert model.predict(rows).tolist() == y


def test_a_frozen_classifier_calibrates_on_all_rows(data):
    X, y = data
    for container in (np.asarray, csr_array):
        bayes = MultinomialNB().fit(container(X[:60]), y[:60])
        for weights in (None, np.random.default_rng(0).uniform(0.5, 1.5, 70)):
            model = CalibratedClassifier(FrozenEstimator(bayes))
            model.fit(container(X[60:130]), y[60:130], sample_weight=weights)
            assert model.calibrators_[0].summary_["rows"] == 70
            before, after = (m.predict_proba(container(X[130:])) for m in (bayes, model))
            assert brier(y[130:], after) < brier(y[130:], before)
            best = model.classes_[after.argmax(axis=1)]
            np.testing.assert_array_equal(model.predict(container(X[130:])), best)


def test_a_frozen_classifier_of_other_features(data):
    X, y = data
    model = CalibratedClassifier(FrozenEstimator(LinearSVC().fit(X, y)))
    with pytest.raises(ValueError, match="X has 3 features, but LinearSVC is expecting 6"):
        model.fit(X[:, :3], y)


def test_methods_that_are_defined_while_running(data):
    X, y = data
    votes = [(f"m{i}", LogisticRegression()) for i in range(3)]
    for voting, expected in (("soft", "probability"), ("hard", None)):
        vote = VotingClassifier(votes, voting=voting).fit(X, y)
        model = CalibratedClassifier(FrozenEstimator(vote))
        if expected is None:
            with pytest.raises(InputError, match=r"response: .* has no decision_function"):
                model.fit(X, y)
        else:
            assert model.fit(X, y).calibrators_[0].scores_ == expected


@pytest.mark.parametrize("weights", [None, np.ones(200)])
@calibrators
def test_forecasts_in_single_precision_and_constant_ones(data, calibrator, weights):
    class Single(DummyClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X).astype(np.float32)

    X, y = data
    for classifier in (Single(), FrozenEstimator(Single().fit(X, y))):
        model = CalibratedClassifier(classifier, calibrator).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(model.predict_proba(X)[:, 1], y.mean(), atol=0.01)


def test_attributes_and_strings(data):
    X, y = data
    model = CalibratedClassifier(LinearSVC(), cv=3).fit(X, np.array(["a", "b"])[y])
    assert model.classes_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 6
    assert accuracy_score(np.array(["a", "b"])[y], model.predict(X)) > 0.7


def test_scores_as_a_column_or_a_vector():
    z = np.arange(10.0)
    y = np.arange(10) % 2
    one = TemperatureCalibrator().fit(z, y).predict_proba(z)
    other = TemperatureCalibrator().fit(z.reshape(-1, 1), y).predict_proba(z.reshape(-1, 1))
    np.testing.assert_array_equal(one, other)
