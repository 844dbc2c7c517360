"""What holds for every public calibrator.

Calibrators are found in the public list, so a new one is tested here without a change. What does
not hold for a calibrator, flags of its class or a set below say.
"""

import inspect
import json
import pickle
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import estimator_checks_generator

import isoroc
from exported import DATABASES, run_onnx, run_sql
from isoroc import CalibratedClassifier, load_map
from isoroc._backends import NUMPY
from isoroc._calibrators.base import COMMON
from strategies import arbitrary, labelled_forecasts
from zoo import (
    CASES,
    KINDS,
    NOT_KEPT,
    SHAPES,
    assert_agrees,
    assert_same,
    draw_labels,
    fitted,
    fitted_calibrators,
    forecasts,
    make,
    on_thresholds,
    probabilities,
    takes_classes,
)

each = pytest.mark.parametrize("name", KINDS)
each_shape = pytest.mark.parametrize(("name", "shape"), CASES)
few = settings(
    max_examples=settings().max_examples // 5,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


#: Calibrators whose forecasts depend on the order of the columns.
BY_COLUMNS = {"IRPCalibrator"}
#: Calibrators that mix members and drop those of little weight: rounding may decide which.
MIXES = {"AutoCalibrator", "MultiLabelCalibrator", "OrdinalCalibrator", "SegmentCalibrator"}


def with_members(calibrator):
    """A calibrator, and the members if it is a mixture."""
    return [calibrator, *getattr(calibrator, "members", [])]


def is_among(names, calibrator):
    return any(type(each).__name__ in names for each in with_members(calibrator))


def some_data(n_classes, n=120, seed=0):
    P = forecasts(n_classes, n, seed)
    return P, draw_labels(P, seed)


def classes_for(name):
    return (2, 3) if takes_classes(name, 3) else (2,)


def data_for(name):
    """Data of up to 4 classes. Above, `IRPCalibrator` deals folds to choose among reductions."""
    return labelled_forecasts(max_classes=4 if takes_classes(name, 3) else 2, max_rows=30)


# Forecasts


@each
@arbitrary
@few
@given(data=st.data())
def test_forecasts_are_probabilities(name, data):
    calibrator, P = data.draw(fitted_calibrators(name))
    Q = calibrator.predict_proba(P)
    assert Q.shape == (len(P), len(calibrator.classes_))
    assert ((Q >= 0) & (Q <= 1)).all()
    np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_array_equal(calibrator.predict(P), calibrator.classes_[Q.argmax(axis=1)])
    if calibrator.get_params(deep=False).get("pseudocount"):
        assert ((Q > 0) & (Q < 1)).all()


@each
def test_probabilities_and_their_second_column_give_the_same_fit(name):
    rng = np.random.default_rng(0)
    p = rng.integers(0, 21, 300) / 20  # zeros and ones among them
    y = rng.random(300) < p**2
    P = np.column_stack([1 - p, p])
    Q = make(name).fit(P, y).predict_proba(P)
    np.testing.assert_allclose(make(name).fit(p, y).predict_proba(p), Q, rtol=1e-12)


@each
def test_scores_of_another_unit_are_refused(name):
    p = forecasts("p", 120)[:, 0]
    y = draw_labels(probabilities("p", p[:, None]))
    of_probabilities = make(name).fit(p, y)
    for wrong in (-0.01, 1.01, 50, 99.5, 1e308):
        with pytest.raises(isoroc.InputError, match=r'row 1 is .* unit="logit"'):
            of_probabilities.predict_proba([0.5, wrong])
    of_scores = make(name).fit(p, y, unit="logit")
    assert of_scores.predict_proba([-99.5, 50, 1e308]).shape == (3, 2)


@pytest.mark.parametrize(("name", "shape"), [case for case in CASES if "logits" in str(case[1])])
def test_logits_are_read_as_the_probabilities_that_they_stand_for(name, shape):
    z = forecasts(shape, 120)
    P = probabilities(shape, z)
    y = draw_labels(P)
    of_logits = make(name).fit(z, y, unit="logit")
    of_probabilities = make(name).fit(P, y)
    assert (of_logits.unit_, of_probabilities.unit_) == ("logit", "probability")
    Q = of_probabilities.predict_proba(P)
    np.testing.assert_allclose(of_logits.predict_proba(z), Q, atol=1e-6)


@each_shape
def test_compiled_loops_compute_the_formula(name, shape):
    fitted_map = fitted(name, shape).map_
    values, _ = fitted_map.kind.clean(NUMPY, forecasts(shape, 300))
    plain = fitted_map.formula(NUMPY, values)
    scores = values[:, 0] if fitted_map.kind.single else values
    np.testing.assert_allclose(fitted_map.apply(scores), plain, rtol=1e-9, atol=1e-13)


@each
def test_a_class_that_never_came_true(name):
    for K in classes_for(name)[1:]:
        P, y = some_data(K, 200)
        y[y == 1] = 0
        with pytest.raises(ValueError, match="say which column is which class with labels="):
            make(name).fit(P, y)
        calibrator = make(name).fit(P, y, labels=range(K))
        assert calibrator.classes_.tolist() == list(range(K))
        assert calibrator.summary_["class_weights"][1] == 0
        # A temperature keeps the order of the classes. All others learn that it is rare.
        if name not in {"IdentityCalibrator", "TemperatureCalibrator"}:
            assert calibrator.predict_proba(P)[:, 1].mean() < P[:, 1].mean() / 2


# What must not matter, or only as documented


@each
@arbitrary
@few
@given(rest=st.data())
def test_a_frequency_of_two_is_the_row_twice(name, rest):
    P, y, _ = rest.draw(data_for(name))
    counts = np.array(rest.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y))))
    counts[-2:] = 1
    K = P.shape[1]
    options = {"labels": range(K), "sample_weight": counts, "weighting": "frequency"}
    weighted = make(name).fit(P, y, **options)
    repeated = make(name).fit(np.repeat(P, counts, axis=0), np.repeat(y, counts), labels=range(K))
    assert weighted.summary_["weight"] == repeated.summary_["weight"]
    if not is_among(MIXES, weighted):
        # With certain forecasts, rounding decides at which step this descent ends.
        is_rough = name == "MonotoneCalibrator" and (P == 1).any()
        Q = weighted.predict_proba(P)
        expected = repeated.predict_proba(P)
        np.testing.assert_allclose(Q, expected, atol=0.01 if is_rough else 1e-6)


