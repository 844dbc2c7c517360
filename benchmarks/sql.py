"""Time that DuckDB takes for exported calibrators, against that of plain arithmetic.

The plain expression gives as many columns as there are classes, each a weighted sum of all
forecasts. Both statements write a table. Times are processor seconds of one thread, the least of
several runs that alternate, planning included; the planning alone is measured on a table without
rows. The mixture of all members is an `AutoCalibrator` in which none of them has dropped out.

`parts` are pieces of the query of a tree: a copy of the forecasts, the check of rows (all that
`IdentityCalibrator` does), the tree without the check, and the same for one row in a hundred, where
the others get the values of the first bin. `bins` are trees of many bins. `classes` are maps of
many classes, on as many rows as make 10 and 100 times as many numbers as there are rows otherwise;
`engines` are the same on ClickHouse (as chdb) and Spark, if they are installed, on a hundredth of
the rows and on all of them. `rows` compares temperature scaling
with what it could be by rows of one class each, without the check of rows and the smoothing.

    python benchmarks/sql.py [--rows N] [--only maps parts bins rows classes engines writing]
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import isoroc
from isoroc._backends.sql import RULES, SqlOps
from isoroc.export import to_sql

Floats = NDArray[np.float64]

#: Rows of calibration sets, repetitions of each statement, and classes of the largest map.
N_ROWS, N_RUNS, MANY = 3000, 5, 1000
#: Classes up to which plain arithmetic, whose size is quadratic, is measured.
FEW = 30


def draw(n_rows: int, n_classes: int, seed: int) -> tuple[Floats, NDArray[np.intp]]:
    """Overconfident forecasts and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(n_classes, 0.5), n_rows)
    y = (truth.cumsum(axis=1) > rng.random((n_rows, 1))).argmax(axis=1)
    P = truth**1.5
    return P / P.sum(axis=1, keepdims=True), y


def fit(calibrator: Any, n_classes: int) -> Any:
    return calibrator.fit(*draw(N_ROWS, n_classes, 0), labels=range(n_classes))


def mix_all(n_classes: int) -> Any:
    """An `AutoCalibrator` with all of its members."""
    mixture = fit(isoroc.AutoCalibrator(random_state=0), n_classes)
    members = (
        isoroc.IdentityCalibrator(),
        isoroc.TemperatureCalibrator(),
        isoroc.SplineCalibrator(),
        isoroc.KernelCalibrator(),
    )
    maps = [fit(member, n_classes).map_ for member in members]
    mixture.map_ = replace(mixture.map_, members=maps, weights=np.full(len(maps), 1 / len(maps)))
    return mixture


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def plain_query(columns: list[str]) -> str:
    weights = np.random.default_rng(0).normal(size=(len(columns), len(columns)))
    sums = [
        " + ".join(f"{a!r}e0 * {name}" for a, name in zip(row, columns, strict=True))
        for row in weights.round(3).tolist()
    ]
    outputs = ", ".join(f"{text} AS q{k}" for k, text in enumerate(sums))
    return f"SELECT id, {outputs} FROM forecasts"  # noqa: S608


def tree_query(calibrator: Any, columns: list[str], table: str, one_in: int = 1) -> str:
    """The query of a tree without the check of rows, for all rows or one in some."""
    ops = SqlOps("duckdb", taken=[*columns, "id"])
    place = ops.route(calibrator.map_.tree, ops.read(columns))
    if one_in > 1:
        row = ops.read(["id"])
        is_one = row <= float(one_in) * ops.floor(row / float(one_in))
        place = ops.where(is_one, place, ops.locate(np.empty(0), row))  # the first bin
    values = ops.look_up(calibrator.map_.bin_values, place)
    outputs = {f"q{k}": value for k, value in enumerate(values.columns())}
    return ops.text(ops.stages.select([table], ["id"], outputs))


def copy_query(calibrator: Any, columns: list[str], table: str) -> str:  # noqa: ARG001
    return f"SELECT id, {', '.join(columns)} FROM {table}"  # noqa: S608


