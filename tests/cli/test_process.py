"""The real command in processes of its own."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from cli_tables import make_forecasts

COMMAND = [sys.executable, "-m", "isoroc"]


def run(*words, **options):
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False, **options)


@pytest.mark.usefixtures("folder")
def test_fit_evaluate_apply_export():
    make_forecasts(500).write_csv("march.csv")
    make_forecasts(400, seed=1).write_parquet("april.parquet")
    fitted = run("fit", "march.csv", "--label", "y", "-c", "irp", "-o", "model.json")
    assert (fitted.returncode, fitted.stdout) == (0, b"")
    assert b"\x1b" not in fitted.stderr  # no progress bar where nobody looks
    sample = run("evaluate", "april.parquet", "-m", "model.json", "--resamples", "0",
                 "--fail-if", "log_loss>0.1")  # fmt: skip
    assert sample.returncode == 1
    assert b"check failed: log_loss>0.1" in sample.stderr
    data = Path("april.parquet").read_bytes()
    applied = run("apply", "model.json", "-", "-o", "-", "--output-format", "csv", input=data)
    assert applied.stdout.startswith(b"id,p_bird")
    assert pl.read_csv(applied.stdout).height == 400


@pytest.mark.usefixtures("folder")
def test_progress_on_a_terminal():
    make_forecasts(200).write_parquet("x.parquet")
    terminal, other = pty.openpty()
    words = ["fit", "x.parquet", "-c", "irp", "-o", "model.json"]
    ran = subprocess.Popen(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=other,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(other)
    seen = b""
    try:
        while part := os.read(terminal, 1 << 16):
            seen += part
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(terminal)
    out, _ = ran.communicate()
    assert (ran.returncode, out) == (0, b"")
    text = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", seen).decode()
    assert re.search(r"reading .*200/200 +rows", text)
    assert "model.json: irp on 200 rows, 3 classes" in text
    assert b"\x1b[" in seen


@pytest.mark.usefixtures("folder")
def test_a_reader_that_leaves_early_is_no_error(run_cli):
    make_forecasts(30_000).write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-c", "irp", "--max-bins", "3", "-o", "model.json").code == 0
    words = [*COMMAND, "apply", "model.json", "x.csv", "-o", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        assert ran.stdout.readline().startswith(b"id,")
        ran.stdout.close()
        assert ran.stderr.read() == b""
        assert ran.wait() == 141


def test_asking_for_help_loads_nothing_heavy():
    code = (
        "import sys; from isoroc._cli import main; main(['--help']); main(['--version']); "
        "print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.splitlines()[-1].split()}
    assert "cyclopts" in loaded
    assert not loaded & {"numpy", "sklearn", "scipy", "polars", "pandas", "narwhals"}
