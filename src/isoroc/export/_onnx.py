"""Calibrators as ONNX graphs of standard operators in double precision."""

from __future__ import annotations

from typing import Any, Literal

from isoroc.export._formulas import Formulas
from isoroc.export._maps import check_exportable, is_grouped, write_map

try:
    import onnx

    from isoroc.export._nodes import ML, ML_OPSET, ColumnNodes
except ImportError as error:
    raise ImportError("to_onnx needs onnx: pip install onnx") from error

#: The first operator set that has all the operators used here, and the one used by default.
_OLDEST_OPSET, _OPSET = 13, 17

_TYPES = {"double": onnx.TensorProto.DOUBLE, "float": onnx.TensorProto.FLOAT}


def to_onnx(
    calibrator: Any, *, input_type: Literal["double", "float"] = "double", opset: int = _OPSET
) -> onnx.ModelProto:
    """ONNX model that calibrates as `predict_proba` does.

    The input ``forecasts`` has shape (N, K), or (N, 1) where the calibrator was fitted to scores;
    the output ``calibrated`` has shape (N, K) and type double. A row that `predict_proba` would
    refuse comes out as NaN. A `GroupedCalibrator` that was fitted with groups has a second input
    ``groups`` of shape (N, 1): their names, as strings.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    input_type : {"double", "float"}, default="double"
        Type of the forecasts. Floats are turned into doubles first, as `predict_proba` does.
    opset : int, default=17
        Version of the operator set, for graphs that are to be joined with others; 13 at least.

    Returns
    -------
    onnx.ModelProto
        Checked by ``onnx.checker``.

    Examples
    --------
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    >>> model = to_onnx(calibrator)
    >>> model.graph.input[0].name, model.graph.output[0].name
    ('forecasts', 'calibrated')
    """
    check_exportable(calibrator)
    if input_type not in _TYPES:
        raise ValueError(f'input_type: expected "double" or "float", got {input_type!r}.')
    if not _OLDEST_OPSET <= opset <= onnx.defs.onnx_opset_version():
        raise ValueError(
            f"opset: expected {_OLDEST_OPSET} to {onnx.defs.onnx_opset_version()}, got {opset}."
        )
    formulas, nodes = Formulas(), ColumnNodes("isoroc_", opset)
    n_columns, n_classes = calibrator.n_features_in_, len(calibrator.classes_)
    forecasts = "forecasts"
    if input_type != "double":
        forecasts = nodes.node("Cast", forecasts, to=onnx.TensorProto.DOUBLE)
    nodes.input(forecasts, n_columns)
    tensor = onnx.helper.make_tensor_value_info
    inputs = [tensor("forecasts", _TYPES[input_type], ["N", n_columns])]
    opsets = [onnx.helper.make_opsetid("", opset)]
    groups = None
    if is_grouped(calibrator):
        groups = (formulas.find("groups", calibrator.groups_.tolist()), None)
        inputs.append(tensor("groups", onnx.TensorProto.STRING, ["N", 1]))
        opsets.append(onnx.helper.make_opsetid(ML, ML_OPSET))
    columns = write_map(formulas, calibrator, formulas.read(forecasts, n_columns), groups)
    nodes.compute(columns)
    nodes.node("Identity", nodes.matrix(columns), output="calibrated")
    outputs = [tensor("calibrated", _TYPES["double"], ["N", n_classes])]
    graph = nodes.graph("isoroc", inputs, outputs)
    model = onnx.helper.make_model(
        graph,
        producer_name="isoroc",
        opset_imports=opsets,
        ir_version=onnx.helper.find_min_ir_version_for(opsets),
    )
    onnx.checker.check_model(model, full_check=True)
    return model
