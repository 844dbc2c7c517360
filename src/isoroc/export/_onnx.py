"""Calibrators as ONNX graphs, alone or behind a classifier that is a graph already."""

from __future__ import annotations

import json
import math
import os
from importlib.metadata import version as version_of
from typing import Any, Literal

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import compose

from isoroc._backends.onnx import ML, ML_OPSET, Graph, OnnxOps
from isoroc._input import InputError, check_option
from isoroc._maps.modelfile.maps import LoadedMap
from isoroc._maps.segments import calibrated, has_segments
from isoroc.export._exportable import check_exportable

#: What the outputs of a classifier are renamed with where calibrated ones take their names.
_PREFIX = "uncalibrated_"
#: The first operator set that has all the operators used here, and the one used by default.
OLDEST_OPSET, _OPSET = 13, 17

_DOUBLE, _STRING = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING
_REAL = (onnx.TensorProto.FLOAT, _DOUBLE)
_LABEL = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, _STRING)
_TYPES = {"double": _DOUBLE, "float": onnx.TensorProto.FLOAT}


def to_onnx(
    calibrator: Any,
    *,
    input_type: Literal["double", "float"] = "double",
    opset: int = _OPSET,
    label: bool = False,
) -> onnx.ModelProto:
    """ONNX model that calibrates as `predict_proba` does.

    The input ``forecasts`` has shape (N, K), or (N, 1) for scores; the output ``calibrated`` is of
    shape (N, K) and type double. Rows that `predict_proba` would refuse become NaN. A
    `SegmentCalibrator` has one more input of shape (N, 1) for each column of segments, named
    ``segment_`` and the column: doubles, NaN where missing, or strings.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    input_type : {"double", "float"}, default="double"
        Type of the forecasts. Floats are turned into doubles first, as `predict_proba` does.
    opset : int, default=17
        Version of the operator set; 13 at least.
    label : bool, default=False
        Whether to add the output ``label`` of shape (N,): the class of the largest calibrated
        probability, the first on ties; "", the smallest int64 or NaN for a refused row.

    Returns
    -------
    onnx.ModelProto
        Its `metadata_props` are ``isoroc.version``, ``isoroc.calibrator`` (the name of its class),
        ``isoroc.classes`` (a list in JSON, in the order of the columns) and ``isoroc.checksum``,
        that of the model file, if such a file can hold it.

    Examples
    --------
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], ["no", "yes", "no", "yes"])
    >>> model = to_onnx(calibrator, label=True)
    >>> [tensor.name for tensor in (*model.graph.input, *model.graph.output)]
    ['forecasts', 'calibrated', 'label']
    """
    check_exportable(calibrator)
    check_option("input_type", input_type, tuple(_TYPES))
    known = range(OLDEST_OPSET, onnx.defs.onnx_opset_version() + 1)
    if opset not in known:
        raise InputError("opset", None, f"is {opset}", f"expected {_known_opsets()}")
    opsets = {"": int(opset)} | ({ML: ML_OPSET} if has_segments(calibrator) else {})
    names: Any = {"output": "calibrated", "label": "label" if label else None}
    return build(calibrator, _TYPES[input_type], calibrator.n_features_in_, opsets, **names)


