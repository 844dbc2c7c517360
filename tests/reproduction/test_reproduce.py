import json

import numpy as np
import pytest
from joblib import parallel_config
from matplotlib import pyplot as plt

from reproduction import __main__ as module
from reproduction import data, figures

pytestmark = [pytest.mark.project, pytest.mark.usefixtures("small")]


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    """Few splits and one figure. The others are tested in test_figures."""
    monkeypatch.setattr(module, "N_QUICK", 2)
    monkeypatch.setattr(module, "QUICK_CLASSIFIERS", ("naive Bayes",))
    monkeypatch.setattr(figures, "all_figures", lambda *_: {"splitting": figures.splitting})
    with parallel_config(backend="threading"):  # other processes would not see the patches
        yield
    plt.close("all")


@pytest.fixture
def csv(rows, tmp_path):
    path = tmp_path / "clouds.csv"
    table = np.column_stack([rows.X, rows.y])
    np.savetxt(path, table, delimiter=",", header="a,b,c,d,Class", comments="")
    return path


@pytest.mark.slow
def test_one_command_from_a_csv_to_tables_and_figures(csv, tmp_path, capsys):
    out = tmp_path / "out"
    module.main(["--data", str(csv), "--classes", "2,3", "--out", str(out), "--quick"])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(f"Wrote results.md, results.json and figures/ to {out} in ")
    results = json.loads((out / "results.json").read_text())
    assert [each["classes"] for each in results["experiments"]] == [2, 3]
    assert [entry["classes"] for entry in results["repetition"]] == [2, 3]
    assert results["data"] == "clouds.csv"
    assert "## 3 classes" in (out / "results.md").read_text()
    assert {p.name for p in (out / "figures").iterdir()} == {"splitting.png", "splitting.pdf"}


@pytest.mark.slow
def test_ready_forecasts_have_no_repetition(forecasts, tmp_path):
    found = module.reproduce(forecasts(3), out=tmp_path)
    assert [each["classes"] for each in found["experiments"]] == [3]
    assert found["repetition"] == []


@pytest.mark.slow
def test_substitute_data_are_named_everywhere(tmp_path, monkeypatch):
    def fetch(**_):
        raise OSError("no network")

    monkeypatch.setattr(data, "fetch_covtype", fetch)
    with pytest.warns(UserWarning, match=r"Covertype cannot be downloaded \(no network\)") as seen:
        module.main(["--classes", "2", "--out", str(tmp_path), "--quick"])
    note = str(seen[0].message)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["note"] == note
    assert "not Covertype" in results["data"]
    assert "not Covertype" in results["experiments"][0]["forecasts"]
    assert note in (tmp_path / "results.md").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nothing.csv"], "No such file or directory: 'nothing.csv'"),
        (["--data", "rows.csv"], "--data: rows.csv has no column Class among a, b"),
        (["--classes", "1,2"], "argument --classes: invalid numbers value: '1,2'"),
        (["--classes", "two"], "argument --classes: invalid numbers value: 'two'"),
    ],
)
def test_mistakes_name_the_option(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SystemExit) as end:
        module.main(words)
    assert end.value.code == 2
    assert message in capsys.readouterr().err
