"""The commands that the documents show are run."""

import os
import re
import shlex
from pathlib import Path

import polars as pl
import pytest

from cli_tables import listing
from isoroc._cli.errors import ExitCode
from pages import IN_SHELL, PAGES, blocks

pytestmark = pytest.mark.project


def lines_of(page):
    lines = "\n".join(blocks(page, "sh")).replace(" && ", "\n").splitlines()
    return [shlex.split(line, comments=True) for line in lines]


def play(run_cli, words):
    """Run a line of a page as a shell would, with input from cat."""
    stdin = b""
    if words[0] == "cat":
        stdin, words = Path(words[1]).read_bytes(), words[3:]
    assert words[0] == "isoroc"
    ran = run_cli(*words[1:], stdin=stdin)
    assert ran.code == 0, f"{shlex.join(words)}: {ran.err}"
    return ran.text


def test_the_commands_of_the_pages_run(run_cli, folder):
    seen = {}
    for page in IN_SHELL:
        os.chdir(folder)
        for words in lines_of(page):
            line = shlex.join(words)
            if words[:1] == ["cd"]:
                os.chdir(words[1])
            elif words and words[0] not in ("ls", "make", "pip") and line not in seen:
                seen[line] = play(run_cli, words)
    assert "Verdict: calibrate" in seen["isoroc demo --keep demo"]
    os.chdir(folder / "demo")
    assert {"calibrate.sql", "model.onnx", "calibrated.parquet"} <= set(listing())
    assert pl.read_parquet("calibrated.parquet").height == pl.read_csv("may.csv").height


def test_the_page_lists_the_exit_codes():
    text = PAGES["cli.md"]
    codes = {int(code) for code in re.findall(r"(?m)^\| (\d+) \|", text)}
    assert codes == set(ExitCode)
