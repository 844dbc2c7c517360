import json
import runpy
import sys

import numpy as np
import pytest
from joblib import parallel_config
from matplotlib import pyplot as plt

import isoroc.paper
from isoroc.paper import Reproduction, reproduce
from isoroc.paper import _command as command
from isoroc.paper import _data as data
from isoroc.paper import _figures as figures
from isoroc.paper._command import main

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """Few splits, and no figures, which are seen to in test_figures."""
    monkeypatch.setattr(command, "N_QUICK", 2)
    monkeypatch.setattr(command, "_QUICK_CLASSIFIERS", ("naive Bayes",))
    monkeypatch.setattr(figures, "all_of", lambda *_: {})
    with parallel_config(backend="threading"):  # other processes would not know what is patched
        yield
    plt.close("all")


@pytest.fixture
def csv(rows, tmp_path):
    path = tmp_path / "clouds.csv"
    table = np.column_stack([rows.X, rows.y])
    np.savetxt(path, table, delimiter=",", header="a,b,c,d,Class", comments="")
    return path


def test_one_command_from_a_csv_to_tables_and_figures(csv, tmp_path, capsys, monkeypatch):
    some = {"splitting": figures.splitting}
    monkeypatch.setattr(figures, "all_of", lambda *_: some)
    out = tmp_path / "out"
    main(["--data", str(csv), "--classes", "2,3", "--out", str(out), "--quick"])
    said = capsys.readouterr()
    assert str(out / "results.md") in said.out
    assert said.out.count("\n") == 1
    results = json.loads((out / "results.json").read_text())
    assert [each["classes"] for each in results["experiments"]] == [2, 3]
    assert [entry["classes"] for entry in results["repetition"]] == [2, 3]
    assert results["data"] == "clouds.csv"
    assert "## 3 classes" in (out / "results.md").read_text()
    assert {p.name for p in (out / "figures").iterdir()} == {"splitting.png", "splitting.pdf"}
    assert not list(out.rglob(".*"))


def test_the_second_run_reuses_what_the_first_computed(csv, tmp_path):
    options = {"classes": (2,), "out": tmp_path / "out", "quick": True, "n_jobs": 1}
    first = reproduce(csv, **options, verbose=False)
    second = reproduce(csv, **options, verbose=False)
    assert isinstance(first, Reproduction)
    assert first.n_computed > 5
    assert second.n_computed == 0
    assert second.results == first.results
    assert f"{second.n_reused} of {second.n_reused} pieces reused" in str(second)


def test_ready_forecasts_have_no_repetition(forecasts, tmp_path):
    of = forecasts(3)
    path = tmp_path / "ready.npz"
    np.savez(
        path,
        probas_cal=of.P_cal,
        labels_cal=of.y_cal,
        probas_test=of.P_test,
        labels_test=of.y_test,
    )
    found = reproduce(path, out=tmp_path / "out", verbose=False).results
    assert [each["classes"] for each in found["experiments"]] == [3]
    assert found["repetition"] == []
    with pytest.raises(ValueError, match="classes: the forecasts have 3 classes, which is not am"):
        reproduce(path, classes=(2, 4), out=tmp_path / "out", verbose=False)


def test_the_stand_in_is_named_everywhere(tmp_path, capsys, monkeypatch):
    def fetch(**_):
        raise OSError("no network")

    monkeypatch.setattr(data, "fetch_covtype", fetch)
    main(["--classes", "2", "--out", str(tmp_path), "--quick"])
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("Covertype cannot be fetched (no network)")
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["note"] == first
    assert "not Covertype" in results["data"]
    assert "not Covertype" in results["experiments"][0]["forecasts"]
    assert first in (tmp_path / "results.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nothing.csv"], "data: nothing.csv does not exist"),
        (["--classes", "1,2"], "expected numbers of classes from 2"),
        (["--classes", "two"], "--classes"),
    ],
)
def test_mistakes_end_in_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code != 0
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["isoroc.paper", "--help"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module("isoroc.paper", run_name="__main__")
    assert end.value.code == 0
    assert "python -m isoroc.paper" in capsys.readouterr().out
    assert set(isoroc.paper.__all__) == {"Reproduction", "reproduce"}
