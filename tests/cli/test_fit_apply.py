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
from isoroc._cli import main
from isoroc._cli.commands.apply import Calibrate
from isoroc._cli.io.files import ROW
from isoroc._cli.io.reading import check_batch
from strategies import labelled_forecasts


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(labelled_forecasts(), st.sampled_from(sorted(READERS)), st.sampled_from(sorted(READERS)))
def test_apply_is_predict_proba_for_every_format(tmp_path, data, end, other):
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

    calibrator = IRPCalibrator(pseudocount=0.5, random_state=0).fit(P, y, sample_weight=weights)
    found = READERS[other].read(out)
    calibrated = found.select(f"p_{k}_cal" for k in range(K)).to_numpy()
    np.testing.assert_array_equal(calibrated, calibrator.predict_proba(P))
    np.testing.assert_array_equal(found.select(f"p_{k}" for k in range(K)).to_numpy(), P)
    loaded = isoroc.load(model)
    assert loaded.classes_.tolist() == list(range(K))


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (False, True), (1.0, 2.0)])
@pytest.mark.parametrize("end", ["csv", "ndjson", "parquet"])
def test_classes_keep_their_type(run_cli, labels, end):
    scores = np.arange(20) / 20
    table = pl.DataFrame({"score": scores, "y": [labels[int(s > 0.3)] for s in scores]})
    READERS[end].write(table, f"x.{end}")
    ran = run_cli("fit", f"x.{end}", "-o", "m.json", "-c", "irp")
    assert ran.code == 0
    assert f"score is taken as the score of {labels[1]}" in ran.err
    assert isoroc.load("m.json").classes_.tolist() == list(labels)
    assert type(isoroc.load("m.json").classes_.tolist()[0]) is type(labels[0])


def test_text_that_looks_like_numbers_stays_text_where_types_are_known(run_cli):
    pl.DataFrame({"score": [0.1, 0.9], "y": ["0", "1"]}).write_parquet("x.parquet")
    assert run_cli("fit", "x.parquet", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == ["0", "1"]
    pl.DataFrame({"score": [0.1, 0.9], "y": ["0", "1"]}).write_csv("x.csv")  # the same to a model
    assert run_cli("evaluate", "x.csv", "-m", "m.json", "--resamples", "0").code == 0


def test_names_that_look_like_numbers_stay_names(run_cli):
    Path("x.csv").write_text("score,y\n0.1,01\n0.9,02\n")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == ["01", "02"]


def test_words_for_the_same_are_the_same(run_cli):
    Path("x.csv").write_text("score,y\n0.1,0\n0.9,1.0\n")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == [0.0, 1.0]
    Path("x.csv").write_text("score,y\n0.1,FALSE\n0.9,True\n")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == [False, True]


def test_columns_follow_their_classes_whatever_their_order(table, run_cli):
    table.write_csv("a.csv")
    table.select("p_dog", "y", "p_bird", "p_cat").write_csv("b.csv")
    for name in "ab":
        assert run_cli("fit", f"{name}.csv", "-o", f"{name}.json", "-c", "irp").code == 0
        run_cli("apply", f"{name}.json", f"{name}.csv", "-o", f"{name}.out.csv")
    a, b = (pl.read_csv(f"{name}.out.csv") for name in "ab")
    assert a.select("p_bird_cal", "p_dog_cal").equals(b.select("p_bird_cal", "p_dog_cal"))


def test_a_class_that_never_came_true(table, run_cli):
    table.filter(pl.col("y") != "cat").write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == ["bird", "cat", "dog"]


def test_a_score_of_the_first_class(table, run_cli):
    two = table.filter(pl.col("y") != "dog")
    two.write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-p", "p_bird", "-o", "m.json", "-c", "irp").code == 0
    model = isoroc.load("m.json")
    assert model.classes_.tolist() == ["cat", "bird"]
    expected = IRPCalibrator().fit(two["p_bird"].to_numpy(), two["y"].to_numpy() == "bird")
    np.testing.assert_array_equal(
        model.predict_proba(two["p_bird"].to_numpy()), expected.predict_proba(two["p_bird"])
    )
    ran = run_cli("apply", "m.json", "x.csv", "-p", "p_cat", "-o", "out.csv")
    assert ran.code == 2
    assert "takes scores of the class bird, but p_cat is named like those of cat" in ran.err


def test_the_filter_and_the_weights_are_those_of_python(table, run_cli):
    table.write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "--where", "w >= 1 AND y <> 'dog'", "-w", "w", "-o", "m.json",
                 "-c", "irp", "--max-bins", "5", "--prior", "marginal")  # fmt: skip
    assert ran.code == 0
    kept = table.filter((pl.col("w") >= 1) & (pl.col("y") != "dog"))
    P = kept.select("p_bird", "p_cat", "p_dog").to_numpy()
    codes = kept["y"].replace_strict({"bird": 0, "cat": 1}).to_numpy()
    expected = IRPCalibrator(max_bins=5, prior="marginal", random_state=0)
    expected.fit(P, codes, sample_weight=kept["w"].to_numpy())
    model = isoroc.load("m.json")
    np.testing.assert_array_equal(model.predict_proba(P), expected.predict_proba(P))
    assert model.summary_["where"] == "w >= 1 AND y <> 'dog'"
    assert model.summary_["rows"] == len(kept)
    assert (model.summary_["label"], model.summary_["columns"][0]) == ("y", "p_bird")