@each
def test_frequencies_of_ordinary_rows(name):
    for K in classes_for(name):
        P, y = some_data(K)
        counts = 1 + np.arange(len(y)) % 3
        weighted = make(name).fit(P, y, sample_weight=counts, weighting="frequency")
        repeated = make(name).fit(np.repeat(P, counts, axis=0), np.repeat(y, counts))
        np.testing.assert_allclose(weighted.predict_proba(P), repeated.predict_proba(P), atol=1e-6)


@each
@pytest.mark.parametrize("clustered", [False, True])
def test_frequencies_of_rows_that_mirror_each_other(name, clustered):
    """The classes of some rows are the classes of others, exchanged."""
    rng = np.random.default_rng(1)
    n = 60
    p = rng.integers(1, 10, n) / 10
    y = (rng.random(n) < p**2).astype(int)
    counts = 1 + np.arange(n) % 3
    clustered = clustered and name != "OnlineCalibrator"
    columns = {"clusters": np.arange(n) // 3} if clustered else {}
    weighted = make(name).fit(p, y, sample_weight=counts, weighting="frequency", **columns)
    columns = {key: column.repeat(counts) for key, column in columns.items()}
    repeated = make(name).fit(p.repeat(counts), y.repeat(counts), **columns)
    np.testing.assert_allclose(weighted.predict_proba(p), repeated.predict_proba(p), atol=1e-9)


@pytest.mark.parametrize("name", ["AutoCalibrator", "IRPCalibrator", "IsotonicCalibrator"])
def test_the_last_digit_breaks_no_ties(name):
    """Of three classes, equal forecasts may differ by a rounding error of the sum of their row."""
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 150).round(2)
    P[:, 2] = (1 - P[:, 0] - P[:, 1]).clip(min=0)
    y = draw_labels(P)
    changed = (P * rng.uniform(1 - 1e-15, 1 + 1e-15, P.shape)).clip(max=1)
    assert len(np.unique(changed)) > len(np.unique(P.round(2)))
    Q = make(name).fit(P, y).predict_proba(P)
    np.testing.assert_allclose(make(name).fit(changed, y).predict_proba(P), Q, atol=1e-9)


