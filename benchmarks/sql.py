"""Time that DuckDB takes for exported calibrators, against that of plain arithmetic.

The plain expression gives as many columns as there are classes, each a weighted sum of all
forecasts. Both statements write a table. Times are processor seconds of one thread, the least of
several runs that alternate, planning included; the planning alone is measured on a table without
rows. The mixture of all members is an `AutoCalibrator` in which none of them has dropped out.

    python benchmarks/sql.py [--rows N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from copy import copy
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import isoroc
from isoroc.export import to_sql

Floats = NDArray[np.float64]

#: Rows of calibration sets, repetitions of each statement, and classes of the largest map.
N_ROWS, N_RUNS, MANY = 3000, 5, 1000


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
    whole = copy(mixture)
    whole.members_ = [fit(member, n_classes) for member in members]
    whole.weights_ = np.full(len(members), 1 / len(members))
    return whole


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


def measure(name: str, calibrator: Any, n_rows: int) -> None:
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
        query = to_sql(calibrator, columns, dialect="duckdb", keep="id")
        empty = to_sql(calibrator, columns, dialect="duckdb", keep="id", table="nothing")

        def execute(statement: str) -> None:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE result AS {statement}")

        statements = {"plain": plain_query(columns), "planning": empty, "query": query}
        times = [
            {key: seconds(lambda s=text: execute(s)) for key, text in statements.items()}  # type: ignore[misc]
            for _ in range(N_RUNS)
        ]
        found = connection.execute("FROM result ORDER BY id").fetchnumpy()
    least = {key: min(run[key] for run in times) for key in statements}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=10**5)
    options = parser.parse_args()
    print(f"DuckDB {duckdb.__version__}, {options.rows:,} rows")
    print("| map | plain, ms | query, ms | planning, ms | query / plain | kB | difference |")
    print("|---|---|---|---|---|---|---|")
    irp = isoroc.IRPCalibrator
    measure("IRP, K = 3, 20 bins", fit(irp(max_bins=20, random_state=0), 3), options.rows)
    measure("IRP, K = 3", fit(irp(random_state=0), 3), options.rows)
    measure("Temperature, K = 12", fit(isoroc.TemperatureCalibrator(), 12), options.rows)
    measure("Spline, K = 12", fit(isoroc.SplineCalibrator(), 12), options.rows)
    measure("Kernel, K = 12", fit(isoroc.KernelCalibrator(), 12), options.rows)
    auto = fit(isoroc.AutoCalibrator(random_state=0), 12)
    measure(f"Auto, K = 12, {len(auto.members_)} members", auto, options.rows)
    measure("Auto, K = 12, all 4 members", mix_all(12), options.rows)
    for n_classes in (MANY // 2, MANY):
        measure_writing(n_classes)


if __name__ == "__main__":
    main()
