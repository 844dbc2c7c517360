"""The SQL of every calibrator, run by every engine that can be installed here."""

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from chdb import session as chdb

import what_works
from engine_tables import CASES, CATEGORIES, fit_categories, make_columns, typed_rows
from exported import ODD
from isoroc import AutoCalibrator, Counts, SegmentCalibrator
from isoroc._backends.sql import RULES
from isoroc.export import counts_sql, golden_rows, to_sql
from what_works import FEATURES
from zoo import KINDS, assert_agrees, fitted, forecasts, make, on_thresholds, takes_classes

TABLE = "a table"


def quoted(name, mark='"'):
    return mark + name.replace(mark, 2 * mark) + mark


def run_polars(query, data):
    table = pl.from_arrow(pa.table(data))
    return pl.SQLContext({TABLE: table}).execute(query, eager=True).rows()


def run_datafusion(query, data):
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_record_batches(TABLE, [pa.table(data).to_batches()])
    found = context.sql(query).to_arrow_table()
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def run_clickhouse(session, folder, query, data):
    pq.write_table(pa.table(data), folder / "table.parquet")
    source = f"SELECT * FROM file('{folder / 'table.parquet'}', Parquet)"  # noqa: S608
    session.query("CREATE DATABASE IF NOT EXISTS isoroc ENGINE = Atomic")
    session.query("USE isoroc")
    session.query(f"CREATE OR REPLACE TABLE {quoted(TABLE)} ENGINE = Memory AS {source}")
    settings = "output_format_json_quote_64bit_integers = 0"
    session.query(f"SET {settings}")
    return [tuple(row) for row in json.loads(str(session.query(query, "JSONCompact")))["data"]]


def create_table(cursor, data, mark, types):
    table = pa.table(data)
    kinds = [types[str(kind).removeprefix("large_")] for kind in table.schema.types]
    names = [quoted(name, mark) for name in data]
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    cursor.execute(f"DROP TABLE IF EXISTS {quoted(TABLE, mark)}")
    cursor.execute(f"CREATE TABLE {quoted(TABLE, mark)} ({columns})")
    values = [column.to_pylist() for column in table.columns]
    rows = [[None if x != x else x for x in row] for row in zip(*values, strict=True)]  # noqa: PLR0124
    marks = ", ".join(["%s"] * len(names))
    cursor.executemany(f"INSERT INTO {quoted(TABLE, mark)} VALUES ({marks})", rows)  # noqa: S608


def run_postgres(connection, query, data):
    with connection.cursor() as cursor:
        types = {"int64": "bigint", "double": "double precision", "string": "text"}
        types |= {"decimal128(9, 2)": "numeric(9, 2)", "bool": "boolean"}
        create_table(cursor, data, '"', types)
        return cursor.execute(query).fetchall()


def run_mariadb(connection, query, data):
    with connection.cursor() as cursor:
        types = {"int64": "bigint", "double": "double", "string": "text", "bool": "boolean"}
        create_table(cursor, data, "`", types | {"decimal128(9, 2)": "decimal(9, 2)"})
        cursor.execute(query)
        return list(cursor.fetchall())


def run_spark(session, query, data):
    frame = session.createDataFrame(pa.table(data))
    frame.createOrReplaceTempView("spark_table")
    return [tuple(row) for row in session.sql(query).collect()]


def run_relation(query, data):
    with duckdb.connect() as connection:
        connection.register(TABLE, pa.table(data))
        return connection.execute(query).fetchall()


#: Engines, and the dialect that each of them runs.
ENGINES = {
    "clickhouse": "clickhouse",
    "datafusion": "datafusion",
    "duckdb": "duckdb",
    "mariadb": "mysql",
    "polars": "polars",
    "postgres": "postgres",
    "spark": "spark",
}


@pytest.fixture(scope="session")
def clickhouse(tmp_path_factory):
    session = chdb.Session()
    yield partial(run_clickhouse, session, tmp_path_factory.mktemp("clickhouse"))
    session.close()


