"""Nodes of ONNX graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from isoroc._tree import BinTree

#: The operators on strings, and the first version that finds places of strings.
ML, ML_OPSET = "ai.onnx.ml", 2

#: From here on the axes of all reductions are an input.
_AXES_INPUT = 18

_BOOL, _INT64 = onnx.TensorProto.BOOL, onnx.TensorProto.INT64
_ZERO = onnx.helper.make_tensor("zero", _INT64, [1], [0])


class Nodes:
    """Nodes of a graph and their constants."""

    def __init__(self, prefix: str, opset: int) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[Any, ...], onnx.TensorProto] = {}
        self._prefix = prefix
        self.opset = opset

    def graph(self, name: str, inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
        """All nodes as a graph."""
        constants = list(self._constants.values())
        return onnx.helper.make_graph(self._nodes, name, inputs, outputs, constants)

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node; its output's name."""
        [output] = self.nodes(operator, *inputs, outputs=[output], **attributes)
        return output

    def nodes(
        self, operator: str, *inputs: str, outputs: list[str], **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs; their names."""
        at = len(self._nodes)
        names = [given or f"{self._prefix}{operator}_{at}_{i}" for i, given in enumerate(outputs)]
        self._nodes.append(onnx.helper.make_node(operator, inputs, names, **attributes))
        return names

    def constant(self, value: NDArray[Any]) -> str:
        """Name of a constant."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            name = f"{self._prefix}constant_{len(self._constants)}"
            self._constants[key] = onnx.numpy_helper.from_array(value, name)
        return self._constants[key].name

    def integers(self, *values: int) -> str:
        """Name of a constant vector."""
        return self.constant(np.array(values, dtype=np.int64))

    def reduce(self, operator: str, tensor: str, axis: int) -> str:
        """Sums, largest or smallest entries along the last axis; a matrix."""
        keepdims = int(axis == 1)
        if operator == "ReduceSum" or self.opset >= _AXES_INPUT:
            return self.node(operator, tensor, self.integers(axis), keepdims=keepdims)
        return self.node(operator, tensor, axes=[axis], keepdims=keepdims)

    def first_of_largest(self, tensor: str, axis: int) -> str:
        """Place of the largest entries along the last axis, the lowest on ties; a matrix."""
        return self.node("ArgMax", tensor, axis=axis, keepdims=int(axis == 1), select_last_index=0)

    def route(self, tree: BinTree, points: str, column: str) -> str:
        """Places among the bins of a tree.

        Parameters
        ----------
        tree : BinTree
        points : str
            Matrix of what the tree splits, one row each.
        column : str
            A matrix with as many rows and one column.
        """
        N, K = tree.class_weights.shape
        # For each node the threshold and the children of its split. A child that does not exist
        # never has the largest margin, and a bin leads to itself.
        gammas, children = np.zeros((N, K)), np.repeat(np.arange(N)[:, None], K, axis=1)
        gammas[tree.split_nodes] = np.where(tree.children >= 0, tree.thresholds, np.inf)
        children[tree.split_nodes] = tree.children
        place = np.zeros(N, dtype=np.int64)
        place[tree.bins] = np.arange(len(tree.bins))

        start = self.node("ConstantOfShape", self.node("Shape", column), value=_ZERO)
        node = f"{start}_node"
        step = Nodes(f"{start}_step_", self.opset)
        gamma = step.node("Gather", step.constant(gammas), node)
        gamma = step.node("Reshape", gamma, step.integers(-1, K))
        first = step.node("Mul", node, step.integers(K))
        region = step.first_of_largest(step.node("Sub", points, gamma), 1)
        child = step.node("Add", first, region)
        step.node("Gather", step.constant(children.ravel()), child, output=f"{node}_next")
        step.node("Identity", f"{node}_goes_on", output=f"{node}_goes_on_next")
        tensor = onnx.helper.make_tensor_value_info
        body = step.graph(
            "one_step_down",
            [
                tensor(f"{node}_depth", _INT64, []),
                tensor(f"{node}_goes_on", _BOOL, []),
                tensor(node, _INT64, ["N", 1]),
            ],
            [
                tensor(f"{node}_goes_on_next", _BOOL, []),
                tensor(f"{node}_next", _INT64, ["N", 1]),
            ],
        )
        depth = self.constant(np.array(depth_of(tree), dtype=np.int64))
        leaf = self.node("Loop", depth, "", start, body=body)
        return self.node("Gather", self.constant(place), leaf)


def depth_of(tree: BinTree) -> int:
    """Splits on the longest way from the root to a bin."""
    depth = np.zeros(len(tree.class_weights), dtype=np.intp)
    for node, below in zip(tree.split_nodes, tree.children, strict=True):
        depth[below[below >= 0]] = depth[node] + 1
    return int(depth.max())
