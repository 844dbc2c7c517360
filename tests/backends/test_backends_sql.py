"""Operations on columns, in SQL and in dataframes, compute what NumPy computes."""

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exported import DATABASES
from formulas import EXACT, OPERATIONS, SHAPES, all_maps, clean_forecasts, is_rounded
from isoroc._backends import NUMPY
from isoroc._counts.frames import FrameOps
from isoroc._counts.grid import Grid, cells, fold
from isoroc._input.kinds import PROBABILITIES

pytest.importorskip("sqlglot")
pytest.importorskip("duckdb")

from isoroc._backends.sql import SqlOps, table_node

ROWS = np.random.default_rng(0).random((60, 4))


def names_of(X):
    return [f"p{k}" for k in range(X.shape[1])]


def write(ops, vector):
    outputs = {f"q{k}": own for k, own in enumerate(vector.columns())}
    return ops.text(ops.stages.select(table_node(["t"]), ["id"], outputs))


def in_sql(dialect, formula, X):
    ops = SqlOps(dialect, taken=["id", *names_of(X)])
    query = write(ops, formula(ops, ops.read(names_of(X))))
    rows = sorted(DATABASES[dialect](query, "t", names_of(X), X))
    return np.array(rows, dtype=float)[:, 1:]


def in_frame(_, formula, X):
    ops = FrameOps()
    vector = formula(ops, ops.read(names_of(X)))
    names = [f"q{k}" for k in range(vector.width)]
    frame = nw.from_native(pl.DataFrame(dict(zip(names_of(X), X.T, strict=True))))
    return ops.run_on(frame, names, vector).select(names).to_numpy().astype(float)


def in_polars(dialect, formula, X):
    ops = SqlOps(dialect, taken=["id", *names_of(X)])
    query = write(ops, formula(ops, ops.read(names_of(X))))
    data = {"id": np.arange(len(X))} | dict(zip(names_of(X), X.T, strict=True))
    found = pl.SQLContext({"t": pl.DataFrame(data)}).execute(query, eager=True)
    return found.sort("id").drop("id").to_numpy().astype(float)


BACKENDS = dict.fromkeys(DATABASES, in_sql) | {"polars": in_polars, "dataframe": in_frame}
backends = pytest.mark.parametrize(("backend", "run"), BACKENDS.items(), ids=BACKENDS)


@backends
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(backend, run, name):
    formula, expected = OPERATIONS[name]
    found = run(backend, formula, ROWS)
    if name in EXACT:
        np.testing.assert_array_equal(found, expected(ROWS))
    else:
        tolerance = 1e-6 if name == "along close knots" else 1e-12
        np.testing.assert_allclose(found, expected(ROWS), rtol=0, atol=tolerance)


#: Operations whose SQL depends on how many columns or cuts there are.
MANY = np.arange(200) % 4
TALL = np.random.default_rng(1).normal(size=(8, 200))
WIDE = {
    "largest": lambda ops, X: ops.largest(ops.take(X, MANY))[0],
    "every": lambda ops, X: ops.where(ops.every(ops.take(X, MANY) <= 0.8), 1.0, 0.0),
    "locate": lambda ops, X: ops.locate(np.linspace(0, 1, 101), ops.take(X, [0])) + 0.0,
    "linear": lambda ops, X: ops.linear(ops.take(X, MANY), TALL, TALL[:, 0]),
    "bumps": lambda ops, X: ops.linear(ops.cauchy_kernel(X, TALL[:, :4]), TALL[:, :8]),
}


@backends
@pytest.mark.parametrize("name", WIDE)
def test_operations_on_many_columns(backend, run, name):
    found = run(backend, WIDE[name], ROWS)
    np.testing.assert_allclose(found, WIDE[name](NUMPY, ROWS), rtol=0, atol=1e-12)


@backends
@pytest.mark.parametrize(
    ("kind", "K"), [(kind, K) for kind, K in SHAPES if K < 5], ids=lambda v: getattr(v, "name", v)
)
def test_maps(backend, run, kind, K):
    """Every map of three probabilities in every backend. For other shapes, maps take turns."""
    X = clean_forecasts(kind, K)
    turn = slice(list(BACKENDS).index(backend), None, len(BACKENDS))
    for own in list(all_maps(kind, K))[slice(None) if (kind, K) == (PROBABILITIES, 3) else turn]:
        found = run(backend, own.formula, X)
        expected = own.apply(X[:, 0] if kind.single else X)
        if is_rounded(own):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12, err_msg=str(type(own)))
        else:
            np.testing.assert_array_equal(found, expected, err_msg=str(type(own)))


@pytest.mark.parametrize("dialect", DATABASES)
def test_what_is_used_again_is_computed_once(dialect):
    ops = SqlOps(dialect, taken=["a", "b"])
    e = ops.exp(ops.read(["a", "b"]))
    assert write(ops, ops.concat([e / ops.sum(e), e * e])).count("EXP(") == 2


def deep(ops, X):  # noqa: ARG001
    total = X
    for _ in range(200):
        total = total * 0.5 + X
    return total


@backends
def test_deep_formulas(backend, run):
    np.testing.assert_array_equal(run(backend, deep, ROWS), deep(NUMPY, ROWS))


@pytest.mark.parametrize("dialect", DATABASES)
def test_expressions_of_deep_formulas_are_nested_at_most_30_times(dialect):
    ops = SqlOps(dialect, taken=["id", "a"])
    query = write(ops, deep(ops, ops.read(["a"])))
    nesting = np.cumsum([(letter == "(") - (letter == ")") for letter in query])
    assert 5 < nesting.max() <= 30


@backends
@pytest.mark.parametrize("K", [1, 2, 3, 13])
def test_cells_and_folds(backend, run, K):
    P = np.random.default_rng(0).dirichlet(np.full(max(K, 2), 0.4), 600)[:, :K]
    P[:3] = np.array([[0.0], [1.0], [5e-324]])
    for resolution in ("exact", 16):
        grid = Grid.choose(K, resolution)
        for formula in (
            lambda ops, X, grid=grid: cells(ops, X, grid) + 0.0,
            lambda ops, X: fold(ops, X, 5),
            # The reciprocal of 49 rounds so that 49 / 49 by it is below 1.
            lambda ops, X: fold(ops, X, 49, ops.floor(1e9 * ops.take(X, [0]))),
        ):
            np.testing.assert_array_equal(run(backend, formula, P), formula(NUMPY, P))


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=400))
def test_totals_are_those_of_numpy(row):
    scalars: Any = FrameOps().scalars
    scalars.binary = lambda _, a, b: a + b
    with np.errstate(all="ignore"):
        expected = np.array([row]).sum(axis=1)[0]
        np.testing.assert_equal(scalars.total([np.float64(x) for x in row]), expected)
