"""Golden rows: exports are checked where they run, by rows that they carry."""

import json
import sqlite3
from functools import cache

import numpy as np
import pytest

import isoroc
from engine_tables import CATEGORIES, fit_categories
from exported import run_onnx
from isoroc import InputError, MultiLabelCalibrator, SigmoidCalibrator, TemperatureCalibrator
from isoroc._backends.sql import DIALECTS
from isoroc.export import golden_rows, to_onnx
from zoo import SHAPES, fitted

duckdb = pytest.importorskip("duckdb")

RUN = {
    "duckdb": lambda query: duckdb.sql(query).fetchall(),
    "sqlite": lambda query: sqlite3.connect(":memory:").execute(query).fetchall(),
}


@cache
def calibrators():
    rng = np.random.default_rng(0)
    several = rng.random((200, 3))
    of_labels = MultiLabelCalibrator(TemperatureCalibrator())
    P = rng.dirichlet(np.ones(3), 100)
    y = rng.integers(3, size=100)
    return [
        of_labels.fit(several, rng.random((200, 3)) < several),
        *(fitted("IRPCalibrator", shape) for shape in SHAPES),
        *map(fit_categories, CATEGORIES),
        TemperatureCalibrator().fit(np.log(P), y, unit="log_probability"),
        TemperatureCalibrator().fit(100 * P, y, unit="percent"),
    ]


@pytest.mark.parametrize("dialect", RUN)
def test_queries_find_nothing_wrong_until_something_is(dialect):
    for calibrator in calibrators():
        golden = golden_rows(calibrator)
        [(rows, wrong, error)] = RUN[dialect](golden.to_sql(dialect))
        assert (rows, wrong) == (12, 0)
        assert error <= 1e-12
        golden.expected[3] += 1e-6
        golden.expected[4] = np.nan
        golden.expected[-1] = 0.5  # of a row that is refused
        [(rows, wrong, error)] = RUN[dialect](golden.to_sql(dialect))
        assert (rows, wrong) == (12, 3)
        assert error == pytest.approx(1e-6)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_a_query(dialect):
    query = golden_rows(fit_categories("boolean"), "golden_p").to_sql(dialect)
    assert "golden_" in query
    assert query.count("UNION ALL") == 11


def test_rows_are_those_of_predict_proba():
    for calibrator in calibrators():
        golden = golden_rows(calibrator)
        segments = {name: entries[:-1] for name, entries in golden.segments.items()}
        further = [segments] if segments else []
        Q = calibrator.predict_proba(golden.forecasts[:-1], *further)
        missing = np.full((1, Q.shape[1]), np.nan)
        assert golden.error(np.vstack([Q, missing])) == 0
        assert golden.error(np.vstack([Q, np.ones_like(missing)])) == np.inf
        assert golden.error(np.vstack([Q + 0.1, missing])) == pytest.approx(0.1)
        assert golden.frame().n_rows == 12
    assert golden_rows(fit_categories("boolean")).types == {
        "score": "double",
        "code": "boolean",
        "age": "double",
    }
    assert golden_rows(fit_categories("number"), segments=["a", "b"]).types["a"] == "bigint"
    assert golden_rows(fit_categories("digits")).types["code"] == "text"


def test_rows_of_log_odds_have_a_certain_forecast():
    z = np.random.default_rng(0).normal(size=100)
    golden = golden_rows(SigmoidCalibrator().fit(z, np.arange(100) % 2))
    assert golden.forecasts[0] == 0
    assert golden.forecasts[1] == pytest.approx(53 * np.log(2))  # the last number below 1


@pytest.mark.parametrize("name", CATEGORIES)
def test_graphs_carry_their_rows(name):
    pytest.importorskip("onnxruntime")
    calibrator = fit_categories(name)
    model = to_onnx(calibrator)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    document = json.loads(metadata["isoroc.golden_rows"])
    assert document["columns"][0] == {"name": "score", "type": "double"}
    assert document["model"] == calibrator.checksum
    *rows, last = document["rows"]
    assert last[0] is None
    codes = ["" if row[1] is None else row[1] for row in rows]
    codes = [code if isinstance(code, str) else json.dumps(code) for code in codes]
    segments = {"code": codes, "age": np.array([row[2] for row in rows], dtype=float)}
    found = run_onnx(model, np.array([row[:1] for row in rows], dtype=float), segments)
    np.testing.assert_allclose(found, document["expected"][:-1], rtol=0, atol=1e-12)


def test_bad_input():
    calibrator = fitted("IRPCalibrator", 3)
    for options, message in (
        ({"columns": "p"}, "columns: 1 given; the calibrator has 3"),
        ({"segments": "s"}, "segments: 1 given; the calibrator uses 0"),
        ({"n_rows": 2}, "n_rows"),
    ):
        with pytest.raises(InputError, match=message):
            golden_rows(calibrator, **options)
    with pytest.raises(InputError, match="dialect: expected one of"):
        golden_rows(calibrator).to_sql("access")
    with pytest.raises(InputError, match="calibrator: is of type"):
        golden_rows(isoroc)
