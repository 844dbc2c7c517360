import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import isoroc
from cli_tables import READERS, listing, make_forecasts
from isoroc import IRPCalibrator


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (False, True), (1.0, 2.0)])
@pytest.mark.parametrize("end", ["csv", "ndjson", "parquet"])
def test_classes_keep_their_type(run_cli, labels, end):
    scores = np.arange(20) / 20
    table = pl.DataFrame({"score": scores, "y": [labels[int(s > 0.3)] for s in scores]})
    READERS[end].write(table, f"x.{end}")
    ran = run_cli("fit", f"x.{end}", "-o", "m.json", "-c", "irp")
    assert ran.code == 0
    assert f"score is the score of class {labels[1]}" in ran.err
    assert isoroc.load("m.json").classes_.tolist() == list(labels)
    assert type(isoroc.load("m.json").classes_.tolist()[0]) is type(labels[0])


def test_text_labels_stay_text_in_typed_formats(run_cli):
    pl.DataFrame({"score": [0.1, 0.9], "y": ["0", "1"]}).write_parquet("x.parquet")
    assert run_cli("fit", "x.parquet", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == ["0", "1"]
    pl.DataFrame({"score": [0.1, 0.9], "y": ["0", "1"]}).write_csv("x.csv")  # the same to a model
    assert run_cli("evaluate", "x.csv", "-m", "m.json").code == 0


@pytest.mark.parametrize(("fitted", "new"), [([1, 2], [1.0, 2.0]), (["1", "2"], [1, 2])])
def test_labels_of_another_type_are_matched_to_the_classes_of_a_model(run_cli, fitted, new):
    for name, labels in (("fitted", fitted), ("new", new)):
        pl.DataFrame({"score": [0.1, 0.9], "y": labels}).write_parquet(f"{name}.parquet")
    assert run_cli("fit", "fitted.parquet", "-o", "m.json", "-c", "irp").code == 0
    ran = run_cli("evaluate", "new.parquet", "-m", "m.json", "--json")
    assert (ran.code, json.loads(ran.out)["classes"]) == (0, fitted), ran.err


def test_labels_with_leading_zeros_stay_text(run_cli):
    Path("x.csv").write_text("score,y\n0.1,01\n0.9,02\n")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == ["01", "02"]


def test_spellings_of_numbers_and_booleans_are_unified(run_cli):
    Path("x.csv").write_text("score,y\n0.1,0\n0.9,1.0\n")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == [0.0, 1.0]
    Path("x.csv").write_text("score,y\n0.1,FALSE\n0.9,True\n")
    assert run_cli("fit", "x.csv", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == [False, True]


def test_the_order_of_columns_does_not_matter(table, run_cli):
    table.write_csv("a.csv")
    table.select("p_dog", "y", "p_bird", "p_cat").write_csv("b.csv")
    for name in "ab":
        assert run_cli("fit", f"{name}.csv", "-o", f"{name}.json", "-c", "irp").code == 0
        run_cli("apply", f"{name}.json", f"{name}.csv", "-o", f"{name}.out.csv")
    a, b = (pl.read_csv(f"{name}.out.csv") for name in "ab")
    assert a.select("p_bird_cal", "p_dog_cal").equals(b.select("p_bird_cal", "p_dog_cal"))


def test_a_class_that_does_not_occur_is_known_from_its_column(table, run_cli):
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
    assert "takes scores of the class bird, but p_cat is named after cat" in ran.err


def test_filter_and_weights_equal_those_of_the_library(table, run_cli):
    table.write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "--where", "w >= 1 AND y <> 'dog'", "-w", "w", "-o", "m.json",
                 "-c", "irp", "--max-bins", "5", "--prior", "marginal")  # fmt: skip
    assert ran.code == 0
    kept = table.filter((pl.col("w") >= 1) & (pl.col("y") != "dog"))
    P = kept.select("p_bird", "p_cat", "p_dog").to_numpy()
    codes = kept["y"].replace_strict({"bird": 0, "cat": 1}).to_numpy()
    expected = IRPCalibrator(max_bins=5, prior="marginal", random_state=0)
    expected.fit(P, codes, labels=[0, 1, 2], sample_weight=kept["w"].to_numpy())
    model = isoroc.load("m.json")
    np.testing.assert_array_equal(model.predict_proba(P), expected.predict_proba(P))
    assert model.summary_["where"] == "w >= 1 AND y <> 'dog'"
    assert model.summary_["rows"] == len(kept)
    assert (model.summary_["label"], model.summary_["columns"][0]) == ("y", "p_bird")


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


FIT = ["fit", "x.csv", "-o", "m.json", "-c", "irp"]


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("p_a,p_b,y\n0.5,0.5,a\n0.2,0.9,b\n", FIT,
         "x.csv: row 1 (p_a, p_b) sums to 1.1, not to 1; each row must hold"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.2,x,b\n", FIT,
         "x.csv: row 1, column 'p_b' is 'x', not a number"),
        ("p_a,p_b,y\n0.5,0.5,a\n,0.5,b\n", FIT, "x.csv: row 1, column 'p_a' is empty"),
        ("p_a,p_b,y\n-0.5,1.5,a\n", FIT, "x.csv: row 0 (p_a, p_b) holds -0.5"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.5,0.5,\n", FIT,
         "row 1, column 'y' is empty; leave out rows without a label"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.5,0.5,b\n0.5,0.5,c\n", FIT,
         "row 2, column 'y' is 'c', but the forecasts have only 2 classes"),
        ("p_a,p_b,y\n0.5,0.5,a\n", FIT, "all rows have the label a; at least two classes"),
        ("p_a,p_b,y\n", FIT, "x.csv: no rows; at least one is needed"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "y = 'b'"], "no rows with y = 'b'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "z = 1"], "--where: no column 'z'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "y ="], "as in SQL, for example"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--where", "lower(y)"], "filter predicate must be"),
        ("p_a,p_b,y,w\n0.5,0.5,a,-1\n", [*FIT, "-w", "w"], "row 0 (w) is -1; weights must be"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "-w", "v"], "--weight: no column 'v'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "-l", "p_a", "-p", "p_a,p_b"],
         "a column is used twice: p_a, p_b, p_a"),
        ("", FIT, "x.csv: empty; the first line must name the columns"),
        ("p_a,p_b,y\n0.5,0.5,a,1,2\n", FIT, "x.csv: row 0 has 5 fields, but the header has 3"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--max-bin", "3"], "did you mean 'max-bins'"),
        ("p_a,p_b,y\n0.5,0.5,a\n", [*FIT, "--lable", "y"], "did you mean 'label'"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.4,0.6,b\n", [*FIT, "--max-bins", "x"],
         "--max-bins: is 'x'; expected an int"),
        ("p_a,p_b,y\n0.5,0.5,a\n", ["fit", "x.csv", "-o", "m", "-c", "ipr"],
         "--calibrator ipr: unknown; did you mean 'irp'"),
        ("p_a,p_b,y\n0.5,0.5,a\n0.4,0.6,b\n", ["fit", "x.csv", "-c", "irp", "-o", "no/m.json"],
         "no/m.json: the folder does not exist"),
        ("p,y\n0.5,0.25\n0.4,0.6\n", FIT, "x.csv: column 'y' holds 0.25; labels must be classes"),
    ],
)  # fmt: skip
def test_errors_of_fit_name_the_file_the_row_the_column_and_the_fix(run_cli, text, words, message):
    Path("x.csv").write_text(text)
    ran = run_cli(*words)
    assert ran.code == 2
    assert message in ran.err
    assert ran.err.startswith("isoroc: error: ")
    assert ran.err.count("\n") == 1
    assert listing() == ["x.csv"]


