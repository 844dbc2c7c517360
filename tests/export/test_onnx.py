import json
from copy import copy
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from exported import run_onnx
from isoroc import CalibratedClassifier, InputError, IRPCalibrator
from isoroc._maps import TemperatureMap
from zoo import CASES, assert_agrees, draw_labels, fitted, forecasts, make

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

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


@pytest.mark.slow
def test_identical_on_a_million_rows():
    calibrator = fitted("IRPCalibrator", 3, n=5000, values="constant")
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
    for K in (7, 8, 9, 17, 40, 300):
        P = rng.dirichlet(np.ones(K), 400)
        calibrator = IRPCalibrator(top=2, min_bin_weight=5, values="constant")
        calibrator.fit(P, np.arange(400) % K)
        loose = P * rng.uniform(0.9995, 1.0005, size=(400, 1))
        Q = run_onnx(to_onnx(calibrator), loose)
        np.testing.assert_array_equal(Q, calibrator.predict_proba(loose))


REFUSED: list[list[float]] = [
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


@pytest.mark.parametrize("name", ["IRPCalibrator", "TemperatureCalibrator"])
@pytest.mark.parametrize(("shape", "n_refused"), [("p", 5), (1, 3)])
def test_scores_that_are_refused_come_out_as_nan(name, shape, n_refused):
    P = np.array([[np.nan], [np.inf], [-np.inf], [1e300], [1.5], [0.5]])
    calibrator = fitted(name, shape)
    Q = run_onnx(to_onnx(calibrator), P)
    assert np.isnan(Q).all(axis=1).tolist() == [True] * n_refused + [False] * (6 - n_refused)
    assert_agrees(calibrator, P[n_refused:], Q[n_refused:])
    for row in P[:n_refused]:
        with pytest.raises(InputError, match="P: row 0"):
            calibrator.predict_proba([row])


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
    calibrator = fitted(name, shape)
    P = np.array(rows)
    np.testing.assert_allclose(calibrator.predict_proba(P).sum(axis=1), 1)
    assert_agrees(calibrator, P, run_onnx(to_onnx(calibrator), P))


@pytest.mark.parametrize("shape", [1, "3 logits"])
def test_logits_without_a_floor(shape):
    calibrator = copy(fitted("MatrixCalibrator", shape, pseudocount=0))
    calibrator.map_ = replace(calibrator.map_, floor=0.0)
    P = np.array([[-1e300, 0, 1], [1e200, -1e200, 0], [800, -800, 0], [-1e9, 0, 1]])
    P = P if shape == "3 logits" else P[:, :1]
    assert_agrees(calibrator, P, run_onnx(to_onnx(calibrator), P))


@pytest.mark.parametrize("opset", [13, 17, onnx.defs.onnx_opset_version()])
def test_operator_sets(opset):
    model = to_onnx(fitted("AutoCalibrator", 3), opset=opset)
    assert model.opset_import[0].version == opset
    assert {node.domain for node in model.graph.node} == {""}
    if opset < 20:  # runtimes come later than operator sets
        P = forecasts(3, 100)
        assert_agrees(fitted("AutoCalibrator", 3), P, run_onnx(model, P))


@pytest.mark.parametrize("name", ["IRPCalibrator", "AutoCalibrator", "IsotonicCalibrator"])
def test_metadata_say_what_the_model_is(name, tmp_path):
    calibrator = fitted(name, 3)
    calibrator.save(tmp_path / "model.json")
    session = onnxruntime.InferenceSession(to_onnx(calibrator).SerializeToString())
    metadata = dict(session.get_modelmeta().custom_metadata_map)
    golden = json.loads(metadata.pop("isoroc.golden_rows"))
    assert (len(golden["rows"]), golden["calibrator"]) == (12, name)
    assert metadata == {
        "isoroc.version": version("isoroc"),
        "isoroc.calibrator": name,
        "isoroc.classes": "[0, 1, 2]",
        "isoroc.checksum": json.loads((tmp_path / "model.json").read_text())["checksum"],
    }


@pytest.mark.parametrize(
    ("classes", "expected", "unknown"),
    [
        (["b", "\u00e4", 'say "hi"'], ["b", "\u00e4", 'say "hi"'], ""),
        ([-1, 5, 2**40], [-1, 5, 2**40], -(2**63)),
        ([0.0, 1.0, 4.0], [0.0, 1.0, 4.0], np.nan),
    ],
)
def test_labels_are_those_of_predict(classes, expected, unknown):
    P = np.vstack([forecasts(3, 300), np.full((1, 3), 1 / 3)])
    y = np.array(classes)[draw_labels(P)]
    calibrator = IRPCalibrator(max_bins=6).fit(P, y, labels=classes)
    session = onnxruntime.InferenceSession(to_onnx(calibrator, label=True).SerializeToString())
    Q, labels = session.run(
        ["calibrated", "label"], {"forecasts": np.vstack([P, np.array(REFUSED)])}
    )
    assert labels.tolist()[:-5] == calibrator.predict(P).tolist()
    assert labels.tolist()[:-5] == [expected[k] for k in Q[:-5].argmax(axis=1)]
    np.testing.assert_array_equal(labels[-5:], np.array([unknown] * 5, dtype=labels.dtype))


def test_ties_go_to_the_first_class():
    P = forecasts(3, 60)
    calibrator = IRPCalibrator(max_bins=1, values="constant", pseudocount=0, prior="uniform")
    calibrator.fit(P, np.repeat(["c", "a", "b"], 20))
    np.testing.assert_array_equal(np.ptp(calibrator.predict_proba(P)), 0)
    session = onnxruntime.InferenceSession(to_onnx(calibrator, label=True).SerializeToString())
    assert set(session.run(["label"], {"forecasts": P})[0]) == {"a"}


def test_labels_of_two_classes_may_be_truth_values():
    calibrator = IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], [False, False, True, True])
    session = onnxruntime.InferenceSession(to_onnx(calibrator, label=True).SerializeToString())
    [labels] = session.run(["label"], {"forecasts": np.array([[0.2], [0.8]])})
    assert labels.tolist() == [0, 1]


