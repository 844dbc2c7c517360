"""Deploy a calibrator as a model file, an ONNX graph and a SQL query, and check that they agree.

    python examples/deploy.py

The graph is run if onnxruntime is installed. The query is run in SQLite and, if it is installed, in
DuckDB. `onnx.compose` appends the calibrator to the graph of a classifier: here a logistic
regression whose graph is written by hand. Converters such as skl2onnx write the graphs of others.
"""

import sqlite3
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, compose, helper
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

import isoroc
from isoroc.export import to_onnx, to_sql


def main() -> None:
    X, y = make_classification(
        6000, n_features=12, n_informative=6, n_classes=3, flip_y=0.15, random_state=1
    )
    X = X.astype(np.float32)
    classifier = LogisticRegression(C=100).fit(X[:2000], y[:2000])
    P = classifier.predict_proba(X[2000:4000])
    # With one value per bin every engine returns the same bits. Tilted values agree to 1e-12.
    calibrator = isoroc.IRPCalibrator(values="constant", random_state=0).fit(P, y[2000:4000])
    P_new = np.random.default_rng(0).dirichlet([0.5, 0.5, 0.5], 1_000_000)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        calibrator.save(path, summary={"data": "generated"})
        loaded = isoroc.load(path)
        print(f"model file: {path.stat().st_size:,} bytes, {loaded.n_bins_} bins")
        report("  loaded", loaded.predict_proba(P_new), calibrator.predict_proba(P_new))

    model = to_onnx(calibrator)
    print(f"ONNX: {model.ByteSize():,} bytes, {len(model.graph.node)} nodes")
    upstream = logistic_graph(classifier)
    behind = to_onnx(calibrator, input_type="float")
    both = compose.merge_models(upstream, behind, io_map=[("probabilities", "forecasts")])
    if find_spec("onnxruntime"):
        report("  graph", run_onnx(model, forecasts=P_new), calibrator.predict_proba(P_new))
        X_new = X[4000:]
        expected = calibrator.predict_proba(run_onnx(upstream, X=X_new))
        report("  classifier and calibrator in one graph", run_onnx(both, X=X_new), expected)

    rows = P_new[:20_000]
    for dialect in ("sqlite", "duckdb"):
        query = to_sql(calibrator, ["p0", "p1", "p2"], dialect=dialect, keep=["id"])
        print(f"SQL for {dialect}: {len(query):,} characters")
        if dialect == "sqlite" or find_spec("duckdb"):
            Q = run_sql(dialect, query, rows)
            report("  query", Q, calibrator.predict_proba(rows))


def report(what: str, found: np.ndarray, expected: np.ndarray) -> None:
    same = np.array_equal(found, expected)
    print(f"{what}: {len(found):,} rows, {'identical' if same else 'NOT IDENTICAL'}")


def run_onnx(model: onnx.ModelProto, **inputs: np.ndarray) -> np.ndarray:
    import onnxruntime  # noqa: PLC0415

    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, inputs)[0]


def run_sql(dialect: str, query: str, P: np.ndarray) -> np.ndarray:
    """Result of the query, sorted by id."""
    if dialect == "duckdb":
        import duckdb  # noqa: PLC0415

        connection = duckdb.connect()
        # DuckDB finds the data by the name of the variable.
        columns = {"id": np.arange(len(P)), "p0": P[:, 0], "p1": P[:, 1], "p2": P[:, 2]}  # noqa: F841
        connection.execute("CREATE TABLE forecasts AS FROM columns")
    else:
        connection = sqlite3.connect(":memory:")
        connection.execute("CREATE TABLE forecasts (id, p0, p1, p2)")
        rows = [(i, *map(float, p)) for i, p in enumerate(P)]
        connection.executemany("INSERT INTO forecasts VALUES (?, ?, ?, ?)", rows)
    found = connection.execute(query).fetchall()
    connection.close()
    return np.array(sorted(found))[:, 1:]


def logistic_graph(classifier: LogisticRegression) -> onnx.ModelProto:
    """ONNX graph of a logistic regression in single precision, as a converter writes it."""
    coef, intercept = (a.astype(np.float32) for a in (classifier.coef_.T, classifier.intercept_))
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["X", "coef"], ["linear"]),
            helper.make_node("Add", ["linear", "intercept"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        ],
        "classifier",
        [tensor("X", TensorProto.FLOAT, ["N", len(coef)])],
        [tensor("probabilities", TensorProto.FLOAT, ["N", len(intercept)])],
        [onnx.numpy_helper.from_array(a, n) for a, n in ((coef, "coef"), (intercept, "intercept"))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    main()
