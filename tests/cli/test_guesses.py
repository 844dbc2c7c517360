"""The command as people guess it, and what programs read of it."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cli_tables import listing


def test_the_label_may_be_y(table, run_cli):
    table.rename({"y": "animal"}).write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-y", "animal", "-c", "temperature", "-o", "m.json").code == 0


def test_an_unknown_command_imports_no_command():
    code = "import sys; from isoroc._cli import main; main(['appy']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "appy: not a command; did you mean 'apply'?" in ran.stderr
    assert not {"polars", "isoroc._cli.models", "sklearn", "scipy"} & set(ran.stdout.split())


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("words", "target"),
    [(["apply", "model.json", "data.csv"], "x.xlsx"), (["report", "data.csv"], "r.pdf")],
)
def test_the_ending_says_what_is_written(run_cli, words, target):
    ran = run_cli(*words, "-o", target)
    assert (ran.code, f"{target}: " in ran.err, "expected" in ran.err) == (2, True, True)
    assert target not in listing()


@pytest.mark.usefixtures("model")
def test_formats_and_names_without_an_ending(run_cli):
    assert run_cli("apply", "model.json", "data.csv", "-o", "out").code == 0
    assert Path("out").read_text().startswith("id,")
    words = ["-o", "out.xyz", "--output-format", "parquet"]
    assert run_cli("apply", "model.json", "data.csv", *words).code == 0
    assert pl.read_parquet("out.xyz").height == 300


@pytest.mark.usefixtures("model")
def test_the_number_of_rows_in_conditions(run_cli):
    words = ["evaluate", "data.csv", "-m", "model.json", "--fail-if"]
    ran = run_cli(*words, "rows < 301")
    assert (ran.code, "rows < 301 (300 < 301)" in ran.err) == (1, True)
    assert run_cli(*words, "rows < 300").code == 0


def spaced(value):
    """Keys with spaces."""
    if isinstance(value, list):
        return [key for entry in value for key in spaced(entry)]
    if not isinstance(value, dict):
        return []
    return [key for key in value if " " in key] + spaced(list(value.values()))


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    "words",
    [
        ["fit", "data.csv", "-o", "new.json"],
        ["evaluate", "data.csv", "-m", "model.json"],
        ["monitor", "model.json", "data.csv"],
        ["inspect", "new.json"],
        ["report", "data.csv"],
    ],
    ids=lambda words: words[0],
)
def test_json_has_a_version_and_the_documented_keys(run_cli, words):
    if "new.json" in words and words[0] != "fit":
        assert run_cli("fit", "data.csv", "-o", "new.json").code == 0
    found = json.loads(run_cli(*words, "--json").out)
    assert isinstance(found["version"], int)
    assert spaced(found) == []
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    if words[0] != "report":
        assert found["format"] == f"isoroc-{words[0]}"
        line = next(line for line in page.splitlines() if line.startswith(f"| `{words[0]} --json`"))
        assert [key for key in found if f"`{key}`" not in line] == ["format", "version"]


@pytest.mark.usefixtures("model")
def test_options_have_one_spelling_in_messages(run_cli):
    ran = run_cli("fit", "data.csv", "-o", "m.json", "--zzz", "1")
    assert "max-cells" in ran.err
    assert "max_cells" not in ran.err