def build(
    calibrator: Any,
    input_type: int,
    n_columns: int,
    opsets: dict[str, int],
    *,
    forecasts: str = "forecasts",
    output: str,
    label: str | None,
) -> onnx.ModelProto:
    """ONNX model of a calibrator for forecasts of a type and a number of columns, with names.

    A calibrator that was fitted to scores takes the last column. Without a name for them there are
    no labels.
    """
    graph, tensor = Graph(opsets[""], "isoroc_"), onnx.helper.make_tensor_value_info
    ops = OnnxOps(graph, exact=calibrator.map_.exact)
    inputs = [tensor(forecasts, input_type, ["N", n_columns])]
    if input_type != _DOUBLE:
        forecasts = graph.node("Cast", forecasts, to=_DOUBLE)
    X, found = ops.input(forecasts, n_columns), []
    X = ops.take(X, range(n_columns - calibrator.n_features_in_, n_columns))
    for j, column in enumerate(calibrator.map_.columns if has_segments(calibrator) else ()):
        name, levels = f"segment_{column}", calibrator.map_.levels[j].tolist()
        inputs.append(tensor(name, _STRING if levels else _DOUBLE, ["N", 1]))
        own = ops.find(name, levels) if levels else None
        found.append(own or calibrator.map_.locate(ops, j, ops.input(name, 1)))
    Q, good = calibrated(ops, calibrator, X, found)
    missing = graph.constant(np.array(math.nan))
    graph.node("Where", good.name, Q.name, missing, output=output)
    outputs = [tensor(output, _DOUBLE, ["N", Q.width])]
    if label:
        classes, unknown = _labels(calibrator.classes_)
        labels = graph.node("Gather", graph.constant(classes), ops.largest(Q)[1].name)
        labels = graph.node("Where", good.name, labels, graph.constant(unknown))
        graph.node("Reshape", labels, graph.integers(-1), output=label)
        kind = onnx.helper.np_dtype_to_tensor_dtype(classes.dtype)
        outputs.append(tensor(label, kind, ["N"]))
    imports = [onnx.helper.make_opsetid(*item) for item in opsets.items()]
    model = onnx.helper.make_model(
        graph.proto("isoroc", inputs, outputs),
        producer_name="isoroc",
        producer_version=version_of("isoroc"),
        opset_imports=imports,
        ir_version=onnx.helper.find_min_ir_version_for(imports),
    )
    onnx.helper.set_model_props(model, _metadata(calibrator))
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


def _metadata(calibrator: Any) -> dict[str, str]:
    """What a graph says of the calibrator that it was made from."""
    loaded = isinstance(calibrator, LoadedMap)
    entries = {
        "isoroc.version": version_of("isoroc"),
        "isoroc.calibrator": calibrator.calibrator if loaded else type(calibrator).__name__,
        "isoroc.classes": json.dumps(calibrator.classes_.tolist(), default=str),
    }
    checksum = calibrator.checksum
    return entries if checksum is None else entries | {"isoroc.checksum": checksum}


def calibrate_onnx(
    classifier: onnx.ModelProto | str | os.PathLike[str],
    calibrator: Any,
    *,
    probabilities: str | None = None,
) -> onnx.ModelProto:
    """ONNX model of a classifier with calibrated outputs.

    The outputs keep their names and order: the label, now the class of the largest calibrated
    probability, and the probabilities, now calibrated and of type double. Others are left out.

    Parameters
    ----------
    classifier : onnx.ModelProto or path-like
        Model, or its file, with an output of shape (N, K), as skl2onnx makes it with
        ``options={"zipmap": False}``.
    calibrator : calibrator
        Fitted to forecasts of the classifier: all columns or, of two, the second.
    probabilities : str, default=None
        Output with the forecasts. By default the only one that is a matrix of floats or doubles.

    Returns
    -------
    onnx.ModelProto
        Labels and metadata are those of `to_onnx`. The label is called ``label`` if the classifier
        has none.

    Examples
    --------
    >>> from onnx import parser
    >>> classifier = parser.parse_model(
    ...     '<ir_version: 8, opset_import: ["" : 17]>'
    ...     "softmax (float[N, 2] X) => (float[N, 2] probabilities) {"
    ...     "probabilities = Softmax <axis = 1> (X) }"
    ... )
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], ["no", "yes", "no", "yes"])
    >>> model = calibrate_onnx(classifier, calibrator)
    >>> [tensor.name for tensor in (*model.graph.input, *model.graph.output)]
    ['X', 'probabilities', 'label']
    """
    check_exportable(calibrator)
    if not isinstance(classifier, onnx.ModelProto):
        try:
            classifier = onnx.load(classifier)
        except DecodeError as error:
            problem = f"{os.fspath(classifier)} is not an ONNX model"
            raise InputError("classifier", None, problem) from error
    output = _find_probabilities(classifier, probabilities)
    n_columns = _check_columns(output, calibrator)
    order = [tensor.name for tensor in classifier.graph.output]
    labels = [o.name for o in classifier.graph.output if o.type.tensor_type.elem_type in _LABEL]
    label = labels[0] if labels else "label"
    kinds = ("nodes", "edges", "inputs", "initializers", "value_infos", "functions")
    unchanged = {f"rename_{kind}": False for kind in kinds}
    before = compose.add_prefix(classifier, _PREFIX, **unchanged)
    opsets = _common_opsets(before, texts=has_segments(calibrator))
    names = {"forecasts": "isoroc_forecasts", "output": output.name, "label": label}
    after = build(calibrator, output.type.tensor_type.elem_type, n_columns, opsets, **names)
    before.ir_version = after.ir_version = max(before.ir_version, after.ir_version)
    model = compose.merge_models(
        before,
        after,
        io_map=[(_PREFIX + output.name, names["forecasts"])],
        outputs=[output.name, label],
        producer_name="isoroc",
        producer_version=after.producer_version,
    )
    if label in order and order.index(label) < order.index(output.name):
        model.graph.output.reverse()
    onnx.checker.check_model(model, full_check=True)
    return model


