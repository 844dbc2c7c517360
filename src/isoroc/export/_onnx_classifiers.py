"""Classifiers that are ONNX graphs already, with a calibrator behind them."""

from __future__ import annotations

import os
from typing import Any

from isoroc.export._maps import check_exportable, is_grouped

try:
    import onnx
    from google.protobuf.message import DecodeError
    from onnx import compose

    from isoroc.export._nodes import ML, ML_OPSET
    from isoroc.export._onnx import OLDEST_OPSET, Names, build
except ImportError as error:
    raise ImportError("calibrate_onnx needs onnx: pip install onnx") from error

_REAL = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
_LABEL = (onnx.TensorProto.INT64, onnx.TensorProto.INT32, onnx.TensorProto.STRING)
#: What the outputs of a classifier are renamed with where calibrated ones take their names.
_PREFIX = "uncalibrated_"


def calibrate_onnx(
    classifier: onnx.ModelProto | str | os.PathLike[str],
    calibrator: Any,
    *,
    probabilities: str | None = None,
) -> onnx.ModelProto:
    """ONNX model of a classifier with calibrated outputs.

    The model takes what the classifier takes, and its outputs have the names and the order that
    they had: the label, which is now the class of the largest calibrated probability, and the
    probabilities, which are now calibrated and of type double. Other outputs are left out.

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
        classifier = _load(classifier)
    output = _find_probabilities(classifier, probabilities)
    n_columns = _check_columns(output, calibrator)
    order = [tensor.name for tensor in classifier.graph.output]
    label = next((o.name for o in classifier.graph.output if _is_label(o)), "label")
    before = compose.add_prefix(
        classifier,
        _PREFIX,
        rename_nodes=False,
        rename_edges=False,
        rename_inputs=False,
        rename_initializers=False,
        rename_value_infos=False,
        rename_functions=False,
    )
    opsets = _common_opsets(before, grouped=is_grouped(calibrator))
    names = Names("isoroc_forecasts", output.name, label)
    after = build(calibrator, names, output.type.tensor_type.elem_type, n_columns, opsets)
    before.ir_version = after.ir_version = max(before.ir_version, after.ir_version)
    model = compose.merge_models(
        before,
        after,
        io_map=[(_PREFIX + output.name, names.forecasts)],
        outputs=[output.name, label],
        producer_name="isoroc",
        producer_version=after.producer_version,
    )
    if label in order and order.index(label) < order.index(output.name):
        model.graph.output.reverse()
    onnx.checker.check_model(model, full_check=True)
    return model


def _load(path: str | os.PathLike[str]) -> onnx.ModelProto:
    try:
        return onnx.load(path)
    except DecodeError as error:
        raise ValueError(f"{os.fspath(path)}: not an ONNX model.") from error


def _common_opsets(classifier: onnx.ModelProto, *, grouped: bool) -> dict[str, int]:
    """Sets of operators for a calibrator; those of the classifier are raised where they must be."""
    found = {entry.domain: entry.version for entry in classifier.opset_import}
    if not OLDEST_OPSET <= found.get("", 0) <= onnx.defs.onnx_opset_version():
        raise ValueError(
            f"classifier: its operator set is {found.get('', 0)}; convert it with "
            f"{OLDEST_OPSET} to {onnx.defs.onnx_opset_version()}."
        )
    if not grouped:
        return {"": found[""]}
    if found.get(ML, ML_OPSET) < ML_OPSET:
        if any(node.op_type == "LabelEncoder" for node in classifier.graph.node):
            raise ValueError(f"classifier: convert it with operators {ML} {ML_OPSET} or later.")
        for entry in classifier.opset_import:
            if entry.domain == ML:
                entry.version = ML_OPSET  # only LabelEncoder has changed
    return {"": found[""], ML: max(found.get(ML, ML_OPSET), ML_OPSET)}


def _find_probabilities(classifier: onnx.ModelProto, name: str | None) -> Any:
    """Output of a classifier with its forecasts."""
    outputs = {output.name: output for output in classifier.graph.output}
    if name is None:
        found = [output for output in outputs.values() if _is_matrix(output)]
    else:
        found = [outputs[name]] if name in outputs and _is_matrix(outputs[name]) else []
    if len(found) == 1:
        return found[0]
    if any(o.type.HasField("sequence_type") for o in outputs.values()):
        raise ValueError(
            "classifier: an output is a sequence of dictionaries; convert it with skl2onnx's "
            'options={"zipmap": False}.'
        )
    asked = "one matrix of floats or doubles" if name is None else f"such a matrix named {name!r}"
    raise ValueError(
        f"probabilities: expected {asked} among the outputs of the classifier, which are "
        f"{', '.join(outputs)}."
    )


def _check_columns(output: Any, calibrator: Any) -> int:
    """Number of columns of the forecasts of a classifier."""
    own: int = calibrator.n_features_in_
    size = output.type.tensor_type.shape.dim[1]
    n_columns = size.dim_value if size.HasField("dim_value") else max(own, 2)
    second = own == 1 and n_columns == 2 and calibrator.scores_ == "probability"
    if n_columns != own and not second:
        raise ValueError(
            f"calibrator: it was fitted to {own} columns of {calibrator.scores_} forecasts, but "
            f"the output {output.name} has {n_columns}."
        )
    return n_columns


def _is_matrix(output: onnx.ValueInfoProto) -> bool:
    tensor = output.type.tensor_type
    return tensor.elem_type in _REAL and len(tensor.shape.dim) == 2


def _is_label(output: onnx.ValueInfoProto) -> bool:
    return output.type.tensor_type.elem_type in _LABEL
