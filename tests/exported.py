"""Exported calibrators, run by what they are exported to."""

import atexit
import sqlite3
from functools import cache

import numpy as np
import pytest

#: Names of columns that need quotes.
ODD = ["p a", 'p"b', "p'c", "select", "p;d", "\u00e4", "p-g", "1", "p%s"]


def run_onnx(model, P, segments=None):
    """What ONNX Runtime computes."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    inputs = {"forecasts": P}
    for name, column in (segments or {}).items():
        kind = float if np.asarray(column).dtype.kind in "fi" else object
        inputs[f"segment_{name}"] = np.asarray(column, dtype=kind).reshape(-1, 1)
    return session.run(["calibrated"], inputs)[0]


def run_duckdb(query, table, columns, P):
    """Rows of a query on a table of forecasts with a column `id`."""
    pyarrow = pytest.importorskip("pyarrow")
    connection = duckdb_connection()
    data = {"id": np.arange(len(P))} | {n: P[:, k] for k, n in enumerate(columns)}
    source = pyarrow.table(data)  # noqa: F841  # DuckDB finds it by its name
    quoted = table.replace('"', '""')
    connection.execute(f'CREATE OR REPLACE TABLE "{quoted}" AS FROM source')
    return connection.execute(query).fetchall()


@cache
def duckdb_connection():
    """One database for all tests of a worker: starting one takes as long as a small query."""
    connection = pytest.importorskip("duckdb").connect()
    connection.execute("SET threads = 1")
    atexit.register(duckdb_connection.cache_clear)
    return connection


def run_sqlite(query, table, columns, P):
    """Rows of a query on a table of forecasts with a column `id`."""
    connection = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in ["id", *columns])
    quoted = table.replace('"', '""')
    connection.execute(f'CREATE TABLE "{quoted}" ({names})')
    marks = ", ".join("?" * (len(columns) + 1))
    rows = [(i, *map(float, row)) for i, row in enumerate(P)]
    connection.executemany(f'INSERT INTO "{quoted}" VALUES ({marks})', rows)  # noqa: S608
    result = connection.execute(query).fetchall()
    connection.close()
    return result


DATABASES = {"duckdb": run_duckdb, "sqlite": run_sqlite}


def run_sql(calibrator, P, dialect, table="a table", *, columns=None):
    """Calibrated forecasts from a database."""
    pytest.importorskip("sqlglot")
    from isoroc.export import to_sql  # noqa: PLC0415

    columns = columns or ODD[: P.shape[1]]
    query = to_sql(calibrator, columns, dialect=dialect, table=(table,), keep=["id"])
    rows = sorted(DATABASES[dialect](query, table, columns, P))
    assert [row[0] for row in rows] == list(range(len(P)))
    return np.array([row[1:] for row in rows], dtype=float)