#: Fits to 64 classes that take seconds.
LONG = {"AutoCalibrator", "BetaCalibrator", "SigmoidCalibrator"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in LONG))
        for name, shape in CASES
        if shape == 5
    ],
)
def test_size_hardly_depends_on_the_number_of_classes(name):
    def count_nodes(K):
        P = np.random.default_rng(0).dirichlet(np.ones(K), 2 * K)
        calibrator = make(name, **({"top": 1} if name == "IRPCalibrator" else {}))
        return len(to_onnx(calibrator.fit(P, np.arange(2 * K) % K)).graph.node)

    # NumPy adds up to 128 numbers in eight sums, whose terms come one after the other.
    assert count_nodes(64) <= count_nodes(16) + 100


#: A runtime takes about a microsecond per node for one row.
NODES = {
    "TemperatureCalibrator": 18,
    "MatrixCalibrator": 24,
    "SplineCalibrator": 28,
    "KernelCalibrator": 45,
    "MonotoneCalibrator": 42,
    "CumulativeCalibrator": 56,
}


@pytest.mark.parametrize(("name", "most"), NODES.items())
def test_smooth_maps_are_few_nodes(name, most):
    assert len(to_onnx(fitted(name, 5)).graph.node) <= most


def test_mixtures_share_what_their_members_share():
    spline, kernel = (fitted(name, 5).map_ for name in ("SplineCalibrator", "KernelCalibrator"))
    numbers = {name: getattr(kernel, name) for name in TemperatureMap.states()}
    first = TemperatureMap(kind=kernel.kind, **numbers)  # kernel scaling begins with it
    mixture = copy(fitted("AutoCalibrator", 5))
    weights = np.array([0.5, 0.2, 0.3])
    members = [first, spline, kernel]
    mixture.map_ = replace(mixture.map_, members=members, weights=weights, exponent=1.0)
    model = to_onnx(mixture)
    P = forecasts(5, 100)
    assert_agrees(mixture, P, run_onnx(model, P))
    # Forecasts are checked, normalised and become logarithms once, in 11 nodes, and bad rows are
    # left out once. The weighted mean takes three products and two sums.
    alone = NODES["SplineCalibrator"] + NODES["KernelCalibrator"]
    assert len(model.graph.node) <= alone - 12 + 5


@pytest.mark.parametrize(
    ("calibrator", "options", "error", "message"),
    [
        (IRPCalibrator(), {}, NotFittedError, "not fitted"),
        (CalibratedClassifier(None), {}, InputError, "calibrators_"),
        (
            fitted("IRPCalibrator", 3),
            {"input_type": "half"},
            InputError,
            "input_type: expected one",
        ),
        (fitted("IRPCalibrator", 3), {"opset": 9}, InputError, "opset: is 9; expected 13 to"),
    ],
)
def test_bad_input(calibrator, options, error, message):
    with pytest.raises(error, match=message):
        to_onnx(calibrator, **options)