def whole_query(calibrator: Any, columns: list[str], table: str) -> str:
    return to_sql(calibrator, columns, dialect="duckdb", keep="id", table=table)


def measure(
    name: str, calibrator: Any, n_rows: int, write: Callable[..., str] = whole_query
) -> None:
    K = len(calibrator.classes_)
    columns = [f"p{k}" for k in range(K)]
    P, _ = draw(n_rows, K, 1)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        data = {"id": np.arange(n_rows)} | dict(zip(columns, P.T, strict=True))
        source = pa.table(data)
        connection.register("source", source)
        connection.execute("CREATE TABLE forecasts AS FROM source")
        connection.execute("CREATE TABLE nothing AS FROM forecasts LIMIT 0")
        query, empty = (write(calibrator, columns, table) for table in ("forecasts", "nothing"))

        def execute(statement: str) -> None:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE result AS {statement}")

        few = K <= FEW
        statements = {"plain": plain_query(columns)} if few else {}
        statements |= {"planning": empty, "query": query}
        times = [
            {key: seconds(lambda s=text: execute(s)) for key, text in statements.items()}  # type: ignore[misc]
            for _ in range(N_RUNS if few else 2)
        ]
        found = connection.execute("FROM result ORDER BY id").fetchnumpy()
    least = {key: min(run[key] for run in times) for key in statements}
    least.setdefault("plain", np.nan)
    Q = np.column_stack(list(found.values())[1:])
    difference = float(np.abs(Q - calibrator.predict_proba(P)).max())
    print(
        f"| {name} | {1e3 * least['plain']:.0f} | {1e3 * least['query']:.0f} "
        f"| {1e3 * least['planning']:.0f} | {least['query'] / least['plain']:.1f} "
        f"| {len(query) / 1e3:.0f} | {difference:.0e} |",
        flush=True,
    )


def measure_writing(n_classes: int) -> None:
    P = np.vstack([np.eye(n_classes), draw(n_classes, n_classes, 0)[0]])
    calibrator = isoroc.TemperatureCalibrator().fit(P, [*range(n_classes), *range(n_classes)])
    columns = [f"p{k}" for k in range(n_classes)]
    for dialect in ("duckdb", "sqlite", "postgres"):
        start = time.process_time()
        text = to_sql(calibrator, columns, dialect=dialect, keep="id")  # type: ignore[arg-type]
        taken = time.process_time() - start
        print(f"temperature, K = {n_classes}, {dialect}: {taken:.1f} s, {len(text) / 1e3:.0f} kB")


def row_query(calibrator: Any, columns: list[str], table: str) -> str:
    """Temperature scaling by rows of one class each."""
    scaled = f"LN(CASE WHEN p <= 1e-300 THEN 1e-300 ELSE p END) / {calibrator.temperature_}e0"
    outputs = ", ".join(f"LIST_EXTRACT(e, {k + 1}) / total AS q{k}" for k in range(len(columns)))
    entries = f"UNNEST(LIST_VALUE({', '.join(columns)})) AS p"
    return f"""
    WITH a AS (SELECT id, UNNEST(RANGE({len(columns)})) AS k, {entries} FROM {table}),
    b AS (SELECT id, k, EXP({scaled}) AS x FROM a),
    c AS (SELECT id, LIST(x ORDER BY k) AS e, SUM(x) AS total FROM b GROUP BY id)
    SELECT id, {outputs} FROM c"""  # noqa: S608


