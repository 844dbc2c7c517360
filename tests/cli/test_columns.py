import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import arrange, find_forecasts, find_label
from isoroc._cli.options import InputOptions

NAMES = st.lists(
    st.text("abcdefgh_ABC123", min_size=1, max_size=6), min_size=2, max_size=6, unique_by=str.lower
)


@given(NAMES, st.sampled_from(["p_", "proba_", "probability of "]), st.randoms())
def test_columns_named_after_classes_are_matched_in_any_order(classes, prefix, random):
    columns = [f"{prefix}{name}" for name in classes]
    random.shuffle(columns)
    order, found = arrange(columns, classes)
    assert found == sorted(classes)
    assert order == [f"{prefix}{name}" for name in sorted(classes)]


@given(st.integers(2, 12), st.data())
def test_integers_match_columns_even_if_some_do_not_occur(n_classes, data):
    labels = data.draw(st.sets(st.integers(0, n_classes - 1), min_size=1))
    for prefix in ("p", "p_", "x"):
        columns = [f"{prefix}{k}" for k in range(n_classes)]
        assert arrange(columns, labels) == (columns, list(range(n_classes)))


@pytest.mark.parametrize(
    ("columns", "labels", "expected"),
    [
        (["a", "b"], ["no", "yes"], (["a", "b"], ["no", "yes"])),
        (["yes", "no"], ["no", "yes"], (["no", "yes"], ["no", "yes"])),
        (["p_YES", "p_No"], ["no", "yes"], (["p_No", "p_YES"], ["no", "yes"])),
        (["p_cat", "p_big_cat"], ["cat", "big_cat"], (["p_big_cat", "p_cat"], ["big_cat", "cat"])),
        (["p_b_cal", "p_a_cal"], ["a", "b"], (["p_a_cal", "p_b_cal"], ["a", "b"])),
        (["p_a", "p_b", "p_c"], ["a", "c"], (["p_a", "p_b", "p_c"], ["a", "b", "c"])),
        (["p_True", "p_False"], [True, False], (["p_False", "p_True"], [False, True])),
        (["u", "v", "w"], [0, 2], (["u", "v", "w"], [0, 1, 2])),
        (["score"], [0, 1], (["score"], [0, 1])),
        (["p_spam"], ["spam", "ham"], (["p_spam"], ["ham", "spam"])),
        (["p_ham"], ["spam", "ham"], (["p_ham"], ["spam", "ham"])),
    ],
)
def test_classes_of_columns(columns, labels, expected):
    assert arrange(columns, labels) == expected


def test_classes_of_columns_may_be_given():
    swapped = InputOptions(classes=["b", "a"])
    assert arrange(["u", "v"], ["a", "b"], swapped) == (["v", "u"], ["a", "b"])
    numbers = InputOptions(classes=["7", "6", "5"])
    assert arrange(["u", "v", "w"], [5, 7], numbers) == (["w", "v", "u"], [5, 6, 7])
    assert arrange(["score"], [0, 1], InputOptions(classes=["0"])) == (["score"], [1, 0])
    for words in ["0", "1"], ["0,1"]:
        for labels in [0], [1], [0, 1]:
            both = InputOptions(classes=words)
            assert arrange(["score"], labels, both) == (["score"], [0, 1])
    assert arrange(["score"], [1], InputOptions(classes=["1,0"])) == (["score"], [1, 0])


@pytest.mark.parametrize(
    ("columns", "labels", "classes", "message"),
    [
        (
            ["p_1", "p_2", "p_3"],
            [0, 1, 2],
            None,
            "only some of the columns p_1, p_2, p_3",
        ),
        (["p_a", "p_b"], ["a", "b", "c"], None, "3 classes .a, b, c. but 2 columns"),
        (["u", "v", "w"], ["a", "b"], None, "2 classes occur .a, b. but there are 3 columns"),
        (
            ["p_a", "q_b", "p_c"],
            ["a", "b"],
            None,
            "p_a, q_b, p_c match no label",
        ),
        (["p_1", "p_x"], [1], None, "the classes 1, x are not of the type of the labels 1"),
        (["score"], ["a", "b", "c"], None, "requires two classes, but the labels have 3"),
        (["score"], ["a", "b"], ["x"], "--classes: name the class of score, one of a, b"),
        (["score"], ["a"], None, "give both with --classes, the class of score last, or name one"),
        (["score"], ["a"], ["x,y"], "expected the two classes of score, its own last; got x, y"),
        (["score"], ["a"], ["a,a"], "expected the two classes of score, its own last; got a, a"),
        (["u", "v"], ["a", "b"], ["a"], "expected 2 different classes"),
        (["u", "v"], ["a", "b"], ["a", "x"], "the label 'b' is not among them"),
        (["u", "v"], range(10), None, "0, 1, 2, 3, 4, 5, 6, 7, ..."),
    ],
)
def test_ambiguous_classes_are_errors(columns, labels, classes, message):
    with pytest.raises(CommandError, match=message):
        arrange(columns, labels, InputOptions(classes=classes))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["y", "p_0", "p_1"], ["p_0", "p_1"]),
        (["y", "p0", "p1", "p2"], ["p0", "p1", "p2"]),
        (["Proba_x", "PROBA_y", "score"], ["Proba_x", "PROBA_y"]),
        (["p_0", "p_1", "p_0_cal", "p_1_cal"], ["p_0", "p_1"]),
        (["id", "Score", "y"], ["Score"]),
        (["id", "p_yes", "y"], ["p_yes"]),
        (["score", "score_cal"], ["score"]),
    ],
)
def test_forecasts_are_found_by_name(columns, expected):
    assert find_forecasts(None, columns) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["b,a"], ["b", "a"]),
        (["b", "a"], ["b", "a"]),
        (["x_*"], ["x_1", "x_2"]),
        (["c,d"], ["c,d"]),
    ],
)
def test_forecasts_may_be_given(given, expected):
    assert find_forecasts(given, ["a", "b", "x_1", "x_2", "c,d"]) == expected


