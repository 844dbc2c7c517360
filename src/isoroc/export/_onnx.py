"""Calibrators as ONNX graphs of standard operators in double precision."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoroc._simplex import Floats
from isoroc._tree import BinTree
from isoroc._writer import Writer
from isoroc.export._maps import check_exportable, is_grouped, write_map

try:
    import onnx
except ImportError as error:
    raise ImportError("to_onnx needs onnx: pip install onnx") from error

#: The first operator set that has all the operators used here, and the one used by default.
_OLDEST_OPSET, _OPSET = 13, 17

#: The operators on strings, and the first version that finds places of strings.
_ML, _ML_OPSET = "ai.onnx.ml", 2

_INT64 = onnx.TensorProto.INT64
_ZERO = onnx.helper.make_tensor("zero", _INT64, [1], [0])
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
    writer = _OnnxWriter("isoroc_")
    n_columns, n_classes = calibrator.n_features_in_, len(calibrator.classes_)
    forecasts = writer.node("Cast", "forecasts", to=onnx.TensorProto.DOUBLE)
    tensor = onnx.helper.make_tensor_value_info
    inputs = [tensor("forecasts", _TYPES[input_type], ["N", n_columns])]
    opsets = [onnx.helper.make_opsetid("", opset)]
    groups = None
    if is_grouped(calibrator):
        groups = (writer.find("groups", calibrator.groups_.tolist()), None)
        inputs.append(tensor("groups", onnx.TensorProto.STRING, ["N", 1]))
        opsets.append(onnx.helper.make_opsetid(_ML, _ML_OPSET))
    columns = write_map(writer, calibrator, writer.split(forecasts, n_columns), groups)
    writer.node("Concat", *columns, axis=1, output="calibrated")
    outputs = [tensor("calibrated", _TYPES["double"], ["N", n_classes])]
    graph = writer.graph("isoroc", inputs, outputs)
    model = onnx.helper.make_model(
        graph,
        producer_name="isoroc",
        opset_imports=opsets,
        ir_version=onnx.helper.find_min_ir_version_for(opsets),
    )
    onnx.checker.check_model(model, full_check=True)
    return model


class _OnnxWriter(Writer[str]):
    """Columns are the names of tensors of shape (N, 1)."""

    def __init__(self, prefix: str) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[Any, ...], onnx.TensorProto] = {}
        self._prefix = prefix

    def graph(self, name: str, inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
        constants = list(self._constants.values())
        return onnx.helper.make_graph(self._nodes, name, inputs, outputs, constants)

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node; its output's name."""
        [output] = self.nodes(operator, *inputs, outputs=[output], **attributes)
        return output

    def nodes(
        self, operator: str, *inputs: str, outputs: list[str], **attributes: Any
    ) -> list[str]:
        at = len(self._nodes)
        names = [given or f"{self._prefix}{operator}_{at}_{i}" for i, given in enumerate(outputs)]
        self._nodes.append(onnx.helper.make_node(operator, inputs, names, **attributes))
        return names

    def constant(self, value: NDArray[Any]) -> str:
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            name = f"{self._prefix}constant_{len(self._constants)}"
            self._constants[key] = onnx.numpy_helper.from_array(value, name)
        return self._constants[key].name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def split(self, matrix: str, n_columns: int) -> list[str]:
        """Columns of a matrix."""
        if n_columns == 1:
            return [matrix]
        sizes = self.integers(*[1] * n_columns)
        return self.nodes("Split", matrix, sizes, axis=1, outputs=[""] * n_columns)

    def find(self, column: str, names: list[str]) -> str:
        """Place of each string among some names, -1 for others."""
        if not names:
            return self.integers(-1)
        return self.node(
            "LabelEncoder",
            column,
            domain=_ML,
            keys_strings=names,
            values_int64s=list(range(len(names))),
            default_int64=-1,
        )

    def number(self, value: float) -> str:
        return self.constant(np.array([[value]], dtype=np.float64))

    def add(self, a: str, b: str) -> str:
        return self.node("Add", a, b)

    def subtract(self, a: str, b: str) -> str:
        return self.node("Sub", a, b)

    def multiply(self, a: str, b: str) -> str:
        return self.node("Mul", a, b)

    def divide(self, a: str, b: str) -> str:
        return self.node("Div", a, b)

    def absolute(self, a: str) -> str:
        return self.node("Abs", a)

    def sqrt(self, a: str) -> str:
        return self.node("Sqrt", a)

    def floor(self, a: str) -> str:
        return self.node("Floor", a)

    def log(self, a: str) -> str:
        return self.node("Log", a)

    def exp(self, a: str) -> str:
        return self.node("Exp", a)

    def linear(self, matrix: Floats, columns: Sequence[str]) -> list[str]:
        joined = self.node("Concat", *columns, axis=1)
        weights = self.constant(np.ascontiguousarray(matrix.T))
        return self.split(self.node("MatMul", joined, weights), len(matrix))

    def at_most(self, a: str, b: str) -> str:
        return self.node("LessOrEqual", a, b)

    def both(self, a: str, b: str) -> str:
        return self.node("And", a, b)

    def where(self, condition: str, a: str, b: str) -> str:
        return self.node("Where", condition, a, b)

    def largest(self, columns: Sequence[str]) -> tuple[str, str]:
        return self.largest_of(self.node("Concat", *columns, axis=1))

    def largest_of(self, matrix: str) -> tuple[str, str]:
        """Largest entry of each row of a matrix, and its place."""
        # TopK promises the lower index on ties, ArgMax leaves it open.
        value, place = self.nodes("TopK", matrix, self.integers(1), axis=1, outputs=["", ""])
        return value, place

    def is_at(self, place: str, number: int) -> str:
        return self.node("Equal", place, self.integers(number))

    def locate(self, cuts: Floats, score: str) -> str:
        # Binary search: each step asks whether the score lies above the cut half the range on.
        steps = len(cuts).bit_length()
        padded = self.constant(np.append(cuts, np.full(2**steps - 1 - len(cuts), np.inf)))
        place, zero = self.constant(np.zeros((1, 1), dtype=np.int64)), self.integers(0)
        for step in reversed(range(steps)):
            further = self.node("Add", place, self.integers(2**step - 1))
            above = self.node("Greater", score, self.node("Gather", padded, further))
            jump = self.node("Where", above, self.integers(2**step), zero)
            place = self.node("Add", place, jump)
        return place

    def route(self, tree: BinTree, columns: Sequence[str]) -> str:
        N, K = tree.class_weights.shape
        # For each node the threshold and the children of its split. A child that does not exist
        # never has the largest margin, and a bin leads to itself.
        gammas, children = np.zeros((N, K)), np.repeat(np.arange(N)[:, None], K, axis=1)
        gammas[tree.split_nodes] = np.where(tree.children >= 0, tree.thresholds, np.inf)
        children[tree.split_nodes] = tree.children
        place = np.zeros(N, dtype=np.int64)
        place[tree.bins] = np.arange(len(tree.bins))

        matrix = self.node("Concat", *columns, axis=1)
        start = self.node("ConstantOfShape", self.node("Shape", columns[0]), value=_ZERO)
        step = _OnnxWriter(f"{start}_step_")
        node = f"{start}_node"
        rows = step.rows(gammas, node)
        first = step.node("Mul", node, step.integers(K))
        _, region = step.largest_of(step.subtract(matrix, rows))
        child = step.node("Add", first, region)
        step.node("Gather", step.constant(children.ravel()), child, output=f"{node}_next")
        step.node("Identity", f"{node}_goes_on", output=f"{node}_goes_on_next")
        tensor = onnx.helper.make_tensor_value_info
        body = step.graph(
            "one_step_down",
            [
                tensor(f"{node}_depth", _INT64, []),
                tensor(f"{node}_goes_on", onnx.TensorProto.BOOL, []),
                tensor(node, _INT64, ["N", 1]),
            ],
            [
                tensor(f"{node}_goes_on_next", onnx.TensorProto.BOOL, []),
                tensor(f"{node}_next", _INT64, ["N", 1]),
            ],
        )
        depth = self.constant(np.array(depth_of(tree), dtype=np.int64))
        leaf = self.node("Loop", depth, "", start, body=body)
        return self.node("Gather", self.constant(place), leaf)

    def rows(self, table: NDArray[Any], place: str) -> str:
        """Rows of a table at the places."""
        found = self.node("Gather", self.constant(table), place)
        return self.node("Reshape", found, self.integers(-1, table.shape[1]))

    def look_up(self, table: Floats, place: str) -> list[str]:
        return self.split(self.rows(table, place), table.shape[1])

    def keep(self, columns: Iterable[str]) -> list[str]:
        return list(columns)


def depth_of(tree: BinTree) -> int:
    """Splits on the longest way from the root to a bin."""
    depth = np.zeros(len(tree.class_weights), dtype=np.intp)
    for node, below in zip(tree.split_nodes, tree.children, strict=True):
        depth[below[below >= 0]] = depth[node] + 1
    return int(depth.max())
