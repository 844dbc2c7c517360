import json
import re
from pathlib import Path

import numpy as np
import onnx
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import isoroc
from isoroc._calibrators.registry import methods
from isoroc._cli.models import DEFAULT, parse_value
from zoo import KINDS

COLUMNS = ["p_bird", "p_cat", "p_dog"]


@pytest.mark.usefixtures("model")
def test_inspect_shows_bins_path_certificate_and_provenance(run_cli):
    ran = run_cli("inspect", "model.json")
    model = isoroc.load("model.json")
    assert ran.code == 0
    for text in ("IRPCalibrator", "bird, cat, dog", "data.csv", "sha256:", str(model.bins_)):
        assert text in ran.text
    assert str(model.path_) in ran.text
    assert ran.text.rstrip().endswith(str(model.certificate_))
    found = json.loads(run_cli("inspect", "model.json", "--json").out)
    assert found["bins"]["weight"] == model.bins_["weight"].tolist()
    assert found["path"]["gain"][0] is None
    assert found["certificate"]["slack"] == model.certificate_.slack.tolist()
    assert found["summary"]["columns"] == COLUMNS
    assert found["parameters"]["random_state"] == 0


def test_inspect_of_a_model_without_bins_or_guarantee(folder, table, run_cli):
    P = table.select(COLUMNS).to_numpy()
    y = table["y"].to_numpy()
    isoroc.IRPCalibrator(monotonicity=None, max_bins=2, prior=[0.2, 0.3, 0.5]).fit(P, y).save(
        "m.json"
    )
    assert "ROC monotone" not in run_cli("inspect", "m.json").text
    assert "certificate" not in json.loads(run_cli("inspect", "m.json", "--json").out)
    isoroc.TemperatureCalibrator().fit(P, y).save("t.json")
    assert "TemperatureCalibrator" in run_cli("inspect", "t.json").text
    assert "bins" not in json.loads(run_cli("inspect", "t.json", "--json").out)
    auto = isoroc.AutoCalibrator(members=[isoroc.IdentityCalibrator()], cv=2).fit(P, y)
    auto.save("a.json")
    shown = run_cli("inspect", "a.json").text
    assert "verdict" in shown
    assert f"member scores\n{auto.member_scores_}" in shown
    found = json.loads(run_cli("inspect", "a.json", "--json").out)
    assert found["parameters"]["members"] == ["IdentityCalibrator()"]
    many = np.random.default_rng(0).dirichlet(np.ones(15), 30)
    isoroc.IRPCalibrator(top=1).fit(many, np.arange(30) % 15).save(folder / "k.json")
    assert "10, 11, ... (15 in total)" in run_cli("inspect", "k.json").text


@pytest.mark.usefixtures("model")
def test_export_to_onnx_is_the_same_map(table, run_cli):
    import onnxruntime  # noqa: PLC0415

    ran = run_cli("export", "model.json", "--onnx", "m.onnx")
    assert (ran.code, ran.out) == (0, b"")
    P = table.select(COLUMNS).to_numpy()
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"forecasts": P})
    expected = isoroc.load("model.json").predict_proba(P)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert run_cli("export", "model.json", "--onnx", "f.onnx", "--input-type", "float").code == 0
    kind = onnx.load("f.onnx").graph.input[0].type.tensor_type.elem_type
    assert kind == onnx.TensorProto.FLOAT


@pytest.mark.usefixtures("model")
def test_export_to_onnx_with_labels(table, run_cli):
    import onnxruntime  # noqa: PLC0415

    def open_session(path):
        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])

    P = table.select(COLUMNS).to_numpy()
    expected = isoroc.load("model.json").predict(P)
    assert run_cli("export", "model.json", "--onnx", "m.onnx", "--label").code == 0
    session = open_session("m.onnx")
    np.testing.assert_array_equal(session.run(["label"], {"forecasts": P})[0], expected)
    found = session.get_modelmeta().custom_metadata_map["isoroc.checksum"]
    assert found == json.loads(Path("model.json").read_text())["checksum"]


