"""Maps that are written by lists, run by DuckDB; `make test-engines` has the other engines."""

import numpy as np
import pytest

from exported import run_duckdb, run_onnx, run_sql
from isoroc import (
    GroupedCalibrator,
    IRPCalibrator,
    IsotonicCalibrator,
    SplineCalibrator,
    TemperatureCalibrator,
)
from isoroc._maps import written
from zoo import CASES, KINDS, assert_agrees, draw_labels, fitted, forecasts, make, on_thresholds

sqlglot = pytest.importorskip("sqlglot")
duckdb = pytest.importorskip("duckdb")

from isoroc.export import _lists, to_onnx, to_sql  # noqa: E402
from isoroc.export._dialects import RULES, WITH_LISTS  # noqa: E402

K = 20
COLUMNS = [f"p{k}" for k in range(K)]


def many_classes(n, seed=0, n_classes=K):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(n_classes), n) ** rng.choice([0.3, 1, 3], size=(n, 1))
    return P / P.sum(axis=1, keepdims=True)


def fit_many(calibrator, n_classes=K):
    P = many_classes(300, seed=1, n_classes=n_classes)
    return calibrator.fit(P, draw_labels(P))


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_as_predict_proba(name, shape):
    calibrator = fitted(name, shape)
    P = np.vstack([forecasts(shape, 60), on_thresholds(calibrator)])
    assert_agrees(calibrator, P, run_sql(calibrator, P, "duckdb", form="lists"))


@pytest.mark.parametrize("few", [0, 8192])
@pytest.mark.parametrize(
    "name", [name for name in KINDS if (name, 5) in CASES and name != "GroupedCalibrator"]
)
def test_more_classes(name, few, monkeypatch):
    monkeypatch.setattr(_lists, "_FEW_NUMBERS", few)
    calibrator = fit_many(make(name))
    P = np.vstack([many_classes(60), np.eye(K), np.full((1, K), 1 / K)])
    assert_agrees(calibrator, P, run_sql(calibrator, P, "duckdb", columns=COLUMNS, form="lists"))


def test_log_odds_of_more_classes_are_exact_in_linear_time():
    n_classes = written._FEW + 1
    calibrator = fit_many(SplineCalibrator(n_knots=2), n_classes)
    P = np.vstack([many_classes(60, n_classes=n_classes), np.eye(n_classes)])
    columns = [f"p{k}" for k in range(n_classes)]
    for form in ("columns", "lists"):
        found = run_sql(calibrator, P, "duckdb", columns=columns, form=form)
        assert_agrees(calibrator, P, found)
    assert_agrees(calibrator, P, run_onnx(to_onnx(calibrator), P))


def test_trees_of_many_classes():
    calibrator = fit_many(IRPCalibrator(top=None, min_bin_weight=2, max_bins=30, random_state=0))
    assert calibrator.n_bins_ > 3
    P = np.vstack([many_classes(200), on_thresholds(calibrator)])
    assert_agrees(calibrator, P, run_sql(calibrator, P, "duckdb", columns=COLUMNS, form="lists"))


@pytest.mark.parametrize("name", ["IRPCalibrator", "TemperatureCalibrator"])
def test_rows_that_are_refused_come_out_as_null(name):
    calibrator = fit_many(make(name))
    good = many_classes(2)
    good[1] = good[1].round(3)
    good[1, 0] += 1 - good[1].sum() + 5e-4
    bad = np.repeat(good[:1], 6, axis=0)
    bad[0, 3], bad[1, 3], bad[2, 3], bad[3, 3] = np.nan, np.inf, -np.inf, -0.1
    bad[4] *= 1.1
    bad[5] = 1e308
    Q = run_sql(calibrator, np.vstack([good, bad]), "duckdb", columns=COLUMNS, form="lists")
    assert_agrees(calibrator, good, Q[:2])
    assert np.isnan(Q[2:]).all()