def test_labels_must_be_classes(run_cli):
    frame = pl.DataFrame({"score": [0.1, 0.2], "y": [[1], [2]], "d": [None, 1.0]})
    frame.write_parquet("x.parquet")
    ran = run_cli("fit", "x.parquet", "-o", "m.json")
    assert "column 'y' has the type List(Int64); expected numbers, text or booleans" in ran.err
    ran = run_cli("fit", "x.parquet", "-l", "d", "-o", "m.json")
    assert "row 0, column 'd' is empty" in ran.err
    ran = run_cli("fit", "x.parquet", "-l", "d", "-p", "y", "-o", "m.json")
    assert "column 'y' has the type List(Int64); expected numbers, text or booleans" in ran.err
    pl.DataFrame({"score": [0.1, 0.2], "y": [1.0, 1.5]}).write_parquet("x.parquet")
    ran = run_cli("fit", "x.parquet", "-o", "m.json")
    assert "row 1, column 'y' is 1.5; labels must be classes" in ran.err


def test_categories_are_text(run_cli):
    kind = pl.Enum(["no", "yes"])
    table = pl.DataFrame({"score": [0.1, 0.9], "y": pl.Series(["no", "yes"], dtype=kind)})
    table.write_parquet("x.parquet")
    assert run_cli("fit", "x.parquet", "-o", "m.json", "-c", "irp").code == 0
    assert isoroc.load("m.json").classes_.tolist() == ["no", "yes"]


