import json
import runpy
import sys
import warnings

import numpy as np
import pytest
from joblib import parallel_config
from matplotlib import pyplot as plt

import isoroc.paper
from isoroc._cli import main
from isoroc.paper import Reproduction, reproduce
from isoroc.paper import _data as data
from isoroc.paper import _figures as figures
from isoroc.paper import _reproduce as module

pytestmark = pytest.mark.usefixtures("small")


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """Few splits and no figures, which are tested in test_figures."""
    monkeypatch.setattr(module, "N_QUICK", 2)
    monkeypatch.setattr(module, "_QUICK_CLASSIFIERS", ("naive Bayes",))
    monkeypatch.setattr(figures, "all_figures", lambda *_: {})
    with parallel_config(backend="threading"):  # other processes would not see the patches
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
    monkeypatch.setattr(figures, "all_figures", lambda *_: some)
    out = tmp_path / "out"
    words = ["--data", str(csv), "--classes", "2,3", "--out", str(out), "--quick"]
    assert main(["reproduce", *words]) == 0
    shown = capsys.readouterr()
    assert str(out) in shown.out
    assert shown.out.count("\n") == 1
    results = json.loads((out / "results.json").read_text())
    assert [each["classes"] for each in results["experiments"]] == [2, 3]
    assert [entry["classes"] for entry in results["repetition"]] == [2, 3]
    assert results["data"] == "clouds.csv"
    assert "## 3 classes" in (out / "results.md").read_text()
    assert {p.name for p in (out / "figures").iterdir()} == {"splitting.png", "splitting.pdf"}
    assert not list(out.rglob(".*"))


def test_the_second_run_reuses_the_results_of_the_first(csv, tmp_path):
    options = {"classes": (2,), "out": tmp_path / "out", "quick": True, "n_jobs": 1}
    first = reproduce(csv, **options, verbose=False)
    second = reproduce(csv, **options, verbose=False)
    assert isinstance(first, Reproduction)
    assert first.n_computed > 5
    assert second.n_computed == 0
    assert second.results == first.results
    assert f"{second.n_reused} of {second.n_reused} results came from its cache/" in str(second)


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


def test_substitute_data_are_named_everywhere(tmp_path, capsys, monkeypatch):
    def fetch(**_):
        raise OSError("no network")

    monkeypatch.setattr(data, "fetch_covtype", fetch)
    words = ["reproduce", "--classes", "2", "--out", str(tmp_path), "--quick"]
    with pytest.warns(UserWarning, match=r"Covertype cannot be downloaded \(no network\)") as seen:
        reproduce(classes=[2], out=tmp_path, quick=True, verbose=False)
    note = str(seen[0].message)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["note"] == note
    assert "not Covertype" in results["data"]
    assert "not Covertype" in results["experiments"][0]["forecasts"]
    assert note in (tmp_path / "results.md").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # in the suite, warnings are errors
        assert main(words) == 0
    assert capsys.readouterr().err == f"isoroc: warning: {note}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nothing.csv"], "data: nothing.csv does not exist"),
        (["--data", "rows.csv"], "--data: rows.csv has no column Class among a, b"),
        (["--classes", "1,2"], "--classes: 1 is not a number of classes; expected 2 or more"),
        (["--classes", "two"], "--classes two: expected integers"),
    ],
)
def test_mistakes_end_in_one_line(words, message, csv, capsys, monkeypatch):
    monkeypatch.chdir(csv.parent)
    (csv.parent / "rows.csv").write_text("a,b\n1,2\n")
    words = words if "--data" in words else [*words, "--data", csv.name]
    assert main(["reproduce", *words]) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def run_as_a_module(*words):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["isoroc.paper", *words])
        with pytest.raises(SystemExit) as end:
            runpy.run_module("isoroc.paper", run_name="__main__")
    return end.value.code


def test_as_a_module(capsys, monkeypatch):
    assert run_as_a_module("--help") == 0
    assert "Usage: isoroc reproduce" in capsys.readouterr().out
    assert set(isoroc.paper.__all__) == {"Reproduction", "reproduce"}
    monkeypatch.setitem(sys.modules, "cyclopts", None)  # as if it were not installed
    assert run_as_a_module("--help") == 2
    assert "needs cyclopts: pip install 'isoroc[cli]'" in capsys.readouterr().err