def _common_opsets(classifier: onnx.ModelProto, *, texts: bool) -> dict[str, int]:
    """Sets of operators for a calibrator; those of the classifier are raised where they must be."""
    found = {entry.domain: entry.version for entry in classifier.opset_import}
    if not OLDEST_OPSET <= found.get("", 0) <= onnx.defs.onnx_opset_version():
        problem = f"its operator set is {found.get('', 0)}"
        raise InputError("classifier", None, problem, f"convert it with {_known_opsets()}")
    if not texts:
        return {"": found[""]}
    if found.get(ML, ML_OPSET) < ML_OPSET:
        if any(node.op_type == "LabelEncoder" for node in classifier.graph.node):
            fix = f"convert it with operators {ML} {ML_OPSET} or later"
            raise InputError("classifier", None, "its operators on strings are too old", fix)
        for entry in classifier.opset_import:
            if entry.domain == ML:
                entry.version = ML_OPSET  # only LabelEncoder has changed
    return {"": found[""], ML: max(found.get(ML, ML_OPSET), ML_OPSET)}


def _find_probabilities(classifier: onnx.ModelProto, name: str | None) -> Any:
    """Output of a classifier with its forecasts."""
    outputs = classifier.graph.output
    found = [output for output in outputs if _is_matrix(output) and name in (None, output.name)]
    if len(found) == 1:
        return found[0]
    if any(output.type.HasField("sequence_type") for output in outputs):
        fix = 'convert it with options={"zipmap": False} of skl2onnx'
        raise InputError("classifier", None, "an output is a sequence of dictionaries", fix)
    asked = "one matrix of floats or doubles" if name is None else f"such a matrix named {name!r}"
    problem = f"the outputs of the classifier are {', '.join(output.name for output in outputs)}"
    raise InputError("probabilities", None, problem, f"expected {asked} among them")


def _check_columns(output: Any, calibrator: Any) -> int:
    """Number of columns of the forecasts of a classifier."""
    own: int = calibrator.n_features_in_
    size = output.type.tensor_type.shape.dim[1]
    n_columns = size.dim_value if size.HasField("dim_value") else max(own, 2)
    second = own == 1 and n_columns == 2 and calibrator.unit_ == "probability"
    if n_columns != own and not second:
        problem = (
            f"it was fitted to {own} columns of {calibrator.unit_} forecasts, but the output "
            f"{output.name} has {n_columns}"
        )
        raise InputError("calibrator", None, problem)
    return n_columns


def _is_matrix(output: onnx.ValueInfoProto) -> bool:
    tensor = output.type.tensor_type
    return tensor.elem_type in _REAL and len(tensor.shape.dim) == 2


def _known_opsets() -> str:
    return f"{OLDEST_OPSET} to {onnx.defs.onnx_opset_version()}"
