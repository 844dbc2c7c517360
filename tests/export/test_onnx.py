import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from exported import run_onnx
from isoroc import CalibratedClassifier, IRPCalibrator
from zoo import assert_agrees, fitted, forecasts

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, compose, helper  # noqa: E402

from isoroc.export import to_onnx  # noqa: E402


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("SplineCalibrator", {"n_knots": 0}),
        ("TemperatureCalibrator", {"pseudocount": 0}),
        ("MatrixCalibrator", {"structure": "vector", "quadratic": False, "pseudocount": 0}),
        ("IRPCalibrator", {"max_bins": 1}),
    ],
)
@pytest.mark.parametrize("shape", [1, 3])
def test_maps_with_parts_left_out(name, parameters, shape):
    calibrator = fitted(name, shape, **parameters)
    P = forecasts(shape, 300)
    assert_agrees(calibrator, P, run_onnx(to_onnx(calibrator), P))


def test_identical_on_a_million_rows():
    calibrator = fitted("IRPCalibrator", 3, n=5000)
    P = np.random.default_rng(0).dirichlet(np.full(3, 0.5), 1_000_000)
    np.testing.assert_array_equal(run_onnx(to_onnx(calibrator), P), calibrator.predict_proba(P))


@pytest.mark.parametrize("name", ["IRPCalibrator", "AutoCalibrator"])
@pytest.mark.parametrize("n", [0, 1])
def test_batches_of_any_size(name, n):
    P = forecasts(3, 10)
    calibrator = fitted(name, 3)
    Q = run_onnx(to_onnx(calibrator), P[:n])
    np.testing.assert_allclose(Q, calibrator.predict_proba(P)[:n], rtol=0, atol=1e-12)


def test_sums_of_many_classes_are_numpys():
    rng = np.random.default_rng(0)
    for K in (7, 8, 9, 17, 40):
        P = rng.dirichlet(np.ones(K), 400)
        calibrator = IRPCalibrator(top=2, min_bin_weight=5).fit(P, np.arange(400) % K)
        loose = P * rng.uniform(0.9995, 1.0005, size=(400, 1))
        Q = run_onnx(to_onnx(calibrator), loose)
        np.testing.assert_array_equal(Q, calibrator.predict_proba(loose))


REFUSED = [
    [0.5, 0.6, 0.1],
    [-0.1, 0.6, 0.5],
    [np.nan, 0.5, 0.5],
    [np.inf, 0, 0],
    [0, 0, 0],
]


@pytest.mark.parametrize("name", ["IRPCalibrator", "MatrixCalibrator", "AutoCalibrator"])
def test_rows_that_are_refused_come_out_as_nan(name):
    calibrator = fitted(name, 3)
    Q = run_onnx(to_onnx(calibrator), np.array([*REFUSED, [0.2, 0.3, 0.5]]))
    assert np.isnan(Q[:-1]).all()
    assert_agrees(calibrator, np.array([[0.2, 0.3, 0.5]]), Q[-1:])
    for row in REFUSED:
        with pytest.raises(ValueError, match="P: row 0"):
            calibrator.predict_proba([row])


def test_scores_that_are_refused_come_out_as_nan():
    P = np.array([[np.nan], [np.inf], [-np.inf], [1e300], [1.5], [0.5]])
    Q = run_onnx(to_onnx(fitted("IRPCalibrator", "p")), P)
    assert np.isnan(Q).all(axis=1).tolist() == [True, True, True, False, False, False]
    Q = run_onnx(to_onnx(fitted("TemperatureCalibrator", "p")), P)
    assert np.isnan(Q).all(axis=1).tolist() == [True, True, True, True, True, False]


def test_logits_that_are_refused_come_out_as_nan():
    calibrator = fitted("TemperatureCalibrator", "3 logits")
    P = np.array([[np.nan, 0, 0], [0, np.inf, 0], [0, 0, -np.inf], [1e300, 0, 1], [800, -800, 0]])
    Q = run_onnx(to_onnx(calibrator), P)
    assert np.isnan(Q).all(axis=1).tolist() == [True, True, True, False, False]
    assert_agrees(calibrator, P[3:], Q[3:])


ROUNDED = [
    ("TemperatureCalibrator", "p", [[1 + 1e-9], [-1e-9], [1.0]]),
    ("IRPCalibrator", 3, [[0.5, 0.5 + 1e-9, -1e-9], [1 + 1e-17, 0, -1e-17]]),
    ("MatrixCalibrator", 3, [[0.5, 0.5 + 1e-9, -1e-9], [1 + 1e-17, 0, -1e-17]]),
]


@pytest.mark.parametrize(("name", "shape", "rows"), ROUNDED)
def test_rounding_beyond_0_and_1_is_clipped(name, shape, rows):
    calibrator, P = fitted(name, shape), np.array(rows)
    np.testing.assert_allclose(calibrator.predict_proba(P).sum(axis=1), 1)
    assert_agrees(calibrator, P, run_onnx(to_onnx(calibrator), P))


@pytest.mark.parametrize("opset", [13, 17, onnx.defs.onnx_opset_version()])
def test_operator_sets(opset):
    model = to_onnx(fitted("AutoCalibrator", 3), opset=opset)
    assert model.opset_import[0].version == opset
    assert {node.domain for node in model.graph.node} == {""}
    if opset < 20:  # runtimes come later than operator sets
        P = forecasts(3, 100)
        assert_agrees(fitted("AutoCalibrator", 3), P, run_onnx(model, P))


def test_it_composes_behind_another_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, :3] + rng.normal(size=(600, 3))).argmax(axis=1)
    classifier = LogisticRegression().fit(X, y)
    upstream = logistic_graph(classifier)
    calibrator = IRPCalibrator().fit(classifier.predict_proba(X), y)
    model = to_onnx(calibrator, input_type="float")
    model.ir_version = upstream.ir_version
    both = compose.merge_models(upstream, model, io_map=[("probabilities", "forecasts")])
    onnx.checker.check_model(both, full_check=True)
    P, Q = (
        onnxruntime.InferenceSession(m.SerializeToString()).run(None, {"X": X.astype(np.float32)})[
            0
        ]
        for m in (upstream, both)
    )
    np.testing.assert_array_equal(Q, calibrator.predict_proba(P))


def logistic_graph(classifier):
    """What a converter makes of a logistic regression: single precision, rows roughly sum to 1."""
    coef, intercept = (a.astype(np.float32) for a in (classifier.coef_.T, classifier.intercept_))
    nodes = [
        helper.make_node("MatMul", ["X", "coef"], ["linear"]),
        helper.make_node("Add", ["linear", "intercept"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
    ]
    tensor = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "logistic",
        [tensor("X", TensorProto.FLOAT, ["N", len(coef)])],
        [tensor("probabilities", TensorProto.FLOAT, ["N", len(intercept)])],
        [onnx.numpy_helper.from_array(a, n) for a, n in ((coef, "coef"), (intercept, "intercept"))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    ("calibrator", "options", "error", "message"),
    [
        (IRPCalibrator(), {}, NotFittedError, "not fitted"),
        (CalibratedClassifier(None), {}, TypeError, "calibrators_"),
        (fitted("IRPCalibrator", 3), {"input_type": "half"}, ValueError, "input_type: expected"),
        (fitted("IRPCalibrator", 3), {"opset": 9}, ValueError, "opset: expected 13 to"),
    ],
)
def test_bad_input(calibrator, options, error, message):
    with pytest.raises(error, match=message):
        to_onnx(calibrator, **options)
