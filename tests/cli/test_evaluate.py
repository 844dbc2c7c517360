import json
import math
import re
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

import isoroc
from cli_tables import make_forecasts
from isoroc._cli.conditions import Condition

COLUMNS = ["p_bird", "p_cat", "p_dog"]


def report(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["measures"]


def test_json_is_that_of_the_evaluation(model, run_cli):
    new = make_forecasts(200, seed=1)
    new.write_csv("new.csv")
    words = ("evaluate", "new.csv", "-m", "model.json", "--json")
    found = json.loads(run_cli(*words).out)
    P = new.select(COLUMNS).to_numpy()
    result = isoroc.evaluate(new["y"], P, isoroc.load(model))
    expected = result.to_dict()
    assert {name: found[name] for name in expected if name != "measures"} == {
        name: value for name, value in expected.items() if name != "measures"
    }
    for measure, figures in expected["measures"].items():
        for of, figure in figures.items():
            assert found["measures"][measure][of] == pytest.approx(figure)
    after = {measure: figures.get("after", {}) for measure, figures in found["measures"].items()}
    Q = isoroc.load(model).predict_proba(P)
    y = new["y"].to_numpy()
    assert after["log_loss"]["value"] == pytest.approx(log_loss(y, Q))
    assert after["auc_one_vs_rest"]["value"] == pytest.approx(
        roc_auc_score(y, Q, multi_class="ovr")
    )


def test_weights_and_filters(run_cli):
    new = make_forecasts(100).filter(pl.col("y") != "dog")
    new.write_csv("new.csv")
    words = ["-p", "p_cat", "-w", "w", "--where", "w > 0.5", "--json"]
    found = report(run_cli("evaluate", "new.csv", *words))
    kept = new.filter(pl.col("w") > 0.5)
    expected = log_loss(kept["y"] == "cat", kept["p_cat"], sample_weight=kept["w"])
    assert found["log_loss"]["before"]["value"] == pytest.approx(expected)
    assert 0 < found["auc"]["before"]["low"] < found["auc"]["before"]["value"]


def test_the_brier_score_is_that_of_scikit_learn(run_cli):
    new = make_forecasts(100).filter(pl.col("y") != "dog")
    new.write_csv("new.csv")
    found = report(run_cli("evaluate", "new.csv", "-p", "p_cat", "--json"))
    expected = brier_score_loss(new["y"] == "cat", new["p_cat"])
    assert found["brier_score_loss"]["before"]["value"] == pytest.approx(expected)


def test_scores_have_an_auc_but_no_losses(run_cli):
    pl.DataFrame({"score": [-1.0, 3.0, 2.0], "y": [0, 1, 0]}).write_csv("x.csv")
    ran = run_cli("evaluate", "x.csv")
    assert "Calibrate: these scores are not probabilities." in ran.text
    found = report(run_cli("evaluate", "x.csv", "--json"))
    assert found["auc"]["before"]["value"] == 1
    assert found["log_loss"]["before"]["value"] is None
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    ran = run_cli("evaluate", "x.csv", "-m", "m.json")
    assert "Calibrate: the scores before calibration are not probabilities." in ran.text
    ran = run_cli("evaluate", "x.csv", "--fail-if", "log_loss > 1")
    assert ran.code == 1  # what is not known has not passed
    assert "check failed: log_loss > 1 (nan > 1: not defined)" in ran.err


def test_decisions_of_log_odds_are_compared_with_those_of_probabilities(run_cli):
    odds = [-2.0, 0.3, 1.5, 0.2, -0.1]
    pl.DataFrame({"score": odds, "y": [0, 0, 1, 1, 0]}).write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "identity").code == 0
    words = ["evaluate", "x.csv", "-m", "m.json", "--json"]
    found = report(run_cli(*words))
    assert found["decisions_changed"]["change"]["value"] == 0
    assert found["accuracy"]["before"]["value"] == found["accuracy"]["after"]["value"] == 0.8
    assert json.loads(run_cli(*words, "--fail-if", "decisions_changed > 0").out)["failed"] == []
    assert "decisions_changed" not in report(run_cli(*words[:2], *words[4:]))


