"""``isoroc monitor``: accumulated evidence, advice and exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

import isoroc
from cli_tables import listing, make_forecasts
from isoroc import CalibrationMonitor
from isoroc._cli.prometheus import write_metrics

COLUMNS = ["p_bird", "p_cat", "p_dog"]


@pytest.fixture
def fitted(run_cli):
    make_forecasts(2000).write_csv("data.csv")
    assert run_cli("fit", "data.csv", "-c", "temperature", "-o", "model.json").code == 0


@pytest.mark.usefixtures("fitted")
def test_evidence_accumulates(run_cli):
    expected = None
    for day in range(3):
        table = make_forecasts(300, seed=day + 1)
        table.write_parquet("day.parquet")
        ran = run_cli("monitor", "model.json", "day.parquet", "--state", "s.json", "--json")
        assert ran.code == 0
        calibrator = isoroc.load("model.json")
        expected = expected or CalibrationMonitor(calibrator.classes_, tolerance=6 / 2000)
        expected.update(table["y"], calibrator.predict_proba(table.select(COLUMNS).to_numpy()))
    assert expected
    found = json.loads(ran.text)
    assert found["advice"] == "nothing"
    assert found["batch"]["rows"] == 300
    assert found["total"]["rows"] == 900
    assert found["total"]["evidence"] == pytest.approx(expected.evidence_)
    assert found["total"]["shares"]["class"] == ["bird", "cat", "dog"]


@pytest.mark.usefixtures("fitted")
def test_alarms_have_an_exit_code(run_cli):
    table = make_forecasts(3000, seed=1)
    # The model has become certain and wrong.
    P = table.select(COLUMNS).to_numpy() ** 4
    P /= P.sum(axis=1, keepdims=True)
    table.with_columns(**dict(zip(COLUMNS, P.T, strict=True))).write_csv("new.csv")
    ran = run_cli("monitor", "model.json", "new.csv", "--state", "s.json")
    assert ran.code == 1
    assert "Alarm, first raised after 3,000 rows." in ran.text
    assert "fit again on recent rows" in ran.text
    few_birds = table.filter((pl.col("y") != "bird") | (pl.int_range(pl.len()) % 10 == 0))
    few_birds.write_csv("few.csv")
    ran = run_cli("monitor", "model.json", "few.csv")
    assert ran.code == 1
    assert "Class shares have changed" in ran.text


@pytest.mark.usefixtures("fitted")
def test_bad_options(run_cli):
    def error_of(*words):
        ran = run_cli("monitor", "model.json", "data.csv", *words)
        assert ran.code == 2
        return ran.err

    assert "--weight: monitoring counts rows" in error_of("-w", "w")
    assert "--tolerance: is -1" in error_of("--tolerance", "-1")
    Path("empty.json").touch()
    words = ["monitor", "model.json", "data.csv", "--state", "empty.json"]
    assert run_cli(*words).code == 0
    assert CalibrationMonitor.load("empty.json").totals.rows == 2000
    Path("bad.json").write_text("{}")
    assert "holds other data, not the state of a monitor" in error_of("--state", "bad.json")
    Path("bad.json").write_text('{"format": "isoroc-monitor"}')
    assert run_cli("monitor", "model.json", "data.csv", "--state", "bad.json").code == 2


@pytest.mark.usefixtures("fitted")
def test_the_same_rows_count_once(run_cli):
    """Repeated files would raise false alarms in 11 % (twice) and 25 % (three times) of streams."""
    table = make_forecasts(300, seed=1)
    table.write_csv("a.csv")
    table.sample(300, shuffle=True, seed=0).write_parquet("a.parquet")
    words = ["--state", "s.json", "--json"]
    first = run_cli("monitor", "model.json", "a.csv", *words)
    state = Path("s.json").read_bytes()
    for name in ("a.csv", "a.parquet"):
        again = run_cli("monitor", "model.json", name, *words)
        assert again.code == first.code == 0
        assert f"{name}: skipped, counted on 20" in again.err
        found = json.loads(again.text)
        assert found["counted_before"].startswith("20")
        assert found["total"] == json.loads(first.text)["total"]
        assert found["batch"]["rows"] == 300
        assert Path("s.json").read_bytes() == state


@pytest.mark.usefixtures("fitted")
def test_a_state_begins_anew_with_another_model(run_cli):
    make_forecasts(100, seed=1).write_csv("a.csv")
    assert run_cli("monitor", "model.json", "a.csv", "--state", "s.json").code == 0
    assert run_cli("fit", "data.csv", "-c", "irp", "-o", "other.json").code == 0
    ran = run_cli("monitor", "other.json", "a.csv", "--state", "s.json", "--json")
    assert ran.code == 0
    assert "s.json: started again, because its evidence is about another model" in ran.err
    assert json.loads(ran.text)["total"]["rows"] == 100
    assert CalibrationMonitor.load("s.json").model == isoroc.load("other.json").checksum


@pytest.mark.slow
@pytest.mark.usefixtures("fitted")
def test_monitors_at_the_same_time_count_all_rows():
    running = []
    for day in range(3):
        make_forecasts(100, seed=day + 1).write_csv(f"{day}.csv")
        words = ["monitor", "model.json", f"{day}.csv", "--state", "s.json"]
        running.append(subprocess.Popen([sys.executable, "-m", "isoroc", *words]))
    assert [process.wait() for process in running] == [0] * 3
    assert CalibrationMonitor.load("s.json").totals.rows == 300
    assert not [name for name in listing() if "lock" in name]


@pytest.mark.usefixtures("fitted")
def test_rows_without_labels_have_expectations(run_cli):
    table = make_forecasts(300, seed=1).drop("y")
    table.write_csv("new.csv")
    ran = run_cli("monitor", "model.json", "new.csv", "--unlabelled", "--json", "--state", "s.json")
    assert ran.code == 0, ran.err
    assert not Path("s.json").exists()
    found = json.loads(ran.text)
    calibrator = isoroc.load("model.json")
    Q = calibrator.predict_proba(table.select(COLUMNS).to_numpy())
    for metric in ("accuracy", "log_loss", "f1", "auc"):
        expected = isoroc.metrics.expected(Q, metric, calibration=2000)
        assert found["expected"][metric]["value"] == pytest.approx(expected.value)
        assert found["expected"][metric]["high"] == pytest.approx(expected.high)
    assert found["expected"]["outside"] < 0.01
    shown = run_cli("monitor", "model.json", "new.csv", "--unlabelled").text
    assert "300 rows without labels" in shown
    assert "log loss" in shown


@pytest.mark.usefixtures("fitted")
def test_one_line_compares_what_was_expected_with_labels(run_cli):
    table = make_forecasts(300, seed=1)
    table.write_csv("new.csv")
    ran = run_cli("monitor", "model.json", "new.csv")
    Q = isoroc.load("model.json").predict_proba(table.select(COLUMNS).to_numpy())
    decided = np.array(["bird", "cat", "dog"])[Q.argmax(axis=1)]
    right = np.mean(decided == table["y"].to_numpy())
    (line,) = [line for line in ran.text.splitlines() if line.startswith("Expected accuracy")]
    assert line.endswith(f"observed {right:.4f}.")
    assert f"Expected accuracy {Q.max(axis=1).mean():.4f} (" in line


def test_forecasts_unlike_those_of_the_fit_are_warned_of(run_cli):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.6, 1000)
    pl.DataFrame({"p": p, "y": rng.random(1000) < p}).write_csv("data.csv")
    fit = ("fit", "data.csv", "--probs", "p", "--label", "y", "-c", "temperature")
    assert run_cli(*fit, "-o", "model.json").code == 0
    for low, warns in ((0.35, False), (0.9, True)):
        pl.DataFrame({"p": rng.uniform(low, low + 0.1, 200)}).write_csv("new.csv")
        ran = run_cli("monitor", "model.json", "new.csv", "--unlabelled")
        assert ran.code == 0, ran.err
        assert ("hardly any calibration row had" in ran.err) == warns


@pytest.mark.usefixtures("fitted")
@pytest.mark.parametrize("words", [[], ["--unlabelled"]])
def test_weights_are_refused(run_cli, words):
    ran = run_cli("monitor", "model.json", "data.csv", "--weight", "w", *words)
    assert ran.code == 2
    assert "--weight: monitoring counts rows" in ran.err


@pytest.mark.usefixtures("fitted")
def test_the_state_can_be_written_for_prometheus(run_cli):
    make_forecasts(300, seed=1).write_csv("day.csv")
    words = ["monitor", "model.json", "day.csv", "--state", "s.json"]
    ran = run_cli(*words, "--prometheus", "isoroc.prom", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.text)
    families = {f.name: f for f in text_string_to_metric_families(Path("isoroc.prom").read_text())}
    assert {family.type for family in families.values()} == {"gauge"}
    assert [s.value for s in families["isoroc_monitor_alarm"].samples] == [0]
    rows = {s.labels["rows"]: s.value for s in families["isoroc_monitor_rows"].samples}
    assert rows == {"batch": 300, "total": 300}
    losses = {s.labels["rows"]: s.value for s in families["isoroc_monitor_log_loss"].samples}
    assert losses["batch"] == pytest.approx(found["batch"]["log_loss"])
    shares = {
        s.labels["class"]: s.value
        for s in families["isoroc_monitor_share_observed"].samples
        if s.labels["rows"] == "batch"
    }
    observed = found["batch"]["shares"]
    assert shares == pytest.approx(dict(zip(observed["class"], observed["observed"], strict=True)))


def test_labels_of_prometheus_are_escaped(tmp_path):
    monitor = CalibrationMonitor(['a "big" cat', "back\\slash", "two\nlines"])
    batch = monitor.update(monitor.classes_[[0, 1, 2]], np.full((3, 3), 1 / 3))
    path = tmp_path / "isoroc.prom"
    write_metrics(str(path), monitor, batch, {'a "small" town': 0.5})
    families = text_string_to_metric_families(path.read_text())
    samples = [sample for family in families for sample in family.samples]
    assert {s.labels["class"] for s in samples if "class" in s.labels} == set(monitor.classes_)
    assert {s.labels["column"]: s.value for s in samples if "column" in s.labels} == {
        'a "small" town': 0.5
    }


def test_metrics_do_not_replace_other_files(run_cli, fitted):  # noqa: ARG001
    ran = run_cli("monitor", "model.json", "data.csv", "--prometheus", "model.json")
    assert ran.code == 2
    assert "model.json" in ran.err
