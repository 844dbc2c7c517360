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

from isoroc._backends.ops import Function
from isoroc._backends.standard import ArrayOps, ArrayVector
from isoroc._core.types import Floats


class TorchOps(ArrayOps):
    """Vectors are tensors on a device. Smooth formulas have gradients, steps have none."""

    def __init__(self, device: Any) -> None:
        super().__init__(torch, device)
        self._asarray = torch.as_tensor  # which keeps gradients

    def constant(self, values: Any, dtype: str = "float64") -> Any:
        if isinstance(values, np.ndarray) and not values.flags.carray:
            values = values.copy()  # torch warns of read-only arrays, and of cuts in other orders
        return super().constant(values, dtype)

    def _rows(self, table: Any, places: Any, axis: int = 0) -> Any:
        return torch.index_select(table, axis, places)

    def function(self, name: Function, *arguments: Any) -> ArrayVector:
        if name in ("maximum", "minimum"):
            return self.each(partial(_extreme, name), *arguments)
        return self.each(root if name == "sqrt" else getattr(torch, name), *arguments)

    def largest(self, a: ArrayVector) -> tuple[ArrayVector, ArrayVector]:
        largest = a.array.max(dim=1, keepdim=True)
        return self.vector(largest[0], 1), self.vector(largest[1], 1)

    def smallest(self, a: ArrayVector) -> ArrayVector:
        return self.vector(a.array.amin(dim=1, keepdim=True), 1)

    def locate(self, cuts: Floats, score: ArrayVector) -> ArrayVector:
        return super().locate(cuts, self.vector(score.array.detach().contiguous(), 1))

    def steps(self, cuts: Sequence[Floats], values: Sequence[Floats], a: Any) -> ArrayVector:
        of_columns = self.constant(_stacked(cuts, np.inf)), a.array.detach().T.contiguous()
        table = self.constant(_stacked(values, np.nan))
        return self.vector(torch.gather(table, 1, torch.searchsorted(*of_columns)).T, a.width)

    def softmax(self, a: ArrayVector) -> ArrayVector:
        return self.vector(torch.softmax(a.array, dim=1), a.width)

    def log_softmax(self, a: ArrayVector) -> ArrayVector:
        return self.vector(torch.log_softmax(a.array, dim=1), a.width)

    def fraction_between(self, a: ArrayVector, knots: Floats) -> ArrayVector:
        table = self.constant(knots)
        last = knots.shape[1] - 1
        x = a.array.T.contiguous()
        index = torch.searchsorted(table, x.detach()).clamp(1, last)
        low = torch.gather(table, 1, index - 1)
        high = torch.gather(table, 1, index)
        share = ((x - low) / (high - low)).clamp(0, 1)
        return self.vector(((index - 1 + share) / last).T, a.width)


def root(tensor: Any) -> Any:
    """Square root, correctly rounded: cells and folds must be the same everywhere.

    On x86-64, torch takes roots from a library that does not round them correctly.
    """
    if tensor.device.type == "cpu" and not tensor.requires_grad:
        with np.errstate(invalid="ignore"):
            return torch.from_numpy(np.sqrt(tensor.numpy()))
    return torch.sqrt(tensor)


def _extreme(name: str, a: Any, b: Any) -> Any:
    """The larger or the smaller of two. For numbers, torch has another function."""
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


def trace(formula: Callable[..., ArrayVector], width: int) -> torch.fx.GraphModule:
    """A formula of `TorchOps` and a vector of some width as a module of torch operations.

    Its constants are buffers.
    """
    ops = TorchOps("cpu")
    tracer = _Tracer()
    forecasts = torch.fx.Proxy(tracer.graph.placeholder("forecasts"), tracer)
    tracer.graph.output(formula(ops, ops.vector(forecasts, width)).array.node)
    return torch.fx.GraphModule(tracer.constants, tracer.graph, "Formula")
