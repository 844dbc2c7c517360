"""Files of many rows are evaluated batch by batch, with the figures of all rows in memory."""

import json

import numpy as np
import polars as pl
import pytest

from cli_tables import make_forecasts

#: Metrics that are sums over all rows.
OF_ALL_ROWS = ("log_loss", "brier_score_loss", "accuracy", "decisions_changed")


@pytest.fixture
def evaluate(run_cli, monkeypatch):
    """Function that evaluates a file as one of many rows, and as one of few."""

    def run(*words):
        found = []
        for many in (10, 10**6):
            monkeypatch.setattr("isoroc._cli.reading.MANY", many)
            defaults = (1500 if many == 10 else 10**6, 1)
            monkeypatch.setattr("isoroc._evaluation.measures.most_rows.__defaults__", defaults)
            ran = run_cli("evaluate", *words, "--json")
            assert ran.code == 0, ran.err
            found.append(json.loads(ran.out))
        return found

    return run


def assert_same(found, expected, metrics, column):
    for metric in metrics:
        if column in expected["measures"][metric]:
            values = [each["measures"][metric][column]["value"] for each in (found, expected)]
            assert values[0] == pytest.approx(values[1], rel=1e-9), metric


def test_figures_of_all_rows(evaluate, run_cli):
    make_forecasts(200).write_csv("train.csv")
    run_cli("fit", "train.csv", "-o", "model.json", "-c", "irp", "--max-bins", "5")
    make_forecasts(900, seed=1).write_parquet("new.parquet")
    words = ("new.parquet", "-m", "model.json", "-w", "w", "--where", "w > 0.3")
    found, expected = evaluate(*words)
    assert found["rows"] == expected["rows"] < 900
    for column in ("before", "after", "change"):
        assert_same(found, expected, OF_ALL_ROWS, column)
    for column in ("before", "after"):
        parts = [
            found["measures"][f"{part}_loss"][column]["value"]
            for part in ("calibration", "refinement")
        ]
        loss = found["measures"]["log_loss"][column]["value"]
        assert sum(parts) == pytest.approx(loss)
    kept, all_rows = (each["measures"]["calibration_loss"]["before"] for each in (found, expected))
    assert kept["value"] != all_rows["value"]
    assert abs(kept["value"] - all_rows["value"]) < kept["high"] - kept["low"]


def test_log_odds(evaluate, run_cli):
    rng = np.random.default_rng(0)
    z = rng.normal(size=400)
    y = rng.random(400) < 1 / (1 + np.exp(-z))
    pl.DataFrame({"score": z, "y": y}).write_parquet("odds.parquet")
    run_cli("fit", "odds.parquet", "-o", "model.json", "-c", "temperature")
    found, expected = evaluate("odds.parquet", "-m", "model.json")
    assert found["measures"]["log_loss"]["before"]["value"] is None
    assert_same(found, expected, ("accuracy",), "before")
    assert_same(found, expected, OF_ALL_ROWS, "after")


def test_a_model_of_other_classes(run_cli, monkeypatch):
    make_forecasts(60).write_csv("train.csv")
    run_cli("fit", "train.csv", "-o", "model.json", "-c", "irp")
    make_forecasts(60, ("ant", "bee", "cow")).write_csv("new.csv")
    monkeypatch.setattr("isoroc._cli.reading.MANY", 10)
    ran = run_cli("evaluate", "new.csv", "-m", "model.json")
    assert ran.code == 2
    assert "which is not a class of the model" in ran.err
