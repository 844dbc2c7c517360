"""Signals, permissions, terminals, and where messages go."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli_tables import listing, make_forecasts

WRITING = """
import sys, time
from isoroc._cli.process import prepare
from isoroc._support.files import replacing, temporary_folder
prepare()
with temporary_folder() as folder, replacing("out.csv") as new:
    (folder / "copy").write_text("rows")
    new.write_text("half")
    print("writing", flush=True)
    if "rust" in sys.argv:  # the main thread is in a library and runs no handler
        import ctypes
        ctypes.CDLL(None).sleep(60)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGXCPU]
)
@pytest.mark.parametrize("where", ["python", "rust"])
def test_signals_leave_no_temporary_files(folder, number, where):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("ignored by this process, as under nohup, and so by what it starts")
    Path("out.csv").write_text("old")
    Path("tmp").mkdir()
    command = [sys.executable, "-c", WRITING, where]
    environment = os.environ | {"TMPDIR": str(folder / "tmp")}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as ran:
        assert ran.stdout
        assert ran.stderr
        assert ran.stdout.readline() == b"writing\n"
        assert len(listing()) == 3
        ran.send_signal(number)
        assert ran.wait(timeout=30) == 128 + number
        assert ran.stderr.read().decode() == f"isoroc: ended by {number.name}\n"
    assert listing() == ["out.csv", "tmp"]
    assert Path("out.csv").read_text() == "old"
    assert not list(Path("tmp").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("waiting", ["reading", "writing"])
def test_an_interrupted_command_says_so_in_one_line(folder, run_cli, waiting):
    make_forecasts(30_000).write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-c", "temperature", "-o", "model.json").code == 0
    os.mkfifo("pipe")  # nobody reads or writes the rest, so the command waits
    Path("tmp").mkdir()
    files = ["pipe", "-o", "out.csv"] if waiting == "reading" else ["x.csv", "-o", "-"]
    command = [sys.executable, "-m", "isoroc", "apply", "model.json", *files]
    environment = os.environ | {"TMPDIR": str(folder / "tmp")}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, **pipes) as ran:  # type: ignore[call-overload]
        if waiting == "reading":
            with Path("pipe").open("wb") as pipe:
                pipe.write(b"id,")
                pipe.flush()
                ran.send_signal(signal.SIGINT)
                assert ran.wait(timeout=30) == 130, ran.stderr.read()
        else:
            assert ran.stdout.readline().startswith(b"id,")
            ran.send_signal(signal.SIGINT)
            assert ran.wait(timeout=30) == 130
        assert ran.stderr.read() == b"isoroc: ended by SIGINT\n"
    assert listing() == ["model.json", "pipe", "tmp", "x.csv"]
    assert not list(Path("tmp").iterdir())


@pytest.mark.usefixtures("model")
def test_overwriting_keeps_permissions(run_cli):
    old = os.umask(0o022)
    try:
        for mode in (0o600, 0o640, 0o666):
            Path("out.csv").touch()
            Path("out.csv").chmod(mode)
            assert run_cli("apply", "model.json", "data.csv", "-o", "out.csv").code == 0
            assert Path("out.csv").stat().st_mode & 0o777 == mode
        assert run_cli("apply", "model.json", "data.csv", "-o", "new.csv").code == 0
        assert Path("new.csv").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(old)


def run_ascii(*words):
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "isoroc", *words]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


@pytest.fixture
def odd_names(folder, run_cli):  # noqa: ARG001
    """Names of classes that are not ASCII or steer terminals, and what a fit to them prints."""
    classes = ("caf\u00e9", "b\x1b[31m\x9bm", "c")
    make_forecasts(60, classes=classes).write_parquet("x.parquet")
    return classes, run_cli("fit", "x.parquet", "-o", "m.json", "-c", "irp")


EVALUATION = ["evaluate", "x.parquet", "-m", "m.json"]


def test_names_cannot_steer_a_terminal(odd_names, run_cli):
    classes, fitted = odd_names
    assert (fitted.code, "\x1b" in fitted.err, "\x9b" in fitted.err) == (0, False, False)
    assert r"b\x1b[31m\x9bm" in fitted.err
    assert b"\x1b" not in run_cli("inspect", "m.json").out
    found = run_cli(*EVALUATION, "--json").out
    assert b"\x1b" not in found
    assert sorted(json.loads(found)["classes"]) == sorted(classes)


@pytest.mark.slow
def test_ascii_terminals_show_everything(odd_names):
    classes, _ = odd_names
    shown = run_ascii(*EVALUATION)
    assert (shown.returncode, b"log loss" in shown.stdout) == (0, True), shown.stderr
    found = run_ascii(*EVALUATION, "--json").stdout
    assert b"\x1b" not in found
    assert sorted(json.loads(found)["classes"]) == sorted(classes)


@pytest.mark.usefixtures("folder")
def test_quiet(run_cli):
    make_forecasts().write_csv("x.csv")
    words = ["fit", "x.csv", "-o", "m.json", "-c", "irp"]
    assert run_cli(*words, "--quiet").err == ""
    ran = run_cli("fit", "no.csv", "-o", "m.json", "--quiet")
    assert ran.err == "isoroc: error: no.csv: no such file; check the name.\n"
    assert "fitted" in run_cli(*words).err  # the next command is not quiet