@pytest.mark.usefixtures("model")
def test_models_of_other_columns_or_classes(table, run_cli):
    words = ["evaluate", "data.csv", "-m"]
    IRP = isoroc.IRPCalibrator
    IRP().fit(table["p_cat"].to_numpy(), table["y"] == "cat").save("binary.json")
    assert "which is not a class of the model" in run_cli(*words, "binary.json").err
    IRP().fit(table.select(COLUMNS).to_numpy(), table["y"].str.to_uppercase()).save("other.json")
    assert "which is not a class of the model: BIRD, CAT, DOG" in run_cli(*words, "other.json").err


@pytest.mark.usefixtures("model")
def test_labels_unknown_to_the_model_are_errors(run_cli):
    make_forecasts(20, ("bird", "cat", "fox")).rename({"p_fox": "p_dog"}).write_csv("new.csv")
    ran = run_cli("evaluate", "new.csv", "-m", "model.json")
    assert ran.code == 2
    assert "column 'y' holds 'fox', which is not a class of the model" in ran.err


def test_the_default_label_is_that_of_the_fit(table, run_cli):
    table.rename({"y": "animal"}).write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-l", "animal", "-o", "m.json", "-c", "irp").code == 0
    assert run_cli("evaluate", "x.csv", "-m", "m.json").code == 0


@pytest.mark.usefixtures("model")
def test_fail_if_sets_the_exit_code(run_cli):
    words = ["evaluate", "data.csv", "-m", "model.json"]
    good = run_cli(*words, "--fail-if", "log_loss > 9", "--fail-if", "after.brier_score_loss<0")
    assert (good.code, good.err) == (0, "")
    bad = run_cli(
        *words, "--fail-if", "after.log_loss<before.log_loss", "--fail-if", "auc_one_vs_rest >= 0.1"
    )
    assert bad.code == 1
    first, second = bad.err.splitlines()
    assert re.fullmatch(
        r"isoroc: check failed: after.log_loss<before.log_loss \(0.\d+ < .*\)", first
    )
    assert second.startswith("isoroc: check failed: auc_one_vs_rest >= 0.1 (0.")
    failed = json.loads(run_cli(*words, "--json", "--fail-if", "vus<2").out)["failed"]
    assert failed[0].startswith("vus<2 (0.")


def test_conditions_know_intervals_differences_and_arithmetic(run_cli):
    make_forecasts(300).filter(pl.col("y") != "dog").write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-p", "p_cat", "-o", "m.json", "-c", "irp").code == 0
    conditions = {
        "change.log_loss.high > 0": False,
        "change.log_loss.high <= 0": True,
        "after.log_loss.high > before.log_loss * 1.01": False,
        "abs(after.log_loss - before.log_loss) > 0.001": True,
        "before.log_loss / 0 > 1": True,
    }
    words = [word for text in conditions for word in ("--fail-if", text)]
    ran = run_cli("evaluate", "x.csv", "-m", "m.json", "--json", *words)
    found = json.loads(ran.out)
    change = found["measures"]["log_loss"]["change"]
    assert change["low"] < change["value"] < change["high"] < 0
    failed = [text.partition(" (")[0] for text in found["failed"]]
    assert failed == [text for text, holds in conditions.items() if holds]
    assert ran.code == 1


@pytest.mark.usefixtures("model")
def test_json_says_where_figures_come_from(run_cli, table):
    table.with_columns(p_dog=0.0, p_cat=1 - pl.col("p_bird")).write_csv("x.csv")
    ran = run_cli("evaluate", "x.csv", "-m", "model.json", "--json")
    found = json.loads(ran.out)
    assert found["files"] == ["x.csv"]
    model = json.loads(Path("model.json").read_bytes())
    assert found["models"]["after"] == {"file": "model.json", "checksum": model["checksum"]}
    assert found["versions"]["isoroc"] == isoroc.__version__
    assert found["verdict"]["text"].startswith("calibrate: ")
    assert found["measures"]["log_loss"]["before"]["value"] > 9  # outcomes of probability 0
    assert found["impossible"]["before"] > 50


