from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    PredefinedSplit,
    ShuffleSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from isoroc import (
    AutoCalibrator,
    CalibratedClassifier,
    InputError,
    IRPCalibrator,
    IsotonicCalibrator,
    SegmentCalibrator,
    TemperatureCalibrator,
    export,
    load,
)

X, CODES = make_classification(
    n_samples=600, n_features=6, n_informative=4, n_redundant=2, random_state=0
)
Y = np.array(["ham", "spam"])[CODES]


class Marginal:
    """A user's calibrator for any number of classes, with nothing but the two methods."""

    def fit(self, P, y):
        self.shape_ = P.shape
        self.rates_ = np.bincount(y, minlength=P.shape[1]) / len(y)
        return self

    def predict_proba(self, P):
        mixed = (P + self.rates_) / 2
        return mixed / mixed.sum(axis=1, keepdims=True)


CHECKED = [
    CalibratedClassifier(LinearSVC(), calibrator=TemperatureCalibrator(), cv=3),
    CalibratedClassifier(GaussianNB(), calibrator=IRPCalibrator(), ensemble=True),
]


# scikit-learn 1.7 checks with so few rows that a fold of an ensemble may hold one class.
@pytest.mark.filterwarnings("ignore:cv. 1 of 5 folds hold out rows of one class only:UserWarning")
@pytest.mark.filterwarnings("ignore:The least populated class")  # data of the checks before 1.8
@parametrize_with_checks([clone(own).set_params(weighting="frequency") for own in CHECKED])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_calibrates_out_of_fold_forecasts_and_trains_on_everything():
    clf = CalibratedClassifier(GaussianNB(), calibrator=IRPCalibrator(), cv=4, ensemble=False).fit(
        X, Y
    )
    P = cross_val_predict(GaussianNB(), X, Y, cv=4, method="predict_proba")
    expected = IRPCalibrator().fit(P, Y)
    forecast = GaussianNB().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(forecast))
    assert clf.classes_.tolist() == ["ham", "spam"]
    assert (clf.predict(X) == clf.classes_[clf.predict_proba(X).argmax(axis=1)]).all()
    assert len(clf.estimators_) == len(clf.calibrators_) == 1


