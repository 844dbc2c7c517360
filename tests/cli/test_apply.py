import json
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import isoroc
from cli_tables import READERS, listing, make_forecasts
from isoroc import IRPCalibrator
from isoroc.__main__ import main
from isoroc._cli.calibration import Calibration
from isoroc._cli.io.formats import Format
from isoroc._cli.io.source import ROW, Source
from isoroc._cli.models import Model
from strategies import labelled_forecasts


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labelled_forecasts(), st.sampled_from(sorted(READERS)), st.sampled_from(sorted(READERS)))
def test_apply_equals_predict_proba_for_every_format(tmp_path, data, end, other):
    P, y, weights = data
    K = P.shape[1]
    table = pl.DataFrame({f"p_{k}": P[:, k] for k in range(K)} | {"y": y})
    if weights is not None:
        table = table.with_columns(w=pl.Series(weights))
    given, model, out = (tmp_path / name for name in (f"in.{end}", "model.json", f"out.{other}"))
    READERS[end].write(table, given)
    words = ["--pseudocount", "0.5", *([] if weights is None else ["-w", "w"])]
    assert main(["fit", str(given), "-c", "irp", "-o", str(model), *words]) == 0
    assert main(["apply", str(model), str(given), "-o", str(out)]) == 0

    calibrator = IRPCalibrator(pseudocount=0.5, random_state=0)
    calibrator.fit(P, y, labels=np.arange(K), sample_weight=weights)
    found = READERS[other].read(out)
    calibrated = found.select(f"p_{k}_cal" for k in range(K)).to_numpy()
    np.testing.assert_array_equal(calibrated, calibrator.predict_proba(P))
    np.testing.assert_array_equal(found.select(f"p_{k}" for k in range(K)).to_numpy(), P)
    loaded = isoroc.load(model)
    assert loaded.classes_.tolist() == list(range(K))


@pytest.mark.usefixtures("model")
def test_other_columns_do_not_change(run_cli):
    lines = Path("data.csv").read_text().splitlines()
    assert run_cli("apply", "model.json", "data.csv", "-o", "out.csv").code == 0
    for before, after in zip(lines, Path("out.csv").read_text().splitlines(), strict=True):
        assert after.startswith(before)


@pytest.mark.usefixtures("model")
def test_text_becomes_typed_if_the_output_has_types(run_cli):
    assert run_cli("apply", "model.json", "data.csv", "-o", "out.parquet").code == 0
    assert pl.read_parquet_schema("out.parquet")["p_cat"] == pl.Float64


def test_many_files_and_batches_keep_the_order_of_rows(run_cli, monkeypatch):
    monkeypatch.setattr("isoroc._cli.batches.BATCH", 64)
    table = make_forecasts(1000)
    Path("days").mkdir()
    for k, start in enumerate(range(0, 1000, 300)):
        table[start : start + 300].write_parquet(f"days/{k}.parquet", row_group_size=50)
    assert run_cli("fit", "days", "-o", "m.json", "-c", "irp").code == 0
    assert run_cli("apply", "m.json", "days", "-o", "out.parquet").code == 0
    out = pl.read_parquet("out.parquet")
    assert out["id"].equals(table["id"])
    P = table.select("p_bird", "p_cat", "p_dog").to_numpy()
    expected = IRPCalibrator(random_state=0).fit(P, table["y"].to_numpy()).predict_proba(P)
    np.testing.assert_array_equal(out.select("^.*_cal$").to_numpy(), expected)


def test_standard_input_and_output(table, run_cli):
    data = table.write_csv().encode()
    fitted = run_cli("fit", "-", "-o", "-", "-c", "irp", stdin=data)
    assert fitted.code == 0
    assert json.loads(fitted.out)["summary"]["files"] == ["standard input"]
    assert "standard output: irp fitted to 300 rows, 3 classes" in fitted.err
    Path("m.json").write_bytes(fitted.out)
    applied = run_cli("apply", "m.json", "-", "-o", "-", stdin=data)
    assert applied.out.startswith(b"id,p_bird,p_cat,p_dog,w,y,p_bird_cal")
    table.write_parquet("x.parquet")
    data = Path("x.parquet").read_bytes()
    applied = run_cli("apply", "m.json", "-", "-o", "-", stdin=data)
    assert pl.read_parquet(BytesIO(applied.out)).height == 300
    applied = run_cli("apply", "m.json", "-", "-o", "-", "--output-format", "ndjson", stdin=data)
    assert json.loads(applied.text.splitlines()[0])["id"] == "00000"


def test_names_of_calibrated_columns(model, table, run_cli):
    expected = isoroc.load(model).predict_proba(table.select("^p_.*$").to_numpy())

    def applied(*words):
        ran = run_cli("apply", "model.json", "data.csv", "-o", "out.csv", *words)
        assert ran.code == 0, ran.err
        return pl.read_csv("out.csv", schema_overrides={"id": pl.String})

    assert applied().columns[-3:] == ["p_bird_cal", "p_cat_cal", "p_dog_cal"]
    assert applied("--suffix", "!").columns[-3:] == ["p_bird!", "p_cat!", "p_dog!"]
    named = applied("--names", "a,b", "--names", "c")
    np.testing.assert_array_equal(named.select("a", "b", "c").to_numpy(), expected)
    replaced = applied("--replace")
    assert replaced.columns == table.columns
    np.testing.assert_array_equal(replaced.select("^p_.*$").to_numpy(), expected)


