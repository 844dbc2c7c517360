"""Counts on the command line."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from isoroc import Counts, load


@pytest.fixture
def animals(folder):
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.ones(3), 600)
    P = truth**2 / (truth**2).sum(axis=1, keepdims=True)
    y = [rng.choice(["bird", "cat", "dog"], p=p) for p in truth]
    columns = {"p_dog": P[:, 2], "p_bird": P[:, 0], "p_cat": P[:, 1], "animal": y}
    frame = pl.DataFrame(columns | {"user": np.arange(600) // 4, "w": np.full(600, 2)})
    frame.write_csv(folder / "all.csv")
    for part in (0, 1):
        frame[300 * part : 300 * (part + 1)].write_parquet(folder / f"{part}.parquet")
    return P, y


OPTIONS = ("--label", "animal", "--weight", "w", "--fold-by", "user")


def test_counts_of_files_are_those_of_arrays(animals, run_cli):
    P, y = animals
    assert run_cli("count", "all.csv", *OPTIONS, "-o", "all.counts.parquet").code == 0
    counts = Counts.from_parquet("all.counts.parquet")
    weights = np.full(600, 2.0)
    expected = Counts.from_arrays(P, y, sample_weight=weights, fold_by=np.arange(600) // 4)
    assert counts.classes.tolist() == ["bird", "cat", "dog"]
    np.testing.assert_array_equal(counts.cells.keys, expected.cells.keys)
    np.testing.assert_array_equal(counts.class_weights, expected.class_weights)


def test_counts_of_parts_merge_and_fit(animals, run_cli):  # noqa: ARG001
    for part in (0, 1):
        words = ["count", f"{part}.parquet", *OPTIONS, "-o", f"{part}.counts.parquet"]
        assert run_cli(*words).code == 0
    run_cli("count", "all.csv", *OPTIONS, "-o", "whole.parquet")
    assert run_cli("merge", "?.counts.parquet", "-o", "merged.parquet").code == 0
    merged = Counts.from_parquet("merged.parquet")
    whole = Counts.from_parquet("whole.parquet")
    np.testing.assert_array_equal(merged.class_weights, whole.class_weights)
    words = ["merge", "0.counts.parquet", "1.counts.parquet", "--decay", "0.5", "-o", "d.parquet"]
    assert run_cli(*words).code == 0
    assert Counts.from_parquet("d.parquet").weight == 0.75 * whole.weight
    ran = run_cli("fit", "--counts", "?.counts.parquet", "-c", "matrix", "-o", "counts.json")
    assert "matrix fitted to 600 rows, 3 classes" in ran.err
    run_cli("fit", "all.csv", "--label", "animal", "-w", "w", "-c", "matrix", "-o", "rows.json")
    losses = [load(file).summary_["log_loss"] for file in ("counts.json", "rows.json")]
    assert losses[0]["after"] == pytest.approx(losses[1]["after"], abs=1e-3)
    assert run_cli("apply", "counts.json", "all.csv", "-o", "applied.csv").code == 0


def test_a_repeated_merge_counts_nothing_twice(animals, run_cli):  # noqa: ARG001
    for part in (0, 1):
        run_cli("count", f"{part}.parquet", *OPTIONS, "-o", f"{part}.counts.parquet")
    total = "total.parquet"
    today = "1.counts.parquet"
    words = ["merge", "0.counts.parquet", today, "-o", total]
    for _ in range(2):
        assert run_cli(*words).code == 0
        assert Counts.from_parquet(total).n_rows == 600
    merged = Path(total).read_bytes()
    for inputs, message in {
        (total, today): f"{total}: is also an input",
        (today, "*.counts.parquet"): "a file is named twice",
    }.items():
        refused = run_cli("merge", *inputs, "-o", total)
        assert (refused.code, message in refused.err) == (2, True)
        assert Path(total).read_bytes() == merged


def test_many_rows_are_counted_as_they_are_read(animals, run_cli, monkeypatch):  # noqa: ARG001
    monkeypatch.setattr("isoroc._cli.reading.MANY", 299)
    ran = run_cli("fit", "0.parquet", "--label", "animal", "-c", "temperature", "-o", "many.json")
    assert "temperature fitted to 300 rows" in ran.err
    monkeypatch.setattr("isoroc._cli.reading.MANY", 300)
    run_cli("fit", "0.parquet", "--label", "animal", "-c", "temperature", "-o", "few.json")
    temperatures = [load(file).temperature_ for file in ("many.json", "few.json")]
    assert temperatures[0] != temperatures[1]
    assert temperatures[0] == pytest.approx(temperatures[1], rel=1e-2)


def test_scores_that_are_not_probabilities_are_kept_as_rows(folder, run_cli, monkeypatch):
    monkeypatch.setattr("isoroc._cli.reading.MANY", 3)
    frame = pl.DataFrame({"score": [-3.0, -1.0, 0.5, 2.0, 7.0], "y": [0, 1, 0, 1, 1]})
    frame.write_parquet(folder / "odds.parquet")
    assert run_cli("fit", "odds.parquet", "-c", "isotonic", "-o", "odds.json").code == 0
    assert load("odds.json").unit_ == "logit"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("count", "all.csv", "--label", "animal", "-o", "-"), "counts are written to a file"),
        (("count", "all.csv", "--label", "animal", "--resolution", "3", "-o", "c"), "is 3"),
        (("fit", "--counts", "0.parquet", "-o", "m.json"), "0.parquet holds no counts"),
        (("fit", "--counts", "0.parquet", "-l", "y", "-o", "m.json"), "when they were counted"),
        (("merge", "absent.parquet", "-o", "m.parquet"), "absent.parquet: no such file"),
        (("merge", "0.parquet", "-o", "m.parquet", "--decay", "2"), "--decay 2: expected"),
        (("merge", "0.parquet", "-o", "m.parquet", "--decay", "nan"), "--decay nan: expected"),
    ],
)
def test_errors(animals, run_cli, words, message):  # noqa: ARG001
    ran = run_cli(*words)
    assert ran.code == 2
    assert message in ran.err
