"""The command in processes of its own."""

import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cli_tables import make_forecasts
from terminal import run_on_terminal

COMMAND = [sys.executable, "-m", "isoroc"]


def run(*words, **options):
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False, **options)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_fit_evaluate_apply_export():
    make_forecasts(500).write_csv("march.csv")
    make_forecasts(400, seed=1).write_parquet("april.parquet")
    fitted = run("fit", "march.csv", "--label", "y", "-c", "irp", "-o", "model.json")
    assert (fitted.returncode, fitted.stdout) == (0, b"")
    assert b"\x1b" not in fitted.stderr  # no progress bar, since this is not a terminal
    sample = run("evaluate", "april.parquet", "-m", "model.json",
                 "--fail-if", "log_loss>0.1")  # fmt: skip
    assert sample.returncode == 1
    assert b"check failed: log_loss>0.1" in sample.stderr
    data = Path("april.parquet").read_bytes()
    applied = run("apply", "model.json", "-", "-o", "-", "--output-format", "csv", input=data)
    assert applied.stdout.startswith(b"id,p_bird")
    assert pl.read_csv(applied.stdout).height == 400


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_progress_on_a_terminal():
    make_forecasts(200).write_parquet("x.parquet")
    ran = run_on_terminal([*COMMAND, "fit", "x.parquet", "-c", "irp", "-o", "model.json"])
    assert (ran.code, ran.out) == (0, b"")
    assert re.search(r"reading .*200/200 +rows", ran.text)
    assert "model.json: irp fitted to 200 rows, 3 classes" in ran.text
    assert b"\x1b[" in ran.screen


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_an_error_is_the_last_thing_on_a_terminal():
    make_forecasts(200).with_columns(p_cat=pl.lit(7.0)).write_parquet("x.parquet")
    ran = run_on_terminal([*COMMAND, "fit", "x.parquet", "-c", "irp", "-o", "model.json"])
    assert ran.code == 2
    # After the progress bar has been erased: nothing moves the cursor once the message is written.
    assert b"\x1b[2K" in ran.screen
    assert ran.screen.rpartition(b"\x1b[2K")[2].count(b"isoroc: ") == 1


@pytest.mark.usefixtures("folder")
def test_a_closed_pipe_ends_the_command_quietly(run_cli):
    make_forecasts(30_000).write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-c", "irp", "--max-bins", "3", "-o", "model.json").code == 0
    words = [*COMMAND, "apply", "model.json", "x.csv", "-o", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout
        assert ran.stderr
        assert ran.stdout.readline().startswith(b"id,")
        ran.stdout.close()
        assert ran.stderr.read() == b""
        assert ran.wait() == 141


def test_help_imports_no_heavy_packages():
    code = (
        "import sys; from isoroc._cli import main; main(['--help']); main(['--version']); "
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()}
    assert "cyclopts" in loaded
    assert not loaded & {"numpy", "sklearn", "scipy", "polars", "pandas", "narwhals"}
