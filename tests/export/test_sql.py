import json
import re
import sqlite3
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import isoroc
from engine_tables import CASES as CASES_OF_SEGMENTS
from engine_tables import typed_rows
from exported import DATABASES, run_duckdb, run_sql
from isoroc import (
    Counts,
    IdentityCalibrator,
    IRPCalibrator,
    IsotonicCalibrator,
    TemperatureCalibrator,
)
from zoo import assert_agrees, draw_labels, fitted, forecasts, on_thresholds

sqlglot = pytest.importorskip("sqlglot")
duckdb = pytest.importorskip("duckdb")

from isoroc import InputError  # noqa: E402
from isoroc._backends import sql as operations  # noqa: E402
from isoroc._backends.sql import DIALECTS, RULES, decimal, fraction  # noqa: E402
from isoroc.export import counts_sql, to_sql  # noqa: E402


@pytest.mark.parametrize("dialect", DATABASES)
def test_deep_trees_are_walked_in_stages(dialect, monkeypatch):
    shallow = replace(RULES[dialect], depth=1)
    monkeypatch.setitem(RULES, dialect, shallow)
    for shape in (3, 5):
        calibrator = fitted("IRPCalibrator", shape, top=None, min_bin_weight=2, n=300)
        P = np.vstack([forecasts(shape, 200), on_thresholds(calibrator)])
        assert_agrees(calibrator, P, run_sql(calibrator, P, dialect))


@pytest.mark.parametrize("few", [1, 4])
def test_values_of_many_bins_are_looked_up(few, monkeypatch):
    monkeypatch.setattr(operations, "FEW_PLACES", few)
    for shape in (3, 5):
        calibrator = fitted("IRPCalibrator", shape, top=None, min_bin_weight=2, n=300)
        P = np.vstack([forecasts(shape, 200), on_thresholds(calibrator)])
        query = to_sql(calibrator, [f"p{k}" for k in range(shape)], dialect="duckdb")
        assert "LIST_EXTRACT" in query
        assert_agrees(calibrator, P, run_sql(calibrator, P, "duckdb"))
        refused = np.full((1, shape), np.nan)
        assert np.isnan(run_sql(calibrator, refused, "duckdb")).all()


def test_duckdb_keeps_the_order_of_rows():
    """Steps among many cuts are found by binary search: a join would reorder rows."""
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    calibrator = isoroc.VennAbersCalibrator().fit(p, rng.random(3000) < p)
    assert len(np.unique(calibrator.predict_proba(p)[:, 1])) > operations._MANY_TERMS + 1
    connection = duckdb.connect()
    rows = "row_number() OVER () AS id, random() AS p FROM range(300000)"
    connection.execute(f"CREATE TABLE forecasts AS SELECT {rows}")
    query = to_sql(calibrator, "p", dialect="duckdb", keep=["id", "p"], names="q")
    found = connection.execute(query).fetchnumpy()
    assert (np.diff(found["id"]) == 1).all()
    np.testing.assert_array_equal(found["q"], calibrator.predict_proba(found["p"])[:, 1])


#: Dialects that write numbers, stages, conditions and arrays in different ways.
UNLIKE = ("duckdb", "postgres", "sqlite", "tsql")


@pytest.mark.parametrize("name", ["AutoCalibrator"])  # has members of all kinds
@pytest.mark.parametrize("dialect", UNLIKE)
def test_columns_of_stages_are_used_more_than_once(name, dialect):
    query = to_sql(fitted(name, 5), list("abcde"), dialect=dialect)
    statement = sqlglot.parse_one(query, dialect=RULES[dialect].sqlglot)
    nodes = sqlglot.expressions
    stages = [stage.this for stage in statement.find_all(nodes.CTE)]
    uses: Counter[str] = Counter()
    for select in [*stages, statement]:
        # Columns that are only handed on have no other name.
        for column in select.find_all(nodes.Column):
            uses[column.name] += not (column.parent is select and column.arg_key == "expressions")
    for stage in stages:
        for added in stage.expressions:
            choice = added.find(nodes.Case, nodes.Subquery, nodes.Join)
            if isinstance(added, nodes.Alias) and choice is None and not stage.args.get("joins"):
                assert uses[added.alias] > 1


