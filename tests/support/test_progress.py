import sys

import pytest

from isoroc._support.progress import progress
from terminal import run_on_terminal

PROGRAM = """\
import sys
{before}
from isoroc._support.progress import progress

with progress("growing", shown=True) as report:
    report("3 bins")
    report("4 bins")
"""


def run(before=""):
    return run_on_terminal([sys.executable, "-c", PROGRAM.format(before=before)])


def test_one_status_line_on_a_terminal():
    ran = run()
    assert ran.code == 0
    assert ran.out == b""
    assert "growing: 4 bins" in ran.text
    assert b"\x1b[" in ran.screen  # the line is redrawn in place, not repeated
    assert "growing: 3 bins\n" not in ran.text


def test_plain_lines_on_a_terminal_without_rich():
    ran = run(before='sys.modules["rich"] = None  # as if it were not installed')
    assert ran.code == 0
    assert ran.screen.splitlines() == [b"growing: 3 bins", b"growing: 4 bins"]


def test_plain_lines_in_a_file(capsys):
    with progress("growing", shown=True) as report:
        report("3 bins")
    assert capsys.readouterr() == ("", "growing: 3 bins\n")


def test_silence(capsys):
    with progress("growing", shown=False) as report:
        report("3 bins")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("shown", [False, True])
def test_errors_pass_through(shown):
    with pytest.raises(KeyError), progress("growing", shown=shown):
        raise KeyError
