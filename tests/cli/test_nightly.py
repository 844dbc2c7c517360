"""The scripts of nightly jobs, killed before every line and at random moments."""

import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from cli_tables import listing, make_forecasts
from isoroc import CalibrationMonitor, OnlineCalibrator
from isoroc.__main__ import main
from nights import kill, prepare, start, steps
from pages import blocks
from zoo import assert_same

pytestmark = [
    pytest.mark.project,
    pytest.mark.skipif(os.name == "nt", reason="a shell script"),
]

ROWS = 250
#: Runs that are killed at random moments. `make kills` asks for 500.
KILLS = int(os.environ.get("ISOROC_KILLS", "2"))


@pytest.fixture
def job(folder, monkeypatch):
    """Folder of the job: the script, the first model and data of some days."""
    set_up("operations.md", folder, monkeypatch)
    assert main(["fit", "0.csv", "--calibrator", "identity", "-o", "model.json"]) == 0


@pytest.fixture
def online_job(folder, monkeypatch):
    """The same with the script of an online calibrator, which has learned from an earlier day."""
    set_up("online.md", folder, monkeypatch)
    make_forecasts(ROWS, seed=9).write_csv("9.csv")
    assert main(["update", "state.json", "9.csv", "--create", "--batch", "9"]) == 0


def set_up(page, folder, monkeypatch):
    script = blocks(page, "bash")[0]
    Path("nightly.sh").write_text(script.replace("--label animal", "--label y"))
    for day in range(4):
        make_forecasts(ROWS, seed=day).write_csv(f"{day}.csv")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # for modules that are preloaded
    prepare(folder)


def assert_is_done(days):
    """All files are whole, and rows of a day were counted once, for one of the two models."""
    assert pl.read_csv("calibrated.csv").height == ROWS
    state = CalibrationMonitor.load("state.json")
    models = [path for path in ("model.json", "previous.json") if Path(path).exists()]
    assert state.model in [isoroc.load(path).checksum for path in models]
    assert 1 <= len(state.seen_) <= days
    assert state.totals.rows == ROWS * len(state.seen_)


def run(day, last=None):
    """Run the script, or up to a step, where it is killed. Returns the steps that were run."""
    process = start(day, last)
    process.join()
    expected = 0 if last is None else -signal.SIGKILL
    assert process.exitcode == expected, Path("bin/log").read_text()
    return steps()


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_the_script_survives_a_kill_before_every_line():
    first = Path("model.json").read_bytes()
    expected = ["apply", "evaluate", "monitor", "fit", "cp", "mv", "mv"]
    for last in range(len(expected)):
        Path("model.json").write_bytes(first)
        Path("state.json").unlink(missing_ok=True)
        assert run(0, last) == expected[:last]
        assert run(0)[:4] == expected[:4]
        assert_is_done(1)
        assert Path("model.json").read_bytes() != first
    assert run(1)[:4] == expected[:4]  # the next night
    assert_is_done(2)


def has_ended(process, rng, longest):
    """Wait for the end of the night, but only until a random moment.

    Half of the moments come just after a change of the folder, when files are being replaced.
    """
    if rng.random() < 0.5:
        process.join(rng.uniform(0, longest))
        return not process.is_alive()
    changes = rng.integers(1, 12)
    last = Path().stat().st_mtime_ns
    while changes and process.is_alive():
        process.join(0.003)
        if (found := Path().stat().st_mtime_ns) != last:
            last = found
            changes = changes - 1
    return not process.is_alive()


def assert_is_whole():
    """Whatever a command reads is complete, at any moment."""
    for name in ("model.json", "previous.json", "candidate.json"):
        assert not Path(name).exists() or isoroc.load(name).checksum
    if Path("state.json").exists():
        state = CalibrationMonitor.load("state.json")
        assert state.totals.rows == ROWS * len(state.seen_)
    assert not Path("calibrated.csv").exists() or pl.read_csv("calibrated.csv").height == ROWS