@pytest.mark.usefixtures("model")
def test_other_columns_pass_through_untouched(run_cli):
    lines = Path("data.csv").read_text().splitlines()
    assert run_cli("apply", "model.json", "data.csv", "-o", "out.csv").code == 0
    for before, after in zip(lines, Path("out.csv").read_text().splitlines(), strict=True):
        assert after.startswith(before)


@pytest.mark.usefixtures("model")
def test_text_becomes_typed_where_the_output_has_types(run_cli):
    assert run_cli("apply", "model.json", "data.csv", "-o", "out.parquet").code == 0
    assert pl.read_parquet_schema("out.parquet")["p_cat"] == pl.Float64


def test_many_files_many_batches_one_order(run_cli, monkeypatch):
    monkeypatch.setattr("isoroc._cli.io.reading.BATCH", 64)
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


def test_a_sample_is_a_random_share_and_always_the_same(run_cli, monkeypatch):
    make_forecasts(2000).write_csv("x.csv")
    found = []
    for batch in (1 << 17, 37):
        monkeypatch.setattr("isoroc._cli.io.reading.BATCH", batch)
        ran = run_cli("fit", "x.csv", "--sample", "0.25", "-c", "irp", "-o", "m.json")
        assert ran.code == 0, ran.err
        found.append(json.loads(Path("m.json").read_text())["model"])
    assert found[0] == found[1]
    assert isoroc.load("m.json").summary_["rows"] == pytest.approx(500, abs=60)
    ran = run_cli("fit", "x.csv", "--sample", "10", "-o", "m.json")
    assert "--sample 10: expected a share between 0 and 1" in ran.err


def test_standard_input_and_output(table, run_cli):
    data = table.write_csv().encode()
    fitted = run_cli("fit", "-", "-o", "-", "-c", "irp", stdin=data)
    assert fitted.code == 0
    assert json.loads(fitted.out)["summary"]["files"] == ["standard input"]
    assert "standard output: irp on 300 rows, 3 classes" in fitted.err
    Path("m.json").write_bytes(fitted.out)
    applied = run_cli("apply", "m.json", "-", "-o", "-", stdin=data)
    assert applied.out.startswith(b"id,p_bird,p_cat,p_dog,w,y,p_bird_cal")
    table.write_parquet("x.parquet")
    data = Path("x.parquet").read_bytes()
    applied = run_cli("apply", "m.json", "-", "-o", "-", stdin=data)
    assert pl.read_parquet(BytesIO(applied.out)).height == 300
    applied = run_cli("apply", "m.json", "-", "-o", "-", "--output-format", "ndjson", stdin=data)
    assert json.loads(applied.text.splitlines()[0])["id"] == "00000"


def test_names_of_what_is_added(model, table, run_cli):
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
def test_in_place(table, run_cli):
    assert run_cli("apply", "model.json", "data.csv", "-o", "data.csv", "--replace").code == 0
    assert pl.read_csv("data.csv").columns == table.columns
    assert listing() == ["data.csv", "model.json"]


def test_a_score_gives_one_probability_or_two(run_cli):
    pl.DataFrame({"score": [-3.0, 0.0, 4.0, 7.0], "y": [0, 1, 0, 1]}).write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp")
    assert "before" not in ran.err  # a logit has no log loss
    run_cli("apply", "m.json", "x.csv", "-o", "a.csv")
    run_cli("apply", "m.json", "x.csv", "-o", "b.csv", "--names", "no,yes")
    a, b = pl.read_csv("a.csv"), pl.read_csv("b.csv")
    assert a.columns == ["score", "y", "score_cal"]
    assert b["yes"].equals(a["score_cal"].rename("yes"))
    assert (b["no"] + b["yes"] == 1).all()