def test_the_default_is_the_automatic_calibrator():
    folds = PredefinedSplit(np.arange(600) // 150)  # fold by fold, rows stand as they are
    clf = CalibratedClassifier(GaussianNB(), cv=folds, ensemble=False).fit(X, Y)
    P = cross_val_predict(GaussianNB(), X, Y, cv=folds, method="predict_proba")
    expected = AutoCalibrator(random_state=0).fit(P, Y)
    forecast = GaussianNB().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(clf.predict_proba(X), expected.predict_proba(forecast))
    assert clf.verdict_.should_calibrate


def test_ensemble_averages_one_pair_a_fold():
    folds = PredefinedSplit(np.arange(600) % 3)
    clf = CalibratedClassifier(
        GaussianNB(), calibrator=IRPCalibrator(max_bins=6), cv=folds, ensemble=True
    )
    clf.fit(X, Y)
    expected = np.zeros((600, 2))
    for train, test in folds.split():
        model = GaussianNB().fit(X[train], Y[train])
        cal = IRPCalibrator(max_bins=6).fit(model.predict_proba(X[test]), Y[test])
        expected += cal.predict_proba(model.predict_proba(X)) / 3
    np.testing.assert_allclose(clf.predict_proba(X), expected)
    assert len(clf.estimators_) == len(clf.calibrators_) == 3


def test_folds_need_not_be_a_partition():
    folds = ShuffleSplit(7, test_size=0.3, random_state=0)
    clf = CalibratedClassifier(GaussianNB(), cv=folds, ensemble=False)
    assert clf.fit(X, Y).calibrators_[0].summary_["weight"] == 7 * 180


@pytest.mark.parametrize("how", ["prefit", "frozen"])
def test_fitted_classifiers_are_left_alone(how):
    model = RandomForestClassifier(20, random_state=0).fit(X[:300], Y[:300])
    clf = (
        CalibratedClassifier(model, calibrator=IRPCalibrator(), cv="prefit")
        if how == "prefit"
        else CalibratedClassifier(FrozenEstimator(model), calibrator=IRPCalibrator())
    )
    clf.fit(X[300:], Y[300:])
    P = model.predict_proba(X[300:])
    expected = IRPCalibrator().fit(P, Y[300:]).predict_proba(P)
    np.testing.assert_array_equal(clf.predict_proba(X[300:]), expected)


def test_prefit_wants_a_fitted_classifier():
    with pytest.raises(NotFittedError):
        CalibratedClassifier(GaussianNB(), cv="prefit").fit(X, Y)


def test_prefit_refuses_labels_that_the_classifier_does_not_know():
    model = GaussianNB().fit(X, Y)
    with pytest.raises(ValueError, match=r"y: row 2 is .*eggs.*, which is not among the labels"):
        CalibratedClassifier(model, cv="prefit").fit(X[:3], ["ham", "spam", "eggs"])


@pytest.mark.parametrize("response", ["auto", "predict_proba", "decision_function"])
def test_responses(response):
    clf = CalibratedClassifier(LogisticRegression(), response=response, cv=3).fit(X, Y)
    assert clf.calibrators_[0].n_features_in_ == (1 if response == "decision_function" else 2)
    Q = clf.predict_proba(X)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    # A logit and its sigmoid order the rows alike, so the bins are the same.
    auto = CalibratedClassifier(LogisticRegression(), cv=3).fit(X, Y)
    np.testing.assert_allclose(Q, auto.predict_proba(X))


def test_auto_falls_back_to_the_decision_function():
    clf = CalibratedClassifier(LinearSVC(), cv=3).fit(X, Y)
    assert clf.calibrators_[0].n_features_in_ == 1
    assert clf.score(X, Y) > 0.65


def test_decision_functions_of_three_classes_become_forecasts():
    X3, y3 = make_classification(
        n_samples=300, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    clf = CalibratedClassifier(LinearSVC(), calibrator=Marginal(), cv=3, ensemble=False).fit(X3, y3)
    forecast = softmax(LinearSVC().fit(X3, y3).decision_function(X3), axis=1)
    expected = clf.calibrators_[0].predict_proba(forecast)
    np.testing.assert_allclose(clf.predict_proba(X3), expected)


def test_folds_that_miss_a_class_still_give_all_columns():
    y3 = np.r_[np.zeros(300), np.ones(290), np.full(10, 2)].astype(int)
    halves = PredefinedSplit(np.r_[np.zeros(300), np.ones(300)])
    # Each half is trained without a class or two. The rare class is never seen by the second.
    y3[:20] = 1
    for response in ("predict_proba", "decision_function"):
        clf = CalibratedClassifier(
            LogisticRegression(),
            calibrator=Marginal(),
            cv=halves,
            ensemble=False,
            response=response,
        )
        clf.fit(X, y3)
        assert clf.calibrators_[0].shape_ == (600, 3)
        assert clf.predict_proba(X).shape == (600, 3)


class Forgetful(LogisticRegression):
    """A user's calibrator that may return fewer columns than there are classes."""


def test_user_calibrators_that_miss_a_class_get_their_columns_filled():
    y3 = np.r_[np.zeros(300), np.ones(290), np.full(10, 2)].astype(int)
    model = KNeighborsClassifier().fit(X, y3)
    clf = CalibratedClassifier(model, calibrator=Forgetful(), cv="prefit").fit(X[:590], y3[:590])
    Q = clf.predict_proba(X)
    assert Q.shape == (600, 3)
    assert (Q[:, 2] == 0).all()


def test_weights_reach_classifier_and_calibrator():
    rng = np.random.default_rng(0)
    repeats = rng.integers(1, 4, 600)
    folds = np.arange(600) % 3
    irp = IRPCalibrator()
    weighted = CalibratedClassifier(
        LogisticRegression(), calibrator=irp, cv=PredefinedSplit(folds), ensemble=False
    )
    weighted.set_params(weighting="frequency").fit(X, Y, sample_weight=repeats)
    repeated = CalibratedClassifier(
        LogisticRegression(),
        calibrator=irp,
        cv=PredefinedSplit(np.repeat(folds, repeats)),
        ensemble=False,
    )
    repeated.fit(np.repeat(X, repeats, axis=0), np.repeat(Y, repeats))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-3)
    assert weighted.calibrators_[0].summary_["weight"] == repeats.sum()
    weighted.set_params(weighting="importance").fit(X, Y, sample_weight=repeats)
    effective = repeats.sum() ** 2 / (repeats**2).sum()
    assert weighted.calibrators_[0].summary_["weight"] == pytest.approx(effective)


def test_weights_with_a_classifier_that_takes_none():
    options: Any = {"cv": 3, "ensemble": False, "weighting": "frequency"}
    clf = CalibratedClassifier(KNeighborsClassifier(), **options)
    with pytest.warns(UserWarning, match="KNeighborsClassifier takes no weights"):
        clf.fit(X, Y, sample_weight=np.full(600, 2.0))
    assert clf.calibrators_[0].summary_["weight"] == 1200


class Recorder(LogisticRegression):
    """Remembers what its fit was given."""

    def fit(self, X, y, sample_weight=None, tag=None):
        self.tag_ = tag
        return super().fit(X, y, sample_weight=sample_weight)


def test_fit_parameters_are_cut_to_the_fold():
    tags = np.arange(600)
    clf = CalibratedClassifier(Recorder(), cv=3, ensemble=True).fit(X, Y, tag=tags)
    assert [len(e.tag_) for e in clf.estimators_] == [400, 400, 400]
    clf = CalibratedClassifier(Recorder(), cv=3, ensemble=True).fit(X, Y, tag="same for all")
    assert {e.tag_ for e in clf.estimators_} == {"same for all"}


def test_metadata_routing():
    groups = np.arange(600) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        estimator = Recorder().set_fit_request(tag=True, sample_weight=False)
        options = {"cv": GroupKFold(3), "ensemble": True, "weighting": "frequency"}
        clf = CalibratedClassifier(estimator, **options)
        clf.fit(X, Y, sample_weight=np.full(600, 2.0), tag=np.arange(600), groups=groups)
    for fitted in clf.estimators_:
        assert len(set(fitted.tag_ % 3)) == 2  # one group held out
    assert clf.calibrators_[0].summary_["weight"] == 400


def test_in_pipelines_searches_and_clones():
    pipeline = make_pipeline(
        StandardScaler(), CalibratedClassifier(GaussianNB(), calibrator=IRPCalibrator())
    )
    search = GridSearchCV(
        pipeline,
        {
            "calibratedclassifier__calibrator__pseudocount": [0.5, 2],
            "calibratedclassifier__estimator__var_smoothing": [1e-9, 1e-1],
        },
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, Y)
    assert set(search.best_params_) == set(search.param_grid)
    assert cross_val_score(clone(search.best_estimator_), X, Y, cv=3).mean() > 0.65
    inside = CalibratedClassifier(make_pipeline(StandardScaler(), GaussianNB())).fit(X, Y)
    assert inside.n_features_in_ == 6


def test_dataframes_in_and_out_of_the_classifier():
    names = [f"f{i}" for i in range(6)]
    frame = pd.DataFrame(X, columns=names)

    class WantsFrames(RandomForestClassifier):
        def fit(self, X, y, sample_weight=None):
            assert isinstance(X, pd.DataFrame)
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            assert isinstance(X, pd.DataFrame)
            return pd.DataFrame(super().predict_proba(X), columns=self.classes_)

    base = WantsFrames(10, random_state=0)
    clf = CalibratedClassifier(base, cv=3).fit(frame, pd.Series(Y))
    assert clf.feature_names_in_.tolist() == names
    plain = CalibratedClassifier(RandomForestClassifier(10, random_state=0), cv=3).fit(X, Y)
    np.testing.assert_array_equal(clf.predict_proba(frame), plain.predict_proba(X))
    polars = pl.DataFrame(X, schema=names)
    clf = CalibratedClassifier(LogisticRegression(), cv=3).fit(polars, pl.Series(Y.tolist()))
    assert clf.predict_proba(polars).shape == (600, 2)


@pytest.mark.slow
def test_parallel_folds_give_the_same_model():
    one = CalibratedClassifier(GaussianNB()).fit(X, Y)
    two = CalibratedClassifier(GaussianNB(), n_jobs=2).fit(X, Y)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"cv": "five"}, Y, "cv: expected a number, a splitter or .*five"),
        ({"response": "predict"}, Y, "response: expected .*predict'"),
        ({"response": "decision_function"}, Y, "response: GaussianNB has no decision_function"),
        ({"ensemble": "no"}, Y, "ensemble: expected one of True, False, 'auto'; got 'no'"),
        ({"calibrator": "isotonic"}, Y, r"calibrator: expected .* got 'isotonic'; pass an instanc"),
        ({"calibrator": IRPCalibrator}, Y, r"calibrator: .*; pass an instance, such as AutoCalib"),
        ({"estimator": GaussianNB}, Y, "estimator: .*; pass an instance of a classifier"),
        ({"estimator": Ridge()}, Y, "estimator: Ridge is a regressor; pass a classifier"),
        ({"method": "platt"}, Y, "method: expected one of 'auto', .*'venn-abers'; got 'platt'"),
        ({}, np.full(600, "ham"), "y: one class only, 'ham'"),
        ({}, np.zeros(600, dtype=int), "y: one class only, 0"),
        ({}, None, "y: requires y"),
        ({}, Y[:5], "inconsistent numbers of samples"),
    ],
)
def test_bad_input(params, y, message):
    with pytest.raises(ValueError, match=message) as error:
        CalibratedClassifier(**{"estimator": GaussianNB()} | params).fit(X, y)
    assert "np." not in str(error.value)


