"""``isoroc accept`` and rules in ``apply`` and ``export``: the same as in Python."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from cli_tables import make_forecasts
from isoroc.decisions import AcceptanceRule, acceptance_rule

COLUMNS = ["p_bird", "p_cat", "p_dog"]


@pytest.fixture
def fitted(run_cli):
    make_forecasts(1000).write_csv("data.csv")
    assert run_cli("fit", "data.csv", "-c", "temperature", "-o", "model.json").code == 0
    table = make_forecasts(3000, seed=1)
    table.with_columns(shop=pl.Series(np.arange(3000) % 2)).write_csv("labelled.csv")
    return table


def test_a_rule_is_that_of_python(run_cli, fitted):
    words = ("accept", "labelled.csv", "--model", "model.json", "--max-error", "0.25")
    ran = run_cli(*words, "-o", "rule.json")
    assert ran.code == 0, ran.err
    rule = AcceptanceRule.load("rule.json")
    calibrator = isoroc.load("model.json")
    P = fitted.select(COLUMNS).to_numpy()
    y = fitted["y"].to_numpy()
    expected = acceptance_rule(y, P, max_error=0.25, calibrator=calibrator)
    assert rule.threshold == expected.threshold
    assert rule.model == calibrator.checksum
    assert ran.text.strip() == str(expected) == str(rule)
    found = json.loads(run_cli(*words, "--json").text)
    assert found["certified"] is True
    assert found["coverage"]["value"] == expected.coverage.value
    assert found["zones"][0]["threshold"] == expected.threshold
    # Rules are the same for weights, clusters and segments, too.
    ran = run_cli(*words, "-w", "w", "--clusters", "id", "--json")
    assert ran.code == 0
    one_by_one = acceptance_rule(
        y, P, max_error=0.25, calibrator=calibrator, sample_weight=fitted["w"]
    )
    assert json.loads(ran.text)["zones"][0]["threshold"] == one_by_one.threshold
    found = json.loads(run_cli(*words, "--segments", "shop", "--json").text)
    by_shop = acceptance_rule(
        y, P, max_error=0.25, calibrator=calibrator, segments=np.arange(3000) % 2
    )
    assert [float(zone["threshold"]) for zone in found["zones"]] == by_shop.threshold.tolist()
    assert [zone["segment"] for zone in found["zones"]] == ["0", "1"]


@pytest.mark.usefixtures("fitted")
@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_apply_adds_a_column(run_cli, form):
    run_cli("accept", "labelled.csv", "-m", "model.json", "--max-error", "0.2", "-o", "rule.json")
    new = make_forecasts(50, seed=2)
    getattr(new, f"write_{form}")(f"new.{form}")
    ran = run_cli("apply", "model.json", f"new.{form}", "--rule", "rule.json", "-o", f"out.{form}")
    assert ran.code == 0, ran.err
    out = getattr(pl, f"read_{form}")(f"out.{form}")
    rule = AcceptanceRule.load("rule.json")
    Q = isoroc.load("model.json").predict_proba(new.select(COLUMNS).to_numpy())
    assert out["accepted"].to_list() == rule.accept(Q).tolist()
    assert 0 < out["accepted"].sum() < 50


@pytest.mark.usefixtures("fitted")
def test_bad_rows_are_neither_accepted_nor_refused(run_cli):
    run_cli("accept", "labelled.csv", "-m", "model.json", "--max-error", "0.2", "-o", "rule.json")
    Path("new.csv").write_text("p_bird,p_cat,p_dog\n0.99,0.005,0.005\n9,9,9\n0.4,0.3,0.3\n")
    words = ("apply", "model.json", "new.csv", "--rule", "rule.json", "--on-bad", "null")
    assert run_cli(*words, "-o", "out.csv").code == 0
    assert pl.read_csv("out.csv")["accepted"].to_list() == [True, None, False]


@pytest.mark.usefixtures("fitted")
def test_rules_are_exported(run_cli):
    run_cli("accept", "labelled.csv", "-m", "model.json", "--max-error", "0.2", "-o", "rule.json")
    ran = run_cli("export", "model.json", "--sql", "duckdb", "--rule", "rule.json")
    assert '"accepted"' in ran.text
    ran = run_cli("export", "model.json", "--onnx", "model.onnx", "--rule", "rule.json")
    assert "returns calibrated, accepted" in ran.err


@pytest.mark.usefixtures("fitted")
def test_conditions_and_warnings(run_cli):
    words = ("accept", "labelled.csv", "-m", "model.json", "--max-error")
    ran = run_cli(*words, "0.2", "--fail-if", "coverage < 0.99")
    assert ran.code == 1
    assert "check failed: coverage < 0.99" in ran.err
    assert run_cli(*words, "0.2", "--fail-if", "not certified").code == 0
    ran = run_cli(*words, "0.001", "--fail-if", "not certified")
    assert ran.code == 1
    assert "No row can be accepted" in ran.text
    ran = run_cli("accept", "data.csv", "-m", "model.json", "--max-error", "0.2")
    assert "The calibrator was fitted to 100 % of these rows" in ran.err
    by_class = json.loads(run_cli(*words, "bird=0.2,cat=0.3,dog=0.2", "--by-class", "--json").text)
    assert [zone["max_error"] for zone in by_class["zones"]] == [0.2, 0.3, 0.2]


@pytest.mark.usefixtures("fitted")
def test_bad_options(run_cli):
    def error_of(*words):
        ran = run_cli(*words)
        assert ran.code == 2
        return ran.err

    words = ("accept", "labelled.csv", "-m", "model.json", "--max-error")
    assert "--max-error much: not a number" in error_of(*words, "much")
    assert "--max-error: is 0" in error_of(*words, "0")
    assert "is also an input" in error_of(*words, "0.2", "-o", "model.json")
    run_cli(*words, "0.2", "-o", "rule.json")
    apply = ("apply", "model.json", "labelled.csv", "-o", "out.csv", "--rule")
    assert "says 'isoroc-rule' here" in error_of(*apply, "model.json")
    run_cli("fit", "labelled.csv", "-c", "temperature", "-o", "other.json")
    other = ("apply", "other.json", "labelled.csv", "-o", "out.csv", "--rule", "rule.json")
    assert "was made with another calibrator" in error_of(*other)
    run_cli(*words, "0.2", "--segments", "shop", "-o", "segments.json")
    assert "uses scores or segments" in error_of(*apply, "segments.json")
    table = pl.read_csv("labelled.csv").with_columns(accepted=1)
    table.write_csv("labelled.csv")
    assert "column 'accepted' exists already" in error_of(*apply, "rule.json")


@pytest.mark.usefixtures("fitted")
def test_the_promise_is_monitored(run_cli):
    run_cli("accept", "labelled.csv", "-m", "model.json", "--max-error", "0.25", "-o", "rule.json")
    make_forecasts(1500, seed=5).write_csv("good.csv")
    words = ("--state", "state.json", "--rule", "rule.json")
    ran = run_cli("monitor", "model.json", "good.csv", *words)
    assert ran.code == 0
    assert "There is no evidence against the promise of 25 %" in ran.text
    bad = make_forecasts(1500, seed=6)
    bad.with_columns(y=bad["y"].shuffle(seed=0)).write_csv("bad.csv")
    ran = run_cli("monitor", "model.json", "bad.csv", *words, "--json")
    assert ran.code == 1
    promise = json.loads(ran.text)["promise"]
    assert promise["alarm"] == 3000
    assert promise["text"].startswith("The promise of 25 % no longer holds")
    ran = run_cli("monitor", "model.json", "bad.csv", "--state", "state.json")
    assert ran.code == 2
    assert "watches the promise of a rule; name it with --rule" in ran.err
    run_cli("accept", "labelled.csv", "-m", "model.json", "--max-error", "0.3", "-o", "other.json")
    ran = run_cli(
        "monitor", "model.json", "good.csv", "--state", "state.json", "--rule", "other.json"
    )
    assert "promise of 30 %" in ran.text