class Engine(NamedTuple):
    dialect: Any
    table: str
    run: Callable[..., Any]
    """Takes a query and the columns of the table."""


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "clickhouse":
        run = request.getfixturevalue("clickhouse")
    elif request.param in ("postgres", "mariadb", "spark"):
        of_session = {"postgres": run_postgres, "mariadb": run_mariadb, "spark": run_spark}
        run = partial(of_session[request.param], request.getfixturevalue(request.param))
    else:
        without = {"polars": run_polars, "datafusion": run_datafusion, "duckdb": run_relation}
        run = without[request.param]
    table = "spark_table" if request.param == "spark" else TABLE
    return Engine(ENGINES[request.param], table, run)


def calibrate(engine, calibrator, P, columns=None):
    columns = columns or ODD[: P.shape[1]]
    options = {"dialect": engine.dialect, "table": (engine.table,)}
    query = to_sql(calibrator, columns, keep="id", **options)
    rows = sorted(
        engine.run(query, {"id": np.arange(len(P))} | dict(zip(columns, P.T, strict=True)))
    )
    assert [row[0] for row in rows] == list(range(len(P)))
    return np.array([row[1:] for row in rows], dtype=float)


@pytest.mark.parametrize("name", KINDS)
def test_every_calibrator(engine, name):
    for shape in ("p", 1, 3, "3 logits") if takes_classes(name, 3) else ("p", 1):
        calibrator = fitted(name, shape)
        P = np.vstack([forecasts(shape, 100), on_thresholds(calibrator)])
        assert_agrees(calibrator, P, calibrate(engine, calibrator, P))


@pytest.mark.parametrize("name", KINDS)
def test_forecasts_that_are_almost_0(engine, name):
    tiny = [0.0, 5e-324, 1e-310, 1e-300, 1e-170, 1e-60, 1e-17]
    calibrator = fitted(name, "p")
    P = np.array([[p] for p in tiny])
    assert_agrees(calibrator, P, calibrate(engine, calibrator, P))
    if takes_classes(name, 3):
        calibrator = fitted(name, 3)
        P = np.array([[p, 1.0, q] for p, q in zip(tiny, tiny[::-1], strict=True)])
        expected = calibrator.predict_proba(P)
        found = calibrate(engine, calibrator, P)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["IRPCalibrator", "IsotonicCalibrator", "TemperatureCalibrator"])
def test_many_classes_and_missing_forecasts(engine, name):
    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(40), 600)
    calibrator = make(name).fit(P, [rng.choice(40, p=p) for p in P], labels=range(40))
    columns = [f"p{k}" for k in range(40)]
    rows = P[:50].copy()
    rows[3, 7] = np.nan
    rows[5, 0] = 2.0
    found = calibrate(engine, calibrator, rows, columns)
    good = np.arange(50) % 50 != 3
    good[5] = False
    assert np.isnan(found[~good]).all()
    assert_agrees(calibrator, rows[good], found[good])


def test_all_columns_and_views(engine):
    calibrator = fitted("IRPCalibrator", 3)
    P = forecasts(3, 20)
    data = {"id": np.arange(20), "a": P[:, 0], "b": P[:, 1], "c": P[:, 2]}
    options = {"dialect": engine.dialect, "table": (engine.table,), "names": ["x", "y", "z"]}
    if engine.dialect == "mysql":
        with pytest.raises(ValueError, match="keep: mysql cannot return all columns"):
            to_sql(calibrator, ["a", "b", "c"], keep="*", **options)
        return
    rows = sorted(engine.run(to_sql(calibrator, ["a", "b", "c"], keep="*", **options), data))
    found = np.array(rows, dtype=float)
    np.testing.assert_array_equal(found[:, 1:4], P)
    assert_agrees(calibrator, P, found[:, 4:])


def test_segments(engine):
    if engine.dialect == "duckdb":
        pytest.skip("tested by `make test`")
    rng = np.random.default_rng(0)
    p = rng.random(900)
    age = rng.uniform(18, 80, 900).round(1)
    region = np.array(["north", "o'hara", "s\u00fcd"])[rng.integers(3, size=900)]
    y = rng.random(900) < p ** np.where((region == "north") == (age < 50), 0.4, 2.0)
    segments = {"region": region, "age": age}
    calibrator = SegmentCalibrator(AutoCalibrator(), min_rows=5).fit(p, y, segments=segments)
    assert len(calibrator.map_.tables) > 1
    data = {"id": np.arange(900), "p": p} | segments
    options = {"dialect": engine.dialect, "table": (engine.table,), "keep": "id"}
    rows = sorted(engine.run(to_sql(calibrator, "p", **options), data))
    found = np.array(rows, dtype=float)[:, 1:]
    expected = calibrator.predict_proba(p, segments)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