def test_batches_by_hand(table):
    """What runs in the threads of polars, whose lines no tool can see."""
    P = table.select("^p_.*$").to_numpy()
    model = IRPCalibrator().fit(P, table["y"])
    columns, seen = ["p_bird", "p_cat", "p_dog"], []
    step = Calibrate(model, None, columns, {"q": 1}, seen.append)
    batch = table.with_row_index(ROW)
    assert step(batch)["q"].to_list() == model.predict_proba(P)[:, 1].tolist()
    assert step(batch[:0]).schema == {**table.schema, "q": pl.Float64}
    assert seen == [len(table)]
    with pytest.raises(ValueError, match="a fault without a row"):
        check_batch(batch, columns, None, fail)


def fail(_):
    raise ValueError("a fault without a row")


def test_many_classes(run_cli):
    classes = [f"c{k:02d}" for k in range(14)]
    make_forecasts(200, classes).write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "-c", "irp", "--top", "1", "-o", "m.json")
    assert ran.code == 0
    assert "columns" not in ran.err
    assert isoroc.load("m.json").top_ == 1
    shuffled = [f"p_{name}" for name in reversed(classes)]
    assert run_cli("apply", "m.json", "x.csv", "-p", ",".join(shuffled), "-o", "a.csv").code == 0
    assert run_cli("apply", "m.json", "x.csv", "-o", "b.csv").code == 0
    assert pl.read_csv("a.csv").equals(pl.read_csv("b.csv"))


def test_one_name_for_one_score(run_cli):
    Path("x.csv").write_text("score,y\n0.1,0\n0.9,1\n0.3,0\n")
    assert run_cli("fit", "x.csv", "-c", "irp", "-o", "m.json").code == 0
    assert run_cli("apply", "m.json", "x.csv", "--names", "q", "-o", "out.csv").code == 0
    assert pl.read_csv("out.csv").columns == ["score", "y", "q"]
    Path("y.csv").write_text("p_1\n0.1\n")
    assert run_cli("apply", "m.json", "y.csv", "-o", "out.csv").code == 0


@pytest.mark.usefixtures("model")
def test_no_rows_in_no_rows_out(table, run_cli):
    table.clear().write_parquet("none.parquet")
    assert run_cli("apply", "model.json", "none.parquet", "-o", "out.parquet").code == 0
    assert pl.read_parquet("out.parquet").shape == (0, 9)


def test_models_of_python_know_their_columns(table, run_cli):
    frame = table.to_pandas()[["p_bird", "p_cat", "p_dog"]]
    IRPCalibrator().fit(frame, table["y"]).save("m.json")
    table.write_csv("x.csv")
    ran = run_cli("apply", "m.json", "x.csv", "-o", "out.csv")
    assert (ran.code, ran.err) == (0, "")
    IRPCalibrator().fit(frame.to_numpy(), table["y"]).save("m.json")
    assert run_cli("apply", "m.json", "x.csv", "-o", "out2.csv").code == 0
    assert Path("out.csv").read_text() == Path("out2.csv").read_text()


