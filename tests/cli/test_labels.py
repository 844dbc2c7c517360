"""Several labels in the commands: the figures agree with Python, and others are refused."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from isoroc import MultiLabelCalibrator, evaluate

LABELS = ["rain", "snow", "wind"]


def make_labels(n=400, seed=0):
    """Overconfident forecasts of three labels, and outcomes of which some are unknown."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 3)) * [1, 0.6, 0.3]
    P = truth**2 / (truth**2 + (1 - truth) ** 2)
    Y = (rng.random((n, 3)) < truth).astype(float)
    Y[rng.random((n, 3)) < 0.05] = np.nan
    return P, Y


def write(path, P, Y, **others):
    # The columns of forecasts stand in another order than the columns of the labels.
    columns = {f"p_{LABELS[k]}": P[:, k] for k in (2, 0, 1)}
    outcomes = {f"is_{name}": pl.Series(Y[:, k]).fill_nan(None) for k, name in enumerate(LABELS)}
    pl.DataFrame(columns | outcomes | others).write_csv(path)


@pytest.fixture
def fitted(run_cli):
    P, Y = make_labels()
    write("x.csv", P, Y)
    ran = run_cli("fit", "x.csv", "--labels", "is_*", "-o", "model.json", "--json")
    assert ran.code == 0, ran.err
    expected = MultiLabelCalibrator().fit(P, Y, labels=LABELS)
    return P, Y, expected, json.loads(ran.text)


def test_fit_and_apply_are_those_of_python(run_cli, fitted):
    P, Y, expected, printed = fitted
    loaded = isoroc.load("model.json")
    assert loaded.classes_.tolist() == printed["classes"] == LABELS
    np.testing.assert_allclose(loaded.predict_proba(P), expected.predict_proba(P), atol=1e-12)
    assert printed["class_rows"] == min((Y == 0).sum(axis=0).min(), (Y == 1).sum(axis=0).min())
    both = evaluate(Y, P, after=expected, multilabel=True, labels=LABELS)
    for stage in ("before", "after"):
        assert printed["log_loss"][stage] == pytest.approx(both["log_loss", stage])
    assert run_cli("apply", "model.json", "x.csv", "-o", "out.csv").code == 0
    out = pl.read_csv("out.csv").select(f"p_{name}_cal" for name in LABELS).to_numpy()
    np.testing.assert_allclose(out, expected.predict_proba(P), atol=1e-9)


