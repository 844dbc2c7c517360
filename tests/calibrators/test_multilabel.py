"""Labels that do not exclude each other: their maps, input, exports and evaluation."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier

import isoroc
from exported import run_onnx, run_sql
from isoroc import (
    AutoCalibrator,
    BetaCalibrator,
    CalibratedClassifier,
    InputError,
    IsotonicCalibrator,
    MultiLabelCalibrator,
    Report,
    SigmoidCalibrator,
    TemperatureCalibrator,
    evaluate,
    metrics,
)
from isoroc._maps.modelfile import ModelFileError
from zoo import assert_same

SCALES = np.array([0.5, 1.0, 0.6, 0.8, 0.7])
SHIFTS = np.array([0.0, -1.0, 0.5, -0.5, 0.2])


def data(n=600, seed=0):
    """Forecasts of five labels, two of them rare, wrong in a way that differs by label."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.normal(size=(n, 5)) + [0, 0.5, -1, -4, -5]
    truth = expit(SCALES * z + SHIFTS)
    return expit(z), (rng.random(z.shape) < truth).astype(int), truth


def fit(P, y, calibrator: Any = None, **options):
    return MultiLabelCalibrator(calibrator or TemperatureCalibrator()).fit(P, y, **options)


def losses(y, Q):
    return [log_loss(y[:, k], Q[:, k], labels=[0, 1]) for k in range(y.shape[1])]


def test_forecasts_come_close_to_the_truth():
    """On average over samples, closer than one map for all labels or one of beta for each."""
    errors = []
    for seed in range(4):
        P, y, _ = data(200, seed)
        new, _, truth = data(seed=10 + seed)
        calibrator = MultiLabelCalibrator().fit(P, y)
        Q = calibrator.predict_proba(new)
        np.testing.assert_array_equal(calibrator.predict(new), Q > 0.5)
        a, b, c = calibrator.common_
        common = expit(a * np.log(new) - b * np.log1p(-new) + c)
        own = [BetaCalibrator().fit(P[:, k], y[:, k]) for k in range(5)]
        alone = np.column_stack([c.predict_proba(p)[:, 1] for c, p in zip(own, new.T, strict=True)])
        errors.append([np.abs(X - truth).mean() for X in (Q, common, alone)])
        np.testing.assert_array_equal(calibrator.labels_["positives"], y.sum(axis=0))
    error, shared, single = np.mean(errors, axis=0)
    assert error < 0.6 * shared
    assert error < 0.95 * single


def test_a_label_without_positives_is_calibrated_like_the_others():
    P, y, _ = data()
    y[:, 4] = 0
    Q = fit(P, y).predict_proba(P)
    assert Q[:, 4].min() > 0
    assert Q[:, 4].mean() < 2 / len(P)


def test_the_weights_of_own_maps_grow_with_the_rows():
    """The second label is not monotone in the log odds of the others: only its own map can tell."""
    rng = np.random.default_rng(0)
    P = rng.random((4000, 3))
    truth = np.column_stack([P[:, 0], np.where(P[:, 1] < 0.5, 0.1, 0.9), P[:, 2]])
    y = rng.random(P.shape) < truth
    few, many = (MultiLabelCalibrator().fit(P[:n], y[:n]).labels_["weight"] for n in (60, 4000))
    assert many[1] > 0.9
    assert few[1] < many[1]


def test_a_single_label():
    P, y, truth = data()
    expected = np.abs(
        BetaCalibrator().fit(P[:, 0], y[:, 0]).predict_proba(P[:, 0])[:, 1] - truth.T[0]
    )
    for forecasts, outcomes in ((P[:, :1], y[:, :1]), (P[:, 0], y[:, 0])):
        found = MultiLabelCalibrator().fit(forecasts, outcomes).predict_proba(forecasts)
        assert found.shape == (600, 1)
        assert np.abs(found - truth[:, :1]).mean() < 1.5 * expected.mean()


def test_with_many_rows_coefficients_are_those_of_the_label():
    P, y, _ = data(20_000)
    table = fit(P, y).labels_
    np.testing.assert_allclose(table["coef"][:3], SCALES[:3], atol=0.1)
    np.testing.assert_allclose(table["rest"][:3], SCALES[:3], atol=0.1)
    np.testing.assert_allclose(table["intercept"][:3], SHIFTS[:3], atol=0.1)


