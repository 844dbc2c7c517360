"""Groups on the command line: ``fit --group``, ``evaluate --by``, and models with groups."""

import json

import numpy as np
import polars as pl
import pytest

import isoroc
from isoroc.metrics import calibration_summary

NAMES = np.array(["north", "south", "o'hara"])


def make_groups(n, seed, *, numbers=False):
    """Probabilities that are right except in the south."""
    rng = np.random.default_rng(seed)
    p, code = rng.random(n), rng.integers(3, size=n)
    y = rng.random(n) < np.where(code == 1, p**3, p)
    region = code if numbers else NAMES[code]
    return pl.DataFrame({"p": p, "region": region, "y": np.where(y, "yes", "no")})


@pytest.fixture
def grouped(run_cli):
    make_groups(1500, 0).write_csv("data.csv")
    words = ["--group", "region", "-c", "isotonic", "-o", "model.json"]
    ran = run_cli("fit", "data.csv", *words)
    assert ran.code == 0
    assert "of 3 groups have maps of their own" in ran.err
    make_groups(300, 1).write_parquet("new.parquet")


@pytest.mark.usefixtures("grouped")
def test_models_with_groups(run_cli):
    calibrator, new = isoroc.load("model.json"), pl.read_parquet("new.parquet")
    assert "south" in calibrator.groups_
    expected = calibrator.predict_proba(new["p"], new["region"])
    assert run_cli("apply", "model.json", "new.parquet", "-o", "out.parquet").code == 0
    found = pl.read_parquet("out.parquet")["p_cal"].to_numpy()
    np.testing.assert_array_equal(found, expected[:, 1])
    words = ["--adapt-prior", "--names", "no,yes", "-o", "out.csv"]
    assert run_cli("apply", "model.json", "new.parquet", *words).code == 0
    ran = run_cli("monitor", "model.json", "new.parquet", "--json")
    loss = -np.log(expected[np.arange(300), (new["y"] == "yes").to_numpy().astype(int)]).mean()
    assert json.loads(ran.text)["batch"]["log_loss"] == pytest.approx(loss)
    ran = run_cli("export", "model.json", "--sql", "duckdb")
    assert "CAST(\"region\" AS TEXT) = 'o''hara'" in ran.text or "o'hara" not in calibrator.groups_
    assert run_cli("export", "model.json", "--onnx", "m.onnx").code == 0
    ran = run_cli("report", "new.parquet", "-m", "model.json", "--resamples", "0", "--json")
    assert "calibrator.predict_proba(P, groups)" in ran.text


@pytest.mark.usefixtures("grouped")
def test_metrics_by_group(run_cli):
    words = ["evaluate", "new.parquet", "--by", "region", "--resamples", "0"]
    ran = run_cli(*words)
    assert "Not calibrated in 1 of 3 groups: south." in ran.text
    ran = run_cli(*words, "-m", "model.json")
    assert "No group shows miscalibration (corrected for 3 tests)." in ran.text
    found = json.loads(run_cli(*words, "-m", "model.json", "--json").text)
    new, calibrator = pl.read_parquet("new.parquet"), isoroc.load("model.json")
    assert list(found["groups"]) == sorted(NAMES)
    south = new.filter(region="south")
    Q = calibrator.predict_proba(south["p"], south["region"])
    loss = isoroc.metrics.log_loss(south["y"], Q, labels=["no", "yes"])
    entry = found["groups"]["south"]
    assert entry["rows"] == len(south)
    assert entry["measures"]["log_loss"]["after"]["value"] == pytest.approx(loss)
    where = run_cli(*words, "--where", "region = 'south'", "--json")
    assert list(json.loads(where.text)["groups"]) == ["south"]


def test_numbers_are_the_same_groups_in_all_formats(run_cli):
    make_groups(900, 0, numbers=True).write_csv("data.csv")
    assert (
        run_cli("fit", "data.csv", "--group", "region", "-c", "isotonic", "-o", "m.json").code == 0
    )
    new = make_groups(50, 1, numbers=True)
    new.write_csv("a.csv")
    new.write_parquet("b.parquet")
    new.write_ndjson("c.ndjson")
    found = []
    for file in ("a.csv", "b.parquet", "c.ndjson"):
        assert run_cli("apply", "m.json", file, "-o", "out.parquet").code == 0
        found.append(pl.read_parquet("out.parquet")["p_cal"].to_list())
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("grouped")
def test_bad_groups(run_cli):
    def error_of(*words):
        ran = run_cli(*words)
        assert ran.code == 2
        return ran.err

    fit = ["fit", "data.csv", "-o", "other.json"]
    assert "--group: no column 'regoin'; did you mean 'region'" in error_of(
        *fit, "--group", "regoin"
    )
    assert "--min-rows" in error_of(*fit, "--min-rows", "5")
    assert "counts have no groups" in error_of(*fit, "--counts", "--group", "region")
    new = pl.read_parquet("new.parquet")
    new.drop("region").write_csv("none.csv")
    message = error_of("apply", "model.json", "none.csv", "-o", "out.csv")
    assert "the model's column of groups: no column 'region'" in message
    holes = new.with_columns(region=pl.when(pl.int_range(pl.len()) != 7).then("region"))
    holes.write_csv("holes.csv")
    for words in (
        ["apply", "model.json", "holes.csv", "-o", "out.csv"],
        ["evaluate", "holes.csv", "--by", "region", "--resamples", "0"],
        ["fit", "holes.csv", "--group", "region", "-o", "other.json"],
    ):
        expected = (
            "holes.csv: row 7, column 'region' is missing; give such rows a group of their own"
        )
        assert expected in error_of(*words)
    isoroc.load("model.json").save("unnamed.json", summary={"group_column": None})
    message = error_of("apply", "unnamed.json", "new.parquet", "-o", "out.csv")
    assert "does not name their column" in message


@pytest.mark.usefixtures("grouped")
def test_report_by_group(run_cli):
    words = ["--by", "region", "--resamples", "0", "--json"]
    found = json.loads(run_cli("report", "new.parquet", "-m", "model.json", *words).text)["groups"]
    new = pl.read_parquet("new.parquet")
    counts = dict(new["region"].value_counts().iter_rows())
    assert {row["name"]: row["rows"] for row in found["rows"]} == counts
    south = new.filter(pl.col("region") == "south")
    p, y = south["p"].to_numpy(), (south["y"] == "yes").to_numpy()
    slope = next(row for row in found["rows"] if row["name"] == "south")["slope"]["before"]
    assert slope["value"] == pytest.approx(calibration_summary(y, p)["slope"])
    assert run_cli("count", "new.parquet", "-o", "counts.parquet").code == 0
    ran = run_cli("report", "--counts", "counts.parquet", *words)
    assert ran.code == 2
    assert "--by and --clusters need rows" in ran.err