@pytest.mark.usefixtures("model")
def test_replace_in_place(table, run_cli):
    assert run_cli("apply", "model.json", "data.csv", "-o", "data.csv", "--replace").code == 0
    assert pl.read_csv("data.csv").columns == table.columns
    assert listing() == ["data.csv", "model.json"]


def test_a_score_gives_one_probability_or_two(run_cli):
    pl.DataFrame({"score": [-3.0, 0.0, 4.0, 7.0], "y": [0, 1, 0, 1]}).write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp")
    assert "before" not in ran.err  # a logit has no log loss
    run_cli("apply", "m.json", "x.csv", "-o", "a.csv")
    run_cli("apply", "m.json", "x.csv", "-o", "b.csv", "--names", "no,yes")
    a = pl.read_csv("a.csv")
    b = pl.read_csv("b.csv")
    assert a.columns == ["score", "y", "score_cal"]
    assert b["yes"].equals(a["score_cal"].rename("yes"))
    assert (b["no"] + b["yes"] == 1).all()


def test_calibration_of_one_batch(table):
    """What runs in the threads of polars, whose lines no tool can see."""
    P = table.select("^p_.*$").to_numpy()
    model = IRPCalibrator().fit(P, table["y"])
    columns = ["p_bird", "p_cat", "p_dog"]
    seen = list[int]()
    source = Source([], Format("csv", None, ","), [])
    loaded = Model("", model, None, None, None, None, None, {})
    step = Calibration(source, loaded, columns, {"q": 1}, advance=seen.append)
    batch = table.with_row_index(ROW)
    assert step(batch)["q"].to_list() == model.predict_proba(P)[:, 1].tolist()
    assert step(batch[:0]).schema == {**table.schema, "q": pl.Float64}
    assert sum(seen) == len(table)


def test_one_name_for_the_calibrated_score(run_cli):
    Path("x.csv").write_text("score,y\n0.1,0\n0.9,1\n0.3,0\n")
    assert run_cli("fit", "x.csv", "-c", "irp", "-o", "m.json").code == 0
    assert run_cli("apply", "m.json", "x.csv", "--names", "q", "-o", "out.csv").code == 0
    assert pl.read_csv("out.csv").columns == ["score", "y", "q"]
    Path("y.csv").write_text("p_1\n0.1\n")
    assert run_cli("apply", "m.json", "y.csv", "-o", "out.csv").code == 0


@pytest.mark.usefixtures("model")
def test_a_table_without_rows_gives_a_table_without_rows(table, run_cli):
    table.clear().write_parquet("none.parquet")
    assert run_cli("apply", "model.json", "none.parquet", "-o", "out.parquet").code == 0
    assert pl.read_parquet("out.parquet").shape == (0, 9)


def test_models_saved_in_python_name_their_columns(table, run_cli):
    frame = table.to_pandas()[["p_bird", "p_cat", "p_dog"]]
    IRPCalibrator().fit(frame, table["y"]).save("m.json")
    table.write_csv("x.csv")
    ran = run_cli("apply", "m.json", "x.csv", "-o", "out.csv")
    assert (ran.code, ran.err) == (0, "")
    IRPCalibrator().fit(frame.to_numpy(), table["y"]).save("m.json")
    assert run_cli("apply", "m.json", "x.csv", "-o", "out2.csv").code == 0
    assert Path("out.csv").read_text() == Path("out2.csv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suffix", ""], "column 'p_bird' exists already"),
        (["--names", "a,b"], "--names: expected 3 names, one for each class, got 2"),
        (["--names", "a,b,a"], "a, b, a are not all different"),
        (["-p", "p_cat"], "the model takes 3 column(s) of forecasts, found 1 (p_cat)"),
        (["--output-format", "xls"], "unknown format xls"),
        (["--names", "a,b,c", "--replace"], "--replace keeps the names of the columns"),
        (["-o", "no/out.csv"], "no/out.csv: the folder does not exist"),
    ],
)
@pytest.mark.usefixtures("model")
def test_errors_of_apply(run_cli, words, message):
    out = [] if "-o" in words else ["-o", "out.csv"]
    ran = run_cli("apply", "model.json", "data.csv", *out, *words)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert not Path("out.csv").exists()


@pytest.mark.usefixtures("model")
def test_an_invalid_row_leaves_the_old_output(table, run_cli):
    Path("out.csv").write_text("old")
    bad = table.with_columns(p_cat=pl.when(pl.col("id") == "00250").then(7).otherwise("p_cat"))
    for part, rows in enumerate((bad[:200], bad[200:])):
        rows.write_csv(f"part{part}.csv")
    ran = run_cli("apply", "model.json", "part0.csv", "part1.csv", "-o", "out.csv")
    assert ran.code == 2
    assert "part1.csv: row 50 (p_bird, p_cat, p_dog) sums to" in ran.err
    assert Path("out.csv").read_text() == "old"
    assert listing() == ["data.csv", "model.json", "out.csv", "part0.csv", "part1.csv"]