@each
def test_equal_weights_are_no_weights(name):
    for K in classes_for(name):
        P, y = some_data(K)
        plain = make(name).fit(P, y)
        weighted = make(name).fit(P, y, sample_weight=np.full(len(y), 1 / 3))
        np.testing.assert_array_equal(weighted.predict_proba(P), plain.predict_proba(P))
        assert weighted.summary_ == plain.summary_
        plain, weighted = (
            isoroc.Counts.from_arrays(P, y, resolution="exact", sample_weight=weights)
            for weights in (None, np.full(len(y), 1 / 3))
        )
        plain, weighted = (make(name).fit_counts(own).predict_proba(P) for own in (plain, weighted))
        np.testing.assert_allclose(weighted, plain, rtol=1e-9, atol=1e-12)


@each
def test_importance_weights_count_effective_rows(name):
    """One row may weigh as much as all others together: that is no reason to believe it."""
    P, y = some_data(2)
    weights = np.ones(len(y))
    weights[0] = len(y)
    fitted = make(name).fit(P, y, sample_weight=weights)
    effective = weights.sum() ** 2 / (weights**2).sum()
    assert fitted.summary_["weight"] == pytest.approx(effective)
    shares = np.bincount(y, weights) / weights.sum()
    np.testing.assert_allclose(fitted.summary_["class_weights"], effective * shares)
    scaled = make(name).fit(P, y, sample_weight=1000 * weights)
    np.testing.assert_allclose(scaled.predict_proba(P), fitted.predict_proba(P), atol=1e-6)


@each
def test_frequencies_act_as_repetitions_where_rows_are_drawn_too(name):
    for K in classes_for(name):
        P, y = some_data(K)
        counts = np.where(y == 0, 5, 1)
        plain, weighted, repeated = (
            make(name).fit(*args, **weights).predict_proba(P)
            for args, weights in [
                ((P, y), {}),
                ((P, y), {"sample_weight": counts, "weighting": "frequency"}),
                ((np.repeat(P, counts, axis=0), np.repeat(y, counts)), {}),
            ]
        )
        if name != "IdentityCalibrator":
            ignored = np.abs(plain - repeated).mean()
            # Copies of a row in several folds make the members of a mixture look better.
            most = ignored if name == "AutoCalibrator" else ignored / 2
            assert np.abs(weighted - repeated).mean() < most


@each
@arbitrary
@few
@given(rest=st.data(), random=st.randoms(use_true_random=False))
def test_the_order_of_the_rows(name, rest, random):
    P, y, weights = rest.draw(data_for(name))
    order = random.sample(range(len(y)), len(y))
    labels = range(P.shape[1])
    first = make(name).fit(P, y, labels=labels, sample_weight=weights)
    weights = None if weights is None else weights[order]
    second = make(name).fit(P[order], y[order], labels=labels, sample_weight=weights)
    assert first.summary_ == second.summary_
    np.testing.assert_allclose(first.predict_proba(P), second.predict_proba(P), atol=1e-6)


@each
@arbitrary
@few
@given(rest=st.data(), random=st.randoms(use_true_random=False))
def test_the_order_of_the_columns(name, rest, random):
    P, y, weights = rest.draw(data_for(name))
    K = P.shape[1]
    # Ordered classes may only be reversed.
    order = [*range(K)][::-1] if KINDS[name]._orders_classes else random.sample(range(K), K)
    first = make(name).fit(P, y, labels=range(K), sample_weight=weights)
    second = make(name).fit(P[:, order], y, labels=order, sample_weight=weights)
    assert second.classes_.tolist() == order
    Q = np.empty_like(P)
    Q[:, order] = second.predict_proba(P[:, order])
    if not is_among(BY_COLUMNS, first):
        np.testing.assert_allclose(Q, first.predict_proba(P), atol=1e-6)


@each
def test_the_order_of_the_columns_costs_nothing_where_it_matters(name):
    for K in classes_for(name):
        P, y = some_data(K, 400)
        order = np.roll(range(K), 1)
        losses = []
        for columns in (np.arange(K), order):
            Q = make(name).fit(P[:, columns], y, labels=columns).predict_proba(P[:, columns])
            losses.append(log_loss(y, Q[:, np.argsort(columns)]))
        assert abs(losses[0] - losses[1]) < 0.03