class Unsorted(ClassifierMixin, BaseEstimator):
    """A classifier whose classes are in the opposite order, as a user's own may be."""

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_[::-1]
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)[:, ::-1]

    def decision_function(self, X):
        scores = self.inner_.decision_function(X)
        return -scores if scores.ndim == 1 else scores[:, ::-1]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classifiers_with_unsorted_classes(n_classes, response, frozen):
    X, y = make_classification(400, n_informative=4, n_classes=n_classes, random_state=0)
    results = []
    for plain in (LogisticRegression(), Unsorted()):
        classifier = FrozenEstimator(plain.fit(X, y)) if frozen else plain
        model = CalibratedClassifier(
            classifier, calibrator=IsotonicCalibrator(), response=response
        ).fit(X, y)
        results.append(model.predict_proba(X)[:, np.argsort(model.classes_)])
        assert model.score(X, y) > 0.6
    np.testing.assert_allclose(results[0], results[1], atol=1e-12)


class Clipped(LogisticRegression):
    """A classifier whose decisions happen to lie between 0 and 1 where it was trained."""

    def decision_function(self, X):
        return 0.5 + super().decision_function(X) / 100


def test_decision_functions_between_0_and_1_are_logits():
    model = CalibratedClassifier(
        Clipped(), calibrator=TemperatureCalibrator(), response="decision_function"
    )
    model.fit(X, Y)
    assert model.calibrators_[0].unit_ == "logit"
    Q = model.predict_proba(100 * X)  # decisions far outside
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    assert model.predict_proba(X)[:, 1].std() > 0


