"""Options in ``isoroc.toml``."""

import json
from pathlib import Path

import polars as pl
import pytest

from cli_tables import make_forecasts

CONFIG = """
[columns]
label = "animal"
probs = ["p_bird", "p_cat,p_dog"]
weight = "w"

[fit]
calibrator = "irp"
max_bins = 3

[evaluate]
resamples = 0
json = true
fail-if = ["log_loss > 9", "vus < 0.1"]

[apply]
names = "a,b,c"
"""


@pytest.fixture
def config(folder):
    make_forecasts().rename({"y": "animal"}).write_csv("x.csv")
    (folder / "isoroc.toml").write_text(CONFIG)
    return folder / "isoroc.toml"


@pytest.mark.usefixtures("config")
def test_options_of_the_file_hold_for_all_commands(run_cli):
    assert run_cli("fit", "x.csv", "-o", "m.json").code == 0
    model = json.loads(Path("m.json").read_bytes())
    assert model["model"]["kind"] == "IRPCalibrator"
    assert model["model"]["parameters"]["max_bins"] == 3
    assert model["summary"]["weight_column"] == "w"
    ran = run_cli("evaluate", "x.csv", "-m", "m.json")
    assert (ran.code, json.loads(ran.out)["failed"]) == (0, [])
    assert run_cli("apply", "m.json", "x.csv", "-o", "out.csv").code == 0
    assert pl.read_csv("out.csv").columns[-3:] == ["a", "b", "c"]
    assert run_cli("inspect", "m.json").code == 0


@pytest.mark.usefixtures("config")
def test_the_command_line_comes_first(run_cli):
    words = ["fit", "x.csv", "-o", "m.json", "-c", "identity", "--max-bins", "4"]
    assert "neither an option of fit nor a parameter of identity" in run_cli(*words).err
    assert run_cli("fit", "x.csv", "-o", "m.json", "--max-bins=2", "-w", "none").code == 0
    model = json.loads(Path("m.json").read_bytes())
    assert model["model"]["parameters"]["max_bins"] == 2
    assert model["summary"]["weight_column"] is None


def test_names_of_options_may_have_underscores(config, run_cli):
    config.write_text(
        '[columns]\nby_position = true\nlabel = "animal"\nprobs = "p_dog,p_cat,p_bird"'
    )
    ran = run_cli("fit", "x.csv", "-o", "m.json", "-c", "identity")
    assert (ran.code, "p_dog is bird, p_cat is cat, p_bird is dog" in ran.err) == (0, True), ran.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[fitt]\n", "fitt is not a section; did you mean 'fit'?"),
        ("[columns]\nlable = 'y'", "[columns] lable: did you mean 'label'?"),
        ("label = ", "isoroc.toml: "),
    ],
)
def test_mistakes_in_the_file_are_errors(config, run_cli, text, message):
    config.write_text(text)
    ran = run_cli("fit", "x.csv", "-o", "m.json")
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert run_cli("fit", "--help").code == 0
    ran = run_cli("fit", "x.csv", "-o", "m.json", "--config", "no.toml")
    assert (ran.code, "no.toml: No such file" in ran.err) == (2, True)