@each
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_named_like_the_labels_are_matched_by_name(name, frame):
    for K in classes_for(name):
        P, codes = some_data(K)
        names = np.array(["b", "a", "c"][:K])
        y = names[codes]
        options = {"labels": names} if KINDS[name]._orders_classes else {}
        by_name = make(name).fit(frame(dict(zip(names, P.T, strict=True))), y, **options)
        by_labels = make(name).fit(P, y, labels=names)
        assert by_name.classes_.tolist() == by_labels.classes_.tolist() == names.tolist()
        Q = by_labels.predict_proba(P)
        for order in (range(K), range(K)[::-1]):  # columns of new rows are matched by name too
            new = frame({names[k]: P[:, k] for k in order})
            np.testing.assert_array_equal(by_name.predict_proba(new), Q)


@each
@pytest.mark.parametrize("labels", [[3, 1, 2], ["no", "yes", "?"]])
def test_names_of_the_classes_do_not_matter(name, labels):
    for K in classes_for(name):
        P, codes = some_data(K)
        plain = make(name).fit(P, codes)
        renamed = make(name).fit(P, np.array(labels[:K])[codes], labels=labels[:K])
        assert renamed.classes_.tolist() == labels[:K]
        np.testing.assert_array_equal(renamed.predict_proba(P), plain.predict_proba(P))
        assert renamed.predict(P).tolist() == [labels[k] for k in plain.predict(P)]


@each
@pytest.mark.parametrize("shape", ["p", 2, 3, 5])
def test_counts_of_distinct_rows_give_the_same_fit(name, shape):
    if not takes_classes(name, 2 if shape == "p" else shape):
        pytest.skip("takes two classes only")
    P = forecasts(shape, 200)
    y = draw_labels(probabilities(shape, P))
    P = P[:, 0] if shape == "p" else P
    counts = isoroc.Counts.from_arrays(P, y, resolution="exact", folds=3)
    assert len(counts) == 200
    known = make(name).get_params(deep=False)
    rows = counts.sample(per_fold="top" in known)
    parameters = {}
    if "members" in known:  # weights depend on the folds, the maps of the members do not
        few = [isoroc.IdentityCalibrator(), isoroc.TemperatureCalibrator()]
        for member in make(name, members=few).fit_counts(counts).members_:
            alone = clone(member).fit(rows.forecasts, rows.codes, labels=counts.classes)
            Q = alone.predict_proba(P)
            np.testing.assert_allclose(member.predict_proba(P), Q, rtol=1e-9, atol=1e-12)
        return
    if "top" in known:
        parameters = {"top": None if shape in ("p", 2, 3) else 2}
    of_counts = make(name, **parameters).fit_counts(counts)
    of_rows = make(name, **parameters).fit(rows.forecasts, rows.codes, labels=counts.classes)
    np.testing.assert_allclose(
        of_counts.predict_proba(P), of_rows.predict_proba(P), rtol=1e-9, atol=1e-12
    )
    assert of_counts.summary_ == of_rows.summary_
    assert of_counts.n_features_in_ == of_rows.n_features_in_


# Model files, exports, pickles


def assert_restored(calibrator, path, P):
    calibrator.save(path)
    loaded = isoroc.load(path)
    assert loaded.summary_ == calibrator.summary_
    assert_same(calibrator, loaded)
    assert_same(calibrator.get_params(deep=False), loaded.get_params(deep=False))
    assert_same(calibrator.predict_proba(P), loaded.predict_proba(P))
    assert_same(calibrator.predict_proba(P), load_map(path).predict_proba(P))
    for table in ("bins_", "path_", "certificate_"):
        assert_same(getattr(calibrator, table, None), getattr(loaded, table, None))


@cache
def schema_validator():
    path = Path(__file__).resolve().parents[2] / "docs" / "model-file.schema.json"
    return pytest.importorskip("jsonschema").Draft202012Validator(json.loads(path.read_text()))