def survive(n_kills, assert_is_whole, end_of_night):
    """Run nights, of which the first `n_kills` are killed at random moments and run again."""
    seed = int(np.random.default_rng().integers(10**6)) if n_kills > 10 else 0
    rng = np.random.default_rng(seed)
    killed = Counter[str]()
    nights = 0
    longest = 10.0
    while True:
        begun = time.monotonic()
        process = start(nights % 3)
        if killed.total() < n_kills and not has_ended(process, rng, longest):
            kill(process)
            step = (steps() or ["start"])[-1]
            killed[step] += 1
            sys.stdout.write(f"{step} ")
            sys.stdout.flush()  # `make kills` shows how far it is
            assert_is_whole()
            continue
        process.join()
        assert process.exitcode == 0, f"seed {seed}, {killed}: {Path('bin/log').read_text()}"
        nights += 1
        longest = 1.2 * (time.monotonic() - begun)
        end_of_night(nights)
        if killed.total() == n_kills:
            break
    assert not [name for name in listing() if name.endswith(".lock")]
    unfinished = sum(name.startswith(".isoroc-") for name in listing())
    sys.stdout.write(f"\nseed {seed}: {killed}, {unfinished} unfinished files, {nights} nights\n")


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_the_script_survives_kills_at_random_moments():
    first = Path("model.json").read_bytes()
    promoted = []

    def end_of_night(nights):
        assert_is_done(nights)
        promoted.append(Path("model.json").read_bytes() != first)
        if nights % 2:  # so that there is a model to be replaced every second night
            Path("first.json").write_bytes(first)
            Path("first.json").replace("model.json")

    survive(KILLS, assert_is_whole, end_of_night)
    assert any(promoted)


# The online calibrator


def assert_counted(days):
    """The state equals the state of a process that was never killed, and so does the monitor's."""
    state = isoroc.load("state.json")
    straight = OnlineCalibrator()
    for day in [9, *range(days)]:
        table = pl.read_csv(f"{day}.csv")
        straight.partial_fit(table.select("^p_.*$").to_numpy(), table["y"].to_numpy())
    assert_same(vars(state.ledger_), vars(straight.ledger_))
    assert len(state.seen_) == days + 1
    monitor = CalibrationMonitor.load("monitor.json")
    assert monitor.totals.rows == ROWS * days == ROWS * len(monitor.seen_)
    assert monitor.totals.loss == pytest.approx(ROWS * sum(state.history_["served"][1:]))
    assert pl.read_csv("calibrated.csv").height == ROWS


def assert_online_is_whole():
    state = isoroc.load("state.json")
    assert state.n_rows_seen_ == ROWS * len(state.seen_)
    if Path("monitor.json").exists():
        monitor = CalibrationMonitor.load("monitor.json")
        assert monitor.totals.rows == ROWS * len(monitor.seen_)
        assert len(monitor.seen_) + 1 - len(state.seen_) in (0, 1)
    assert not Path("calibrated.csv").exists() or pl.read_csv("calibrated.csv").height == ROWS


@pytest.mark.slow
@pytest.mark.usefixtures("online_job")
def test_the_online_script_survives_a_kill_before_every_line():
    first = Path("state.json").read_bytes()
    expected = ["monitor", "update", "apply"]
    for last in range(len(expected)):
        Path("state.json").write_bytes(first)
        Path("monitor.json").unlink(missing_ok=True)
        assert run(0, last) == expected[:last]
        assert run(0) == expected
        assert_counted(1)
    assert run(1) == expected  # the next night
    assert_counted(2)


@pytest.mark.slow
@pytest.mark.usefixtures("online_job")
def test_the_online_script_survives_kills_at_random_moments():
    def end_of_night(nights):
        assert_counted(min(nights, 3))

    survive(min(KILLS, 200), assert_online_is_whole, end_of_night)
