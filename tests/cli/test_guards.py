"""``isoroc fit --fail-if``, ``--compare`` and ``--json``."""

import json
from pathlib import Path

import pytest

import isoroc
from cli_tables import listing, make_forecasts

pytestmark = pytest.mark.usefixtures("folder")


def test_a_model_that_fails_a_condition_is_not_written(run_cli):
    make_forecasts().write_csv("x.csv")
    words = ["fit", "x.csv", "-o", "m.json", "-c", "temperature", "--fail-if"]
    assert run_cli(*words, "after.log_loss > before.log_loss", "--fail-if", "rows < 300").code == 0
    old = Path("m.json").read_bytes()
    ran = run_cli(*words, "class_rows < 1000")
    assert ran.code == 1
    assert "check failed: class_rows < 1000 (" in ran.err
    assert "m.json was not written" in ran.err
    assert Path("m.json").read_bytes() == old
    assert listing() == ["m.json", "x.csv"]
    ran = run_cli(*words, "gain.low <= 0")
    assert (ran.code, "no metric 'gain'" in ran.err) == (2, True)


def test_a_nightly_job_promotes_only_what_is_better(run_cli):
    make_forecasts(600).write_csv("x.csv")
    words = ["fit", "x.csv", "-c", "auto", "--cv", "2"]
    assert run_cli(*words, "-o", "old.json", "--fail-if", "gain.low <= 0").code == 0
    worse = ["--compare", "old.json", "--fail-if", "unseen.log_loss > old.log_loss - 0.1"]
    assert run_cli(*words, "-o", "new.json", *worse).code == 1
    assert not Path("new.json").exists()
    better = ["--compare", "old.json", "--fail-if", "unseen.log_loss > old.log_loss + 0.1"]
    ran = run_cli(*words, "-o", "new.json", *better, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    assert found["old"] == found["after"]  # the same rows, the same seed
    assert found["gain"]["low"] < found["gain"]["value"] < found["gain"]["high"]
    assert found["verdict"]["should_calibrate"]
    assert found["verdict"]["text"].startswith("calibrate: log loss")
    assert found["notes"][0].startswith(found["verdict"]["text"])
    assert found["unseen"]["log_loss"] == found["verdict"]["after"]
    assert found["before"]["log_loss"] == pytest.approx(found["verdict"]["before"])
    assert found["checksum"] == json.loads(Path("new.json").read_bytes())["checksum"]
    assert (found["rows"], found["files"], found["failed"]) == (600, ["x.csv"], [])
    assert found["versions"]["isoroc"] == isoroc.__version__
    assert ran.err.count(" before, ") == 1  # one loss before calibration, not two


def test_a_verdict_is_a_condition(run_cli):
    make_forecasts(600).write_csv("x.csv")
    words = ["fit", "x.csv", "-c", "auto", "--cv", "2", "-o", "m.json", "--fail-if"]
    assert run_cli(*words, "not should_calibrate").code == 0
    Path("m.json").unlink()
    ran = run_cli(*words, "should_calibrate")
    assert (ran.code, "check failed: should_calibrate; m.json was not" in ran.err) == (1, True)
    assert not Path("m.json").exists()
    ran = run_cli(*words, "not gain")
    assert (ran.code, "--fail-if gain: it is a number; compare it" in ran.err) == (2, True)
    assert run_cli("evaluate", "x.csv", "--fail-if", "not should_calibrate").code == 0
    assert run_cli("evaluate", "x.csv", "--fail-if", "should_calibrate").code == 1


def test_models_that_cannot_be_compared(run_cli):
    make_forecasts().write_csv("x.csv")
    make_forecasts(classes=("a", "b", "c")).write_csv("y.csv")
    assert run_cli("fit", "y.csv", "-o", "old.json", "-c", "irp").code == 0
    ran = run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp", "--compare", "old.json")
    assert (ran.code, "--compare old.json: it was fitted to other classes" in ran.err) == (2, True)
    ran = run_cli("fit", "x.csv", "-o", "-", "-c", "irp", "--json")
    assert (ran.code, "cannot both be standard output" in ran.err) == (2, True)


def test_few_rows_are_too_few(run_cli):
    Path("x.csv").write_text("p_0,p_1,y\n.5,.5,0\n.2,.8,1\n")
    ran = run_cli("fit", "x.csv", "-o", "m.json", "-c", "temperature")
    assert (ran.code, "warning: 2 rows are too few to calibrate" in ran.err) == (0, True)


def test_the_verdict_on_many_rows_says_what_it_is_based_on(run_cli):
    make_forecasts(400).write_csv("x.csv")
    words = ["fit", "x.csv", "-o", "m.json", "-c", "auto", "--cv", "2"]
    assert "based on all rows, in cells" in run_cli(*words, "--max-cells", "100").err
    assert "in cells" not in run_cli(*words).err