@each_shape
def test_a_loaded_calibrator_is_the_saved_one(name, shape, tmp_path):
    calibrator = fitted(name, shape)
    assert_restored(calibrator, tmp_path / "model.json", forecasts(shape, 300))
    learned = {attribute for attribute in vars(calibrator) if attribute.endswith("_")}
    assert learned - NOT_KEPT <= {*COMMON, "map_", *calibrator._state}
    if shape in ("p", 3, "3 logits"):  # others differ in the size of arrays
        assert schema_validator().is_valid(json.loads((tmp_path / "model.json").read_text()))


@pytest.mark.parametrize(("name", "shape"), [case for case in CASES if case[1] in ("p", 3)])
def test_pickle_and_skops(name, shape):
    calibrator = fitted(name, shape)
    P = forecasts(shape, 100)
    expected = calibrator.predict_proba(P)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(calibrator)).predict_proba(P), expected)
    skops = pytest.importorskip("skops.io")
    data = skops.dumps(calibrator)
    unknown = skops.get_untrusted_types(data=data)
    assert all(kind.startswith("isoroc.") for kind in unknown)
    np.testing.assert_array_equal(skops.loads(data, trusted=unknown).predict_proba(P), expected)


@each_shape
def test_onnx(name, shape):
    pytest.importorskip("onnx")
    calibrator = fitted(name, shape)
    P = np.vstack([forecasts(shape, 500), on_thresholds(calibrator)])
    assert_agrees(calibrator, P, run_onnx(isoroc.export.to_onnx(calibrator), P))
    if shape == 3:  # the cast comes before everything that depends on the shape
        single = P.astype(np.float32)
        model = isoroc.export.to_onnx(calibrator, input_type="float")
        assert_agrees(calibrator, single, run_onnx(model, single))


@each_shape
def test_sql(name, shape):
    """Databases take turns: test_backends_sql.py runs operations and maps in all of them."""
    dialect = sorted(DATABASES)[CASES.index((name, shape)) % len(DATABASES)]
    calibrator = fitted(name, shape)
    P = np.vstack([forecasts(shape, 100), on_thresholds(calibrator)])
    P[:20] = P[:20].astype(np.float32)
    assert_agrees(calibrator, P, run_sql(calibrator, P, dialect))


@each
@arbitrary
@settings(few, max_examples=2)
@given(data=st.data())
def test_files_and_exports_of_fits_to_any_data(name, data, tmp_path):
    calibrator, P = data.draw(fitted_calibrators(name))
    assert_restored(calibrator, tmp_path / "model.json", P)
    P = np.vstack([P, on_thresholds(calibrator)])
    pytest.importorskip("onnx")
    assert_agrees(calibrator, P, run_onnx(isoroc.export.to_onnx(calibrator), P))
    dialect = data.draw(st.sampled_from(sorted(DATABASES)))
    assert_agrees(calibrator, P, run_sql(calibrator, P, dialect))


# Estimators of scikit-learn


@each
def test_users_see_documented_members_only(name):
    calibrator = fitted(name, "p")
    of_base = {*dir(BaseEstimator), *dir(ClassifierMixin)}
    documented = set(re.findall(r"(?m)^[\w, ]+(?= :|$)", str(inspect.getdoc(KINDS[name]))))
    names = {word for line in documented for word in line.split(", ")}
    names |= {"fit", *calibrator.get_params(deep=False)}
    for member in {*dir(calibrator)} - of_base - names:
        if not member.startswith("_"):
            assert inspect.getdoc(getattr(KINDS[name], member)), f"{member} is not documented"
            assert callable(getattr(KINDS[name], member)), f"{member} is not documented"


@each
def test_a_failed_fit_changes_nothing(name):
    P, y = some_data(2)
    calibrator = make(name).fit(P, y)
    Q = calibrator.predict_proba(P)
    for labels, message in {
        (1, 1, 1): "one class only",
        (0, 1, 2): "3 classes, but the forecasts have 2",
        (0, 1): "2 rows, but P has 3",
    }.items():
        with pytest.raises(ValueError, match=f"y: {message}"):
            calibrator.fit([-3.0, 0.2, 3.0], labels)
        np.testing.assert_array_equal(calibrator.predict_proba(P), Q)
    odds = np.log(P[:, 1] / P[:, 0])
    again = calibrator.fit(odds, y).predict_proba(odds)
    np.testing.assert_array_equal(again, make(name).fit(odds, y).predict_proba(odds))
    np.testing.assert_array_equal(calibrator.fit(P, y).predict_proba(P), Q)