@pytest.mark.parametrize("dialect", DATABASES)
@pytest.mark.parametrize("name", ["IRPCalibrator", "MatrixCalibrator"])
def test_rows_that_are_refused_come_out_as_null(name, dialect):
    calibrator = fitted(name, 3)
    P = np.array(
        [
            [0.5, 0.6, 0.1],
            [-0.1, 0.6, 0.5],
            [np.nan, 0.5, 0.5],
            [np.inf, 0, 0],
            [0, 0, 0],
            [0.2, 0.3, 0.5],
        ]
    )
    Q = run_sql(calibrator, P, dialect)
    assert np.isnan(Q[:-1]).all()
    assert_agrees(calibrator, P[-1:], Q[-1:])


@pytest.mark.parametrize("dialect", DATABASES)
@pytest.mark.parametrize("name", ["IRPCalibrator", "MatrixCalibrator"])
def test_rounding_beyond_0_and_1_is_clipped(name, dialect):
    calibrator = fitted(name, 3)
    P = np.array([[0.5, 0.5 + 1e-9, -1e-9], [1 + 1e-17, 0, -1e-17]])
    assert_agrees(calibrator, P, run_sql(calibrator, P, dialect))
    scores = np.array([[1 + 1e-9], [-1e-9], [1.0]])
    calibrator = fitted("TemperatureCalibrator", "p")
    assert_agrees(calibrator, scores, run_sql(calibrator, scores, dialect))


def test_the_identity_returns_forecasts_to_the_last_bit():
    calibrator = fitted("IdentityCalibrator", 5)
    P = forecasts(5, 200)
    np.testing.assert_array_equal(run_sql(calibrator, P, "duckdb"), P)


@pytest.mark.parametrize("dialect", DATABASES)
def test_null_in_null_out_and_whole_numbers(dialect):
    calibrator = fitted("IRPCalibrator", 2)
    query = to_sql(calibrator, ["a", "b"], dialect=dialect)
    create = "CREATE TABLE forecasts (a INTEGER, b INTEGER)"
    insert = "INSERT INTO forecasts VALUES (NULL, 1), (0, 1), (1, 0)"
    connect = duckdb.connect if dialect == "duckdb" else lambda: sqlite3.connect(":memory:")
    connection = connect()
    connection.execute(create)
    connection.execute(insert)
    null, second, first = connection.execute(query).fetchall()
    connection.close()
    assert null == (None, 1, None, None)
    assert_agrees(calibrator, np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([second[2:], first[2:]]))


def without_header(query):
    return query[query.index(" */") + 4 :]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_writes_what_it_reads(dialect):
    for name in ("IRPCalibrator", "AutoCalibrator"):
        calibrator = fitted(name, "p")
        query = to_sql(calibrator, 'a"`b', dialect=dialect, table="x.y.z", names=["n", "y"])
        own = RULES[dialect].sqlglot
        tree = sqlglot.parse_one(query, dialect=own)
        again = tree.sql(dialect=own, pretty=True, comments=False)
        if dialect == "tsql":  # sqlglot names the columns of common table expressions
            again = again.replace('[a"`b] AS [a"`b],', '[a"`b],')
        assert again == without_header(query)
        assert all(identifier.quoted for identifier in tree.find_all(sqlglot.exp.Identifier))
        assert {table.sql() for table in tree.find_all(sqlglot.exp.Table) if table.db} == {
            '"x"."y"."z"'
        }
        assert [column.alias_or_name for column in tree.selects] == ['a"`b', "n", "y"]


def test_helpers_stay_clear_of_the_tables_names():
    calibrator = fitted("IRPCalibrator", "p")
    P = forecasts("p", 50)
    for column, table in (("isoroc_0", "t"), ("ISOROC__1", "isoroc_stage_0")):
        query = to_sql(calibrator, column, dialect="duckdb", table=table, keep="id")
        rows = run_duckdb(query, table, [column], P)
        assert_agrees(calibrator, P, np.array(sorted(rows), dtype=float)[:, 1:])


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_exact(value):
    sqlite = sqlite3.connect(":memory:")
    [[found]] = sqlite.execute(f"SELECT {fraction(value).sql('sqlite')}").fetchall()
    sqlite.close()
    assert found == value
    [[found]] = duckdb.sql(f"SELECT {decimal(value).sql('duckdb')}").fetchall()
    assert found == value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["a", "b"]}, r"columns: 2 given \(a, b\); the calibrator has 3"),
        ({"columns": "abc"}, r"columns: 1 given \(abc\); the calibrator has 3"),
        ({"names": ["x"]}, r"names: 1 given \(x\); the calibrator has 3"),
        ({"dialect": "access"}, "dialect: expected one of 'bigquery'.*got 'access'"),
        ({"table": "a.b.c.d"}, r"table: is 'a.b.c.d'; expected \[\[catalog.\]schema.\]table"),
        ({"table": "a..b"}, "table: is 'a..b'; expected"),
        ({"names": ["a", "A", "b"], "keep": []}, "names: .*'a' and 'A'.* pass other names"),
        ({"keep": ["calibrated_0"]}, "names: .*'calibrated_0'"),
        ({"keep": ["*", "id"]}, 'keep: "\\*" stands for all columns; leave out id'),
        ({"keep": "*", "dialect": "mysql"}, "keep: mysql cannot return all columns"),
        ({"keep": "*", "dialect": "spark", "names": list("abc")}, "keep: spark .* all but some"),
        ({"segments": "g"}, "segments: 1 columns given; the calibrator uses 0"),
        ({"view": "a.b.c.d"}, r"view: is 'a.b.c.d'; expected \[\[catalog.\]schema.\]view"),
    ],
)
def test_bad_input(arguments, message):
    arguments = {"columns": ["a", "b", "c"], "dialect": "duckdb"} | arguments
    with pytest.raises(InputError, match=re.compile(message)):
        to_sql(fitted("IRPCalibrator", 3), **arguments)


