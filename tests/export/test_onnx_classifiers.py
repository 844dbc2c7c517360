import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from isoroc import (
    AutoCalibrator,
    IRPCalibrator,
    SegmentCalibrator,
    TemperatureCalibrator,
)

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

from isoroc.export import calibrate_onnx, to_onnx  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4)).astype(np.float32)
NOISY = X[:, :3] + RNG.normal(size=(600, 3))


def classifier_graph(classifier, *, label="label", opset=17, ml=1):
    """What a converter makes of a logistic regression: single precision, rows roughly sum to 1."""
    coef, intercept = (a.astype(np.float32) for a in (classifier.coef_.T, classifier.intercept_))
    if len(classifier.classes_) == 2:
        coef, intercept = (np.hstack([0 * a, a]) for a in (coef, intercept))
    classes = classifier.classes_
    classes = classes.astype(object if classes.dtype.kind == "U" else np.int64)
    nodes = [
        helper.make_node("MatMul", ["X", "coef"], ["linear"]),
        helper.make_node("Add", ["linear", "intercept"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"], axis=1),
        helper.make_node("ArgMax", ["logits"], ["best"], axis=1, keepdims=0),
        helper.make_node("Gather", ["classes", "best"], [label or "unused"]),
    ]
    tensor = helper.make_tensor_value_info
    kind = helper.np_dtype_to_tensor_dtype(classes.dtype)
    outputs = [tensor("probabilities", TensorProto.FLOAT, ["N", len(intercept)])]
    if label:
        outputs.insert(0, tensor(label, kind, ["N"]))
    constants = {"coef": coef, "intercept": intercept, "classes": classes}
    graph = helper.make_graph(
        nodes,
        "logistic",
        [tensor("X", TensorProto.FLOAT, ["N", len(coef)])],
        outputs,
        [onnx.numpy_helper.from_array(a, name) for name, a in constants.items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def run(model, names=None, **inputs):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(names, inputs)


@pytest.mark.parametrize("classes", [["ant", "bee", "cat"], [3, 5, 9], [-1, 1]])
@pytest.mark.parametrize("kind", [IRPCalibrator, AutoCalibrator])
def test_a_classifier_and_its_calibrator_are_one_graph(classes, kind):
    y = np.array(classes)[NOISY[:, : len(classes)].argmax(axis=1)]
    classifier = LogisticRegression().fit(X, y)
    before = classifier_graph(classifier)
    [P] = run(before, ["probabilities"], X=X)
    calibrator = kind(random_state=0).fit(classifier.predict_proba(X), y)
    model = calibrate_onnx(before, calibrator)
    assert [tensor.name for tensor in model.graph.output] == ["label", "probabilities"]
    assert before == classifier_graph(classifier)
    labels, Q = run(model, X=X)
    np.testing.assert_allclose(Q, calibrator.predict_proba(P), rtol=0, atol=1e-12)
    assert labels.dtype == (object if isinstance(classes[0], str) else np.int64)
    np.testing.assert_array_equal(labels, calibrator.classes_[Q.argmax(axis=1)])
    np.testing.assert_array_equal(labels, calibrator.predict(P))
    own = {entry.key: entry.value for entry in to_onnx(calibrator).metadata_props}
    assert {entry.key: entry.value for entry in model.metadata_props} == own


def test_scores_are_the_second_of_two_columns():
    y = NOISY[:, 0] > 0
    classifier = LogisticRegression().fit(X, y)
    before = classifier_graph(classifier, label=None)
    [P] = run(before, X=X)
    calibrator = IRPCalibrator().fit(classifier.predict_proba(X)[:, 1], y)
    model = calibrate_onnx(before, calibrator)
    Q, labels = run(model, ["probabilities", "label"], X=X)
    np.testing.assert_array_equal(Q, calibrator.predict_proba(P[:, 1]))
    np.testing.assert_array_equal(labels, Q.argmax(axis=1))


def test_segments_are_further_inputs(tmp_path):
    rng = np.random.default_rng(0)
    y, place = NOISY.argmax(axis=1), np.where(X[:, 3] > 0, "here", "there")
    y = np.where((place == "here") & (rng.random(len(y)) < 0.5), 0, y)
    classifier = LogisticRegression().fit(X, y)
    segments = {"place": place, "x": X[:, 0].astype(float)}
    calibrator = SegmentCalibrator(TemperatureCalibrator())
    calibrator.fit(classifier.predict_proba(X), y, segments=segments)
    assert "place" in calibrator.columns_
    before = classifier_graph(classifier)
    onnx.save(before, tmp_path / "classifier.onnx")
    model = calibrate_onnx(tmp_path / "classifier.onnx", calibrator)
    [P] = run(before, ["probabilities"], X=X)
    kinds = {"place": object, "x": float}
    own = {f"segment_{name}": segments[name][:, None].astype(kinds[name])
           for name in calibrator.columns_}  # fmt: skip
    found = run(model, ["probabilities"], X=X, **own)[0]
    np.testing.assert_allclose(found, calibrator.predict_proba(P, segments), rtol=0, atol=1e-12)