FIT = ["fit", "x.csv", "-o", "m.json", "-c", "irp"]


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("p_a,p_b,y\n0.5,0.5,a\n0.2,0.9,b\n", FIT,
         "x.csv: row 1 (p_a, p_b) sums to 1.1, not to 1"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.2,x,b\n", FIT,
         "x.csv: row 1, column 'p_b' is 'x', not a number"),
        ("p_a,p_b,y\n0.5,0.5,a\n,0.5,b\n", FIT, "x.csv: row 1, column 'p_a' is empty"),
        ("p_a,p_b,y\n-0.5,1.5,a\n", FIT, "x.csv: row 0 (p_a, p_b) holds -0.5"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.5,0.5,\n", FIT, "row 1, column 'y' is empty; labels must be"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.5,0.5,b\n0.5,0.5,c\n", FIT,
         "row 2, column 'y' is 'c', one class more than the forecasts have (2)"),
        ("p_a,p_b,y\n0.5,0.5,a\n", FIT, "every row has the label a; rows of two classes"),
        ("p_a,p_b,y\n", FIT, "x.csv: no rows; at least one is needed"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "y = 'b'"], "no rows for which y = 'b'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "z = 1"], "--where: no column 'z'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "y ="], "as in SQL, for example"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "y"], "x.csv: filter predicate must be"),
        ("p_a,p_b,y,w\n0.5,0.5,a,-1\n", [*FIT, "-w", "w"], "row 0 (w) is -1; weights must be"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "-w", "v"], "--weight: no column 'v'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "-l", "p_a", "-p", "p_a,p_b"], "has two roles"),
        ("", FIT, "x.csv: empty CSV"),
        ("p_a,p_b,y\n0.5,0.5,a,1,2\n", FIT, "x.csv: found more fields"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--max-bin", "3"], "did you mean 'max-bins'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--lable", "y"], "did you mean 'label'"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.4,0.6,b\n", [*FIT, "--max-bins", "x"],
         "max_bins must be an instance of int, not str"),
        ("p_a,p_b,y\n0.5,0.5,a\n", ["fit", "x.csv", "-o", "m", "-c", "ipr"],
         "--calibrator ipr: not known; did you mean 'irp'"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.4,0.6,b\n", ["fit", "x.csv", "-c", "irp", "-o", "no/m.json"],
         "no/m.json: there is no such folder"),
        ("p,y\n0.5,0.25\n0.4,0.6\n", FIT, "x.csv: column 'y' holds 0.25; labels are classes"),
    ],
)  # fmt: skip
def test_errors_of_fit_name_file_row_column_and_mend(run_cli, text, words, message):
    Path("x.csv").write_text(text)
    ran = run_cli(*words)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.startswith("isoroc: error: ")
    assert ran.err.count("\n") == 1
    assert listing() == ["x.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suffix", ""], "column 'p_bird' is in the file already"),
        (["--names", "a,b"], "--names: expected 3 names, one for each class, got 2"),
        (["--names", "a,b,a"], "a, b, a are not all different"),
        (["-p", "p_cat"], "the model takes 3 column(s) of forecasts, found 1 (p_cat)"),
        (["--output-format", "xls"], "format xls: not known"),
        (["--names", "a,b,c", "--replace"], "--replace keeps the names"),
        (["-o", "no/out.csv"], "no/out.csv: there is no such folder"),
    ],
)
@pytest.mark.usefixtures("model")
def test_errors_of_apply(run_cli, words, message):
    out = [] if "-o" in words else ["-o", "out.csv"]
    ran = run_cli("apply", "model.json", "data.csv", *out, *words)
    assert (ran.code, message in ran.err) == (2, True), ran.err
    assert not Path("out.csv").exists()


@pytest.mark.usefixtures("model")
def test_a_bad_row_leaves_what_was_there(table, run_cli):
    Path("out.csv").write_text("old")
    bad = table.with_columns(p_cat=pl.when(pl.col("id") == "00250").then(7).otherwise("p_cat"))
    for part, rows in enumerate((bad[:200], bad[200:])):
        rows.write_csv(f"part{part}.csv")
    ran = run_cli("apply", "model.json", "part0.csv", "part1.csv", "-o", "out.csv")
    assert ran.code == 2
    assert "part1.csv: row 50 (p_bird, p_cat, p_dog) sums to" in ran.err
    assert Path("out.csv").read_text() == "old"
    assert listing() == ["data.csv", "model.json", "out.csv", "part0.csv", "part1.csv"]


def test_labels_must_be_classes(run_cli):
    frame = pl.DataFrame({"score": [0.1, 0.2], "y": [[1], [2]], "d": [None, 1.0]})
    frame.write_parquet("x.parquet")
    ran = run_cli("fit", "x.parquet", "-o", "m.json")
    assert "column 'y' holds List(Int64); labels are text" in ran.err
    ran = run_cli("fit", "x.parquet", "-l", "d", "-o", "m.json")
    assert "row 0, column 'd' is empty" in ran.err
    ran = run_cli("fit", "x.parquet", "-l", "d", "-p", "y", "-o", "m.json")
    assert "column 'y' holds List(Int64), not numbers" in ran.err
    pl.DataFrame({"score": [0.1, 0.2], "y": [1.0, 1.5]}).write_parquet("x.parquet")
    ran = run_cli("fit", "x.parquet", "-o", "m.json")
    assert "row 1, column 'y' is 1.5; labels are classes" in ran.err


def test_categories_are_text(run_cli):
    kind = pl.Enum(["no", "yes"])
    table = pl.DataFrame({"score": [0.1, 0.9], "y": pl.Series(["no", "yes"], dtype=kind)})
    table.write_parquet("x.parquet")
    assert run_cli("fit", "x.parquet", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == ["no", "yes"]


def test_weights_may_be_zero_for_a_while(run_cli, monkeypatch):
    monkeypatch.setattr("isoroc._cli.io.reading.BATCH", 2)
    table = pl.DataFrame({"score": [0.1, 0.3, 0.2, 0.9], "y": [0, 1, 0, 1], "w": [0, 0, 1, 1]})
    table.write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-w", "w", "-o", "m.json", "-c", "irp").code == 0
    table.with_columns(w=0).write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "-w", "w", "-o", "m.json", "-c", "irp")
    assert "all weights are zero" in ran.err