def test_weights_may_be_zero_in_a_batch_but_not_in_all(run_cli, monkeypatch):
    monkeypatch.setattr("isoroc._cli.batches.BATCH", 2)
    table = pl.DataFrame({"score": [0.1, 0.3, 0.2, 0.9], "y": [0, 1, 0, 1], "w": [0, 0, 1, 1]})
    table.write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-w", "w", "-o", "m.json", "-c", "irp").code == 0
    table.with_columns(w=0).write_csv("x.csv")
    ran = run_cli("fit", "x.csv", "-w", "w", "-o", "m.json", "-c", "irp")
    assert "--weight: all weights are zero" in ran.err


def test_the_same_rows_give_the_same_bytes(run_cli, monkeypatch):
    make_forecasts().write_csv("x.csv")
    words = ["fit", "x.csv", "-c", "irp", "-o"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in ("a.json", "b.json"):
        assert run_cli(*words, name).code == 0
    assert Path("a.json").read_bytes() == Path("b.json").read_bytes()
    assert json.loads(Path("a.json").read_bytes())["saved"] == "2023-11-14T22:13:20Z"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert run_cli(*words, "c.json").code == 0
    a, c = (json.loads(Path(name).read_bytes()) for name in ("a.json", "c.json"))
    assert (a["checksum"], a["saved"] < c["saved"]) == (c["checksum"], True)


def test_a_model_that_is_too_large_is_an_error_about_the_target(table, run_cli, monkeypatch):
    table.write_csv("x.csv")
    monkeypatch.setattr("isoroc._maps.modelfile.document.MAX_VALUES", 50)
    ran = run_cli("fit", "x.csv", "-c", "irp", "-o", "m.json")
    assert ran.code == 2
    assert "error: m.json: the model is too large for a model file: more than 50" in ran.err
    assert listing() == ["x.csv"]


def test_ordered_classes_are_numbers(run_cli):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), 300)
    codes = (rng.random((300, 1)) > P.cumsum(axis=1)[:, :2]).sum(axis=1)
    for labels in ([1, 2, 3], ["low", "mid", "top"]):
        table = {f"p_{label}": P[:, k] for k, label in enumerate(labels)}
        pl.DataFrame(table | {"y": np.array(labels)[codes]}).write_parquet("x.parquet")
        ran = run_cli("fit", "x.parquet", "-o", f"{labels[0]}.json", "-c", "ordinal")
        if labels[0] == 1:
            assert ran.code == 0, ran.err
            assert type(isoroc.load("1.json")) is isoroc.OrdinalCalibrator
        else:
            assert ran.code != 0
            assert "the order of the classes 'low', 'mid', 'top' is not known" in ran.err
