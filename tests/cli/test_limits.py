"""Input without end or measure ends in one line and exit code 2, soon and in little memory."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cli_tables import make_forecasts

pytestmark = pytest.mark.usefixtures("model")
APPLY = ("apply", "model.json")


def run_in_shell(line):
    command = line.replace("isoroc", f"{sys.executable} -m isoroc")
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_closed_streams():
    ran = run_in_shell("isoroc inspect model.json >&-")
    assert (ran.returncode, ran.stderr) == (2, "isoroc: error: standard output is closed.\n")
    ran = run_in_shell("isoroc apply model.json data.csv -o - >&-")
    assert (ran.returncode, ran.stderr) == (2, "isoroc: error: standard output is closed.\n")
    ran = run_in_shell("isoroc apply model.json - -o out.csv <&-")
    assert (ran.returncode, ran.stderr) == (
        2,
        "isoroc: error: standard input is closed; name a file.\n",
    )
    ran = run_in_shell("isoroc apply model.json data.csv -o out.csv <&- >&- 2>&-")
    assert ran.returncode == 0
    assert pl.read_csv("out.csv").height == 300


def test_devices_that_never_end(run_cli):
    ran = run_cli(*APPLY, "/dev/zero", "-o", "out.csv")
    assert (ran.code, ran.err) == (
        2,
        "isoroc: error: /dev/zero: is a device; name a file or a pipe.\n",
    )


@pytest.mark.parametrize("end", ["csv", "csv.gz", "ndjson"])
def test_lines_of_any_length(run_cli, end):
    text = Path("data.csv").read_bytes()
    open_file = gzip.open if end == "csv.gz" else open
    with open_file(f"x.{end}", "wb") as file:
        file.write(text)
        for _ in range(80):
            file.write(bytes(2**20))
    ran = run_cli(*APPLY, f"x.{end}", "-o", "out.csv")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert f"x.{end}: a line is longer than 33,554,432 bytes" in ran.err


def test_quoted_fields_of_any_length(run_cli):
    with Path("x.csv").open("w") as file:
        make_forecasts(3).with_columns(note=pl.lit("short")).write_csv(file)
        file.write('1,0.2,0.3,0.5,cat,"')
        file.writelines(("x" * 1023 + "\n") * 1024 for _ in range(40))
        file.write('"\n')
    ran = run_cli(*APPLY, "x.csv", "-o", "out.csv")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "x.csv: field larger than field limit" in ran.err


@pytest.mark.parametrize("depth", [600, 20_000])
@pytest.mark.parametrize("same", [False, True])
def test_deeply_nested_values(run_cli, depth, same):
    row = '{"p_bird": 0.2, "p_cat": 0.3, "p_dog": 0.5, "x": '
    deep = "[" * depth + "]" * depth
    Path("x.ndjson").write_text(f"{row}{deep}}}\n{row}{deep if same else 1}}}\n")
    ran = run_cli(*APPLY, "x.ndjson", "-o", "out.parquet")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert ran.err.endswith("; correct the file.\n")


def test_states_and_counts_of_any_size(run_cli, monkeypatch):
    with Path("state.json").open("wb") as file:
        file.write(json.dumps({"format": "isoroc-monitor"}).encode())
        file.truncate(2**26)
    ran = run_cli("monitor", "model.json", "data.csv", "--state", "state.json")
    assert (ran.code, "larger than 33,554,432 bytes" in ran.err) == (2, True)
    assert run_cli("count", "data.csv", "-o", "x.counts").code == 0
    monkeypatch.setattr("isoroc._counts.files.MOST_ROWS_OF_COUNTS", 100)
    ran = run_cli("fit", "--counts", "x.counts", "-o", "m.json")
    assert (ran.code, "rows, but counts have at most 100" in ran.err) == (2, True)


@pytest.mark.parametrize("end", ["csv", "ndjson", "parquet", "ipc"])
def test_names_of_files_that_look_like_globs(run_cli, end):
    name = f"we[i]rd*.{end}"
    getattr(make_forecasts(20), f"write_{end}")(name)
    ran = run_cli(*APPLY, name, "-o", "out.parquet")
    assert ran.code == 0, ran.err
    assert pl.read_parquet("out.parquet").height == 20
    assert run_cli("count", name, "-o", "c[o]unt*.parquet").code == 0
    words = ("fit", "--counts", "c[o]unt*.parquet", "-c", "temperature", "-o", "m.json")
    assert run_cli(*words).code == 0


@pytest.mark.parametrize("end", ["csv", "parquet", "ndjson"])
@pytest.mark.parametrize("where", ["1 = 0", "id < '0'"])
def test_a_condition_that_no_row_satisfies(run_cli, end, where):
    getattr(make_forecasts(20), f"write_{end}")(f"x.{end}")
    for words in (["fit", f"x.{end}", "-o", "m.json"], ["evaluate", f"x.{end}"]):
        ran = run_cli(*words, "--where", where)
        assert (ran.code, f"x.{end}: no rows with {where}" in ran.err) == (2, True)
    assert run_cli(*APPLY, f"x.{end}", "-o", "out.csv", "--where", where).code == 0
    assert Path("out.csv").read_text().count("\n") == 1


@pytest.mark.parametrize("bound", ["1e999", "-1e999", "2 * 1e999"])
def test_conditions_that_can_never_hold(run_cli, bound):
    words = ["evaluate", "data.csv", "--fail-if"]
    ran = run_cli(*words, f"log_loss > {bound}")
    assert (ran.code, "not a condition" in ran.err) == (2, True)


def test_arithmetic_that_overflows_is_not_defined(run_cli):
    ran = run_cli("evaluate", "data.csv", "--fail-if", "rows > 1e308 * 10")
    assert (ran.code, "not defined" in ran.err) == (1, True)