def compare_rows(n_rows: int) -> None:
    for n_classes in (MANY // 10, MANY * 3 // 10):
        calibrator = fit(isoroc.TemperatureCalibrator(), n_classes)
        for name, write in (("as written", whole_query), ("by rows", row_query)):
            measure(f"Temperature, K = {n_classes}, {name}", calibrator, n_rows, write)


def fit_many(calibrator: Any, n_classes: int) -> Any:
    P, y = draw(N_ROWS + 2 * n_classes, n_classes, 0)
    y[:n_classes] = range(n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrator.fit(P, y, labels=range(n_classes))


def measure_classes(calibrator: Any, n_rows: int) -> None:
    K = len(calibrator.classes_)
    columns = [f"p{k}" for k in range(K)]
    start = time.process_time()
    query = to_sql(calibrator, columns, dialect="duckdb", keep="id")
    writing = time.process_time() - start
    P, _ = draw(n_rows, K, 1)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        source = pa.table({"id": np.arange(n_rows)} | dict(zip(columns, P.T, strict=True)))
        connection.register("source", source)
        least = []
        for first in (0, n_rows // 10, n_rows):
            connection.execute(f"CREATE OR REPLACE TABLE forecasts AS FROM source LIMIT {first}")
            run = partial(connection.execute, f"CREATE OR REPLACE TEMP TABLE result AS {query}")
            least.append(min(seconds(run) for _ in range(2)))
        found = connection.execute("FROM result ORDER BY id").fetchnumpy()
    Q = np.column_stack(list(found.values())[1:])
    difference = float(np.abs(Q - calibrator.predict_proba(P)).max())
    print(
        f"| `{type(calibrator).__name__}` | {K:,} | {writing:.1f} "
        f"| {len(query) / 1e3:,.0f} | {' | '.join(f'{t:.2f}' for t in least)} "
        f"| {difference:.0e} |",
        flush=True,
    )


def compare_classes(n_rows: int) -> None:
    print("| map | classes | written in, s | kB | planning, s ", end="")
    print(f"| {10 * n_rows:,} numbers, s | {100 * n_rows:,} numbers, s | difference |")
    print("|---|---|---|---|---|---|---|---|")
    for calibrator in (
        isoroc.TemperatureCalibrator(),
        isoroc.MatrixCalibrator(),
        isoroc.SplineCalibrator(),
        isoroc.IsotonicCalibrator(),
        isoroc.IRPCalibrator(random_state=0),
    ):
        for n_classes in (MANY // 10, MANY * 3 // 10, MANY):
            # The matrices of splines have a million entries for a thousand classes.
            if n_classes < MANY or not isinstance(calibrator, isoroc.SplineCalibrator):
                measure_classes(fit_many(calibrator, n_classes), 100 * n_rows // n_classes)


def run_clickhouse() -> Callable[[str, dict[str, Any]], float]:
    from chdb import session as chdb  # noqa: PLC0415

    session = chdb.Session()
    session.query("CREATE DATABASE IF NOT EXISTS isoroc ENGINE = Atomic")
    session.query("USE isoroc")

    def run(query: str, data: dict[str, Any]) -> float:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "forecasts.parquet"
            pq.write_table(pa.table(data), file)
            source = f"SELECT * FROM file('{file}', Parquet)"  # noqa: S608
            session.query(f"CREATE OR REPLACE TABLE forecasts ENGINE = Memory AS {source}")
        start = time.perf_counter()
        session.query(query, "Null")
        return time.perf_counter() - start

    return run


def run_spark() -> Callable[[str, dict[str, Any]], float]:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "4g").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")

    def run(query: str, data: dict[str, Any]) -> float:
        with tempfile.TemporaryDirectory() as folder:
            pq.write_table(pa.table(data), f"{folder}/forecasts.parquet")
            session.read.parquet(folder).createOrReplaceTempView("forecasts")
            start = time.perf_counter()
            session.sql(query).write.format("noop").mode("overwrite").save()
            return time.perf_counter() - start

    return run


def compare_engines(n_rows: int) -> None:
    """Elapsed times of the second run: the first one of a query also compiles it."""
    print(f"| engine | map | classes | kB | {n_rows // 100:,} rows, s | {n_rows:,} rows, s |")
    print("|---|---|---|---|---|---|")
    starts: dict[str, Any] = {"clickhouse": run_clickhouse, "spark": run_spark}
    for dialect, start in starts.items():
        try:
            run = start()
        except ImportError as error:
            print(f"{dialect} left out: {error}")
            continue
        for calibrator in (isoroc.TemperatureCalibrator(), isoroc.IRPCalibrator(random_state=0)):
            for n_classes in (12, 30, MANY // 10, MANY * 3 // 10):
                if n_classes > (RULES[dialect].most_classes or MANY):
                    continue
                fitted = fit_many(calibrator, n_classes)
                columns = [f"p{k}" for k in range(n_classes)]
                query = to_sql(fitted, columns, dialect=dialect, keep="id")  # type: ignore[arg-type]
                times = [_time_engine(run, query, columns, n) for n in (n_rows // 100, n_rows)]
                print(
                    f"| {dialect} | `{type(calibrator).__name__}` | {n_classes} "
                    f"| {len(query) / 1e3:.0f} | {' | '.join(times)} |",
                    flush=True,
                )


def _time_engine(run: Callable[..., float], query: str, columns: list[str], n_rows: int) -> str:
    P, _ = draw(n_rows, len(columns), 1)
    data = {"id": np.arange(n_rows)} | dict(zip(columns, P.T, strict=True))
    try:
        return f"{min(run(query, data) for _ in range(2)):.2f}"
    except Exception as error:  # noqa: BLE001  # each engine has errors of its own
        return f"error: {str(error).splitlines()[0][:80]}"


def compare_bins(n_rows: int) -> None:
    for n_classes, n_calibration in ((3, 30_000), (3, 200_000), (4, 20_000)):
        calibrator = isoroc.IRPCalibrator(top=None, monotonicity="tree", random_state=0)
        calibrator.fit(*draw(n_calibration, n_classes, 0))
        measure(f"IRP, K = {n_classes}, {calibrator.n_bins_} bins", calibrator, n_rows)


def compare_maps(n_rows: int) -> None:
    irp = isoroc.IRPCalibrator
    measure("IRP, K = 3, 20 bins", fit(irp(max_bins=20, random_state=0), 3), n_rows)
    measure("IRP, K = 3", fit(irp(random_state=0), 3), n_rows)
    measure("Temperature, K = 12", fit(isoroc.TemperatureCalibrator(), 12), n_rows)
    measure("Spline, K = 12", fit(isoroc.SplineCalibrator(), 12), n_rows)
    measure("Kernel, K = 12", fit(isoroc.KernelCalibrator(), 12), n_rows)
    auto = fit(isoroc.AutoCalibrator(random_state=0), 12)
    measure(f"Auto, K = 12, {len(auto.members_)} members", auto, n_rows)
    measure("Auto, K = 12, all 4 members", mix_all(12), n_rows)


def compare_parts(n_rows: int) -> None:
    tree = fit(isoroc.IRPCalibrator(max_bins=20, random_state=0), 3)
    measure("copy", fit(isoroc.IdentityCalibrator(), 3), n_rows, copy_query)
    measure("check of rows", fit(isoroc.IdentityCalibrator(), 3), n_rows)
    measure("tree without the check", tree, n_rows, tree_query)
    measure("tree for one row in 100", tree, n_rows, partial(tree_query, one_in=100))
    measure("tree with the check", tree, n_rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10**5)
    tables = {"maps": compare_maps, "parts": compare_parts, "bins": compare_bins}
    tables["rows"] = compare_rows
    others = ("classes", "engines", "writing")
    parser.add_argument("--only", nargs="+", choices=[*tables, *others], default=[*tables, *others])
    options = parser.parse_args()
    print(f"DuckDB {duckdb.__version__}, {options.rows:,} rows")
    print("| map | plain, ms | query, ms | planning, ms | query / plain | kB | difference |")
    print("|---|---|---|---|---|---|")
    for name, compare in tables.items():
        if name in options.only:
            compare(options.rows)
    if "classes" in options.only:
        compare_classes(options.rows)
    if "engines" in options.only:
        compare_engines(options.rows)
    if "writing" in options.only:
        for n_classes in (MANY // 2, MANY):
            measure_writing(n_classes)


if __name__ == "__main__":
    main()
