"""Calibrators as ONNX graphs of standard operators in double precision."""

from __future__ import annotations

import json
import math
from importlib.metadata import version as version_of
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._calibrators.document import checksum_of
from isoroc.export._formulas import Column, Formulas
from isoroc.export._maps import check_exportable, is_grouped, write_checked

try:
    import onnx

    from isoroc.export._matrices import Matrices
    from isoroc.export._nodes import ML, ML_OPSET
except ImportError as error:
    raise ImportError("to_onnx needs onnx: pip install onnx") from error

#: The first operator set that has all the operators used here, and the one used by default.
OLDEST_OPSET, _OPSET = 13, 17

_DOUBLE, _STRING = onnx.TensorProto.DOUBLE, onnx.TensorProto.STRING
_TYPES = {"double": _DOUBLE, "float": onnx.TensorProto.FLOAT}


def to_onnx(
    calibrator: Any,
    *,
    input_type: Literal["double", "float"] = "double",
    opset: int = _OPSET,
    label: bool = False,
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
    label : bool, default=False
        Whether to add the output ``label`` of shape (N,): the class of the largest calibrated
        probability, the first on ties, as a string, an int64 or, for classes that are floats, a
        double. A refused row has the label "", the smallest int64 or NaN.

    Returns
    -------
    onnx.ModelProto
        Checked by ``onnx.checker``. Its `metadata_props` are ``isoroc.version``,
        ``isoroc.calibrator`` (the name of its class), ``isoroc.classes`` (a list in JSON, in the
        order of the columns) and ``isoroc.checksum``: that of the model file that `save`
        writes, if such a file can hold it.

    See Also
    --------
    calibrate_onnx : The graph of a classifier and its calibrator.

    Examples
    --------
    >>> import isoroc
    >>> calibrator = isoroc.IRPCalibrator().fit([0.1, 0.3, 0.7, 0.9], ["no", "yes", "no", "yes"])
    >>> model = to_onnx(calibrator, label=True)
    >>> [tensor.name for tensor in (*model.graph.input, *model.graph.output)]
    ['forecasts', 'calibrated', 'label']
    >>> {entry.key: entry.value for entry in model.metadata_props}["isoroc.classes"]
    '["no", "yes"]'
    """
    check_exportable(calibrator)
    if input_type not in _TYPES:
        raise ValueError(f'input_type: expected "double" or "float", got {input_type!r}.')
    if not OLDEST_OPSET <= opset <= onnx.defs.onnx_opset_version():
        raise ValueError(
            f"opset: expected {OLDEST_OPSET} to {onnx.defs.onnx_opset_version()}, got {opset}."
        )
    names = Names("forecasts", "calibrated", "label" if label else None)
    opsets = {"": opset} | ({ML: ML_OPSET} if is_grouped(calibrator) else {})
    return build(calibrator, names, _TYPES[input_type], calibrator.n_features_in_, opsets)


class _Unguarded(Formulas):
    """Formulas of operators that never fail: those of invalid numbers return NaN or any number."""

    def guarded(self, good: Column, a: Column, harmless: Column) -> Column:  # noqa: ARG002
        return a


class Names(NamedTuple):
    """Names of the input and the outputs of a graph; without a name there are no labels."""

    forecasts: str
    calibrated: str
    label: str | None


def build(
    calibrator: Any, names: Names, input_type: int, n_columns: int, opsets: dict[str, int]
) -> onnx.ModelProto:
    """ONNX model of a calibrator.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    names : Names
    input_type : int
        Type of the forecasts.
    n_columns : int
        Columns of the forecasts. A calibrator that was fitted to scores takes the last one.
    opsets : dict
        Versions of the sets of operators by name.
    """
    formulas, nodes = _Unguarded(), Matrices("isoroc_", opsets[""])
    tensor = onnx.helper.make_tensor_value_info
    inputs = [tensor(names.forecasts, input_type, ["N", n_columns])]
    forecasts = names.forecasts
    if input_type != _DOUBLE:
        forecasts = nodes.node("Cast", forecasts, to=_DOUBLE)
    nodes.input(forecasts, n_columns)
    columns = formulas.read(forecasts, n_columns)[-calibrator.n_features_in_ :]
    groups = None
    if is_grouped(calibrator):
        groups = (formulas.find("groups", calibrator.groups_.tolist()), None)
        inputs.append(tensor("groups", _STRING, ["N", 1]))
    calibrated, good = write_checked(formulas, calibrator, columns, groups)
    _, best = formulas.largest(calibrated)
    needed = [*calibrated, good, *([best] if names.label else [])]
    nodes.compute(needed, exact=calibrator.has_steps())
    missing = nodes.constant(np.array([[math.nan]]))
    found = nodes.matrix(calibrated)
    nodes.node("Where", nodes.matrix([good]), found, missing, output=names.calibrated)
    outputs = [tensor(names.calibrated, _DOUBLE, ["N", len(calibrated)])]
    if names.label:
        classes, unknown = _labels(calibrator.classes_)
        found = nodes.node("Gather", nodes.constant(classes), nodes.matrix([best]))
        found = nodes.node("Where", nodes.matrix([good]), found, nodes.constant(unknown))
        nodes.node("Reshape", found, nodes.integers(-1), output=names.label)
        kind = onnx.helper.np_dtype_to_tensor_dtype(classes.dtype)
        outputs.append(tensor(names.label, kind, ["N"]))
    imports = [onnx.helper.make_opsetid(*item) for item in opsets.items()]
    model = onnx.helper.make_model(
        nodes.graph("isoroc", inputs, outputs),
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
    entries = {
        "isoroc.version": version_of("isoroc"),
        "isoroc.calibrator": calibrator.kind(),
        "isoroc.classes": json.dumps(calibrator.classes_.tolist(), default=str),
    }
    checksum = checksum_of(calibrator)
    return entries if checksum is None else entries | {"isoroc.checksum": checksum}