@pytest.mark.parametrize("base", [AutoCalibrator(monotone=True), IsotonicCalibrator()])
def test_the_order_within_a_label_is_kept(base):
    P, y, _ = data()
    calibrator = MultiLabelCalibrator(base).fit(P, y)
    grid = np.tile(np.linspace(0, 1, 500)[:, None], 5)
    steps = np.diff(calibrator.predict_proba(grid), axis=0)
    assert (steps >= -1e-15).all()
    assert (steps > 0).any(axis=0).all()


def test_the_order_of_labels_and_rows_does_not_matter():
    P, y, _ = data()
    rng = np.random.default_rng(0)
    columns = rng.permutation(5)
    rows = rng.permutation(len(P))
    expected = MultiLabelCalibrator().fit(P, y).predict_proba(P)
    found = MultiLabelCalibrator().fit(P[:, columns], y[:, columns]).predict_proba(P[:, columns])
    np.testing.assert_allclose(found, expected[:, columns], rtol=0, atol=1e-9)
    found = MultiLabelCalibrator().fit(P[rows], y[rows]).predict_proba(P)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_missing_outcomes_do_not_matter():
    P, y, _ = data()
    missing = np.random.default_rng(0).random(y.shape) < 0.3
    Y = np.where(missing, np.nan, y)
    calibrator = fit(P, Y)
    other = fit(np.where(missing, 0.5, P), Y)
    np.testing.assert_array_equal(calibrator.predict_proba(P), other.predict_proba(P))
    np.testing.assert_array_equal(calibrator.labels_["rows"], (~missing).sum(axis=0))
    rows = np.vstack([Y, np.full(5, np.nan)])  # a row about which nothing is known
    found = fit(np.vstack([P, P[:1]]), rows).predict_proba(P)
    np.testing.assert_allclose(found, calibrator.predict_proba(P), rtol=0, atol=1e-9)


def test_outcomes_of_any_type():
    P, y, _ = data()
    expected = fit(P, y).predict_proba(P)
    optional = pd.DataFrame(y).astype("Int64").astype(object)
    for same in (y.astype(bool), y.astype(float), y.tolist(), pd.DataFrame(y), optional):
        np.testing.assert_array_equal(fit(P, same).predict_proba(P), expected)