#: Types of Arrow and of databases for the types of `engine_tables`.
ARROW = {"int": pa.int64(), "float": pa.float64(), "text": pa.string()}
ARROW["decimal"] = pa.decimal128(9, 2)
ARROW["boolean"] = pa.bool_()


@pytest.mark.parametrize(("name", "kind"), [*CASES, ("boolean", "boolean")])
def test_categories_of_every_type(engine, name, kind):
    """Collations that ignore case or accents, doubles, decimals, booleans, infinite numbers."""
    given = "int" if kind == "boolean" else kind
    calibrator, p, segments = typed_rows(name, given)
    codes = segments["code"]
    if kind == "boolean":
        codes = [None if code in (None, 2) else bool(code) for code in codes]
    if kind == "decimal":
        codes = [None if code is None else Decimal(code) for code in codes]
    ages = segments["age"]
    if engine.dialect == "mysql":  # has no infinite numbers
        ages = [None if age is None or np.isinf(age) else age for age in ages]
    data = {"id": np.arange(len(p)), "p": p}
    data |= {"code": pa.array(codes, ARROW[kind]), "age": pa.array(ages, pa.float64())}
    query = to_sql(calibrator, "p", dialect=engine.dialect, table=(engine.table,), keep="id")
    rows = sorted(engine.run(query, data))
    found = np.array(rows, dtype=float)[:, 1:]
    expected = calibrator.predict_proba(p, {"code": codes, "age": ages})
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CATEGORIES)
def test_golden_rows(engine, name):
    query = golden_rows(fit_categories(name)).to_sql(engine.dialect)
    [(rows, wrong, error)] = engine.run(query, {"id": np.arange(1)})
    assert (rows, wrong) == (12, 0)
    assert error <= 1e-12


@pytest.mark.parametrize("feature", FEATURES)
def test_what_works(engine, feature, request):
    name = request.node.callspec.params["engine"]
    if name == "duckdb":
        pytest.skip("tested by `make test`")

    def execute(query, table):
        if name == "mariadb":  # has no infinite numbers
            table = pa.Table.from_pandas(table.to_pandas().replace([np.inf, -np.inf], np.nan))
        return engine.run(query, dict(zip(table.column_names, table.columns, strict=True)))

    what_works.ENGINES[name].check(feature, execute, engine.dialect, engine.table)


@pytest.mark.parametrize("K", [1, 3, 13])
def test_counts(engine, K, tmp_path):
    if engine.dialect in ("duckdb", "postgres", "spark"):
        pytest.skip("tested in test_engines.py")
    P, columns = make_columns(K, 1000)
    names = [f"p{k}" for k in range(K)]
    columns = {"key": columns.pop("key")} | columns
    query = counts_sql(
        (engine.table,), names, "y", engine.dialect, fold_by="key", weight="w", resolution=16
    )
    rows = engine.run(query, columns)
    statement = sqlglot.parse_one(query, dialect=RULES[engine.dialect].sqlglot)
    assert isinstance(statement, sqlglot.exp.Query)
    found = statement.named_selects
    table = pa.table(dict(zip(found, zip(*rows, strict=True), strict=True)))
    pq.write_table(table, tmp_path / "counts.parquet")
    forecasts = P[:, 0] if K == 1 else P
    expected = Counts.from_arrays(
        forecasts, columns["y"], fold_by=columns["key"], sample_weight=columns["w"], resolution=16
    )
    counts = Counts.from_parquet(tmp_path / "counts.parquet")
    np.testing.assert_array_equal(counts.cells.keys, expected.cells.keys)
    np.testing.assert_array_equal(counts.fold, expected.fold)
    np.testing.assert_array_equal(counts.class_weights, expected.class_weights)
    np.testing.assert_allclose(counts.forecasts, expected.forecasts, rtol=1e-12)
