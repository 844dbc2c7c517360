"""The summary of a report: its layout, and its figures against isoroc.metrics."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB

from isoroc import (
    AutoCalibrator,
    CalibratedClassifier,
    InputError,
    IRPCalibrator,
    ModelFileError,
    MonotoneCalibrator,
    MultiLabelCalibrator,
    Report,
    SegmentCalibrator,
    TemperatureCalibrator,
    evaluate,
    load_map,
    metrics,
)
from isoroc._evaluation.catalogue import MEASURES, Measure
from isoroc._input import check_probabilities, split_by_kind
from isoroc.decisions import risk_coverage
from isoroc.metrics import log_loss, volume_under_surface
from isoroc.metrics._estimation.calibration_terms import Parts

SNAPSHOT = Path(__file__).with_name("snapshot.json")


def overconfident(n, K, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(K), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth**2
    return P / P.sum(axis=1, keepdims=True), y


def make(K, n=250, calibrator=None, **options):
    P, y = overconfident(2 * n, K)
    labels = np.arange(K)
    calibrator = calibrator or IRPCalibrator(random_state=0)
    calibrator.fit(P[:n], y[:n], labels=labels)
    return Report(y[n:], P[n:], calibrator=calibrator, **options), P[n:], y[n:], calibrator


def rows_of(report):
    return {row["measure"]: row for row in report.summary["headline"]["rows"]}


def figures(value):
    """Structure of a value with the numbers rounded, to be compared on any machine."""
    if isinstance(value, dict):
        return {key: figures(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [figures(entry) for entry in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def without_random_numbers(summary):
    """The summary without figures of random folds, and of curves that end at a rounded value."""
    for row in summary["headline"]["rows"]:
        if "calibration" in row["measure"] or row["measure"] == "refinement_loss":
            row |= {of: sorted(row[of]) for of in ("before", "after", "change")}
    for panel in summary["reliability"]["panels"]:
        for tables in panel["series"].values():
            tables |= {name: sorted(tables[name]) for name in ("curve", "band")}
    summary["benefit"] = sorted(summary["benefit"])  # tested below
    curves = summary["coverage"]["series"]
    summary["coverage"] = {stage: curve["area"] for stage, curve in curves.items()}
    return summary


def test_snapshot(cover2):
    """The layout may gain keys. If a key changes its name or meaning, the version changes."""
    calibrator = IRPCalibrator(max_bins=4, pseudocount=1, prior="uniform")
    calibrator.fit(cover2["probas_cal"], cover2["labels_cal"])
    P = cover2["probas_test"][:100]
    y = cover2["labels_test"][:100]
    summary = Report(y, P, calibrator=calibrator).summary
    assert summary["model"].pop("parameters")  # of IRPCalibrator
    about = summary.pop("about")
    assert set(about) == {"created", "versions"}
    assert figures(without_random_numbers(summary)) == json.loads(SNAPSHOT.read_text())


def test_error_of_accepted_rows_is_that_of_risk_coverage():
    report, P, y, calibrator = make(3)
    expected = risk_coverage(y, P, after=calibrator.predict_proba(P))
    for stage, curve in report.summary["coverage"]["series"].items():
        rows = expected.table["of"] == stage
        for name in ("coverage", "error", "low", "high"):
            np.testing.assert_allclose(curve[name], expected.table[name][rows], rtol=1e-4)
        assert curve["area"] == expected.area[stage].value
    assert "What may go out without a person" in report.to_html()


def test_figures_are_those_of_the_evaluation():
    report, P, y, calibrator = make(3)
    result = evaluate(y, P, calibrator, labels=np.arange(3))
    found = rows_of(report)
    assert list(found) == list(result.measures)
    for measure, figures_of in result.measures.items():
        words = {"better": "higher", "worse": "lower"} if measure == "accuracy" else {}
        direction = result.direction(measure)
        assert found[measure]["direction"] == words.get(direction, direction)
        for of, figure in figures_of.items():
            shown = [np.nan if v is None else v for v in found[measure][of].values()]
            np.testing.assert_allclose(shown, figure)
    assert report.summary["verdict"]["decision"] == result.decision
    assert set(result.sentences()) <= set(report.summary["verdict"]["sentences"])


def test_reliability_and_curves_are_those_of_the_rows():
    report, P, y, _ = make(3)
    top, *classes = report.summary["reliability"]["panels"]
    view = split_by_kind(check_probabilities(y, P), "top")[0]
    rates = top["series"]["before"]["rates"]
    total = np.dot(rates["weight"], rates["rate"])
    assert total == pytest.approx(view.codes.sum(), rel=1e-3)
    assert [panel["name"] for panel in classes] == ["class 0", "class 1", "class 2"]
    for k, curve in enumerate(report.summary["roc"]["curves"]):
        assert curve["series"]["before"]["auc"] == pytest.approx(metrics.roc_auc(y == k, P[:, k]))


def test_weights_equal_repeated_rows():
    P, y = overconfident(60, 3)
    w = np.random.default_rng(1).integers(0, 3, 60)
    options: dict[str, Any] = {"labels": [0, 1, 2]}
    weighted = rows_of(Report(y, P, sample_weight=w, **options))
    repeated = rows_of(Report(np.repeat(y, w), np.repeat(P, w, axis=0), **options))
    for measure in ("log_loss", "brier_score_loss", "accuracy"):
        value = weighted[measure]["before"]["value"]
        assert value == pytest.approx(repeated[measure]["before"]["value"])


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "calibrator",
    [
        IRPCalibrator(random_state=0),
        IRPCalibrator.paper(random_state=0),
        MonotoneCalibrator(),
        AutoCalibrator(members=[TemperatureCalibrator(), IRPCalibrator(max_bins=5)]),
    ],
)
def test_a_loaded_map_has_the_report_of_its_calibrator(calibrator, K, tmp_path):
    expected, P, y, fitted = make(K, n=100, calibrator=calibrator)
    path = tmp_path / "model.json"
    fitted.save(path)
    loaded = load_map(path)
    for found in (Report(y, P, calibrator=loaded), Report.from_estimator(loaded, P, y)):
        about = {"about": expected.summary["about"]}  # holds the time
        assert found.summary | about == expected.summary


def test_an_unknown_parameter_inside_a_loaded_map_is_named(tmp_path):
    _, P, y, fitted = make(2, calibrator=AutoCalibrator(members=[TemperatureCalibrator()]))
    path = tmp_path / "model.json"
    fitted.save(path)
    loaded = load_map(path)
    loaded.parameters["members"][0]["parameters"]["warmth"] = 1
    with pytest.raises(ModelFileError, match=r"^may.json: .*members\[0\].parameters.warmth"):
        Report(y, P, calibrator=loaded, model_path="may.json")


@pytest.mark.parametrize("calibrator", [TemperatureCalibrator(), AutoCalibrator(random_state=0)])
def test_maps_of_three_classes_are_drawn_in_cells(calibrator):
    summary = make(3, calibrator=calibrator)[0].summary
    assert summary["map"]["kind"] == "cells"
    assert (summary["model"]["members"] is None) == (type(calibrator) is TemperatureCalibrator)


def test_forecasts_alone():
    P, y = overconfident(200, 4)
    report = Report(y, P)
    summary = report.summary
    assert summary["verdict"]["tone"] == ""
    assert [summary[part] for part in ("map", "model", "segments")] == [None] * 3
    assert "decisions_changed" not in rows_of(report)
    assert "After" not in report.to_html()


def test_errors_have_standard_errors():
    """The standard error from one sample is the deviation of the error over many samples."""
    found = []
    for seed in range(40):
        P, y = overconfident(400, 2, seed)
        estimate, _ = Parts.of(check_probabilities(y, P), "classwise").absolute()
        assert estimate.value == metrics.calibration_error(y, P, kind="classwise")
        found.append((estimate.value, estimate.error))
    errors, deviations = np.array(found).T
    assert deviations.mean() == pytest.approx(errors.std(), rel=0.3)


def test_given_calibrated_forecasts():
    P, y = overconfident(300, 4)
    Q = np.sqrt(P) / np.sqrt(P).sum(axis=1, keepdims=True)
    report = Report(y, P, after=Q)
    assert rows_of(report)["log_loss"]["after"]["value"] == pytest.approx(metrics.log_loss(y, Q))
    curves = report.summary["map"]["curves"]
    assert [curve["name"] for curve in curves] == [f"class {k}" for k in range(4)]
    for k, curve in enumerate(curves):
        expected = [np.interp(x, *np.sort([P[:, k], Q[:, k]])) for x in curve["before"]]
        np.testing.assert_allclose(curve["after"], expected, atol=0.15)
    assert report.summary["model"] is None


def test_scores_have_an_order_and_no_reliability():
    rng = np.random.default_rng(0)
    scores = 3 * rng.normal(size=400)
    y = scores + 4 * rng.normal(size=400) > 0
    calibrator = IRPCalibrator().fit(scores[:200], y[:200])
    report = Report(y[200:], scores[200:], calibrator=calibrator)
    found = rows_of(report)
    assert found["log_loss"]["before"]["value"] is None
    assert found["auc"]["before"]["value"] == metrics.roc_auc(y[200:], scores[200:])
    assert any("scores and not probabilities" in n for n in report.summary["data"]["notes"])
    assert report.to_html()


def test_rows_of_the_fit_are_recognised():
    P, y = overconfident(600, 3)
    calibrator = IRPCalibrator(random_state=0).fit(P[:300], y[:300])
    same, some, other = (
        Report(y[rows], P[rows], calibrator=calibrator, labels=[0, 1, 2])
        for rows in (slice(300), slice(600), slice(300, 600))
    )
    assert "fitted to these very rows" in repr(same)
    assert same.summary["verdict"]["tone"] == ""
    assert re.search(r"fitted to about \d\d % of these rows", repr(some))
    assert "fitted to" not in repr(other)


def test_outcomes_of_probability_0_are_counted():
    p = [0.0, 0.2, 0.4, 0.9]
    y = [1, 0, 1, 1]
    report = Report(y, p, after=[0.5, 0.5, 0.5, 0.5])
    assert rows_of(report)["log_loss"]["before"]["value"] == pytest.approx(metrics.log_loss(y, p))
    assert "In 1 row the outcome was given probability 0 before calibration" in repr(report)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"after": [[0.1, 0.2, 0.7]] * 2}, "after"),
        ({"after": [0.1]}, "after"),
        ({"after": [0.1, 1.4]}, "after"),
        ({"calibrator": object()}, "calibrator"),
        ({"sample_weight": [1, -1]}, "sample_weight"),
    ],
)
def test_bad_input(options, argument):
    with pytest.raises(InputError) as raised:
        Report([0, 1], [0.2, 0.7], **options)
    assert raised.value.argument == argument


def rare(n=2329, share=0.06):
    """A class of 6 %: predicted too often before calibration, and never after it."""
    rng = np.random.default_rng(0)
    y = rng.random(n) < share
    p = np.where(y, 0.35, 0.2) + 0.4 * rng.random(n)
    return y, p, p / 6


def test_a_class_that_is_predicted_no_more_is_named():
    y, p, q = rare()
    report = Report(y, p, after=q)
    (said,) = (text for text in report.summary["verdict"]["sentences"] if "any more" in text)
    assert f"no row is predicted as True any more ({np.sum(p > 0.5)} of 2,329 rows before)" in said
    assert f"the accuracy is just the share of False, {100 * np.mean(~y):.1f} %" in said
    assert "isoroc.decisions.decide" in said
    assert "any more" not in repr(Report(y, p, after=p))
    never = repr(Report(y, q, after=q / 2))
    assert "No row is predicted as True, neither before nor after calibration" in never


def test_forecasts_that_are_certain_are_counted():
    p = np.linspace(0.1, 0.9, 100)
    y = np.arange(100) % 2
    p[:3] = 0.0
    notes = Report(y, p).summary["data"]["notes"]
    assert "3.0 % of the forecasts before calibration are certain: 0 or 1." in notes


def test_accuracy_is_neither_better_nor_worse():
    y, p, q = rare()
    for before, after, word in ((p, q, "higher"), (q, p, "lower")):
        row = rows_of(Report(y, before, after=after))["accuracy"]
        assert row["direction"] == word


def test_levels_are_those_that_occur():
    rng = np.random.default_rng(0)
    p = rng.choice([0.1, 0.8, 0.9], 600)
    y = rng.random(600) < 0.6 * p
    said = Report(y, p).summary["verdict"]["sentences"][0]
    level = max((0.1, 0.8, 0.9), key=lambda v: abs(y[p == v].mean() - v) * np.sqrt((p == v).sum()))
    share = 100 * y[p == level].mean()
    assert said == (
        f"In {np.sum(p == level)} rows class True had a probability of {level} and came true in "
        f"{share:.0f} % of them."
    )
    calibrated = Report(rng.random(600) < p, p)
    assert "came true" not in repr(calibrated)


def test_the_same_rows_are_compared_before_and_after():
    P, y = overconfident(3000, 20)
    Q = P**0.5 / (P**0.5).sum(axis=1, keepdims=True)
    said = Report(y, P, after=Q).summary["verdict"]["sentences"][0]
    found = re.fullmatch(
        r"In (\d+) rows the most probable class had a probability of (\S+) to (\S+) \(mean (\S+)\) "
        r"and came true in (\d+) % of them; after calibration its probability is (\S+) on "
        r"average\.",
        said,
    )
    assert found is not None
    n, low, high, mean, share, after = map(float, found.groups())
    top = P.max(axis=1)
    best = P.argmax(axis=1)
    rows = np.flatnonzero((top > low - 0.006) & (top < high + 0.006))
    assert len(rows) == pytest.approx(n, rel=0.2)
    assert top[rows].mean() == pytest.approx(mean, abs=0.02)
    assert 100 * np.mean(y[rows] == best[rows]) == pytest.approx(share, abs=5)
    assert Q[rows, best[rows]].mean() == pytest.approx(after, abs=0.03)


def test_changes_that_are_shown_as_zero_are_none():
    y, p, _ = rare()
    for shift, word in ((1e-6, "no clear change"), (0.02, "better")):
        row = rows_of(Report(y, p, after=p - shift))["log_loss"]
        assert row["direction"] == word


def test_the_panel_and_the_decision_curve_are_those_of_the_evaluation():
    rng = np.random.default_rng(0)
    p = rng.random(500)
    y = rng.random(500) < p**2
    report = Report(y, p, after=p**2, clinical=True)
    result = evaluate(y, p, after=p**2)
    for of, panel in report.summary["clinical"].items():
        expected = result.calibration_summary(of).table["value"]
        np.testing.assert_allclose(panel["value"], expected, rtol=1e-3)
    part = report.summary["benefit"]
    benefit = result.net_benefit(part["thresholds"]).benefit("after")
    for column, found in {"value": part["lines"]["after"], **part["band"]}.items():
        np.testing.assert_allclose(found, benefit[column], rtol=1e-3, atol=2e-3)
    page = report.to_html()
    assert "Observed / expected" in page
    assert "Net benefit of acting on the forecasts" in page
    asked = Report(y, p, after=p**2)
    assert asked.summary["clinical"] is None
    assert "Clinical panel" not in asked.to_html()
    scores = Report(y, 9 * p - 4, clinical=True)
    assert scores.summary["clinical"] is None
    assert scores.summary["benefit"] is None
    perfect = Report(y, y.astype(float), clinical=True)  # without a slope
    assert perfect.summary["clinical"]["before"]["value"][2] is None
    assert perfect.to_html()


def test_all_classes_are_in_a_table_and_the_worst_comes_first():
    """Class 7 of 9 is forecast twice as often as it occurs. Class 0 occurs in few rows only."""
    rng = np.random.default_rng(0)
    K = 9
    truth = rng.dirichlet(np.ones(K), 1500)
    truth[:, 0] /= 20
    truth /= truth.sum(axis=1, keepdims=True)
    y = (truth.cumsum(axis=1) > rng.random((1500, 1))).argmax(axis=1)
    P = truth.copy()
    P[:, 7] *= 2
    P /= P.sum(axis=1, keepdims=True)
    report = Report(y, P, labels=np.arange(K))
    part = report.summary["classes"]
    columns = part["columns"]
    assert sorted(columns["name"]) == sorted(map(str, range(K)))
    assert columns["name"][0] == "7"
    assert columns["weight"] == [np.sum(y == k) for k in part["order"]]
    few = [k for k in range(K) if np.sum(y == k) < part["few_rows"]]
    assert part["order"][K - len(few) :] == few == [0]
    assert columns["before_ici"][-1] is None
    measured = [k for k in part["order"] if k not in few]
    summary = metrics.calibration_summary(y, P)
    expected = [summary["ici", k] for k in measured]
    np.testing.assert_allclose(columns["before_ici"][: len(measured)], expected, rtol=1e-4)
    assert expected == sorted(expected, reverse=True)
    area = metrics.roc_auc(y == 7, P[:, 7])
    assert columns["before_auc"][0] == pytest.approx(area, rel=1e-4)
    assert columns["before_forecast"][0] == pytest.approx(P[:, 7].mean(), rel=1e-4)
    panels = [panel["name"] for panel in report.summary["reliability"]["panels"]]
    assert panels[1:] == [f"class {k}" for k in measured[:5]]
    assert "Table of all classes" in report.to_html()
    assert Report(y % 3, P[:, :3] / P[:, :3].sum(axis=1, keepdims=True)).summary["classes"] is None


def test_the_map_shows_that_equal_forecasts_become_different():
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < p
    group = rng.random(4000) < 0.5
    Q = np.where(group, p**2, np.sqrt(p))
    plain, mixed = (Report(y, p, after=q).summary["map"] for q in (p**2, Q))
    assert plain["pairs_reversed"] == 0
    assert mixed["pairs_reversed"] > 0.1
    width = [
        np.subtract(part["curves"][0]["high"], part["curves"][0]["low"]) for part in (plain, mixed)
    ]
    assert width[0].max() < 0.01
    before = np.array(mixed["curves"][0]["before"])
    np.testing.assert_allclose(width[1][1:], (np.sqrt(before) - before**2)[1:], atol=0.05)


def test_outcomes_of_probability_0_are_unusual():
    p = np.array([0.0, 0.2, 0.4, 0.9] * 60)
    y = np.array([1, 0, 1, 1] * 60)
    notes = Report(y, p, after=np.full(240, 0.7)).summary["data"]["notes"]
    assert "60 outcomes were given probability 0 before calibration." in notes
    assert "Nothing unusual was found." not in notes


def test_labels_are_named():
    rng = np.random.default_rng(0)
    P = rng.random((600, 3))
    Y = (rng.random((600, 3)) < P**2) * 1
    names = ["spam", "urgent", "legal"]
    calibrator = MultiLabelCalibrator().fit(P[:300], Y[:300], labels=names)
    report = Report(Y[300:], P[300:], calibrator=calibrator)
    assert sorted(report.summary["segments"]["columns"]["name"]) == sorted(names)
    assert " entries the label had a probability" in repr(report)
    assert "Table of labels" in report.to_html()


def test_reports_of_estimators():
    X, y = make_classification(600, n_informative=4, flip_y=0.2, random_state=0)
    model = GaussianNB().fit(X[:200], y[:200])
    P = model.predict_proba(X)
    calibrator = IRPCalibrator().fit(P[200:400], y[200:400])
    new = slice(400, None)
    options = {"title": "Mine"}
    alone = Report.from_estimator(model, X[new], y[new], **options)
    assert rows_of(alone) == rows_of(Report(y[new], P[new]))
    assert alone.summary["title"] == "Mine"
    expected = rows_of(Report(y[new], P[new], calibrator=calibrator))
    found = Report.from_estimator(calibrator, P[new], y[new], **options)
    assert rows_of(found) == expected
    frozen = CalibratedClassifier(FrozenEstimator(model), calibrator=IRPCalibrator())
    frozen.fit(X[200:400], y[200:400])
    found = Report.from_estimator(frozen, X[new], y[new], **options)
    assert rows_of(found) == expected
    assert found.summary["model"]["n_bins"] == calibrator.n_bins_
    folds = CalibratedClassifier(GaussianNB(), cv=2, ensemble=True).fit(X[:400], y[:400])
    found = rows_of(Report.from_estimator(folds, X[new], y[new], **options))
    loss = metrics.log_loss(y[new], folds.predict_proba(X[new]))
    assert found["log_loss"]["after"]["value"] == pytest.approx(loss)


def test_report_of_segments():
    rng = np.random.default_rng(0)
    p = rng.random(1600)
    region = rng.choice(["A & B", "south"], 1600)
    y = rng.random(1600) < np.where(region == "south", p**3, p)
    calibrator = SegmentCalibrator(TemperatureCalibrator())
    calibrator.fit(p[:800], y[:800], segments={"region": region[:800]})
    new = (p[800:], y[800:])
    segments = {"region": region[800:]}
    report = Report.from_estimator(calibrator, *new, segments=segments)
    loss = metrics.log_loss(new[1], calibrator.predict_proba(new[0], segments))
    assert rows_of(report)["log_loss"]["after"]["value"] == pytest.approx(loss)
    part = report.summary["segments"]
    expected = metrics.segment_report(new[1], new[0], segments)
    assert part["n_tested"] == expected.n_rows == 2
    assert part["columns"]["name"] == ["region: south", "region: A & B"]
    np.testing.assert_allclose(part["columns"]["before_ratio"], expected["ratio"], rtol=1e-4)
    page = report.to_html()
    assert "A &amp; B" in page
    assert page.count("Observed rate over mean forecast: before") == 2
    assert "&lt; 0.001" in page
    assert "0.000<" not in page.split('id="segments"')[1]
    assert "calibrator.predict_proba(P, segments)" in report.summary["model"]["python"]
    P = np.column_stack([p / 2, 1 - p, p / 2])
    three = Report(np.where(y, 0, 1 + (p > 0.5)), P, segments=region)
    assert three.summary["segments"]["n_tested"] == 6


def test_a_new_measure_is_shown_with_its_meaning(monkeypatch):
    """Measures are described in one place."""
    monkeypatch.setitem(MEASURES, "kindness", Measure("kindness", "how kind it is", better=1))
    report = make(2)[0]
    assert rows_of(report)["kindness"]["meaning"] == "how kind it is"
    assert "how kind it is" in report.to_html()
    assert all(row["meaning"] for row in rows_of(report).values())


def test_three_classes_have_a_surface_and_an_irp_calibrator_its_path():
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 900)
    y = (truth.cumsum(axis=1) > rng.random((900, 1))).argmax(axis=1)
    P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    irp = IRPCalibrator(random_state=0, max_bins=6).fit(P[:500], y[:500])
    P_new = P[500:]
    y_new = y[500:]
    summary = Report(y_new, P_new, calibrator=irp).summary
    for stage, Q in (("before", P_new), ("after", irp.predict_proba(P_new))):
        volume = float(volume_under_surface(y_new, Q))
        drawn = summary["surface"]["series"][stage]
        assert drawn["volume"] == pytest.approx(volume)
        faces = np.array(drawn["faces"])
        assert np.abs(np.linalg.det(faces)).sum() / 6 == pytest.approx(volume, abs=1e-3)
    stages = summary["path"]["stages"]
    assert stages["n_bins"] == irp.path_["n_bins"].tolist()
    losses = [log_loss(y_new, Q) for Q in irp.staged_predict_proba(P_new)]
    np.testing.assert_allclose(stages["log loss"], losses, rtol=1e-4)
    assert summary["path"]["before"]["log loss"][0] == pytest.approx(
        log_loss(y_new, P_new), rel=1e-4
    )
    html = Report(y_new, P_new, calibrator=irp).to_html()
    assert "ROC surface and growth" in html
    assert "end of growth: " in html
    alone = Report(y_new, P_new).summary
    assert alone["path"] is None
    assert list(alone["surface"]["series"]) == ["before"]
    absent = Report(y_new[y_new < 2], P_new[y_new < 2], labels=[0, 1, 2]).summary
    assert absent["surface"] is None
