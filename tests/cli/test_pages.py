"""The commands that the documents show are run."""

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import polars as pl
import pytest

from cli_tables import listing
from isoroc._cli.errors import ExitCode
from pages import IN_SHELL, PAGES, blocks

pytestmark = pytest.mark.project


def lines_of(page):
    """Commands of each line of a page, as lists of words, and the expected exit code."""
    for line in "".join(blocks(page, "sh")).splitlines():
        code = re.search(r"# exit code (\d+)$", line)
        parts = [shlex.split(part, comments=True) for part in line.split(" && ")]
        yield [words for words in parts if words], int(code[1]) if code else 0


def play(run_cli, words):
    """Exit code and output of a command of a page, run as by a shell, with input from cat."""
    stdin = b""
    match words:
        case ["cd", folder]:
            os.chdir(folder)
        case ["mv", old, new]:
            Path(old).replace(new)
        case ["rm", path]:
            Path(path).unlink()
        case ["ls" | "make" | "pip", *_]:
            pass
        case ["cat", path, "|", *rest]:
            stdin = Path(path).read_bytes()
            words = rest
    if words[0] != "isoroc":
        return 0, ""
    ran = run_cli(*words[1:], stdin=stdin)
    return ran.code, ran.text + ran.err


def play_line(run_cli, commands, expected):
    """Run the commands of a line up to the first that fails."""
    printed = ""
    for words in commands:
        code, text = play(run_cli, words)
        printed += text
        if code:
            break
    assert code == expected, f"{shlex.join(words)}: {printed}"
    return printed


@pytest.mark.slow
def test_the_commands_of_the_pages_run(run_cli, folder):
    seen: dict[str, str] = {}
    for page in IN_SHELL:
        if page == "operations.md":  # has a test of its own
            continue
        os.chdir(folder)
        for commands, code in lines_of(page):
            again = [words for words in commands if words[0] == "cd" or str(words) not in seen]
            if again:
                text = play_line(run_cli, again, code)
                seen |= dict.fromkeys(map(str, again), text)
    assert "Calibrate: log loss" in seen[str(["isoroc", "demo", "--keep", "demo"])]
    os.chdir(folder / "demo")
    assert {"calibrate.sql", "model.onnx", "calibrated.parquet"} <= set(listing())
    assert pl.read_parquet("calibrated.parquet").height == pl.read_csv("may.csv").height


@pytest.mark.slow
def test_the_nightly_job_promotes_one_model_and_refuses_the_next(run_cli):
    page = "operations.md"
    models = []
    output = ""
    for commands, code in lines_of(page):
        output += play_line(run_cli, commands, code)
        if Path.cwd().name == "nightly":
            models.append(Path("model.json").read_bytes())
    kinds = [json.loads(model)["model"]["kind"] for model in models]
    assert list(dict.fromkeys(kinds)) == ["AutoCalibrator", "IdentityCalibrator"]
    assert kinds[-1] == "AutoCalibrator"  # the demonstration's, the first, the candidate
    assert models[-1] == models[-5]  # it stays during the whole second night
    assert not Path("candidate.json").exists()
    assert "candidate.json was not written" in output
    section = PAGES[page].split("\n## A nightly job\n")[1].split("\n## ")[0]
    figures = re.findall(r"\b0\.\d{4}\b", section)
    assert figures
    assert all(figure in output for figure in figures)
    calibrated = pl.read_parquet("may.parquet")
    # Text stays as it stands in the file, so that an identifier keeps its zeros.
    assert calibrated["id"].equals(pl.read_csv("may.csv", infer_schema=False)["id"])


def test_the_page_lists_the_exit_codes():
    text = PAGES["cli.md"]
    codes = {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", text)}
    assert codes == set(ExitCode)


ANSWERS = {"evaluate": 0, "monitor": 0, "fit": 0, "apply": 0}


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
@pytest.mark.parametrize(
    ("answers", "code", "promoted", "applied"),
    [
        ({}, 0, True, True),
        ({"fit": 1}, 0, False, True),
        ({"evaluate": 1, "monitor": 1}, 0, True, True),
        ({"fit": 2}, 2, False, True),
        ({"evaluate": 2}, 2, False, True),  # bad outcomes do not block forecasts
        ({"monitor": 143}, 143, False, True),
        ({"apply": 2}, 2, False, True),
    ],
)
def test_the_script_of_the_page(folder, answers, code, promoted, applied):
    """With a stand-in for the command that notes how it is called and exits with given codes."""
    page = "operations.md"
    script = folder / "nightly.sh"
    stand_in = folder / "isoroc"
    script.write_text(blocks(page, "bash")[0])
    cases = " ".join(f"{name}) exit {n};;" for name, n in (ANSWERS | answers).items())
    stand_in.write_text(f'#!/bin/sh\necho "$@" >> calls\ncase $1 in {cases} esac\n')
    stand_in.chmod(0o755)
    for name in ("model", "candidate"):
        Path(f"{name}.json").write_text(name)
    ran = subprocess.run(
        ["sh", script, "april.csv", "may.csv", "may.parquet"],  # noqa: S607
        env={"PATH": f"{folder}:{os.environ['PATH']}"},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == code
    assert Path("model.json").read_text() == ("candidate" if promoted else "model")
    calls = [line.split() for line in Path("calls").read_text().splitlines()]
    assert any(call[0] == "apply" for call in calls) == applied
    # The calls are the lines of the second night, which another test runs with the real command.
    shown = [words[1:] for commands, _ in lines_of(page) for words in commands]
    for call in calls:
        assert call in [" ".join(words).split() for words in shown]