HOSTILE = ["*/ SELECT 1; /*", "a\n-- b", "'\"`\\", "/*/", "*/*/", "\u2028\x00", "caf\u00e9 {{ x }}"]


@pytest.mark.parametrize("dialect", DATABASES)
def test_no_class_can_end_the_comment(dialect, tmp_path):
    K = len(HOSTILE)
    P = np.vstack([np.eye(K), np.full((K, K), 1 / K)])
    calibrator = IRPCalibrator(top=None).fit(P, HOSTILE * 2, labels=HOSTILE)
    calibrator.save(tmp_path / "model.json")
    columns = [f"p{k}" for k in range(K)]
    names = [f"q{k}" for k in range(K)]
    query = to_sql(calibrator, columns, dialect=dialect, table="t", keep="id", names=names)
    header = query[: query.index("\nWITH")]
    assert header.startswith(f"/* IRPCalibrator of isoroc {isoroc.__version__}\n   Model: sha256:")
    assert json.loads((tmp_path / "model.json").read_text())["checksum"] in header
    assert (header.count("/*"), header.count("*/"), header.isascii()) == (1, 1, True)
    assert header.endswith('}}" */')
    rows = sorted(DATABASES[dialect](query, "t", columns, P))
    assert_agrees(calibrator, P, np.array(rows, dtype=float)[:, 1:])
    [statement] = sqlglot.parse(query, dialect=dialect)
    assert isinstance(statement, sqlglot.exp.Select)


def test_all_columns_are_handed_on_or_replaced():
    calibrator = fitted("IRPCalibrator", 3)
    P = forecasts(3, 50)
    write = partial(to_sql, calibrator, ["a", "b", "c"], dialect="duckdb", table="t", keep="*")
    added = write(names=["x", "y", "z"])
    rows = np.array(sorted(run_duckdb(added, "t", ["a", "b", "c"], P)), dtype=float)
    np.testing.assert_array_equal(rows[:, 1:4], P)
    assert_agrees(calibrator, P, rows[:, 4:])
    replaced = write(names=["a", "b", "c"])
    rows = np.array(sorted(run_duckdb(replaced, "t", ["a", "b", "c"], P)), dtype=float)
    assert rows.shape == (50, 4)
    assert_agrees(calibrator, P, rows[:, 1:])


@pytest.mark.parametrize("dialect", DATABASES)
def test_views_and_a_single_probability(dialect):
    calibrator = fitted("TemperatureCalibrator", "p")
    P = forecasts("p", 30)
    options = {"dialect": dialect, "keep": ["id"], "names": "q", "view": 'a "view"'}
    view = to_sql(calibrator, "p", **options)
    connection = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE forecasts (id INTEGER, p DOUBLE PRECISION)")
    connection.executemany("INSERT INTO forecasts VALUES (?, ?)", list(enumerate(P[:, 0].tolist())))
    connection.execute(view)
    rows = connection.execute('SELECT id, q FROM "a ""view""" ORDER BY id').fetchall()
    connection.close()
    found = np.array(rows, dtype=float)[:, 1]
    np.testing.assert_allclose(found, calibrator.predict_proba(P)[:, 1], rtol=0, atol=1e-12)