def test_evaluate_and_report_are_those_of_python(run_cli, fitted):
    *_, expected, _ = fitted
    P, Y = make_labels(300, seed=1)
    write("new.csv", P, Y, day=np.arange(300) // 2, w=np.arange(300) % 3 + 1)
    words = ["new.csv", "--model", "model.json", "--clusters", "day", "--weight", "w", "--json"]
    ran = run_cli("evaluate", *words, "--fail-if", "macro_log_loss > 0.01")
    result = evaluate(
        Y,
        P,
        after=expected,
        multilabel=True,
        labels=LABELS,
        clusters=np.arange(300) // 2,
        sample_weight=np.arange(300) % 3 + 1,
    )
    assert ran.code == 1
    printed = json.loads(ran.text)
    assert printed["rows"] == result.n_rows == np.isfinite(Y).sum()
    for measure in ("log_loss", "macro_auc", "accuracy"):
        figure = printed["measures"][measure]["after"]
        assert figure["value"] == pytest.approx(result[measure, "after"], rel=1e-9)
    ran = run_cli("report", *words)
    assert ran.code == 0, ran.err
    assert json.loads(ran.text)["data"]["multilabel"] is True


@pytest.mark.usefixtures("fitted")
def test_monitor_accumulates_evidence_of_each_label(run_cli):
    monitor = isoroc.CalibrationMonitor(isoroc.load("model.json"))
    for seed in (1, 2):
        P, Y = make_labels(500, seed=seed)
        write("new.csv", P, Y)
        ran = run_cli("monitor", "model.json", "new.csv", "--state", "s.json", "--json")
        assert ran.code == 0, ran.text
        monitor.update(Y, P)
        printed = json.loads(ran.text)
        assert printed["total"]["rows"] == monitor.totals.rows
        assert printed["total"]["evidence"] == pytest.approx(monitor.evidence_)
    ran = run_cli("monitor", "model.json", "new.csv", "--state", "s.json")
    assert "skipped, counted on" in ran.err
    assert "share of snow" in ran.text
    P, Y = make_labels(2000, seed=3)
    write("new.csv", P, np.where(P > 0.5, 1 - Y, Y))
    ran = run_cli("monitor", "model.json", "new.csv", "--state", "s.json", "--prometheus", "m.prom")
    assert (ran.code, "fit again" in ran.text) == (1, True)
    assert 'isoroc_monitor_share_observed{model="' in Path("m.prom").read_text()
    ran = run_cli("monitor", "model.json", "new.csv", "--unlabelled")
    assert (ran.code, "wait for the labels" in ran.err) == (2, True)


def test_one_label_that_is_calibrated_hides_no_other(tmp_path):
    """The evidence is the average over labels of the evidence of each."""
    P, Y = make_labels(2000)
    model = MultiLabelCalibrator().fit(P, Y)
    Q = model.predict_proba(P)
    monitor = isoroc.CalibrationMonitor(model, tolerance=0.0)
    monitor.update(Y, Q, calibrated=True)
    alone = []
    for k in range(3):
        known = np.isfinite(Y[:, k])
        single = isoroc.CalibrationMonitor([0, 1])
        single.update(Y[known, k].astype(int), Q[known, k])
        alone.append(single.evidence_)
    assert monitor.evidence_ == pytest.approx(np.log(np.mean(np.exp(alone))))
    monitor.save(tmp_path / "state.json")
    again = isoroc.CalibrationMonitor.load(tmp_path / "state.json", model)
    assert again.evidence_ == monitor.evidence_
    again.update(Y, P)
    assert again.totals.rows == 2 * monitor.totals.rows


@pytest.mark.usefixtures("fitted")
def test_what_labels_cannot_do_is_refused(run_cli):
    one = pl.read_csv("x.csv").with_columns(y=pl.col("is_rain").fill_null(0))
    one.select("p_rain", "y").write_csv("one.csv")
    assert run_cli("fit", "one.csv", "-o", "one.json", "-c", "beta").code == 0
    fit = ["fit", "x.csv", "-o", "new.json"]
    for words, problem in {
        ("fit", "one.csv", "-o", "n.json", "-c", "beta", "--compare", "model.json"): "of classes",
        (*fit, "--labels", "is_*", "--compare", "one.json"): "a model of several labels",
        (*fit, "--labels", "is_*", "--segments", "is_rain"): "the labels are the segments",
        (*fit, "--labels", "is_*", "--label", "is_rain"): "exclude each other",
        (*fit, "--labels", "is_rain"): "for a single outcome use --label",
        (*fit, "--label", "is_rain,is_snow"): "use --labels",
        (*fit, "--labels", "is_*", "--probs", "p_rain,p_snow"): "2 columns of forecasts",
        ("evaluate", "x.csv", "-m", "model.json", "--label", "is_rain"): "with --labels",
        ("evaluate", "one.csv", "-m", "one.json", "--labels", "y"): "with --label",
        ("monitor", "model.json", "one.csv"): "with --labels",
        ("count", "x.csv", "--labels", "is_*", "-o", "c.parquet"): "one outcome per row",
        ("rate", "x.csv", "--labels", "is_*"): "rate takes one outcome",
        ("apply", "model.json", "x.csv", "-o", "o.csv", "--adapt-prior"): "do not exclude",
    }.items():
        ran = run_cli(*words)
        assert (ran.code, ran.err.count("\n")) == (2, 1), words
        assert problem in ran.err, ran.err
    Path("bad.csv").write_text(Path("x.csv").read_text() + "0.1,0.1,0.1,0,2,1\n")
    ran = run_cli(*fit[:1], "bad.csv", *fit[2:], "--labels", "is_*")
    assert (ran.code, "row 400, column 'is_snow' is '2'" in ran.err) == (2, True)
