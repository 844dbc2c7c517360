"""The operations as nodes of an ONNX graph of standard operators in double precision.

A node takes about a microsecond, so equal nodes are written once, and unused ones are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from isoroc._backends.categories import BOOLEANS, Levels
from isoroc._backends.ops import Function, Ops, Value
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints

#: Domain of the operators on strings.
ML = "ai.onnx.ml"
#: First version of that domain with integers as values.
ML_OPSET = 2

_NODE_TYPES = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "<=": "LessOrEqual", "&": "And"}


class Graph:
    """Nodes and constants for a version of the operators. Their names begin with a prefix."""

    def __init__(self, opset: int, prefix: str) -> None:
        self._opset = opset
        self.prefix = prefix
        self._nodes: list[onnx.NodeProto] = []
        self._known: dict[tuple[Any, ...], list[str]] = {}
        self._constants: dict[tuple[Any, ...], onnx.TensorProto] = {}

    def node(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Name of the output of a node, which is added unless there is an equal one."""
        return self.nodes(operator, *inputs, outputs=[output], **attributes)[0]

    def nodes(self, operator: str, *inputs: str, outputs: list[str], **options: Any) -> list[str]:
        """Names of the outputs of a node, as for `node`. Outputs may be unnamed."""
        key = (operator, inputs, tuple(outputs), str(options))
        if key not in self._known:
            at = f"{self.prefix}{operator}_{len(self._nodes)}_"
            names = [given or f"{at}{i}" for i, given in enumerate(outputs)]
            self._nodes.append(onnx.helper.make_node(operator, inputs, names, **options))
            self._known[key] = names
        return self._known[key]

    def constant(self, value: NDArray[Any]) -> str:
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._constants:
            name = f"{self.prefix}constant_{len(self._constants)}"
            self._constants[key] = onnx.numpy_helper.from_array(value, name)
        return self._constants[key].name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, dtype=np.int64))

    def inner(self) -> Graph:
        """A graph for the inside of a node, with other names."""
        return Graph(self._opset, f"{self.prefix}inner_{len(self._nodes)}_")

    def reduce(self, operator: str, tensor: str, axis: int = 1) -> str:
        """Reduce the last axis to a matrix."""
        keepdims = int(axis == 1)
        if operator == "ReduceSum" or self._opset >= 18:  # the axes are an input
            return self.node(operator, tensor, self.integers(axis), keepdims=keepdims)
        return self.node(operator, tensor, axes=[axis], keepdims=keepdims)

    def proto(self, name: str, inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
        """The graph of the nodes that some outputs need."""
        needed = {output.name for output in outputs}
        kept = []
        for node in reversed(self._nodes):
            if needed.intersection(node.output):
                kept.append(node)
                needed.update(_read_by(node))
        constants = [constant for constant in self._constants.values() if constant.name in needed]
        return onnx.helper.make_graph(kept[::-1], name, inputs, outputs, constants)


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """Inputs of a node, including inputs of graphs inside it."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _read_by(inner)


class Tensor(Value):
    """A matrix of a graph, by its name."""

    def __init__(self, ops: OnnxOps, width: int, name: str) -> None:
        self._ops = ops
        self.width = width
        self.name = name

    def binary(self, operator: str, a: Any, b: Any) -> Tensor:
        return self._ops.combine(operator, a, b)


class OnnxOps(Ops[Tensor]):
    """Vectors are matrices of a graph, computed in the order of the formula."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def read(self, names: Sequence[str], width: int = 1) -> Tensor:
        """The named input of the graph. There is one name, as for a column of other backends."""
        return Tensor(self, width, names[0])

    def find(self, name: str, levels: Levels) -> tuple[Tensor, Tensor]:
        """Places of a column of strings among levels, and whether each is one of them."""
        n = len(levels.texts)
        graph = self._graph
        place = {text: k for k, text in enumerate(levels.texts)}
        for number, k in levels.numbers.items():
            for text in (str(number), f"{number}.0", *BOOLEANS.get(number, ())):
                place.setdefault(text, k)
        index = graph.node(
            "LabelEncoder",
            name,
            domain=ML,
            default_int64=n,
            keys_strings=list(place),
            values_int64s=list(place.values()),
        )
        known = graph.node("Less", index, graph.integers(n))
        inside = graph.node("Min", index, graph.integers(n - 1))  # no table has a row n
        return Tensor(self, 1, inside), Tensor(self, 1, known)

    def combine(self, operator: str, a: Any, b: Any) -> Tensor:
        """``a operator b``, where at least one is a vector."""
        if operator in "+-" and not isinstance(b, Tensor) and not np.any(b):
            return a  # type: ignore[no-any-return]
        if operator == "+" and not isinstance(a, Tensor) and not np.any(a):
            return b  # type: ignore[no-any-return]
        return self._apply(_NODE_TYPES[operator], a, b)

    def function(self, name: Function, *arguments: Any) -> Tensor:
        other_names = {"absolute": "Abs", "maximum": "Max", "minimum": "Min"}
        return self._apply(other_names.get(name, name.title()), *arguments)

    def where(self, condition: Tensor, a: Any, b: Any) -> Tensor:
        return self._apply("Where", condition, a, b)

    def guarded(self, good: Tensor, a: Tensor, harmless: float) -> Tensor:  # noqa: ARG002
        """The vector itself: operators return NaN or any number where others fail."""
        return a

    def _apply(self, operator: str, *inputs: Any, width: int = 0, **attributes: Any) -> Tensor:
        names = [self._name(a) for a in inputs]
        width = width or max(getattr(a, "width", np.size(a)) for a in inputs)
        return Tensor(self, width, self._graph.node(operator, *names, **attributes))

    def _name(self, a: Any) -> str:
        """Name of a tensor, or of a constant: places are integers, all other numbers doubles."""
        if isinstance(a, Tensor):
            return a.name
        is_place = isinstance(a, np.ndarray) and a.dtype == np.int64
        return self._graph.constant(a if is_place else np.asarray(a, dtype=np.float64))

    def width(self, a: Tensor) -> int:
        return a.width

    def sum(self, a: Tensor) -> Tensor:
        return self._reduced("ReduceSum", a)

    def _sums_of_pairs(self, a: Tensor) -> Tensor:
        # A product adds zeros to the sum of two numbers, which changes no bit of finite numbers.
        return self.linear(a, np.repeat(np.eye(a.width // 2), 2, axis=1))

    def largest(self, a: Tensor) -> tuple[Tensor, Tensor]:
        index = _first_of_largest(self._graph, a.name)
        return self._reduced("ReduceMax", a), Tensor(self, 1, index)

    def smallest(self, a: Tensor) -> Tensor:
        return self._reduced("ReduceMin", a)

    def every(self, conditions: Tensor) -> Tensor:
        numbers = self._apply("Cast", conditions, to=onnx.TensorProto.INT32)
        return self._apply("Cast", self._reduced("ReduceMin", numbers), to=onnx.TensorProto.BOOL)

    def _reduced(self, operator: str, a: Tensor) -> Tensor:
        return a if a.width == 1 else Tensor(self, 1, self._graph.reduce(operator, a.name))

    def is_at(self, place: Tensor, numbers: int | Ints) -> Tensor:
        return self._apply("Equal", place, np.asarray(numbers, dtype=np.int64))

    def take(self, a: Tensor, columns: Sequence[int] | Ints) -> Tensor:
        places = np.array(columns, dtype=np.int64)
        if places.tolist() == list(range(a.width)):
            return a
        if len(places) == 1 and a.width <= 32:
            return self.split(a, [1] * a.width)[int(places[0])]
        return self._apply("Gather", a, places, axis=1, width=len(places))

    def split(self, a: Tensor, widths: Sequence[int]) -> list[Tensor]:
        if len(widths) == 1:
            return [a]
        sizes = self._graph.integers(*widths)
        parts = self._graph.nodes("Split", a.name, sizes, outputs=[""] * len(widths), axis=1)
        return [Tensor(self, width, part) for width, part in zip(widths, parts, strict=True)]

    def concat(self, parts: Sequence[Tensor]) -> Tensor:
        width = sum(part.width for part in parts)
        return parts[0] if len(parts) == 1 else self._apply("Concat", *parts, axis=1, width=width)

    def linear(self, a: Tensor, matrix: Floats, offset: Floats | None = None) -> Tensor:
        constants = [array for array in (matrix, offset) if array is not None]
        return self._apply("Gemm", a, *constants, transB=1, width=len(matrix))

    def segment_sums(self, a: Tensor, weights: Floats) -> Tensor:
        return self._sums_of_runs(self._on_third_axis(a.name, *weights.shape), weights)

    def _on_third_axis(self, name: str, n_columns: int, n: int) -> str:
        """Runs of n columns of a matrix, each on a third axis."""
        return self._graph.node("Reshape", name, self._graph.integers(0, n_columns, n))

    def _sums_of_runs(self, name: str, weights: Floats) -> Tensor:
        scaled = self._graph.node("Mul", name, self._graph.constant(weights))
        return Tensor(self, len(weights), self._graph.reduce("ReduceSum", scaled, 2))

    def steps(self, cuts: Sequence[Floats], values: Sequence[Floats], a: Tensor) -> Tensor:
        index, first = self._search(cuts, a)
        table = np.zeros(first[-1] + len(values[-1]))
        for start, steps in zip(first, values, strict=True):
            table[start : start + len(steps)] = steps
        return self._apply("Gather", table, index, width=a.width)

    def locate(self, cuts: Floats, score: Tensor) -> Tensor:
        return self._search([cuts], score)[0]

    def _search(self, cuts: Sequence[Floats], a: Tensor) -> tuple[Tensor, Ints]:
        """Place of each column in the joined lists of cuts, and where each list starts."""
        # Binary search: each step compares the number with the cut that is half the range ahead. A
        # list begins with an entry that is never read and ends with one that nothing exceeds.
        n_steps = max(map(len, cuts)).bit_length() or 1
        # Steps must not leave a list. If padding all lists to the same length costs at most a
        # factor of three, no step can. Otherwise each step is cut off at the end of its list.
        padded = len(cuts) << n_steps <= 3 * sum(len(each) + 2 for each in cuts)
        after = [2**n_steps - 1 - len(each) if padded else 1 for each in cuts]
        pairs = zip(cuts, after, strict=True)
        lists = [np.pad(each, (1, n), constant_values=np.inf) for each, n in pairs]
        lengths = np.array([len(each) for each in lists])
        first = np.cumsum(lengths) - lengths
        ends = first + lengths - 1
        entries = np.concatenate(lists)
        graph = self._graph
        joined = graph.constant(entries)
        index = graph.constant(first)
        for step in reversed(range(n_steps)):
            if step == n_steps - 1:
                begin = np.minimum(first + 2**step, ends)
                further = graph.constant(begin)
                cut = graph.constant(entries[begin])
            else:
                further = graph.node("Add", index, graph.integers(2**step))
                further = further if padded else graph.node("Min", further, graph.constant(ends))
                cut = graph.node("Gather", joined, further)
            index = graph.node("Where", graph.node("Greater", a.name, cut), further, index)
        return Tensor(self, a.width, index), first

    def route(self, tree: BinTree, a: Tensor) -> Tensor:
        gammas, children = tree.descent()
        graph = self._graph
        points = a.name
        K = tree.n_classes
        margins = graph.node("Sub", points, graph.constant(gammas[0]))
        child = graph.node("Gather", graph.constant(children[0]), _first_of_largest(graph, margins))

        step = graph.inner()
        node = f"{step.prefix}node"
        goes_on = f"{step.prefix}goes_on"
        gamma = step.node("Gather", step.constant(gammas), node)
        gamma = step.node("Reshape", gamma, step.integers(-1, K))
        region = _first_of_largest(step, step.node("Sub", points, gamma))
        at = step.node("Add", step.node("Mul", node, step.integers(K)), region)
        step.node("Gather", step.constant(children.ravel()), at, output=f"{node}_next")
        step.node("Identity", goes_on, output=f"{goes_on}_next")
        tensor = onnx.helper.make_tensor_value_info
        truth = [tensor(name, onnx.TensorProto.BOOL, []) for name in (goes_on, f"{goes_on}_next")]
        number = [tensor(name, onnx.TensorProto.INT64, ["N", 1]) for name in (node, f"{node}_next")]
        inputs = [tensor(f"{step.prefix}depth", onnx.TensorProto.INT64, []), truth[0], number[0]]
        body = step.proto("one_step_down", inputs, [truth[1], number[1]])
        more = graph.constant(np.array(max(tree.depths.max() - 1, 0)))
        leaf = graph.node("Loop", more, "", child, body=body)
        return Tensor(self, 1, graph.node("Gather", graph.constant(tree.bin_of_node), leaf))

    def cross(self, first: Tensor, second: Tensor, n_second: int) -> Tensor:
        row = self._apply("Mul", first, np.array([n_second]))
        return self._apply("Add", row, second)

    def look_up(self, table: Floats, place: Tensor) -> Tensor:
        return self._apply("GatherND", table, place, width=table.shape[1])

    def softmax(self, a: Tensor) -> Tensor:
        return self._apply("Softmax", a, axis=1)

    def log_softmax(self, a: Tensor) -> Tensor:
        return self._apply("LogSoftmax", a, axis=1)

    def hinges(self, a: Tensor, knots: Floats, slopes: Floats) -> Tensor:
        each = self._on_third_axis(a.name, a.width, 1)
        raised = self._graph.node("Max", each, self._name(knots))
        return self._sums_of_runs(raised, slopes) - slopes @ knots

    def fraction_between(self, a: Tensor, knots: Floats) -> Tensor:
        # Each stretch between two knots adds its share below the column. The difference comes
        # first: close knots would otherwise cost digits.
        graph = self._graph
        low = knots[:, :-1]
        above = graph.node("Sub", self._on_third_axis(a.name, a.width, 1), graph.constant(low))
        shares = graph.node("Mul", above, graph.constant(1 / np.diff(knots, axis=1)))
        clipped = graph.node("Clip", shares, self._name(0.0), self._name(1.0))
        return Tensor(self, a.width, graph.reduce("ReduceMean", clipped, 2))


def _first_of_largest(graph: Graph, matrix: str) -> str:
    """Place of the largest entry of each row, the lowest on ties."""
    return graph.node("ArgMax", matrix, axis=1, keepdims=1, select_last_index=0)
