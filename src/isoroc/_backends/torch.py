"""The operations on tensors of torch, in double precision on the device where they are.

`trace` turns a formula into a module of torch operations, with its constants as buffers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.fx.proxy import GraphAppendingTracer
from torch.nn import functional

from isoroc._backends.ops import OPERATORS, Function, Ops, Value
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints


class TorchVector(Value):
    """A tensor of shape (n, width), or its proxy in a trace."""

    def __init__(self, ops: TorchOps, tensor: Any, width: int) -> None:
        self._ops = ops
        self.tensor = tensor
        self.width = width

    def binary(self, operator: str, a: Any, b: Any) -> TorchVector:
        return self._ops.each(OPERATORS[operator], a, b)


class TorchOps(Ops[TorchVector]):
    """Vectors are tensors on a device. Smooth formulas have gradients, steps have none."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def vector(self, tensor: Any, width: int | None = None) -> TorchVector:
        """A tensor as a vector; a proxy in a trace needs the width."""
        return TorchVector(self, tensor, int(tensor.shape[1]) if width is None else width)

    def _constant(self, values: Any, dtype: torch.dtype = torch.float64) -> Any:
        return torch.as_tensor(values, dtype=dtype, device=self._device)

    def _value(self, a: Any) -> Any:
        """The tensor of a vector, constants as a tensor, a number unchanged."""
        if isinstance(a, TorchVector):
            return a.tensor
        return self._constant(a) if isinstance(a, np.ndarray) else float(a)

    # Each column by itself

    def each(self, function: Callable[..., Any], *arguments: Any) -> TorchVector:
        """A function of tensors and numbers that broadcasts."""
        width = max(getattr(a, "width", np.size(a)) for a in arguments)
        return self.vector(function(*map(self._value, arguments)), width)

    def function(self, name: Function, *arguments: Any) -> TorchVector:
        if name in ("maximum", "minimum"):
            return self.each(partial(_extreme, name), *arguments)
        return self.each(root if name == "sqrt" else getattr(torch, name), *arguments)

    def where(self, condition: TorchVector, a: Any, b: Any) -> TorchVector:
        return self.each(torch.where, condition, a, b)

    # The columns of a row together

    def width(self, a: TorchVector) -> int:
        return a.width

    def sum(self, a: TorchVector) -> TorchVector:
        return self.vector(a.tensor.sum(dim=1, keepdim=True), 1)

    def largest(self, a: TorchVector) -> tuple[TorchVector, TorchVector]:
        largest = a.tensor.max(dim=1, keepdim=True)
        return self.vector(largest[0], 1), self.vector(largest[1], 1)

    def smallest(self, a: TorchVector) -> TorchVector:
        return self.vector(a.tensor.amin(dim=1, keepdim=True), 1)

    def every(self, conditions: TorchVector) -> TorchVector:
        return self.vector(conditions.tensor.all(dim=1, keepdim=True), 1)

    def is_at(self, place: TorchVector, numbers: int | Ints) -> TorchVector:
        values = self._constant(numbers, torch.int64).reshape(-1)
        return self.vector(place.tensor == values, len(values))

    # Vectors of other widths

    def take(self, a: TorchVector, columns: Sequence[int] | Ints) -> TorchVector:
        places = [int(column) for column in columns]
        first, second = (*places, *places[-1:])[:2]
        step = max(second - first, 1)
        if places == list(range(first, first + step * len(places), step)):
            return self.vector(a.tensor[:, first : places[-1] + 1 : step], len(places))
        index = self._constant(places, torch.int64)
        return self.vector(torch.index_select(a.tensor, 1, index), len(places))

    def split(self, a: TorchVector, widths: Sequence[int]) -> list[TorchVector]:
        parts = torch.split(a.tensor, list(widths), dim=1)
        return [self.vector(parts[i], width) for i, width in enumerate(widths)]

    def concat(self, parts: Sequence[TorchVector]) -> TorchVector:
        joined = torch.cat([part.tensor for part in parts], dim=1)
        return self.vector(joined, sum(part.width for part in parts))

    def linear(self, a: TorchVector, matrix: Floats, offset: Floats | None = None) -> TorchVector:
        constants = [self._constant(array) for array in (matrix, offset) if array is not None]
        return self.vector(functional.linear(a.tensor, *constants), len(matrix))

    def segment_sums(self, a: TorchVector, weights: Floats) -> TorchVector:
        runs = a.tensor.reshape(-1, *weights.shape)
        return self.vector((runs * self._constant(weights)).sum(dim=2), len(weights))

    # Trees and steps

    def locate(self, cuts: Floats, score: TorchVector) -> TorchVector:
        place = torch.searchsorted(self._constant(cuts), score.tensor.detach().contiguous())
        return self.vector(place, 1)

    def route(self, tree: BinTree, a: TorchVector) -> TorchVector:
        """All rows descend one level in each turn; bins lead to themselves."""
        thresholds, children = tree.descent()
        table, below = self._constant(thresholds), self._constant(children.ravel(), torch.int64)
        points = a.tensor.detach()
        node = torch.zeros_like(points[:, 0], dtype=torch.int64)
        for _ in range(int(tree.depths.max())):
            region = (points - functional.embedding(node, table)).argmax(dim=1)
            node = torch.take(below, node * a.width + region)
        place = torch.take(self._constant(tree.bin_of_node, torch.int64), node)
        return self.vector(place[:, None], 1)

    def cross(self, first: TorchVector, second: TorchVector, n_second: int) -> TorchVector:
        return self.vector(first.tensor * n_second + second.tensor, 1)

    def look_up(self, table: Floats, place: TorchVector) -> TorchVector:
        rows = torch.index_select(self._constant(table), 0, place.tensor[:, 0])
        return self.vector(rows, table.shape[1])

    def steps(
        self, cuts: Sequence[Floats], values: Sequence[Floats], a: TorchVector
    ) -> TorchVector:
        of_columns = self._constant(_stacked(cuts, np.inf)), a.tensor.detach().T.contiguous()
        table = self._constant(_stacked(values, np.nan))
        return self.vector(torch.gather(table, 1, torch.searchsorted(*of_columns)).T, a.width)

    # Smooth functions

    def softmax(self, a: TorchVector) -> TorchVector:
        return self.vector(torch.softmax(a.tensor, dim=1), a.width)

    def log_softmax(self, a: TorchVector) -> TorchVector:
        return self.vector(torch.log_softmax(a.tensor, dim=1), a.width)

    def fraction_between(self, a: TorchVector, knots: Floats) -> TorchVector:
        table, last = self._constant(knots), knots.shape[1] - 1
        x = a.tensor.T.contiguous()
        place = torch.searchsorted(table, x.detach()).clamp(1, last)
        low, high = torch.gather(table, 1, place - 1), torch.gather(table, 1, place)
        share = ((x - low) / (high - low)).clamp(0, 1)
        return self.vector(((place - 1 + share) / last).T, a.width)