def test_null_is_not_left_out_of_sums():
    calibrator = fit_many(TemperatureCalibrator())
    query = to_sql(calibrator, COLUMNS, dialect="duckdb", keep=[], form="lists")
    row = ", ".join(["NULL", "1e0", *["0e0"] * (K - 2)])
    with duckdb.connect() as connection:
        names = ", ".join(f"{name} DOUBLE" for name in COLUMNS)
        connection.execute(f"CREATE TABLE forecasts ({names})")
        connection.execute(f"INSERT INTO forecasts VALUES ({row})")  # noqa: S608
        assert connection.execute(query).fetchall() == [(None,) * K]


def test_groups():
    P = many_classes(300, seed=1)
    groups = np.tile(["a", "b", "c"], 100)
    calibrator = GroupedCalibrator(IsotonicCalibrator()).fit(P, draw_labels(P), groups=groups)
    query = to_sql(
        calibrator, COLUMNS, dialect="duckdb", table="t", keep="id", group="g", form="lists"
    )
    numbered = query.replace('CAST("g" AS TEXT)', "CASE \"g\" WHEN 0 THEN 'a' WHEN 1 THEN 'b' END")
    assert numbered != query
    places = np.tile([0.0, 1.0, np.nan], 100)[:, None]
    rows = sorted(run_duckdb(numbered, "t", [*COLUMNS, "g"], np.hstack([P, places])))
    expected = calibrator.predict_proba(P, groups=np.where(groups == "c", "new", groups))
    np.testing.assert_array_equal(np.array(rows, dtype=float)[:, 1:], expected)


def test_all_columns_are_handed_on_or_replaced():
    calibrator = fit_many(TemperatureCalibrator())
    P = many_classes(20)
    for names in (COLUMNS, [f"q{k}" for k in range(K)]):
        query = to_sql(
            calibrator, COLUMNS, dialect="duckdb", table="t", keep="*", names=names, form="lists"
        )
        rows = np.array(sorted(run_duckdb(query, "t", COLUMNS, P)), dtype=float)
        assert rows.shape[1] == 1 + K * (1 if names == COLUMNS else 2)
        assert_agrees(calibrator, P, rows[:, -K:])


@pytest.mark.parametrize("dialect", WITH_LISTS)
def test_size_is_that_of_the_names(dialect):
    calibrators = [
        fit_many(calibrator, n_classes)
        for calibrator in (TemperatureCalibrator(), IRPCalibrator(random_state=0))
        for n_classes in (50, 100)
    ]
    for few, many in (calibrators[:2], calibrators[2:]):
        sizes = []
        for calibrator in (few, many):
            columns = [f"p{k:02}" for k in range(len(calibrator.classes_))]
            options = {"dialect": dialect, "names": [f"q{name}" for name in columns], "keep": []}
            by_lists = to_sql(calibrator, columns, form="lists", **options)
            assert len(by_lists) < len(to_sql(calibrator, columns, form="columns", **options)) / 3
            sizes.append(len(by_lists))
        assert sizes[1] < 2.1 * sizes[0]


@pytest.mark.parametrize("dialect", [*WITH_LISTS, "sqlite"])
def test_lists_are_for_many_classes(dialect):
    most = RULES[dialect].most_classes
    for n_classes in (most or 2, (most or 30) + 1):
        calibrator = TemperatureCalibrator().fit(np.eye(n_classes), range(n_classes))
        columns = [f"p{k}" for k in range(n_classes)]
        query = to_sql(calibrator, columns, dialect=dialect)
        by_columns = to_sql(calibrator, columns, dialect=dialect, form="columns")
        assert (query == by_columns) == (most is None or n_classes <= most)


def test_bad_input():
    calibrator = fitted("TemperatureCalibrator", 3)
    with pytest.raises(ValueError, match='form: expected "columns" or "lists", got \'rows\''):
        to_sql(calibrator, list("abc"), dialect="duckdb", form="rows")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"form: sqlite has no functions of lists.*duckdb, spark"):
        to_sql(calibrator, list("abc"), dialect="sqlite", form="lists")