def test_a_single_probability_with_segments():
    p = np.linspace(0, 1, 400)
    region = np.tile(["a", "b"], 200)
    y = np.random.default_rng(0).random(400) < np.where(region == "a", p**3, p**0.3)
    calibrator = isoroc.SegmentCalibrator(TemperatureCalibrator()).fit(p, y, segments=region)
    query = to_sql(calibrator, "p", dialect="duckdb", keep="id", names="q", segments="g")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE forecasts AS SELECT 1 AS id, 0.3 AS p, 'b' AS g")
        [row] = connection.execute(query).fetchall()
    expected = calibrator.predict_proba([0.3], ["b"])[0, 1]
    assert row == (1, pytest.approx(expected, abs=1e-12))


TYPES = {
    "duckdb": {"int": "INTEGER", "float": "DOUBLE", "text": "TEXT", "decimal": "DECIMAL(9, 2)"},
    "sqlite": {"int": "INTEGER", "float": "REAL", "text": "TEXT COLLATE NOCASE", "decimal": "REAL"},
}


@pytest.mark.parametrize(("name", "kind"), CASES_OF_SEGMENTS)
@pytest.mark.parametrize("dialect", DATABASES)
def test_categories_of_every_type(dialect, name, kind):
    """Also doubles, decimals, booleans that are integers, and columns that ignore case."""
    calibrator, p, segments = typed_rows(name, kind)
    connection = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
    types = f"id INTEGER, p DOUBLE, code {TYPES[dialect][kind]}, age DOUBLE"
    connection.execute(f"CREATE TABLE forecasts ({types})")
    rows = zip(range(len(p)), p.tolist(), segments["code"], segments["age"], strict=True)
    connection.executemany("INSERT INTO forecasts VALUES (?, ?, ?, ?)", list(rows))
    found = connection.execute(to_sql(calibrator, "p", dialect=dialect, keep="id")).fetchall()
    connection.close()
    expected = calibrator.predict_proba(p, segments)
    np.testing.assert_allclose(np.array(sorted(found))[:, 1:], expected, rtol=0, atol=1e-12)


def test_booleans_of_a_table_without_that_type():
    calibrator, *_ = typed_rows("boolean", "int")
    p = [0.3, 0.6]
    flags = {"code": [True, False], "age": [20.0, 60.0]}
    shifted = calibrator.predict_proba(p, flags)
    unknown = calibrator.predict_proba(p, flags | {"code": [None, None]})
    assert (np.abs(shifted - unknown) > 0.01).all()
    np.testing.assert_array_equal(calibrator.predict_proba(p, flags | {"code": [1, 0]}), shifted)


@pytest.mark.parametrize("dialect", ["mysql", "tsql"])
def test_texts_are_compared_byte_by_byte(dialect):
    query = to_sql(typed_rows("text", "text")[0], "p", dialect=dialect)
    if dialect == "tsql":
        assert "CAST(CAST([code] AS NVARCHAR(MAX)) AS VARBINARY(MAX)) = " in query
        assert "CAST(N'S\u00fcd' AS VARBINARY(MAX))" in query
    else:
        assert "CAST(CAST(`code` AS CHAR) AS BINARY) = 'S\u00fcd'" in query


@pytest.fixture(scope="module")
def many_classes():
    rng = np.random.default_rng(0)
    calibrators = []
    for K in (40, 100):
        P = rng.dirichlet(np.ones(K), 2 * K)
        y = np.append(np.arange(K), rng.integers(K, size=K))
        calibrators.append(TemperatureCalibrator().fit(P, y))
    return *calibrators, P


@pytest.mark.parametrize("dialect", DATABASES)
def test_many_classes(dialect, many_classes):
    _, calibrator, P = many_classes
    columns = [f"p{k}" for k in range(P.shape[1])]
    assert_agrees(calibrator, P[:50], run_sql(calibrator, P[:50], dialect, columns=columns))


def test_log_odds_of_many_classes_are_exact_in_linear_time():
    K = 65
    rng = np.random.default_rng(0)
    P = np.vstack([rng.dirichlet(np.ones(K), 300), np.eye(K)])
    calibrator = isoroc.SplineCalibrator(n_knots=2).fit(P, draw_labels(P))
    columns = [f"p{k}" for k in range(K)]
    assert_agrees(calibrator, P, run_sql(calibrator, P, "duckdb", columns=columns))


