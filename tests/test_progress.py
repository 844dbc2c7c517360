import sys
from types import ModuleType

import pytest

from isoroc import _progress as room
from isoroc._progress import progress


@pytest.mark.parametrize("terminal", [False, True])
def test_plain_lines_without_rich_or_terminal(capsys, monkeypatch, terminal):
    monkeypatch.setattr(room, "find_spec", lambda _: None if terminal else object())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with progress("growing", shown=True) as report:
        report("3 bins")
    assert capsys.readouterr().err == "growing: 3 bins\n"


def test_silence(capsys):
    with progress("growing", shown=False) as report:
        report("3 bins")
    assert capsys.readouterr() == ("", "")


def test_rich_where_it_is_installed(monkeypatch):
    seen = []

    class Status:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            seen.append("closed")

        def update(self, text):
            seen.append(text)

    class Console:
        def __init__(self, *, stderr):
            assert stderr

        def status(self, title):
            seen.append(title)
            return Status()

    fake = ModuleType("rich.console")
    fake.Console = Console
    monkeypatch.setitem(sys.modules, "rich", ModuleType("rich"))
    monkeypatch.setitem(sys.modules, "rich.console", fake)
    monkeypatch.setattr(room, "find_spec", lambda _: object())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("growing", shown=True) as report:
        report("3 bins")
    assert seen == ["growing", "growing: 3 bins", "closed"]


def test_errors_pass_through():
    with pytest.raises(KeyError), progress("growing", shown=False):
        raise KeyError
