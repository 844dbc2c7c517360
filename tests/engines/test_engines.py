"""Every operation on every engine gives what NumPy gives."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot

from engine_tables import make_columns
from isoroc import Counts, InputError, IRPCalibrator, IsotonicCalibrator, MatrixCalibrator
from isoroc.export import counts_sql


def duckdb_relation(columns):
    import duckdb  # noqa: PLC0415

    return duckdb.connect().from_arrow(pa.table(columns))


def dask_frame(columns):
    import dask.dataframe as dd  # noqa: PLC0415

    return dd.from_pandas(pd.DataFrame(columns), npartitions=3)


ENGINES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": duckdb_relation,
    "dask": dask_frame,
    "spark": None,
}


@pytest.fixture(params=ENGINES)
def make_frame(request):
    if request.param != "spark":
        return ENGINES[request.param]
    session = request.getfixturevalue("spark")
    return lambda columns: session.createDataFrame(pd.DataFrame(columns))


def assert_same_counts(found, expected):
    assert found.grid == expected.grid
    assert found.classes.tolist() == expected.classes.tolist()
    np.testing.assert_array_equal(found.cells.keys, expected.cells.keys)
    np.testing.assert_array_equal(found.fold, expected.fold)
    np.testing.assert_array_equal(found.class_weights, expected.class_weights)
    np.testing.assert_allclose(found.forecasts, expected.forecasts, rtol=1e-12)


@pytest.mark.parametrize("K", [1, 3, 13])
def test_counts_and_models_are_those_of_numpy(make_frame, K):
    P, columns = make_columns(K)
    names = [f"p{k}" for k in range(K)]
    df = make_frame(columns)
    forecasts = P[:, 0] if K == 1 else P
    plain = Counts.from_arrays(forecasts, columns["y"])
    found = Counts.from_frame(df, names, "y")
    assert_same_counts(found, plain)
    np.testing.assert_array_equal(found.rows, plain.rows)
    options = {"sample_weight": columns["w"], "fold_by": columns["key"], "resolution": 8}
    weighted = Counts.from_frame(df, names, "y", weight="w", fold_by="key", resolution=8)
    assert_same_counts(weighted, Counts.from_arrays(forecasts, columns["y"], **options))
    of_engine, of_numpy = (
        MatrixCalibrator().fit_counts(counts).predict_proba(forecasts) for counts in (found, plain)
    )
    np.testing.assert_allclose(of_engine, of_numpy, rtol=1e-6)


def test_calibrated_forecasts_stay_on_the_engine(make_frame):
    P, columns = make_columns(3, 300)
    columns["p0"] = columns["p0"].copy()
    columns["p0"][7] = 3.0  # not a forecast
    calibrator = IRPCalibrator(random_state=0).fit(P, columns["y"])
    df = make_frame(columns)
    added = calibrator.predict_frame(df, ["p0", "p1", "p2"], names=["a", "b", "c"])
    assert type(added) is type(df)
    frame = nw.from_native(added)
    frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    frame = frame.sort("key")
    assert frame.columns == [*columns, "a", "b", "c"]
    expected = calibrator.predict_proba(P)
    expected[7] = np.nan
    order = np.argsort(columns["key"])
    Q = np.column_stack([np.array(frame[name].to_list(), dtype=float) for name in "abc"])
    np.testing.assert_allclose(Q, expected[order], rtol=1e-12)


def test_bad_rows_are_counted_and_shown(make_frame):
    _, columns = make_columns(1, 100)
    columns["p0"][[3, 5]] = [7.0, 7.0]
    with pytest.raises(InputError, match=r"probs: 2 of 100 rows are bad, such as 7\.0"):
        Counts.from_frame(make_frame(columns), "p0", "y")


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def run_query(request):
    """Function that runs a query on a table `logs` of columns, and returns an Arrow table."""
    if request.param == "duckdb":

        def run(query, columns):
            return duckdb_relation(columns).query("logs", query).arrow()

    elif request.param == "spark":
        session = request.getfixturevalue("spark")

        def run(query, columns):
            session.createDataFrame(pd.DataFrame(columns)).createOrReplaceTempView("logs")
            return session.sql(query).toArrow()

    else:
        connection = request.getfixturevalue("postgres")
        types = {"U": "text", "f": "double precision", "i": "bigint"}

        def run(query, columns):
            with connection.cursor() as cursor:
                kinds = ", ".join(f"{n} {types[v.dtype.kind]}" for n, v in columns.items())
                cursor.execute(f"DROP TABLE IF EXISTS logs; CREATE TABLE logs ({kinds})")
                with cursor.copy("COPY logs FROM STDIN") as copy:
                    for row in zip(*(v.tolist() for v in columns.values()), strict=True):
                        copy.write_row(row)
                cursor.execute(query)
                names = [column.name for column in cursor.description]
                rows = cursor.fetchall()
            return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))

    run.dialect = request.param  # type: ignore[attr-defined]
    return run


@pytest.mark.parametrize("K", [1, 3, 13])
def test_warehouses_count_the_same(run_query, K, tmp_path):
    P, columns = make_columns(K, 1000)
    names = [f"p{k}" for k in range(K)]
    options: dict[str, Any] = {"fold_by": "key", "weight": "w", "resolution": 16}
    query = counts_sql("logs", names, "y", run_query.dialect, **options)
    table = run_query(query, columns)
    table = table.read_all() if hasattr(table, "read_all") else table
    pq.write_table(table, tmp_path / "counts.parquet")
    forecasts = P[:, 0] if K == 1 else P
    options = {"fold_by": columns["key"], "sample_weight": columns["w"], "resolution": 16}
    expected = Counts.from_arrays(forecasts, columns["y"], **options)
    assert_same_counts(Counts.from_parquet(tmp_path / "counts.parquet"), expected)
    shards = [tmp_path / f"{number}.parquet" for number in range(5)]
    table = table.sort_by("label")  # so that no shard has all labels
    for number, shard in enumerate(shards):
        length = -(-len(table) // len(shards))
        pq.write_table(table.slice(number * length, length), shard)
    assert_same_counts(Counts.from_parquet(*shards), expected)
    hashed = run_query(counts_sql("logs", names, "y", run_query.dialect, resolution=16), columns)
    hashed = hashed.read_all() if hasattr(hashed, "read_all") else hashed
    pq.write_table(hashed, tmp_path / "hashed.parquet")
    expected = Counts.from_arrays(forecasts, columns["y"], resolution=16)
    assert_same_counts(Counts.from_parquet(tmp_path / "hashed.parquet"), expected)


def test_warehouses_report_bad_rows(run_query, tmp_path):
    _, columns = make_columns(3, 100)
    columns["p0"][[3, 5]] = [7.0, 0.0]
    columns["p1"][5] = columns["p2"][5] = 0.0
    table = run_query(counts_sql("logs", ["p0", "p1", "p2"], "y", run_query.dialect), columns)
    table = table.read_all() if hasattr(table, "read_all") else table
    pq.write_table(table, tmp_path / "counts.parquet")
    with pytest.raises(InputError, match="2 of 100 rows are bad"):
        Counts.from_parquet(tmp_path / "counts.parquet")


@pytest.mark.parametrize(
    "dialect", ["bigquery", "redshift", "snowflake", "sqlite", "trino", "tsql"]
)
def test_queries_for_other_warehouses_parse(dialect):
    for K in (1, 3, 13):
        query = counts_sql("a.logs", [f"p{k}" for k in range(K)], "y", dialect, weight="w")
        assert sqlglot.parse_one(query, dialect=dialect).sql(dialect=dialect)


def test_spark_on_this_machine_runs_this_python(spark, monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/no/python")
    calibrator = IsotonicCalibrator().fit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    frame = spark.range(2).selectExpr("0.2D + 0.5D * id AS p")
    found = [row["calibrated_1"] for row in calibrator.predict_frame(frame, "p").collect()]
    assert found == calibrator.predict_proba([0.2, 0.7])[:, 1].tolist()
    assert spark.sparkContext.pythonExec == "/no/python"
