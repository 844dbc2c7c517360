"""The command, run in this process."""

import contextlib
import io
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from cli_tables import make_forecasts
from isoroc.__main__ import main


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


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    """Bytes of a model fitted on ``data.csv``."""
    with contextlib.chdir(tmp_path_factory.mktemp("model")):
        make_forecasts().write_csv("data.csv")
        assert main(["fit", "data.csv", "-o", "model.json", "-c", "irp"]) == 0
        return Path("model.json").read_bytes()


@pytest.fixture
def model(folder, table, model_file):
    """A model fitted on ``data.csv``, both in the current folder."""
    table.write_csv("data.csv")
    (folder / "model.json").write_bytes(model_file)
    return folder / "model.json"
