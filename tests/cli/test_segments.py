"""Segments on the command line: ``fit --segments``, ``evaluate --segments``, and their models."""

import json
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

import isoroc
from isoroc.metrics import segment_report

NAMES = np.array(["north", "south", "o'hara"])


def make_rows(n, seed):
    """Probabilities that are too high in the south, and for the old."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    code = rng.integers(3, size=n)
    age = rng.integers(18, 80, n)
    odds = p / (1 - p) * np.where(code == 1, 0.3, 1.0) * np.where(age > 60, 0.4, 1.0)
    y = rng.random(n) < odds / (1 + odds)
    data = {"p": p, "region": NAMES[code], "age": age, "y": np.where(y, "yes", "no")}
    return pl.DataFrame(data)


@pytest.fixture
def fitted(run_cli):
    make_rows(1500, 0).write_csv("data.csv")
    words = ["--segments", "region,age", "-c", "temperature", "-o", "model.json"]
    ran = run_cli("fit", "data.csv", *words)
    assert ran.code == 0, ran.err
    assert "the map with shifts by segment has weight" in ran.err
    make_rows(600, 1).write_parquet("new.parquet")


@pytest.mark.usefixtures("fitted")
def test_models_with_segments(run_cli):
    calibrator = isoroc.load("model.json")
    new = pl.read_parquet("new.parquet")
    assert calibrator.columns_.tolist() == ["region", "age"]
    assert not len(calibrator.map_.levels[1])  # numbers, also in a text file
    expected = calibrator.predict_proba(new["p"], new)
    assert run_cli("apply", "model.json", "new.parquet", "-o", "out.parquet").code == 0
    found = pl.read_parquet("out.parquet")["p_cal"].to_numpy()
    np.testing.assert_array_equal(found, expected[:, 1])
    words = ["--adapt-prior", "--names", "no,yes", "-o", "out.csv"]
    assert run_cli("apply", "model.json", "new.parquet", *words).code == 0
    ran = run_cli("monitor", "model.json", "new.parquet", "--json")
    loss = -np.log(expected[np.arange(600), (new["y"] == "yes").to_numpy().astype(int)]).mean()
    assert json.loads(ran.text)["batch"]["log_loss"] == pytest.approx(loss)
    ran = run_cli("export", "model.json", "--sql", "duckdb", "--segments", "area,years")
    assert "CAST(\"area\" AS TEXT) = 'o''hara'" in ran.text
    assert run_cli("export", "model.json", "--onnx", "m.onnx").code == 0
    words = ["--sql", "duckdb", "--segments", "area,years", "-o", "query.sql"]
    assert run_cli("export", "model.json", *words, "--golden", "check.sql").code == 0
    query = Path("check.sql").read_text()
    assert duckdb.execute(query).fetchall() == [(12, 0, pytest.approx(0, abs=1e-12))]
    assert '"area"' in query
    assert run_cli("export", "model.json", "--golden", "rows.json").code == 0
    golden = json.loads(Path("rows.json").read_text())
    assert golden["model"] == json.loads(Path("model.json").read_text())["checksum"]
    ran = run_cli("export", "model.json", "--golden", "rows.sql")
    assert "--golden rows.sql: a query needs --sql DIALECT" in ran.err
    ran = run_cli("inspect", "model.json")
    assert "south" in ran.text
    assert "too high" in ran.text


@pytest.mark.usefixtures("fitted")
def test_where_forecasts_are_wrong(run_cli):
    words = ["evaluate", "new.parquet", "--segments", "region,age"]
    ran = run_cli(*words)
    assert "Wrong in" in ran.text
    assert "region: south" in ran.text
    ran = run_cli(*words, "-m", "model.json")
    assert "No segment shows miscalibration" in ran.text
    found = json.loads(run_cli(*words, "-m", "model.json", "--json").text)["segments"]
    new = pl.read_parquet("new.parquet")
    calibrator = isoroc.load("model.json")
    segments = new.select("region", "age")
    Q = calibrator.predict_proba(new["p"], new)
    for of, forecasts in (("before", new["p"]), ("after", Q)):
        expected = segment_report(new["y"], forecasts, segments, labels=["no", "yes"])
        assert found[of]["segment"] == expected["segment"].tolist()
        np.testing.assert_allclose(found[of]["ratio"], expected["ratio"])


@pytest.mark.usefixtures("fitted")
def test_all_formats_have_the_same_segments(run_cli):
    new = make_rows(50, 1).with_columns(age=pl.col("age").cast(pl.Float64))
    new.write_csv("a.csv")
    new.write_parquet("b.parquet")
    new.write_ndjson("c.ndjson")
    found = []
    for file in ("a.csv", "b.parquet", "c.ndjson"):
        assert run_cli("apply", "model.json", file, "-o", "out.parquet").code == 0
        found.append(pl.read_parquet("out.parquet")["p_cal"].to_list())
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("fitted")
def test_a_job_does_not_stop_at_unknown_segments(run_cli):
    new = make_rows(40, 1).with_columns(age=pl.col("age").cast(pl.String))
    new[0, "age"] = "unknown"
    new[1, "region"] = None
    new[2, "region"] = "west"
    new.write_csv("odd.csv")
    ran = run_cli("apply", "model.json", "odd.csv", "-o", "out.csv")
    assert ran.code == 0
    assert "region: 2 of 40 rows are missing or unknown to fit" in ran.err
    assert "age: 1 of 40 rows are missing or unknown to fit" in ran.err
    assert pl.read_csv("out.csv")["p_cal"].is_between(0, 1).all()


@pytest.mark.usefixtures("fitted")
def test_of_many_rows_some_are_kept(run_cli, monkeypatch):
    monkeypatch.setattr("isoroc._cli.reading.MANY", 900)
    words = ["--segments", "region,age", "-c", "temperature", "-o", "some.json"]
    ran = run_cli("fit", "data.csv", *words)
    some = isoroc.load("some.json")
    whole = isoroc.load("model.json")
    n_rows = some.summary_["rows"]
    assert 800 < n_rows < 1000
    assert f"segments: {n_rows} of 1,500 rows are used, drawn at random" in ran.err
    new = pl.read_parquet("new.parquet")
    Q, expected = (own.predict_proba(new["p"], new) for own in (some, whole))
    # Fits to 25 random samples of 900 rows differ from that to all by .013 to .039.
    assert np.abs(Q - expected).mean() < 0.05
    monkeypatch.setattr("isoroc._cli.reading.MANY", 400)
    found = json.loads(run_cli("evaluate", "new.parquet", "--segments", "region", "--json").text)
    assert 350 < found["rows"] < 450


@pytest.mark.usefixtures("fitted")
def test_bad_segments(run_cli):
    def error_of(*words):
        ran = run_cli(*words)
        assert ran.code == 2
        return ran.err

    fit = ["fit", "data.csv", "-o", "other.json"]
    message = error_of(*fit, "--segments", "regoin")
    assert "--segments: no column 'regoin'; did you mean 'region'" in message
    message = error_of(*fit, "--counts", "--segments", "region")
    assert "--segments and --clusters need rows: counts hold neither" in message
    new = pl.read_parquet("new.parquet")
    new.drop("region").write_csv("none.csv")
    for words in (["apply", "model.json", "none.csv", "-o", "out.csv"],
                  ["evaluate", "none.csv", "-m", "model.json"]):  # fmt: skip
        assert "model.json: its segments: no column 'region'" in error_of(*words)
    dated = new.with_columns(day=pl.date(2026, 1, 1))
    dated.write_parquet("dated.parquet")
    message = error_of("fit", "dated.parquet", "--segments", "day", "-o", "other.json")
    assert "column 'day' has the type Date; expected numbers, text or booleans" in message
    numbered = new.with_row_index("row")
    numbered.write_parquet("rows.parquet")
    message = error_of("fit", "rows.parquet", "--segments", "row", "-o", "other.json")
    assert "segments['row']: has another value in almost every row" in message


@pytest.mark.usefixtures("fitted")
def test_report_with_segments(run_cli):
    words = ["--json"]
    ran = run_cli("report", "new.parquet", "-m", "model.json", *words)
    found = json.loads(ran.text)["segments"]
    assert "region: south" in found["columns"]["name"]  # as in the model
    assert found["series"] == ["before", "after"]
    assert run_cli("count", "new.parquet", "-o", "counts.parquet").code == 0
    ran = run_cli("report", "--counts", "counts.parquet", "--segments", "region", *words)
    assert ran.code == 2
    assert "--segments and --clusters need rows" in ran.err


@pytest.mark.usefixtures("fitted")
def test_unknown_segments_are_a_condition_and_a_metric(run_cli, folder):
    new = pl.read_parquet("new.parquet")
    half = pl.Series(np.where(np.arange(600) % 2, "west", new["region"]))
    new.with_columns(region=half).write_parquet("half.parquet")
    new.with_columns(region=pl.lit("west")).write_parquet("west.parquet")
    for name, share in {"new": 0.0, "half": 0.5, "west": 1.0}.items():
        words = ["apply", "model.json", f"{name}.parquet", "-o", f"{name}.csv"]
        ran = run_cli(*words, "--quiet", "--fail-if", "unknown.region > 0.1")
        assert (ran.code, (folder / f"{name}.csv").exists()) == (share > 0.1, share <= 0.1)
        assert ("check failed: unknown.region > 0.1" in ran.err) == (share > 0.1)
        assert ("warning: region: 600 of 600 rows" in ran.err) == (share == 1)
        assert run_cli(*words, "--fail-if", "unknown > 0.99", "--fail-if", "bad > 0").code == (
            share == 1
        )
        ran = run_cli(
            "monitor", "model.json", f"{name}.parquet", "--prometheus", "m.prom", "--json"
        )
        assert json.loads(ran.text)["unknown_segments"] == {"region": share, "age": 0.0}
        text = (folder / "m.prom").read_text()
        assert f',column="region"}} {share!r}' in text
    ran = run_cli(
        "apply", "model.json", "new.parquet", "-o", "x.csv", "--fail-if", "unknown.town > 0"
    )
    assert (ran.code, "no metric 'town'" in ran.err) == (2, True)


@pytest.mark.parametrize("kind", ["csv", "parquet", "floats"])
def test_numbers_may_be_categories(run_cli, kind):
    table = make_rows(900, 0).with_columns(zip=pl.col("region").rank("dense").cast(pl.Int64) + 100)
    if kind == "floats":
        table = table.with_columns(pl.col("zip").cast(pl.Float64))
    path = "data.csv" if kind == "csv" else "data.parquet"
    (table.write_csv if kind == "csv" else table.write_parquet)(path)
    words = ["--segments", "zip", "--categorical", "zip"]
    ran = run_cli("fit", path, *words, "-c", "temperature", "-o", "model.json")
    assert ran.code == 0, ran.err
    calibrator = isoroc.load("model.json")
    assert calibrator.categorical == ["zip"]
    assert set(calibrator.map_.levels[0]) <= {"101", "102", "103"}
    Q = calibrator.predict_proba(table["p"], table.select(pl.col("zip").cast(pl.Int64)))
    ran = run_cli("apply", "model.json", path, "-o", "out.parquet")
    found = pl.read_parquet("out.parquet")["p_cal"].cast(pl.Float64).to_numpy()
    np.testing.assert_array_equal(found, Q[:, 1])
    ran = run_cli("evaluate", path, *words, "--json")
    assert set(json.loads(ran.text)["segments"]["before"]["segment"]) == {"101", "102", "103"}
    ran = run_cli("evaluate", path, "--segments", "age", "--categorical", "zip")
    assert (ran.code, "--categorical: no column 'zip'" in ran.err) == (2, True)


def test_the_verdict_is_that_of_the_whole_model(run_cli):
    """Right over all rows, wrong in each of two segments: the common map has nothing to gain."""
    rng = np.random.default_rng(0)
    n = 4000
    z = rng.normal(size=n)
    north = rng.random(n) < 0.5
    y = rng.random(n) < 1 / (1 + np.exp(-z - np.where(north, 1.5, -1.5)))
    p = 1 / (1 + np.exp(-z))
    data = {"p": p, "region": np.where(north, "north", "south"), "y": y.astype(int)}
    table = pl.DataFrame(data)
    table[: n // 2].write_csv("data.csv")
    table[n // 2 :].write_csv("new.csv")
    words = ["--segments", "region", "-c", "temperature", "-o", "model.json", "--json"]
    strict = ["--fail-if", "not should_calibrate", "--fail-if", "gain.low <= 0.05"]
    ran = run_cli("fit", "data.csv", *words, *strict)
    assert ran.code == 0, ran.err
    found = json.loads(ran.text)
    assert found["verdict"]["decision"] == "calibrate"
    assert found["notes"][0].startswith(found["verdict"]["text"])
    new = json.loads(run_cli("evaluate", "new.csv", "-m", "model.json", "--json").text)
    change = new["measures"]["log_loss"]["change"]
    assert change["low"] < -found["gain"]["value"] < change["high"]
    assert found["unseen"]["log_loss"] > found["after"]["log_loss"]
    assert "fitted to these very rows" in run_cli("evaluate", "data.csv", "-m", "model.json").text