@pytest.mark.parametrize(
    ("given", "columns", "message"),
    [
        (["p"], ["a", "q"], "--probs: no column 'p'; expected one of a, q"),
        (["lable"], ["label"], "did you mean 'label'"),
        (["z*"], ["a"], "--probs z.: no column matches; expected some of a"),
        (["a,a"], ["a"], "named twice"),
        (None, ["a", "b"], "no column has a usual name of forecasts"),
        (None, ["p_0", "p_1", "proba_0", "proba_1"], "--probs proba_0,proba_1 or p_0,p_1"),
        (None, ["score", "prob"], "--probs score or prob"),
    ],
)
def test_missing_or_ambiguous_forecasts_are_errors(given, columns, message):
    with pytest.raises(CommandError, match=message):
        find_forecasts(given, columns)


def test_labels_are_found_by_name():
    assert find_label("x", ["x", "y"]) == "x"
    assert find_label(None, ["x", "TARGET"]) == "TARGET"
    with pytest.raises(CommandError, match=r"several columns .* --label: y, label"):
        find_label(None, ["y", "label"])
    with pytest.raises(CommandError, match=r"no column .* --label: a, b"):
        find_label(None, ["a", "b"])
    with pytest.raises(CommandError, match="--label: no column 'z'; expected one of a, b"):
        find_label("z", ["a", "b"])


OTHER = {"p_bird": "p_ant", "p_cat": "p_bee", "p_dog": "p_cow"}


@pytest.mark.parametrize(
    "words",
    [
        ["apply", "model.json", "new.csv", "-o", "out.csv"],
        ["evaluate", "new.csv", "--model", "model.json", "--json"],
        ["monitor", "model.json", "new.csv", "--json"],
        ["report", "new.csv", "--model", "model.json", "--json"],
    ],
    ids=lambda words: words[0],
)
def test_columns_of_other_names_are_not_taken_by_position(model, table, run_cli, words):
    table.rename(OTHER).write_csv("new.csv")
    ran = run_cli(*words)
    assert ran.code == 2
    assert "--by-position" in ran.err
    assert ("p_ant, p_bee, p_cow" in ran.err, "p_bird, p_cat, p_dog" in ran.err) == (True, True)
    assert not Path("out.csv").exists()
    told = run_cli(*words, "--by-position")
    assert told.code == 0, told.err
    words[words.index("new.csv")] = "data.csv"
    same = run_cli(*words)
    if words[0] == "apply":
        calibrated = [pl.read_csv("out.csv")[:, -3:].to_numpy()]
        assert run_cli(*words[:2], "new.csv", *words[3:], "--by-position").code == 0
        calibrated.append(pl.read_csv("out.csv")[:, -3:].to_numpy())
        np.testing.assert_array_equal(calibrated[0], calibrated[1])
    else:
        found = json.loads(told.out)
        expected = json.loads(same.out)
        for key in ("measures", "total"):
            assert found.get(key) == expected.get(key)
    assert model.exists()


def test_columns_of_a_model_may_be_given_in_any_order_and_by_class(model, table, run_cli):
    words = ["apply", "model.json", "new.csv", "--names", "a,b,c", "-o", "out.csv"]
    table.rename(OTHER).write_csv("new.csv")
    classes = ["--probs", "p_cow,p_ant,p_bee", "--classes", "dog,bird,cat"]
    assert run_cli(*words, *classes).code == 0
    found = pl.read_csv("out.csv").select("a", "b", "c")
    Path("data.csv").rename("new.csv")
    assert run_cli(*words, "--probs", "p_dog,p_bird,p_cat").code == 0
    assert pl.read_csv("out.csv").select("a", "b", "c").equals(found)
    ran = run_cli(*words, *classes[2:], "--by-position")
    assert (ran.code, "exclude each other" in ran.err) == (2, True)
    assert model.exists()


def test_a_single_column_of_another_name_must_be_named(folder, run_cli):
    Path("x.csv").write_text("score,y\n0.1,0\n0.4,1\n0.6,0\n0.9,1\n")
    assert run_cli("fit", "x.csv", "-c", "temperature", "-o", "m.json").code == 0
    Path("new.csv").write_text("prob\n0.5\n")
    ran = run_cli("apply", "m.json", "new.csv", "-o", "out.csv")
    assert (ran.code, "fitted on score, and the names prob" in ran.err) == (2, True)
    for words in (["--by-position"], ["--probs", "prob"]):
        assert run_cli("apply", "m.json", "new.csv", "-o", "out.csv", *words).code == 0
    Path("named.csv").write_text("p_1\n0.5\n")
    assert run_cli("apply", "m.json", "named.csv", "-o", "out.csv").code == 0
    assert (folder / "out.csv").exists()


def test_columns_may_be_in_the_order_of_the_classes_whatever_their_names(table, run_cli):
    swapped = {"p_bird": "p_dog", "p_dog": "p_bird"}
    table.rename(swapped).write_csv("x.csv")
    assert run_cli("fit", "x.csv", "-c", "irp", "-o", "m.json", "--by-position").code == 0
    summary = json.loads(Path("m.json").read_bytes())["summary"]
    assert summary["columns"] == ["p_dog", "p_cat", "p_bird"]