def root(tensor: Any) -> Any:
    """Square root, correctly rounded: cells and folds must be the same everywhere.

    On x86-64, torch takes roots from a library that does not round them correctly.
    """
    if tensor.device.type == "cpu" and not tensor.requires_grad:
        with np.errstate(invalid="ignore"):
            return torch.from_numpy(np.sqrt(tensor.numpy()))
    return torch.sqrt(tensor)


def _extreme(name: str, a: Any, b: Any) -> Any:
    """The larger or the smaller of two; for numbers torch has another function."""
    a, b = (b, a) if isinstance(a, float) else (a, b)
    if not isinstance(b, float):
        return getattr(torch, name)(a, b)
    return torch.clamp(a, min=b) if name == "maximum" else torch.clamp(a, max=b)


def _stacked(rows: Sequence[Floats], filler: float) -> Floats:
    """Arrays of different lengths as the rows of a matrix."""
    longest = max(map(len, rows))
    padded = [np.pad(row, (0, longest - len(row)), constant_values=filler) for row in rows]
    return np.stack(padded)


class _Tracer(GraphAppendingTracer):
    """Records operations, equal ones once, and registers their constants as buffers.

    Numbers become buffers too, except 0, 1/2 and 1, which are frequent in formulas.
    """

    def __init__(self) -> None:
        super().__init__(torch.fx.Graph())
        self.constants = torch.nn.Module()
        self._buffers: dict[Any, str] = {}
        self._nodes: dict[str, Any] = {}

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, float) and a not in {0.0, 0.5, 1.0} and not math.isnan(a):
            a = torch.tensor(a, dtype=torch.float64, device="cpu")
        if not isinstance(a, torch.Tensor):
            return super().create_arg(a)
        key = a.dtype, a.shape, a.numpy().tobytes()
        if key not in self._buffers:
            self._buffers[key] = f"constant_{len(self._buffers)}"
            self.constants.register_buffer(self._buffers[key], a.clone())
        return self.create_node("get_attr", self._buffers[key], (), {})

    def create_node(self, kind: str, target: Any, *arguments: Any, **others: Any) -> Any:
        key = repr((kind, target, arguments[:2]))
        if key not in self._nodes:
            self._nodes[key] = super().create_node(kind, target, *arguments, **others)
        return self._nodes[key]


def trace(formula: Callable[..., TorchVector], width: int) -> torch.fx.GraphModule:
    """A formula of `TorchOps` and a vector of some width as a module of torch operations.

    Its constants are buffers.
    """
    ops, tracer = TorchOps("cpu"), _Tracer()
    forecasts = torch.fx.Proxy(tracer.graph.placeholder("forecasts"), tracer)
    tracer.graph.output(formula(ops, ops.vector(forecasts, width)).tensor.node)
    return torch.fx.GraphModule(tracer.constants, tracer.graph, "Formula")