def test_weights_are_those_of_the_fit(run_cli, table):
    table.write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp", "-w", "w").code == 0
    words = ["evaluate", "x.csv", "-m", "m.json", "--json"]
    by_model = run_cli(*words)
    given = run_cli(*words, "-w", "w")
    assert by_model.out == given.out != run_cli(*words, "-w", "none").out
    assert run_cli("evaluate", "x.csv", "-w", "none").code == 0


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("log_loss", "--fail-if log_loss: it is a number; compare it"),
        ("log_loss == 1", "not a condition"),
        ("__import__('os') > 1", "not a condition"),
        ("logloss > 1", "no metric 'logloss'; did you mean 'log_loss'?"),
        ("later.log_loss > 1", "no column 'later'"),
    ],
)
@pytest.mark.usefixtures("model")
def test_invalid_conditions_are_errors(run_cli, condition, message):
    words = ["evaluate", "data.csv", "-m", "model.json"]
    ran = run_cli(*words, "--fail-if", condition)
    assert (ran.code, message in ran.err) == (2, True), ran.err


@pytest.mark.parametrize("sign", [">", "<", ">=", "<="])
def test_conditions_compare(sign):
    condition = Condition.parse(f" a {sign} 1e-1")
    for value in (0.05, 0.1, 0.2):
        expected = {">": value > 0.1, "<": value < 0.1, ">=": value >= 0.1, "<=": value <= 0.1}
        assert (condition.failure({"x": {"a": value}}, "x") is not None) == expected[sign]
    assert condition.failure({"x": {"a": math.nan}}, "x")  # not known to be right


@pytest.mark.usefixtures("model")
def test_output_as_a_table(run_cli):
    words = ["evaluate", "data.csv", "-m", "model.json"]
    shown = run_cli(*words, "--confidence", "0.9").text
    assert "90 % interval of the change" in shown
    assert "log loss" in shown
    assert shown.startswith("300 rows ")
    assert "Calibrate: it could save" in shown  # the model was fitted to these rows
    assert "fitted to these very rows" in " ".join(shown.split())
    assert "of the decisions" in shown


def test_invalid_options_are_errors(run_cli):
    Path("x.csv").write_text("p,y\n0.5,1\n")
    ran = run_cli("evaluate", "x.csv", "--confidence", "95")
    assert "--confidence: is 95.0; " in ran.err


def test_a_class_that_does_not_occur_leaves_the_other_metrics_defined(model, run_cli):
    new = make_forecasts(60).filter(pl.col("y") != "dog").rename({"y": "target"})
    new.write_csv("new.csv")
    found = report(run_cli("evaluate", "new.csv", "-m", model, "--json"))
    assert found["vus"]["before"]["value"] is None
    assert 0 < found["auc_one_vs_rest"]["before"]["value"] < 1
    new.filter(pl.col("target") == "cat").write_csv("one.csv")
    found = report(run_cli("evaluate", "one.csv", "-m", model, "--json"))
    assert found["auc_one_vs_rest"]["before"]["value"] is None


def test_an_outcome_of_probability_0_is_not_an_error(run_cli):
    Path("x.csv").write_text("p_0,p_1,y\n1,0,0\n0,1,0\n0.5,0.5,1\n")
    ran = run_cli("evaluate", "x.csv")
    assert ran.code == 0, ran.err
    assert "12.2" in ran.text
    Path("x.csv").write_text("p_0,p_1,y\n0.5,0.5,1\n")
    found = report(run_cli("evaluate", "x.csv", "--json"))
    assert found["calibration_error"]["before"]["value"] is None