def test_calibrators_know_the_labels(tmp_path):
    X3, codes = make_classification(400, n_informative=4, n_classes=3, random_state=0)
    y = np.array(["cat", "dog", "eel"])[codes]
    model = CalibratedClassifier(GaussianNB(), "irp", ensemble=False)
    [calibrator] = model.fit(X3, y).calibrators_
    assert calibrator.classes_.tolist() == ["cat", "dog", "eel"]
    assert {"value_cat", "value_dog", "value_eel"} <= set(calibrator.bins_)
    calibrator.save(tmp_path / "model.json")
    assert load(tmp_path / "model.json").classes_.tolist() == ["cat", "dog", "eel"]
    pytest.importorskip("sqlglot")
    query = export.to_sql(calibrator, ["a", "b", "c"], dialect="duckdb")
    assert all(f'"calibrated_{name}"' in query for name in ("cat", "dog", "eel"))


@pytest.mark.parametrize("ensemble", [False, True])
def test_segments_are_columns_of_the_features(ensemble):
    rng = np.random.default_rng(0)
    place = np.where(np.arange(600) % 3 == 0, "north", "south")
    y = np.where((place == "south") & (rng.random(600) < 0.5), "spam", Y)  # differs by place
    frame = pd.DataFrame(X).add_prefix("x").assign(place=place)
    first = make_pipeline(FunctionTransformer(lambda own: own.drop(columns="place")), GaussianNB())
    options = {"method": "temperature", "segments": ["place", "x0"], "ensemble": ensemble}
    model = CalibratedClassifier(first, **options).fit(frame, y)
    Q = 0
    for estimator, calibrator in zip(model.estimators_, model.calibrators_, strict=True):
        assert "place" in calibrator.columns_
        Q = Q + calibrator.predict_proba(estimator.predict_proba(frame), frame)
    np.testing.assert_allclose(model.predict_proba(frame), Q / len(model.calibrators_))
    same = model.fit(pl.from_pandas(frame).to_pandas(), y).predict_proba(frame)
    np.testing.assert_allclose(same, Q / len(model.calibrators_))
    with pytest.raises(InputError, match=r"segments: are not columns of X .*plase"):
        CalibratedClassifier(first, segments=["plase"]).fit(frame, y)
    with pytest.raises(InputError, match="segments: are not columns of X"):
        CalibratedClassifier(GaussianNB(), segments=["place"]).fit(X, y)


def test_segments_by_position_and_in_a_given_calibrator():
    own = SegmentCalibrator(TemperatureCalibrator(), max_terms=0)
    given = CalibratedClassifier(GaussianNB(), calibrator=own, segments=[1]).fit(X, Y)
    assert given.calibrators_[0].max_terms == 0
    named = CalibratedClassifier(GaussianNB(), method="temperature", segments=[1]).fit(X, Y)
    assert isinstance(named.calibrators_[0], SegmentCalibrator)
    assert named.predict_proba(X).shape == (600, len(named.classes_))
