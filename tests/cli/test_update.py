"""``isoroc update``: the state of an online calibrator, from file to file."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from cli_tables import listing, make_forecasts
from isoroc import CalibrationMonitor, OnlineCalibrator

COLUMNS = ["p_bird", "p_cat", "p_dog"]


def forecasts_of(table):
    return table.select(COLUMNS).to_numpy()


@pytest.fixture
def days(folder):  # noqa: ARG001
    tables = [make_forecasts(200, seed=day) for day in range(3)]
    for day, table in enumerate(tables):
        table.write_csv(f"{day}.csv")
    return tables


def test_the_command_does_what_partial_fit_does(run_cli, days):
    expected = OnlineCalibrator(half_lives=[None, 300])
    options = ["--create", "--half-lives", "[null, 300]"]
    for day, table in enumerate(days):
        ran = run_cli("update", "state.json", f"{day}.csv", *options, "--json")
        assert ran.code == 0, ran.err
        options = ["--create"]
        expected.partial_fit(forecasts_of(table), table["y"].to_numpy())
    found = json.loads(ran.text)
    assert found["format"] == "isoroc-update"
    assert found["weights"] == pytest.approx(expected.weights_.tolist())
    assert found["regret_bound"]["nats"] == pytest.approx(float(expected.regret_bound_))
    assert found["rows"] == 600
    P = forecasts_of(days[0])
    Q = isoroc.load("state.json").predict_proba(P)
    np.testing.assert_allclose(Q, expected.predict_proba(P), atol=1e-12)
    assert run_cli("apply", "state.json", "0.csv", "-o", "out.csv").code == 0
    applied = pl.read_csv("out.csv").select(f"{name}_cal" for name in COLUMNS).to_numpy()
    np.testing.assert_allclose(applied, Q, atol=1e-12)
    assert run_cli("export", "state.json", "--sql", "duckdb").code == 0
    assert run_cli("inspect", "state.json").code == 0
    assert isoroc.load_map("state.json").names is None
    assert not [name for name in listing() if name.startswith(".")]


@pytest.mark.usefixtures("days")
def test_the_same_rows_count_once(run_cli):
    assert run_cli("update", "state.json", "0.csv", "--create").code == 0
    before = Path("state.json").read_bytes()
    pl.read_csv("0.csv").sort("p_cat").write_csv("sorted.csv")
    ran = run_cli("update", "state.json", "sorted.csv")
    assert (ran.code, "skipped, counted on" in ran.err) == (0, True)
    assert Path("state.json").read_bytes() == before
    words = ["update", "state.json", "1.csv", "--batch", "monday"]
    assert run_cli(*words).code == 0
    assert "skipped" in run_cli(*words).err
    assert "skipped" in run_cli("update", "state.json", "2.csv", "--batch", "monday").err
    assert isoroc.load("state.json").n_rows_seen_ == 400


@pytest.mark.usefixtures("days")
def test_it_prints_what_has_changed(run_cli):
    run_cli("update", "state.json", "0.csv", "--create")
    ran = run_cli("update", "state.json", "1.csv", "--plot", "history.png")
    for text in ("400 rows so far", "half-life 300", "as served", "the best of 6 members"):
        assert text in ran.text
    assert isoroc.load("state.json").describe() in ran.text
    assert Path("history.png").read_bytes().startswith(b"\x89PNG")


def test_earlier_states_times_and_soft_labels(run_cli, days):
    for day in range(3):
        days[day].with_columns(day=pl.lit(f"2026-07-0{day + 1}")).write_csv(f"{day}.csv")
    words = ["--create", "--time", "day", "--half-lives", "[null, 2]"]
    assert run_cli("update", "state.json", "0.csv", *words).code == 0
    Path("kept.json").write_bytes(Path("state.json").read_bytes())
    assert run_cli("update", "state.json", "1.csv", "--time", "day").code == 0
    words = ["update", "state.json", "2.csv", "--time", "day", "--served", "kept.json"]
    assert run_cli(*words).code == 0
    state = isoroc.load("state.json")
    assert state.ledger_.late == 200
    assert state.counts_[1].class_weights.sum() == pytest.approx(200 * (1 + 0.5**0.5 + 0.5))
    kept = isoroc.load("kept.json")
    loss = -np.log(
        kept.predict_proba(forecasts_of(days[2]))[
            np.arange(200), np.searchsorted(kept.classes_, days[2]["y"].to_numpy())
        ]
    ).mean()
    assert state.history_["served"][-1] == pytest.approx(loss)
    soft = days[0].with_columns(s_bird=pl.lit(0.5), s_cat=pl.lit(0.25), s_dog=pl.lit(0.25))
    soft.with_columns(day=pl.Series(range(200))).write_parquet("soft.parquet")
    words = ["--create", "--label-shares", "s_bird,s_cat,s_dog", "--time", "day"]
    assert run_cli("update", "soft.json", "soft.parquet", *words).code == 0
    assert isoroc.load("soft.json").ledger_.clock == 199


@pytest.mark.usefixtures("folder")
def test_the_first_file_may_have_one_class(run_cli):
    for day, labels in enumerate(([0, 0, 0], [0, 1, 0])):
        pl.DataFrame({"p": [0.1, 0.3, 0.2], "y": labels}).write_csv(f"{day}.csv")
    ran = run_cli("update", "state.json", "0.csv", "--create")
    assert (ran.code, "give both with --classes" in ran.err) == (2, True)
    assert run_cli("update", "state.json", "0.csv", "--create", "--classes", "0,1").code == 0
    assert run_cli("update", "state.json", "1.csv").code == 0
    state = isoroc.load("state.json")
    assert state.classes_.tolist() == [0, 1]
    assert state.counts_[0].class_weights.sum(axis=0).tolist() == [5, 1]
    assert run_cli("apply", "state.json", "1.csv", "-o", "out.csv").code == 0


@pytest.mark.usefixtures("folder")
def test_the_same_rows_at_another_time_are_other_rows(run_cli):
    table = make_forecasts(100, seed=0)
    for day in (1, 2):
        dated = table.with_columns(day=pl.lit(f"2026-07-0{day}T10:00:00+02:00"))
        dated.write_csv(f"{day}.csv")
        words = ["--create", "--time", "day"] if day == 1 else ["--time", "day"]
        assert run_cli("update", "state.json", f"{day}.csv", *words).code == 0
    assert isoroc.load("state.json").n_rows_seen_ == 200
    assert "skipped" in run_cli("update", "state.json", "2.csv", "--time", "day").err
    assert "--time: is missing, but the first" in run_cli("update", "state.json", "2.csv").err


@pytest.mark.usefixtures("days")
def test_errors(run_cli):
    def error_of(*words):
        ran = run_cli("update", *words)
        assert ran.code == 2
        return ran.err

    assert "no such file; --create begins a new state" in error_of("state.json", "0.csv")
    assert not Path("state.json").exists()
    assert "neither an option" in error_of("state.json", "0.csv", "--create", "--half", "3")
    assert "share: is 2" in error_of("state.json", "0.csv", "--create", "--share", "2")
    assert run_cli("update", "state.json", "0.csv", "--create").code == 0
    before = Path("state.json").read_bytes()
    words = ["--create", "--share", "0.1"]
    assert "keeps its parameters" in error_of("state.json", "1.csv", *words)
    assert "--time: is new" in error_of("state.json", "1.csv", "--time", "w")
    assert "no column" in error_of("state.json", "1.csv", "--time", "nothing")
    assert run_cli("fit", "0.csv", "-c", "temperature", "-o", "model.json").code == 0
    assert "holds TemperatureCalibrator" in error_of("model.json", "1.csv")
    served = ["--served", "model.json"]
    assert "--served: is not an earlier state" in error_of("state.json", "1.csv", *served)
    assert "is also an input" in error_of("1.csv", "1.csv", "--create")
    assert Path("state.json").read_bytes() == before


@pytest.mark.usefixtures("days")
def test_a_monitor_keeps_its_evidence_by_name(run_cli):
    run_cli("update", "state.json", "0.csv", "--create")
    for day in (1, 2):
        words = ["monitor", "state.json", f"{day}.csv", "--state", "m.json", "--name", "animals"]
        assert run_cli(*words).code == 0
        assert "another model" not in run_cli("update", "state.json", f"{day}.csv").err
    assert CalibrationMonitor.load("m.json").totals.rows == 400
    assert CalibrationMonitor.load("m.json").model == "animals"
