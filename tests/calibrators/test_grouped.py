"""Maps by group: the common map unless the rows of a group speak against it."""

import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import log_loss

import isoroc
from exported import run_onnx
from isoroc import (
    GroupedCalibrator,
    IdentityCalibrator,
    InputError,
    IsotonicCalibrator,
    ModelFileError,
    TemperatureCalibrator,
    load_map,
)
from zoo import assert_same, draw_labels, forecasts, probabilities

NAMES = np.array(["it's", 'a "name"', "plain", "small"])


def grouped_data(n=1500, n_classes=2, seed=0):
    """Forecasts that are right in the third and fourth group, and too extreme in the others."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(n_classes), n)
    code = rng.choice(4, n, p=[0.3, 0.3, 0.35, 0.05])
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    P = truth ** np.array([3.0, 0.4, 1.0, 1.0])[code][:, None]
    return P / P.sum(axis=1, keepdims=True), y, NAMES[code]


@pytest.fixture(scope="module")
def fitted():
    P, y, groups = grouped_data()
    return GroupedCalibrator(IsotonicCalibrator(), random_state=0).fit(P, y, groups=groups)


def test_groups_that_differ_gain(fitted):
    P, y, groups = grouped_data(seed=1)
    Q = fitted.predict_proba(P, groups)
    with pytest.raises(isoroc.InputError, match="were given in fit"):
        fitted.predict_proba(P)
    assert set(NAMES[:2]) <= set(fitted.groups_)
    shared = fitted.common_.predict_proba(P)
    for name in NAMES[:2]:
        rows = groups == name
        assert log_loss(y[rows], Q[rows]) < log_loss(y[rows], shared[rows]) - 0.02
    table = fitted.group_scores_
    assert table["rows"].sum() == 1500
    np.testing.assert_allclose(table["gain"], table["common_log_loss"] - table["log_loss"])
    np.testing.assert_array_equal(fitted.predict(P, groups), Q.argmax(axis=1))


def test_small_and_unknown_groups_get_the_common_map(fitted):
    P, _, groups = grouped_data(seed=2)
    assert "small" not in fitted.groups_
    others = np.where(np.isin(groups, fitted.groups_), "never seen", groups)
    np.testing.assert_array_equal(fitted.predict_proba(P, others), fitted.common_.predict_proba(P))


def test_the_common_map_is_that_of_all_rows(fitted):
    P, y, _ = grouped_data()
    alone = IsotonicCalibrator().fit(P, y)
    np.testing.assert_array_equal(fitted.common_.predict_proba(P), alone.predict_proba(P))
    without = GroupedCalibrator(IsotonicCalibrator()).fit(P, y)
    np.testing.assert_array_equal(without.predict_proba(P), alone.predict_proba(P))
    np.testing.assert_array_equal(
        without.predict_proba(P, np.arange(len(P))), alone.predict_proba(P)
    )


def test_groups_at_random_keep_the_common_map():
    P, y, _ = grouped_data(2000)
    code = np.random.default_rng(3).integers(0, 8, len(y))
    calibrator = GroupedCalibrator(TemperatureCalibrator(), random_state=0)
    calibrator.fit(P, y, groups=code)
    assert len(calibrator.groups_) <= 2
    np.testing.assert_array_less(calibrator.weights_, 0.5)


def test_every_row_by_itself(fitted):
    P, _, groups = grouped_data(50, seed=4)
    one_by_one = [
        fitted.predict_proba(p[None], [name])[0] for p, name in zip(P, groups, strict=True)
    ]
    np.testing.assert_array_equal(fitted.predict_proba(P, groups), one_by_one)


def test_names_of_groups():
    P, y, groups = grouped_data(400)
    code = (groups == NAMES[0]).astype(int)
    calibrator = GroupedCalibrator(TemperatureCalibrator(), random_state=0)
    expected = calibrator.fit(P, y, groups=code).predict_proba(P, code)
    assert "1" in calibrator.groups_
    for same in (code.astype(str), code.astype(float), code.tolist(), pd.Series(code),
                 pl.Series(code), code.astype(object)):  # fmt: skip
        np.testing.assert_array_equal(calibrator.predict_proba(P, same), expected)
    of_truth = calibrator.fit(P, y, groups=code == 1).predict_proba(P, np.where(code, "true", "x"))
    np.testing.assert_array_equal(of_truth[code == 1], expected[code == 1])


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a", None, "b"], "groups: row 1 is missing; give such rows a group of their own"),
        ([1.0, 2.0, np.nan], "groups: row 2 is missing"),
        (pd.Series(["a", pd.NA, "b"], dtype="string"), "groups: row 1 is missing"),
        (pl.Series([1, None, 2]), "groups: row 1 is missing"),
        (pd.to_datetime(["2026-01-01", None, None]), r"groups: row 0 is .*groups are strings"),
        ([0.5, 1.0, 2.0], r"groups: row 0 is .*0\.5.*; groups are strings, whole numbers or"),
        (["a", "b"], "groups: 2 rows, but P has 3; they must agree"),
        ([["a"], ["b"], ["c"]], r"groups: has shape \(3, 1\)"),
    ],
)
def test_bad_groups(fitted, groups, message):
    P = [[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]]
    with pytest.raises(InputError, match=message):
        GroupedCalibrator(IdentityCalibrator()).fit(P, [0, 1, 1], groups=groups)
    with pytest.raises(InputError, match=message):
        fitted.predict_proba(P, groups)


def test_bad_parameters(fitted):
    P, y, groups = grouped_data(100)
    with pytest.raises(ValueError, match=r"calibrator: is .*expected another calibrator"):
        GroupedCalibrator(GroupedCalibrator()).fit(P, y)
    with pytest.raises(ValueError, match="min_rows"):
        GroupedCalibrator(min_rows=0).fit(P, y, groups=groups)
    with pytest.raises(InputError, match="thresholds differ by group"):
        fitted.carry_over(0.5, P)
    assert GroupedCalibrator(IdentityCalibrator()).fit(P, y).carry_over(0.5, P).n_changed == 0


def test_rows_of_weight_zero_have_no_group():
    P, y, groups = grouped_data(600)
    weights = (groups != NAMES[1]).astype(float)
    calibrator = GroupedCalibrator(TemperatureCalibrator(), random_state=0)
    calibrator.fit(P, y, groups=groups, sample_weight=weights)
    assert NAMES[1] not in calibrator.group_scores_["group"]


def test_model_files(fitted, tmp_path):
    P, _, groups = grouped_data(100, seed=5)
    fitted.save(tmp_path / "model.json")
    loaded = isoroc.load(tmp_path / "model.json")
    assert_same(fitted, loaded)
    np.testing.assert_array_equal(loaded.predict_proba(P, groups), fitted.predict_proba(P, groups))
    n = len(fitted.groups_)
    of_one_column = IsotonicCalibrator().fit([0.1, 0.9], [0, 1]).map_
    for change, fault in (
        ({"weights": fitted.weights_ + 1}, "weights: expected numbers between 0 and 1"),
        ({"groups": np.repeat("a", n)}, "groups: the names are not distinct"),
        ({"groups": fitted.weights_}, "groups: expected an array of names"),
        ({"members": []}, f"members: expected {n} maps"),
        ({"common": "x"}, "common: expected a map of probabilities"),
        ({"common": of_one_column}, "common: expected a map of probabilities"),
    ):
        damaged = isoroc.load(tmp_path / "model.json")
        damaged.map_ = replace(damaged.map_, **change)
        damaged.save(tmp_path / "damaged.json")
        for load in (isoroc.load, load_map):
            with pytest.raises(ModelFileError, match=f"model.map.numbers.{fault}"):
                load(tmp_path / "damaged.json")
    for attribute, value in (("members_", fitted.members_[1:]), ("common_", "x")):
        damaged = isoroc.load(tmp_path / "model.json")
        setattr(damaged, attribute, value)
        damaged.save(tmp_path / "damaged.json")
        with pytest.raises(ModelFileError, match=r"model.state: expected .*calibrators"):
            isoroc.load(tmp_path / "damaged.json")


@pytest.mark.parametrize("shape", [1, 3])
def test_exports(shape):
    P = forecasts(shape, 600, seed=1)
    y = draw_labels(probabilities(shape, P), seed=2)
    K = y.max() + 1
    groups = NAMES[np.arange(600) % 4]
    y = np.where(groups == NAMES[0], (y + 1) % K, y)  # forecasts belong to other classes
    calibrator = GroupedCalibrator(IsotonicCalibrator(), random_state=0)
    calibrator.fit(P, y, groups=groups, unit="logit" if shape == 1 else "auto")
    assert NAMES[0] in calibrator.groups_
    groups[::50] = "never seen"
    expected = calibrator.predict_proba(P, groups)
    model = isoroc.export.to_onnx(calibrator)
    np.testing.assert_allclose(run_onnx(model, P, groups), expected, atol=1e-12)
    found = run_sqlite(calibrator, P, [*groups[:-1], None])
    np.testing.assert_allclose(found[:-1], expected[:-1], atol=1e-12)
    assert np.isnan(found[-1]).all()


def run_sqlite(calibrator, P, groups):
    columns = [f"p{k}" for k in range(P.shape[1])]
    query = isoroc.export.to_sql(calibrator, columns, dialect="sqlite", keep="id", group="a group")
    with sqlite3.connect(":memory:") as connection:
        connection.execute(f'CREATE TABLE forecasts (id, {", ".join(columns)}, "a group" TEXT)')
        marks = ", ".join("?" * (len(columns) + 2))
        rows = [(i, *map(float, p), g) for i, (p, g) in enumerate(zip(P, groups, strict=True))]
        connection.executemany(f"INSERT INTO forecasts VALUES ({marks})", rows)  # noqa: S608
        found = sorted(connection.execute(query).fetchall())
    connection.close()
    return np.array([row[1:] for row in found], dtype=float)


def test_exports_ask_for_the_group(fitted):
    with pytest.raises(InputError, match="group: the calibrator has groups; name their column"):
        isoroc.export.to_sql(fitted, ["a", "b"], dialect="duckdb")
    with pytest.raises(InputError, match="group: the calibrator was fitted without groups"):
        isoroc.export.to_sql(fitted.common_, ["a", "b"], dialect="duckdb", group="g")


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "duckdb"])
def test_dataframes(fitted, kind):
    P, _, groups = grouped_data(40, seed=6)
    expected = fitted.predict_proba(P, groups)
    frame = pl.DataFrame({"a": P[:, 0], "b": P[:, 1], "g": groups})
    frame = frame.with_columns(g=pl.when(pl.int_range(pl.len()) > 0).then("g"))
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        found = fitted.predict_frame(
            duckdb.from_arrow(frame.to_arrow()), ["a", "b"], group="g"
        ).pl()
    elif kind == "pandas":
        found = pl.from_pandas(fitted.predict_frame(frame.to_pandas(), ["a", "b"], group="g"))
    else:
        given = frame.lazy() if kind == "lazy" else frame
        found = fitted.predict_frame(given, ["a", "b"], group="g").lazy().collect()
    Q = found.select("^calibrated_.*$").to_numpy()
    np.testing.assert_allclose(Q[1:], expected[1:], rtol=1e-12)
    assert np.isnan(Q[0].astype(float)).all()  # no group
    with pytest.raises(InputError, match="name the column of the groups with group="):
        fitted.predict_frame(frame, ["a", "b"])
    with pytest.raises(InputError, match="group: the dataframe has no column 'h'"):
        fitted.predict_frame(frame, ["a", "b"], group="h")
