"""
From a model file to the warehouse
==================================

A calibrator is fitted once and then used where the forecasts are: in a service, a graph, or a database. All of them give the same
numbers.
"""

# %%
# The model file
# --------------
#
# A JSON file that contains data only: loading it executes nothing from it.

import tempfile
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

import isoroc

rng = np.random.default_rng(0)
P = rng.dirichlet([0.4, 0.4, 0.4], 3000)
y = np.array(["cat", "dog", "fox"])[[rng.choice(3, p=0.7 * p + 0.1) for p in P]]
calibrator = isoroc.IRPCalibrator(random_state=0).fit(P, y, labels=["cat", "dog", "fox"])

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.json")
    calibrator.save(path, summary={"data": "generated"})
    print(f"{path.stat().st_size:,} bytes")
    loaded = isoroc.load(path)
print(np.array_equal(loaded.predict_proba(P), calibrator.predict_proba(P)))

# %%
# What it does to each forecast:

from isoroc.plots import SimplexDisplay

_ = SimplexDisplay.from_estimator(loaded, P[:500], y[:500], panels=("bins", "map"))

# %%
# A query
# -------
#
# :func:`~isoroc.export.to_sql` writes the calibrator as a query in the dialect of the database. Here DuckDB runs it on a table.

from isoroc.export import to_onnx, to_sql

query = to_sql(calibrator, ["p_cat", "p_dog", "p_fox"], dialect="duckdb", keep=["id"])
forecasts = pl.DataFrame(
    {"id": np.arange(3000), "p_cat": P[:, 0], "p_dog": P[:, 1], "p_fox": P[:, 2]}
)
with duckdb.connect() as connection:
    connection.register("forecasts", forecasts)
    rows = connection.execute(query).fetchall()
from_warehouse = np.array(sorted(rows))[:, 1:]
print(query[:300], "...")
print(np.array_equal(from_warehouse, calibrator.predict_proba(P)))

# %%
# A graph
# -------
#
# :func:`~isoroc.export.to_onnx` writes it as an ONNX graph, which can be appended to the graph of the
# classifier.

import onnxruntime

session = onnxruntime.InferenceSession(to_onnx(calibrator).SerializeToString())
(from_graph,) = session.run(None, {"forecasts": P})
print(np.array_equal(from_graph, calibrator.predict_proba(P)))