@pytest.mark.usefixtures("model")
def test_export_to_sql_is_the_same_map(table, run_cli):
    import duckdb  # noqa: PLC0415

    words = ["export", "model.json", "--sql", "duckdb", "--table", "logged", "--keep", "id"]
    ran = run_cli(*words, "--names", "a,b,c")
    assert ran.code == 0
    assert run_cli(*words, "--names", "a,b,c", "-o", "q.sql").out == b""
    assert Path("q.sql").read_text() == ran.text
    with duckdb.connect() as connection:
        connection.register("logged", table.to_arrow())
        found = connection.sql(ran.text).pl()
    assert found.columns == ["id", "a", "b", "c"]
    expected = isoroc.load("model.json").predict_proba(table.select(COLUMNS).to_numpy())
    order = found.sort("id").select("a", "b", "c").to_numpy()
    np.testing.assert_allclose(order, expected, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("options", [[], ["--suffix", "_new"], ["--names", "a,b,c"], ["--replace"]])
def test_export_to_sql_has_the_columns_of_apply(table, run_cli, options):
    import duckdb  # noqa: PLC0415

    table.write_parquet("rows.parquet")
    assert run_cli("apply", "model.json", "rows.parquet", "-o", "out.parquet", *options).code == 0
    applied = pl.read_parquet("out.parquet").sort("id")
    words = ["export", "model.json", "--sql", "duckdb", "--table", "logged", "--keep", "*"]
    ran = run_cli(*words, *options, "--view", "calibrated")
    assert json.loads(Path("model.json").read_text())["checksum"] in ran.text
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE logged AS FROM 'rows.parquet'")
        connection.execute(ran.text)
        found = connection.sql("FROM calibrated").pl().sort("id")
    assert set(found.columns) == set(applied.columns)
    assert_frame_equal(found.select(applied.columns), applied, rel_tol=0, abs_tol=1e-12)


@pytest.mark.usefixtures("model")
def test_export_requires_a_target_and_columns(table, run_cli):
    both = run_cli("export", "model.json", "--onnx", "x", "--sql", "duckdb")
    for ran in (run_cli("export", "model.json"), both):
        assert (ran.code, "--onnx FILE, --sql DIALECT, or --golden FILE" in ran.err) == (2, True)
    ran = run_cli("export", "model.json", "--sql", "duckdb", "--replace", "--names", "a,b,c")
    assert (ran.code, "leave out --names" in ran.err) == (2, True)
    ran = run_cli("export", "model.json", "--sql", "cobol")
    assert (ran.code, "duckdb" in ran.err) == (2, True)
    P = table.select(COLUMNS).to_numpy()
    isoroc.IRPCalibrator().fit(P, table["y"]).save("nameless.json")
    ran = run_cli("export", "nameless.json", "--sql", "duckdb")
    assert "nameless.json: does not name its columns" in ran.err
    assert run_cli("export", "nameless.json", "--sql", "duckdb", "-p", "a,b,c").code == 0


def test_calibrators_are_those_of_the_package(run_cli):
    assert sorted(kind.__name__ for kind in methods().values()) == sorted(KINDS)
    assert DEFAULT in methods()
    shown = run_cli("calibrators").text
    for name, kind in methods().items():
        assert name in shown
        one = run_cli("calibrators", name).text
        for parameter in kind().get_params(deep=False):
            assert re.search(rf"(?m)^(\w+, )*{parameter}(, \w+)*( : |$)", one)
    shown = run_cli("calibrators", "irp").text
    assert "    Largest number of bins. By default growth stops" in shown
    assert "did you mean 'irp'" in run_cli("calibrators", "ipr").err


def test_every_calibrator_can_be_fitted_and_applied(folder, table, run_cli):
    two = table.filter(pl.col("y") != "dog").with_columns(p_bird=1 - pl.col("p_cat"))
    two.drop("p_dog").write_csv("x.csv")
    for name in methods():
        assert run_cli("fit", "x.csv", "-c", name, "-o", "m.json").code == 0
        ran = run_cli("apply", "m.json", "x.csv", "-o", folder / f"{name}.csv")
        assert ran.code == 0, ran.err
        found = pl.read_csv(f"{name}.csv")
        expected = isoroc.load("m.json").predict_proba(found.select("p_bird", "p_cat").to_numpy())
        np.testing.assert_array_equal(found.select("^.*_cal$").to_numpy(), expected)


def test_values_of_parameters():
    assert parse_value("None") is None
    assert parse_value("[1, 2]") == [1, 2]
    assert parse_value("0.2,0.3") == [0.2, 0.3]
    assert parse_value("a,b") == "a,b"


def test_demo_replaces_only_its_own_files(folder, run_cli):
    assert run_cli("demo", "--keep", "new").code == 0
    again = run_cli("demo", "--keep", "new")
    assert again.code == 0
    first_rows = (folder / "new" / "calibrated.csv").read_text().splitlines()[:4]
    shown = again.out.decode().split("The first rows of calibrated.csv:\n\n")[1]
    assert shown.splitlines() == [
        *first_rows,
        "",
        "Next: isoroc inspect, isoroc export, isoroc --help.",
    ]
    for name in ("model.json", "march.csv"):
        (folder / name).write_text("mine")
        ran = run_cli("demo", "--keep", ".")
        assert (ran.code, f"{name}: exists already; name another folder" in ran.err) == (2, True)
        assert (folder / name).read_text() == "mine"
        (folder / name).unlink()


def test_demo_leaves_no_files_and_stops_at_the_first_error(run_cli, monkeypatch):
    seen = []

    def fail(words):
        seen.append(words)
        return 2

    monkeypatch.setattr("isoroc._cli.commands.demo.run", fail)
    assert run_cli("demo").code == 2
    assert [words[0] for words in seen] == ["fit"]
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("command", [["inspect"], ["apply", "x.csv", "-o", "y.csv"]])
def test_models_are_read_from_files_only(run_cli, command):
    Path("x.csv").touch()
    words = [command[0], "-", *command[1:]]
    assert "a model cannot be read from standard input" in run_cli(*words).err
    words[1] = "no.json"
    assert "no.json: No such file" in run_cli(*words).err
    words[1] = "x.csv"
    ran = run_cli(*words)
    assert (ran.code, "x.csv: not JSON" in ran.err) == (2, True)


@pytest.mark.usefixtures("folder")
def test_inspect_shows_every_fitted_parameter(run_cli, table):
    P = table.select("^p_.*$").to_numpy()
    fitted = isoroc.TemperatureCalibrator().fit(P, table["y"])
    fitted.save("t.json")
    found = json.loads(run_cli("inspect", "t.json", "--json").out)["fitted"]
    assert found["temperature_"] == fitted.temperature_
    assert set(found) == {f"{name}_" for name in fitted.map_.states()}
    assert f"{fitted.temperature_:.6g}" in run_cli("inspect", "t.json").text
    table.write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-o", "a.json", "--cv", "2").code == 0
    text = run_cli("inspect", "a.json").text
    model = isoroc.load("a.json")
    shown = 0
    for k, member in enumerate(model.map_.members):
        for name in [name for name in member.states() if isinstance(getattr(member, name), float)]:
            assert f"fitted: members_: {k}_{type(member).__name__}: {name}_" in text
            shown += 1
    assert shown
