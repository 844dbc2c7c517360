"""Calibrators as ONNX graphs."""

from __future__ import annotations

import json
import math
from importlib.metadata import version as version_of
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray

from isoroc._backends.onnx import ML, ML_OPSET, Graph, OnnxOps
from isoroc._input import InputError, check_option
from isoroc.export._exportable import check_exportable, check_rule
from isoroc.export._golden import golden_rows


def to_onnx(
    calibrator: Any,
    *,
    input_type: Literal["double", "float"] = "double",
    opset: int = 17,
    label: bool = False,
    rule: Any = None,
) -> onnx.ModelProto:
    """ONNX model that calibrates as `predict_proba` does.

    The input ``forecasts`` has shape (N, K), or (N, 1) for scores. The output ``calibrated`` has
    shape (N, K) and type double. Rows that `predict_proba` would refuse become NaN. A
    `SegmentCalibrator` has one more input of shape (N, 1) for each column of segments, named
    ``segment_`` and the column: doubles, NaN where missing, or strings such as "north", "3",
    "3.0" or "true".

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    input_type : {"double", "float"}, default="double"
        Type of the forecasts. Floats are converted to doubles first, as in `predict_proba`.
    opset : int, default=17
        Version of the operator set, at least 13.
    label : bool, default=False
        Whether to add the output ``label`` of shape (N,): the class of the largest calibrated
        probability, the first on ties. It is "", the smallest int64 or NaN for a refused row.
    rule : AcceptanceRule, default=None
        Adds the output ``accepted`` of shape (N,) and type bool: whether the row may go out without
        a person. Refused rows are not accepted.

    Returns
    -------
    onnx.ModelProto
        Its `metadata_props` are ``isoroc.version``, ``isoroc.calibrator`` (the class name),
        ``isoroc.classes`` (a JSON list in the order of the columns), ``isoroc.golden_rows`` (rows
        with calibrated forecasts in the format of `GoldenRows.to_json`) and, if the calibrator can
        be saved, ``isoroc.checksum``, the checksum of its model file.

    Examples
    --------
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], ["no", "yes", "no", "yes"])
    >>> model = to_onnx(calibrator, label=True)
    >>> [tensor.name for tensor in (*model.graph.input, *model.graph.output)]
    ['forecasts', 'calibrated', 'label']
    """
    name = check_exportable(calibrator)
    check_rule(rule, calibrator)
    if label and not calibrator.map_.kind.exclusive:
        raise InputError("label", None, "is True; a row may have several labels", "leave it out")
    types = {"double": onnx.TensorProto.DOUBLE, "float": onnx.TensorProto.FLOAT}
    check_option("input_type", input_type, tuple(types))
    oldest = 13
    newest = onnx.defs.onnx_opset_version()
    if opset not in range(oldest, newest + 1):
        raise InputError("opset", None, f"is {opset}", f"expected {oldest} to {newest}")
    graph = Graph(int(opset), "isoroc_")
    tensor = onnx.helper.make_tensor_value_info
    opsets = [onnx.helper.make_opsetid("", int(opset))]
    ops = OnnxOps(graph)
    n_columns = calibrator.n_features_in_
    inputs = [tensor("forecasts", types[input_type], ["N", n_columns])]
    double = types["double"]
    forecasts = "forecasts"
    if input_type != "double":
        forecasts = graph.node("Cast", "forecasts", to=double)
    segments = {f"segment_{name}": numeric for name, numeric in calibrator.map_.segments.items()}
    for segment, numeric in segments.items():
        inputs.append(tensor(segment, double if numeric else onnx.TensorProto.STRING, ["N", 1]))
    if segments:
        opsets.append(onnx.helper.make_opsetid(ML, ML_OPSET))
    places = calibrator.map_.read_places(ops, list(segments))
    Q, good = calibrator.map_.calibrate(ops, ops.read([forecasts], n_columns), places)
    missing = graph.constant(np.array(math.nan))
    graph.node("Where", good.name, Q.name, missing, output="calibrated")
    outputs = [tensor("calibrated", double, ["N", Q.width])]
    if label:
        classes, unknown = _labels(calibrator.classes_)
        place = ops.largest(Q)[1].name
        chosen = graph.node("Gather", graph.constant(classes), place)
        chosen = graph.node("Where", good.name, chosen, graph.constant(unknown))
        graph.node("Reshape", chosen, graph.integers(-1), output="label")
        outputs.append(tensor("label", onnx.helper.np_dtype_to_tensor_dtype(classes.dtype), ["N"]))
    if rule is not None:
        accepted = rule.formula(ops, Q) & good
        graph.node("Reshape", accepted.name, graph.integers(-1), output="accepted")
        outputs.append(tensor("accepted", onnx.TensorProto.BOOL, ["N"]))
    model = onnx.helper.make_model(
        graph.proto("isoroc", inputs, outputs),
        producer_name="isoroc",
        producer_version=version_of("isoroc"),
        opset_imports=opsets,
        ir_version=onnx.helper.find_min_ir_version_for(opsets),
    )
    about = {"isoroc.version": version_of("isoroc"), "isoroc.calibrator": name}
    about["isoroc.classes"] = json.dumps(calibrator.classes_.tolist(), default=str)
    few = max(3, min(12, 2000 // n_columns))
    about["isoroc.golden_rows"] = golden_rows(calibrator, n_rows=few).to_json()
    if calibrator.checksum is not None:
        about["isoroc.checksum"] = calibrator.checksum
    onnx.helper.set_model_props(model, about)
    onnx.checker.check_model(model, full_check=True)
    return model


def _labels(classes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Classes as a tensor, and the label of a row that has none."""
    values = classes.tolist()
    if all(isinstance(value, int) for value in values):  # also: bool
        return np.array(values, dtype=np.int64), np.array([[np.iinfo(np.int64).min]])
    if all(isinstance(value, float) for value in values):
        return np.array(values), np.array([[math.nan]])
    return np.array([str(value) for value in values], dtype=object), np.array([[""]], dtype=object)