@pytest.mark.parametrize("dialect", UNLIKE)
def test_size_and_depth_grow_no_faster_than_the_map(dialect, many_classes):
    sizes = []
    for calibrator in many_classes[:2]:
        columns = [f"p{k:03}" for k in range(len(calibrator.classes_))]
        query = to_sql(calibrator, columns, dialect=dialect, keep=[])
        sizes.append(len(re.sub(r"\s+", " ", query)))
        assert max(len(line) - len(line.lstrip()) for line in query.split("\n")) < 40
    assert sizes[1] < 100 / 40 * 1.1 * sizes[0]  # columns with longer names


def test_dialects_with_few_columns_name_their_limit():
    K = 800
    P = np.vstack([np.full((K, K), 1 / K), np.eye(K)])
    calibrator = IdentityCalibrator().fit(P, [*range(K), *range(K)])
    with pytest.raises(InputError, match=r"1,60\d columns at once, and redshift allows 1,600; use"):
        to_sql(calibrator, [f"p{k}" for k in range(K)], dialect="redshift")


@pytest.mark.parametrize(("dialect", "most"), [("clickhouse", 100), ("spark", 300)])
def test_more_classes_than_a_planner_takes_are_refused(dialect, most):
    assert RULES[dialect].most_classes == most
    for K in (most, most + 1):
        calibrator = IdentityCalibrator().fit(np.eye(K), range(K))
        columns = [f"p{k}" for k in range(K)]
        if most == K:
            assert "SELECT" in to_sql(calibrator, columns, dialect=dialect)
            continue
        limit = f"dialect: {K} classes, and queries for {dialect} are limited to {most}; .* ONNX"
        with pytest.raises(InputError, match=limit):
            to_sql(calibrator, columns, dialect=dialect)


@pytest.mark.parametrize("dialect", DATABASES)
def test_many_steps(dialect):
    rng = np.random.default_rng(0)
    p = rng.random((700, 1))
    weights = np.hstack([1 - p, p])  # observed rates increase from row to row: 700 bins
    calibrator = IRPCalibrator(pseudocount=0)
    calibrator.fit(p.repeat(2), np.tile([0, 1], 700), sample_weight=weights.ravel())
    assert calibrator.n_bins_ == 700
    P = np.vstack([p[:300], on_thresholds(calibrator)])
    assert_agrees(calibrator, P, run_sql(calibrator, P, dialect))


def test_unfitted():
    with pytest.raises(NotFittedError):
        to_sql(IRPCalibrator(), ["a", "b"], dialect="sqlite")


@pytest.mark.parametrize(("K", "resolution"), [(1, 16), (1, "exact"), (3, 16)])
def test_counts_of_a_warehouse_leave_out_rows(K, resolution, tmp_path):
    rng = np.random.default_rng(0)
    P = rng.random((300, 1)) if K == 1 else rng.dirichlet(np.ones(3), 300)
    names = [f"p{k}" for k in range(K)]
    rows = pd.DataFrame(P, columns=names)
    rows = rows.assign(y=rng.integers(0, max(K, 2), 300), w=1.5, day=np.arange(300) % 10)
    good = rows[rows.day.isin([3, 5])].drop(index=[3, 13, 23])
    rows.loc[3, "p0"] = 7.0
    rows.loc[13, "w"] = -1.0
    rows["y"] = rows["y"].astype("Int64")
    rows.loc[23, "y"] = None
    path = tmp_path / "counts.parquet"
    options: Any = {"weight": "w", "resolution": resolution, "where": "day = 3 OR day = 5"}
    with duckdb.connect() as database:
        database.register("logs", rows)
        for on_bad in ("fail", "skip"):
            query = counts_sql("logs", names, "y", "duckdb", on_bad=on_bad, **options)
            database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
            if on_bad == "fail":
                with pytest.raises(InputError, match="3 of 60 rows are bad"):
                    Counts.from_parquet(path)
    with pytest.warns(UserWarning, match="3 of 60 rows are bad and are left out"):
        found = Counts.from_parquet(path)
    options = {"sample_weight": good["w"], "resolution": resolution}
    expected = Counts.from_arrays(good[names].to_numpy(), good["y"], **options)
    np.testing.assert_array_equal(found.class_weights, expected.class_weights)
    np.testing.assert_array_equal(found.fold, expected.fold)
    with pytest.raises(InputError, match="where: 'day = = 3' is not a condition"):
        counts_sql("logs", names, "y", "duckdb", where="day = = 3")


def test_the_header_says_that_rows_have_no_order():
    query = to_sql(IsotonicCalibrator().fit([0.1, 0.9], [0, 1]), "p", dialect="duckdb")
    assert "Rows come in any order: keep a key, or add ORDER BY." in query