def test_weights_and_units():
    P, y, _ = data()
    doubled = fit(np.repeat(P, 2, axis=0), np.repeat(y, 2, axis=0), clusters=np.arange(1200) // 2)
    weighted = fit(P, y, sample_weight=np.full(600, 2.0), weighting="frequency")
    weights = weighted.labels_["coef"] - doubled.labels_["coef"]
    assert np.abs(weights).max() < 0.02
    expected = fit(P, y).predict_proba(P)
    np.testing.assert_allclose(fit(100 * P, y, unit="percent").predict_proba(100 * P), expected)
    z = logit(P)
    of_logits = fit(z, y)
    assert of_logits.unit_ == "logit"
    np.testing.assert_allclose(of_logits.predict_proba(z), expected, atol=1e-9)


def test_names_of_labels():
    P, y, _ = data()
    names = list("vwxyz")
    frame = pd.DataFrame(P, columns=names)
    outcomes = pl.DataFrame(y, schema=names)
    calibrator = fit(frame, outcomes)
    assert calibrator.classes_.tolist() == calibrator.labels_["label"].tolist() == names
    assert fit(P, outcomes).classes_.tolist() == names
    assert fit(P, y).classes_.tolist() == [0, 1, 2, 3, 4]
    assert fit(P, y, labels=names).classes_.tolist() == names
    Q = calibrator.predict_proba(frame)
    np.testing.assert_array_equal(calibrator.predict_proba(frame[names[::-1]]), Q)
    reordered = fit(frame[names[::-1]], outcomes)
    np.testing.assert_allclose(reordered.predict_proba(frame), Q[:, ::-1], atol=1e-9)
    added = fit(P, outcomes).predict_frame(pl.from_pandas(frame), names)
    np.testing.assert_array_equal(added[[f"calibrated_{name}" for name in names]].to_numpy(), Q)


@pytest.fixture(scope="module")
def made():
    X, y = make_multilabel_classification(900, 20, n_classes=6, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        RandomForestClassifier(20, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_behind_classifiers_of_scikit_learn(model, made):
    X, y, X_new, y_new = made
    forecasts = clone(model).fit(X, y).predict_proba(X_new)
    calibrator = MultiLabelCalibrator().fit(forecasts, y_new)
    Q = calibrator.predict_proba(forecasts)
    assert Q.shape == y_new.shape
    columns = forecasts
    if isinstance(forecasts, list):
        columns = np.column_stack([own[:, 1] for own in forecasts])
        np.testing.assert_array_equal(calibrator.predict_proba(columns), Q)
        assert evaluate(y_new, forecasts, after=calibrator, multilabel=True).decision
    assert np.mean(losses(y_new, Q)) < np.mean(losses(y_new, columns.clip(1e-9, 1 - 1e-9)))


def test_parameters_of_scikit_learn():
    calibrator = MultiLabelCalibrator(IsotonicCalibrator())
    assert clone(calibrator).get_params()["calibrator__pseudocount"] is not None
    calibrator.set_params(calibrator__pseudocount=2.0)
    assert calibrator.get_params()["calibrator__pseudocount"] == 2.0


@pytest.mark.parametrize("unit", ["probability", "percent", "logit"])
@pytest.mark.parametrize("base", [None, IsotonicCalibrator()])
def test_files_and_exports_make_the_same_forecasts(base, unit, tmp_path):
    P, y, _ = data(600)
    y[:, 0] = np.random.default_rng(1).random(600) < np.where(P[:, 0] < 0.5, 0.1, 0.9)  # a step
    P = {"probability": P, "percent": 100 * P, "logit": logit(P)}[unit]
    calibrator = MultiLabelCalibrator(base).fit(P, y, unit=unit, labels=list("abcde"))
    assert (calibrator.labels_["weight"] > 0).any() or base is not None
    expected = calibrator.predict_proba(P)
    path = tmp_path / "model.json"
    calibrator.save(path)
    loaded = isoroc.load(path)
    assert_same(loaded.labels_, calibrator.labels_)
    assert loaded.checksum == calibrator.checksum
    for again in (loaded, isoroc.load_map(path)):
        np.testing.assert_array_equal(again.predict_proba(P), expected)
    np.testing.assert_array_equal(loaded.common_, calibrator.common_)
    Q = run_onnx(isoroc.export.to_onnx(calibrator), P)
    np.testing.assert_allclose(Q, expected, rtol=0, atol=1e-12)
    for dialect in ("sqlite", "duckdb"):
        Q = run_sql(calibrator, P, dialect)
        np.testing.assert_allclose(Q, expected, rtol=0, atol=1e-12)
    torch = pytest.importorskip("torch")
    Q = isoroc.export.to_torch(calibrator)(torch.tensor(P)).numpy()
    np.testing.assert_allclose(Q, expected, rtol=0, atol=1e-12)


def test_a_row_that_is_refused_has_no_forecast_elsewhere():
    P, y, _ = data(300)
    calibrator = fit(P, y)
    P[3, 2] = 1.5
    with pytest.raises(InputError, match=r"row 3 is 1\.5"):
        calibrator.predict_proba(P)
    Q = run_onnx(isoroc.export.to_onnx(calibrator), P)
    assert np.isnan(Q[3]).all()
    assert not np.isnan(np.delete(Q, 3, axis=0)).any()


def test_files_with_impossible_numbers_are_refused(tmp_path):
    P, y, _ = data(300)
    for change, message in (
        (lambda maps: maps.pop(), "maps"),
        (lambda maps: maps[1].intercept.fill(np.inf), r"maps\[1\]"),
        (lambda maps: maps.__setitem__(0, fit(P, y).map_), r"maps\[0\]: expected a map"),
    ):
        calibrator = fit(P, y)
        change(calibrator.map_.maps)
        calibrator.save(tmp_path / "model.json")
        with pytest.raises(ModelFileError, match=message):
            isoroc.load(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda P, y: (P, y[:, :3]), r"y: has shape \(600, 3\), and P \(600, 5\)"),
        (lambda P, y: (P, y + (np.arange(600) == 7)[:, None]), "y: row 7 holds 2.0"),
        (lambda P, y: (y, P), "y: row 0 holds .*swapped"),
        (lambda P, y: (P, y.astype(str).astype(object) + "x"), "expected numbers"),
        (lambda P, y: (np.where(P > 0.99, np.nan, P), y), "P: row .* is NaN"),
        (lambda P, y: ([np.column_stack([1 - P[:, 0], P[:, 0]]), P[:, :1]], y), r"P\[1\]: has sh"),
        (lambda P, y: (P, 0 * y), "y: one class only"),
        (lambda P, y: (P, np.nan * y), "y: holds no known outcome"),
        (lambda P, y: (P, y[:, 0]), r"y: has shape \(600,\), and P \(600, 5\)"),
        (lambda P, y: (P, csr_matrix(y)), "y: sparse input is not supported"),
        (lambda P, y: (pd.DataFrame(P).add_prefix("a"), pd.DataFrame(y).add_prefix("b")), "other"),
    ],
)
def test_refusals(change, message):
    P, y, _ = data()
    with pytest.raises(InputError, match=message):
        MultiLabelCalibrator().fit(*change(P, y))


def test_other_refusals():
    P, y, _ = data(200)
    with pytest.raises(InputError, match="labels: 5 entries; expected a list of 5 distinct"):
        fit(P, y, labels=["a"] * 5)
    with pytest.raises(InputError, match="calibrator: is MultiLabelCalibrator"):
        fit(P, y, MultiLabelCalibrator())
    with pytest.raises(InputError, match=r"unit: .*rank"):
        fit(P, y, unit="rank")
    calibrator = fit(P, y)
    with pytest.raises(InputError, match="has 3 columns"):
        calibrator.predict_proba(P[:, :3])
    with pytest.raises(InputError, match="counts: hold one outcome"):
        calibrator.fit_counts(isoroc.Counts.from_arrays(P[:, 0], y[:, 0]))
    with pytest.raises(InputError, match="thresholds: differ by label"):
        calibrator.carry_over(0.5)
    with pytest.raises(InputError, match=r"label: .*several labels"):
        isoroc.export.to_onnx(calibrator, label=True)


def test_others_name_the_class_for_several_labels():
    P, y, _ = data()
    for call in (AutoCalibrator().fit, lambda P, y: evaluate(y, P)):
        with pytest.raises(InputError, match="MultiLabelCalibrator"):
            call(P, y)
    with pytest.raises(InputError, match="MultiLabelCalibrator"):
        metrics.log_loss(y, P)
    with pytest.raises(InputError, match="MultiLabelCalibrator"):
        AutoCalibrator().fit([np.column_stack([1 - p, p]) for p in P.T], y)
    with pytest.raises(InputError, match="MultiLabelCalibrator"):
        CalibratedClassifier(LogisticRegression()).fit(P, y)
    with pytest.raises(InputError, match="MultiLabelCalibrator"):
        AutoCalibrator().fit(P[:3], [["a", "b"], ["a"], []])
    with pytest.raises(InputError, match="MultiLabelCalibrator"):
        AutoCalibrator().fit(P, y.argmax(axis=1))  # only the forecasts are of labels


@pytest.fixture(scope="module")
def evaluation():
    P, y, truth = data(1500)
    Y = np.where(np.random.default_rng(1).random(y.shape) < [0.0, 0.0, 0.5, 0.0, 0.0], np.nan, y)
    return P, Y, truth, evaluate(Y, P, after=truth, multilabel=True, labels=list("abcde"))


def test_micro_and_macro_averages(evaluation):
    P, Y, truth, result = evaluation
    known = ~np.isnan(Y)
    for stage, Q in (("before", P), ("after", truth)):
        assert result["log_loss", stage] == pytest.approx(log_loss(Y[known], Q[known]))
        parts = [(Y[known[:, k], k], Q[known[:, k], k]) for k in range(5)]
        macro = np.mean([log_loss(y, q) for y, q in parts])
        assert result["macro_log_loss", stage] == pytest.approx(macro)
        area = np.mean([roc_auc_score(y, q) for y, q in parts])
        assert result["macro_auc", stage] == pytest.approx(area)
    change = result.measures["macro_log_loss"]["change"]
    assert change.low < change.value < change.high < 0
    assert "mean over labels" in str(result)
    single = evaluate(Y[:, 0], P[:, 0])
    assert "macro_auc" not in single.measures


def test_labels_are_matched_by_name():
    P, y, _ = data()
    names = list("vwxyz")
    frame = pd.DataFrame(P, columns=names)
    outcomes = pd.DataFrame(y, columns=names)
    calibrator = fit(frame, outcomes)
    expected = evaluate(outcomes, frame, after=calibrator, multilabel=True).measures["log_loss"]
    turned = frame[names[::-1]]
    Q = pd.DataFrame(calibrator.predict_proba(frame), columns=names)
    for after in (calibrator, Q):
        found = evaluate(outcomes, turned, after=after, multilabel=True).measures["log_loss"]
        assert found["after"].value == pytest.approx(expected["after"].value)
    report = Report.from_estimator(calibrator, turned, outcomes)
    lines = {row["measure"]: row for row in report.summary["headline"]["rows"]}
    assert lines["log_loss"]["after"]["value"] == pytest.approx(expected["after"].value)


def test_the_worst_labels_come_first(evaluation):
    table = evaluation[-1].segments["before"]
    assert table["segment"][0] == "b"
    assert table.n_rows == 5
    assert evaluation[-1].wrong_segments() == []  # after calibration


def test_intervals_treat_a_row_as_one_cluster():
    """With every label ten times, a row says no more than before."""
    P, y, _ = data(400)
    single = evaluate(y, P, multilabel=True).measures
    many = evaluate(np.tile(y, 10), np.tile(P, 10), multilabel=True).measures
    for name in ("log_loss", "macro_log_loss", "macro_auc"):
        (value, low, high) = single[name]["before"]
        other = many[name]["before"]
        assert other.value == pytest.approx(value)
        assert other.high - other.low == pytest.approx(high - low, rel=0.01)


@pytest.mark.slow
def test_intervals_of_macro_averages_cover():
    P, y, _ = data(100_000, seed=5)
    hits = np.zeros(2)
    areas = [roc_auc_score(y[:, k], P[:, k]) for k in range(5)]
    expected = [np.mean(losses(y, P)), np.mean(areas)]
    for i in range(60):
        rows = slice(500 * i, 500 * (i + 1))
        found = evaluate(y[rows], P[rows], multilabel=True).measures
        for j, name in enumerate(("macro_log_loss", "macro_auc")):
            hits[j] += found[name]["before"].low <= expected[j] <= found[name]["before"].high
    assert (hits >= 52).all()  # 57 are expected, and fewer have a chance of 1 %


def test_reports(tmp_path):
    P, y, _ = data()
    calibrator = fit(P[:300], y[:300], labels=list("abcde"))
    report = Report(y[300:], P[300:], calibrator=calibrator, labels=list("abcde"))
    result = evaluate(y[300:], P[300:], after=calibrator, multilabel=True, labels=list("abcde"))
    worst = result.segments["before"]["segment"].tolist()
    assert report.summary["segments"]["columns"]["name"] == worst
    page = report.to_html(tmp_path / "report.html")
    assert "mean over labels" in page
    Q = calibrator.predict_proba(P[300:])
    by_hand = Report(y[300:], P[300:], after=Q, multilabel=True, labels=list("abcde"))
    of_estimator = Report.from_estimator(calibrator, P[300:], y[300:])
    for other in (by_hand, of_estimator):
        assert other.summary["headline"] == report.summary["headline"]
    with pytest.raises(InputError, match="segments"):
        evaluate(y, P, multilabel=True, segments=y[:, 0])


def excess(map_of_odds, n, n_labels, seed):
    """Excess log loss over the truth: of the calibrator, of uncalibrated ones, of one sigmoid."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(-1, 0.7, n_labels)
    z, new = (centre + rng.normal(0, 1.3, (rows, n_labels)) for rows in (n, 2000))
    y = (rng.random(z.shape) < expit(map_of_odds(z))).astype(int)
    q = expit(map_of_odds(new))
    calibrator = MultiLabelCalibrator().fit(expit(z), y)
    pooled = SigmoidCalibrator().fit(expit(z).ravel(), y.ravel())
    forecasts = [
        calibrator.predict_proba(expit(new)),
        pooled.predict_proba(expit(new).ravel())[:, 1].reshape(q.shape),
    ]
    losses = [q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p)) for p in forecasts]
    return [*(loss.mean() for loss in losses), calibrator.labels_["uncalibrated"].mean()]


def test_calibrated_forecasts_stay():
    """Without uncalibrated forecasts as a member, 100 rows cost 0.005 nats."""
    found = [excess(lambda z: z, 100, 6, seed) for seed in range(4)]
    cost, _, uncalibrated = np.mean(found, axis=0)
    assert cost < 0.002
    assert uncalibrated > 0.5


def test_identical_labels_share_one_map():
    """With the usual width of the prior, the cost is six times as large as with one map."""
    found = [excess(lambda z: 0.6 * z + 0.4, 200, 8, seed) for seed in range(4)]
    cost, pooled, uncalibrated = np.mean(found, axis=0)
    assert cost < 2.5 * pooled + 0.0005
    assert uncalibrated < 0.1
