import re
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from exported import DATABASES, run_duckdb, run_sql
from isoroc import IRPCalibrator
from zoo import assert_agrees, fitted, forecasts, on_thresholds

sqlglot = pytest.importorskip("sqlglot")
duckdb = pytest.importorskip("duckdb")

from isoroc.export import _dialects, to_sql  # noqa: E402
from isoroc.export._expressions import decimal, fraction  # noqa: E402


@pytest.mark.parametrize("dialect", DATABASES)
def test_deep_trees_are_walked_in_stages(dialect, monkeypatch):
    shallow = replace(_dialects.RULES[dialect], depth=1)
    monkeypatch.setitem(_dialects.RULES, dialect, shallow)
    for shape in (3, 5):
        calibrator = fitted("IRPCalibrator", shape, top=None, min_bin_weight=2, n=300)
        P = np.vstack([forecasts(shape, 200), on_thresholds(calibrator)])
        assert_agrees(calibrator, P, run_sql(calibrator, P, dialect))


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


@pytest.mark.parametrize("dialect", _dialects.DIALECTS)
def test_every_dialect_writes_what_it_reads(dialect):
    for name in ("IRPCalibrator", "AutoCalibrator"):
        calibrator = fitted(name, "p")
        query = to_sql(calibrator, 'a"`b', dialect=dialect, table="x.y.z", names=["n", "y"])
        own = _dialects.RULES[dialect].sqlglot
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
        ({"columns": ["a", "b"]}, "columns: the calibrator has 3, got 2: a, b"),
        ({"columns": "abc"}, "columns: the calibrator has 3, got 1: abc"),
        ({"names": ["x"]}, "names: the calibrator has 3, got 1: x"),
        ({"dialect": "access"}, "dialect: expected one of bigquery"),
        ({"table": "a.b.c.d"}, r"table: expected \[\[catalog.\]schema.\]table"),
        ({"table": "a..b"}, "table: expected"),
        ({"names": ["a", "A", "b"], "keep": []}, "names: .*'a' and 'A'.* pass other names"),
        ({"keep": ["calibrated_0"]}, "names: .*'calibrated_0'"),
    ],
)
def test_bad_input(arguments, message):
    arguments = {"columns": ["a", "b", "c"], "dialect": "duckdb"} | arguments
    with pytest.raises(ValueError, match=re.compile(message)):
        to_sql(fitted("IRPCalibrator", 3), **arguments)


def test_unfitted():
    with pytest.raises(NotFittedError):
        to_sql(IRPCalibrator(), ["a", "b"], dialect="sqlite")
