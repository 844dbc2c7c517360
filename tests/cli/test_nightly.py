"""The script of the page on nightly jobs, killed before every line and at random moments."""

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
from isoroc import CalibrationMonitor
from isoroc.__main__ import main
from nights import kill, prepare, start, steps
from pages import blocks

pytestmark = [
    pytest.mark.project,
    pytest.mark.skipif(os.name == "nt", reason="a shell script"),
]

ROWS = 250
#: Runs that are killed at random moments; `make kills` asks for 500.
KILLS = int(os.environ.get("ISOROC_KILLS", "2"))


@pytest.fixture
def job(folder, monkeypatch):
    """Folder of the job: the script, the first model and data of some days."""
    script = blocks("operations.md", "bash")[0]
    Path("nightly.sh").write_text(script.replace("--label animal", "--label y"))
    for day in range(4):
        make_forecasts(ROWS, seed=day).write_csv(f"{day}.csv")
    assert main(["fit", "0.csv", "--calibrator", "identity", "-o", "model.json"]) == 0
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
    """Run the script, or up to a step, before which it is killed; the steps that were run."""
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


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_the_script_survives_kills_at_random_moments():
    seed = int(np.random.default_rng().integers(10**6)) if KILLS > 10 else 0
    rng = np.random.default_rng(seed)
    first = Path("model.json").read_bytes()
    killed = Counter[str]()
    nights = 0
    promoted = 0
    longest = 10.0
    while True:
        begun = time.monotonic()
        process = start(nights % 3)
        if killed.total() < KILLS and not has_ended(process, rng, longest):
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
        assert_is_done(nights)
        longest = 1.2 * (time.monotonic() - begun)
        promoted += Path("model.json").read_bytes() != first
        if killed.total() == KILLS:
            break
        if nights % 2:  # so that there is a model to be replaced every second night
            Path("first.json").write_bytes(first)
            Path("first.json").replace("model.json")
    assert promoted
    assert not [name for name in listing() if name.endswith(".lock")]
    unfinished = sum(name.startswith(".isoroc-") for name in listing())
    sys.stdout.write(f"\nseed {seed}: {killed}, {unfinished} unfinished files, {nights} nights\n")
