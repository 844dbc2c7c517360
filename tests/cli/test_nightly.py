"""The script of the page on nightly jobs, killed before every line and at random moments."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from cli_tables import listing, make_forecasts
from isoroc import CalibrationMonitor
from pages import blocks

pytestmark = [
    pytest.mark.project,
    pytest.mark.skipif(os.name == "nt", reason="a shell script"),
]

ROWS = 250
#: Runs that are killed at random moments; `make kills` asks for 500.
KILLS = int(os.environ.get("ISOROC_KILLS", "2"))
SETTINGS = """\
[columns]
label = "y"
[evaluate]
json = true
resamples = 0
[monitor]
state = "state.json"
"""


@pytest.fixture
def job(folder, run_cli):
    """Folder of the job: the script, its settings, the first model and data of some days."""
    Path("nightly.sh").write_text(blocks("nightly.md", "bash")[0])
    Path("isoroc.toml").write_text(SETTINGS)
    for day in range(4):
        make_forecasts(ROWS, seed=day).write_csv(f"{day}.csv")
    assert run_cli("fit", "0.csv", "--calibrator", "identity", "-o", "model.json").code == 0
    return folder


def start(day, path):
    """The script in a session of its own, with commands of a folder."""
    words = ["sh", "nightly.sh", f"{day}.csv", f"{day + 1}.csv", "calibrated.csv"]
    environment = os.environ | {"PATH": f"{path}:{os.environ['PATH']}"}
    return subprocess.Popen(
        words, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True
    )


def kill(script):
    os.killpg(script.pid, signal.SIGKILL)
    script.communicate()


def assert_is_done(days):
    """All files are whole, and rows of a day were counted once, for one of the two models."""
    assert pl.read_csv("calibrated.csv").height == ROWS
    state = CalibrationMonitor.load("state.json")
    models = [path for path in ("model.json", "previous.json") if Path(path).exists()]
    assert state.model in [isoroc.load(path).checksum for path in models]
    assert 1 <= len(state.seen_) <= days
    assert state.totals.rows == ROWS * len(state.seen_)


#: A command that is run by the test: the script waits for its exit code.
ASK = """\
#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" > requests
read -r code < answers
exit "$code"
"""


def run_in_steps(job, run_cli, day, last=None):
    """Run the script, or up to a step, before which it is killed; the steps that were run."""
    for name in ("requests", "answers"):
        Path(name).unlink(missing_ok=True)
        os.mkfifo(name)
    script = start(day, job / "bin")
    steps: list[str] = []
    printed = ""
    while True:
        # Opened for reading and writing, a FIFO does not wait for the other end.
        handle = os.open("requests", os.O_RDWR | os.O_NONBLOCK)
        request = b""
        while not request.endswith(b"\0") and script.poll() is None:
            try:
                request += os.read(handle, 4096)
            except BlockingIOError:
                time.sleep(0.002)
        os.close(handle)
        if not request:
            _, errors = script.communicate()
            assert script.returncode == 0, printed + errors
            return steps
        if len(steps) == last:
            kill(script)
            return steps
        command, *words = request.decode().split("\0")[:-1]
        steps.append(command if command != "isoroc" else words[0])
        if command == "isoroc":
            ran = run_cli(*words)
            code, printed = ran.code, printed + ran.err
        else:
            code = subprocess.run([f"/bin/{command}", *words], check=False).returncode
        Path("answers").write_text(f"{code}\n")


def test_the_script_survives_a_kill_before_every_line(job, run_cli):
    (job / "bin").mkdir()
    for name in ("isoroc", "cp", "mv"):
        (job / "bin" / name).write_text(ASK)
        (job / "bin" / name).chmod(0o755)
    first = Path("model.json").read_bytes()
    expected = ["apply", "evaluate", "monitor", "fit", "cp", "mv", "mv"]
    for last in range(len(expected) + 1):
        Path("model.json").write_bytes(first)
        Path("state.json").unlink(missing_ok=True)
        assert run_in_steps(job, run_cli, 0, last) == expected[:last]
        assert run_in_steps(job, run_cli, 0)[:4] == expected[:4]
        assert_is_done(1)
        assert Path("model.json").read_bytes() != first
    assert run_in_steps(job, run_cli, 1)[:4] == expected[:4]  # the next night
    assert_is_done(2)


def test_the_script_survives_kills_at_random_moments(job):
    (job / "bin").mkdir()
    (job / "bin" / "isoroc").write_text(f'#!/bin/sh\nexec {sys.executable} -m isoroc "$@"\n')
    (job / "bin" / "isoroc").chmod(0o755)
    seed = int(np.random.default_rng().integers(10**6)) if KILLS > 10 else 0
    rng, day, longest, killed = np.random.default_rng(seed), 0, 10.0, 0
    while killed < KILLS:
        begun, script = time.monotonic(), start(day % 3, job / "bin")
        try:
            _, errors = script.communicate(timeout=rng.uniform(0, longest))
        except subprocess.TimeoutExpired:
            kill(script)
            killed += 1
            continue
        assert script.returncode == 0, f"seed {seed}, run {killed}: {errors}"
        assert_is_done(day + 1)
        longest, day = 1.2 * (time.monotonic() - begun), day + 1
    script = start(day % 3, job / "bin")
    _, errors = script.communicate()
    assert script.returncode == 0, f"seed {seed}: {errors}"
    assert_is_done(day + 1)
    assert not [name for name in listing() if name.endswith(".lock")]
