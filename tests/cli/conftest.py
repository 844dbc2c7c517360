"""The command, run in this process."""

import io
import sys
from typing import NamedTuple

import pytest

from cli_tables import make_forecasts
from isoroc._cli import main


class Ran(NamedTuple):
    code: int
    out: bytes
    err: str

    @property
    def text(self):
        return self.out.decode()


@pytest.fixture
def run_cli(folder, capsysbinary, monkeypatch):  # noqa: ARG001
    """Function that runs the command in an empty folder."""

    def run(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in words])
        sys.stdout.flush()
        out, err = capsysbinary.readouterr()
        assert b"np." not in err, "messages show values, not NumPy's representation of them"
        return Ran(code, out, err.decode())

    return run


@pytest.fixture
def table():
    return make_forecasts()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(folder, table, run_cli):
    """A model fitted on ``data.csv``, both in the current folder."""
    table.write_csv("data.csv")
    assert run_cli("fit", "data.csv", "-o", "model.json", "-c", "irp").code == 0
    return folder / "model.json"