@each
@pytest.mark.parametrize("response", ["predict_proba", "decision_function"])
def test_behind_a_classifier_it_knows_labels_and_scores(name, response):
    for K in classes_for(name):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(150, K))
        labels = np.array([1, 2, 3] if KINDS[name]._orders_classes else ["x", "y", "z"])
        y = labels[(X + rng.normal(size=X.shape)).argmax(axis=1)]
        classifier = CalibratedClassifier(
            LogisticRegression(), calibrator=make(name), cv=3, ensemble=False, response=response
        )
        classifier.fit(X, y)
        [calibrator] = classifier.calibrators_
        assert calibrator.classes_.tolist() == classifier.classes_.tolist()
        expected = "probability" if response == "predict_proba" else "logit"
        assert calibrator.unit_ == expected
        Q = classifier.predict_proba(X)
        np.testing.assert_allclose(Q.sum(axis=1), 1, rtol=1e-12)
        assert (classifier.predict(X) == y).mean() > 0.6


#: Checks of scikit-learn that feed no feature matrices. All others need a classifier in front.
WITHOUT_FEATURES = {
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimators_empty_data_messages",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_requires_y_none",
    "check_set_params",
    "check_valid_tag_types",
}


@each
def test_scikit_learn_checks_alone(name):
    run = set()
    for estimator, check in estimator_checks_generator(make(name)):
        if check.func.__name__ in WITHOUT_FEATURES:
            check(estimator)
            run.add(check.func.__name__)
    assert run == WITHOUT_FEATURES


#: What happens to feature matrices before the calibrator: test_classifier.py checks it once.
OF_FEATURES = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimator_sparse_tag",
    "check_estimators_nan_inf",
    "check_f_contiguous_array_estimator",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_supervised_y_2d",
}


# One that deals rows to folds, one that grows a tree, and one with a formula. What the classifier
# does does not depend on the calibrator.
@pytest.mark.parametrize("name", ["AutoCalibrator", "IRPCalibrator", "TemperatureCalibrator"])
def test_scikit_learn_checks_behind_a_classifier(name):
    # Weights and repeated rows must give the same forecasts but for rounding errors, or the folds
    # of the calibrator differ: Newton's method is that precise, L-BFGS is not.
    base = LogisticRegression(solver="newton-cholesky", tol=1e-10)
    options: Any = {"cv": 2, "ensemble": False, "weighting": "frequency"}
    classifier = CalibratedClassifier(base, calibrator=make(name), **options)
    run = set()
    for estimator, check in estimator_checks_generator(classifier):
        checked = check.func.__name__
        run.add(checked)
        if checked not in OF_FEATURES and not check.keywords.get("readonly_memmap"):
            check(estimator)
    assert run > OF_FEATURES


@each
def test_rows_where_all_functions_of_single_classes_are_near_zero(name):
    P = np.vstack([np.eye(3)[np.arange(300) % 3], [[0.34, 0.33, 0.33]]])
    y = np.append(np.arange(300) % 3, 0)
    if takes_classes(name, 3):
        Q = make(name).fit(P, y).predict_proba([[0.34, 0.33, 0.33], [0.0, 0.5, 0.5]])
        np.testing.assert_allclose(Q.sum(axis=1), 1)


# `VennAbersCalibrator` adds each new score to the exact calibration scores.
@pytest.mark.parametrize(
    ("name", "shape"), [case for case in CASES if case[0] != "VennAbersCalibrator"]
)
def test_last_digits_of_equal_rows_do_not_decide(name, shape):
    # Forecasts of a model for equal rows may differ in the last place, depending on the processor.
    P = forecasts(shape, 60, seed=1)
    y = draw_labels(probabilities(shape, P), seed=2)
    unit = SHAPES[shape]["unit"]
    twice = np.vstack([P, P])
    labels = np.append(y, y)
    other = np.vstack([P, np.nextafter(P, 0.5)])
    Q = make(name).fit(twice, labels, unit=unit).predict_proba(P)
    np.testing.assert_allclose(
        make(name).fit(other, labels, unit=unit).predict_proba(P), Q, atol=1e-9
    )
