"""The operations on tensors of torch, in double precision on the device where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from isoroc._backends.ops import OPERATORS, Function, Ops, Value
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints


class TorchVector(Value):
    """A tensor of shape (n, width)."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def binary(self, operator: str, a: Any, b: Any) -> TorchVector:
        """``a operator b``."""

        def tensor(x: Any) -> Any:
            if isinstance(x, np.ndarray):
                return torch.as_tensor(x, dtype=torch.float64, device=self.tensor.device)
            return getattr(x, "tensor", x)

        return TorchVector(OPERATORS[operator](tensor(a), tensor(b)))


class TorchOps(Ops[TorchVector]):
    """Vectors are tensors on a device. Smooth formulas have gradients, steps have none."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def _tensor(self, a: Any) -> Any:
        """A vector or constants as a tensor of doubles."""
        if isinstance(a, TorchVector):
            return a.tensor
        return torch.as_tensor(a, dtype=torch.float64, device=self._device)

    def function(self, name: Function, *arguments: Any) -> TorchVector:
        a, *others = (self._tensor(own) for own in arguments)
        if name == "sqrt" and a.device.type == "cpu" and not a.requires_grad:
            # On x86-64, torch takes roots from a library that does not round them correctly, and
            # cells and folds must be the same everywhere.
            return TorchVector(torch.from_numpy(np.sqrt(a.numpy())))
        return TorchVector(getattr(torch, name)(a, *others))

    def where(self, condition: TorchVector, a: Any, b: Any) -> TorchVector:
        return TorchVector(torch.where(condition.tensor, self._tensor(a), self._tensor(b)))

    def width(self, a: TorchVector) -> int:
        return int(a.tensor.shape[1])

    def sum(self, a: TorchVector) -> TorchVector:
        return TorchVector(a.tensor.sum(dim=1, keepdim=True))

    def largest(self, a: TorchVector) -> tuple[TorchVector, TorchVector]:
        value, place = a.tensor.max(dim=1, keepdim=True)
        return TorchVector(value), TorchVector(place)

    def smallest(self, a: TorchVector) -> TorchVector:
        return TorchVector(a.tensor.amin(dim=1, keepdim=True))

    def every(self, conditions: TorchVector) -> TorchVector:
        return TorchVector(conditions.tensor.all(dim=1, keepdim=True))

    def is_at(self, place: TorchVector, numbers: int | Ints) -> TorchVector:
        return TorchVector(place.tensor == torch.as_tensor(numbers, device=self._device))

    def take(self, a: TorchVector, columns: Sequence[int] | Ints) -> TorchVector:
        return TorchVector(a.tensor[:, list(columns)])

    def split(self, a: TorchVector, widths: Sequence[int]) -> list[TorchVector]:
        return [TorchVector(part) for part in torch.split(a.tensor, list(widths), dim=1)]

    def concat(self, parts: Sequence[TorchVector]) -> TorchVector:
        return TorchVector(torch.cat([part.tensor for part in parts], dim=1))

    def linear(self, a: TorchVector, matrix: Floats, offset: Floats | None = None) -> TorchVector:
        product = TorchVector(a.tensor @ self._tensor(matrix).T)
        return product if offset is None else product + offset

    def run_sums(self, a: TorchVector, weights: Floats) -> TorchVector:
        runs = a.tensor.reshape(-1, *weights.shape)
        return TorchVector((runs * self._tensor(weights)).sum(dim=2))

    def locate(self, cuts: Floats, score: TorchVector) -> TorchVector:
        return TorchVector(
            torch.searchsorted(self._tensor(cuts), score.tensor.detach().contiguous())
        )

    def route(self, tree: BinTree, a: TorchVector) -> TorchVector:
        P = a.tensor.detach()
        node = torch.zeros(len(P), dtype=torch.int64, device=P.device)
        thresholds = np.where(tree.children >= 0, tree.thresholds, np.inf)
        children = torch.as_tensor(tree.children, device=P.device)
        for split, at in enumerate(tree.split_nodes.tolist()):
            here = torch.nonzero(node == at)[:, 0]
            _, region = (P[here] - self._tensor(thresholds[split])).max(dim=1)
            node[here] = children[split, region]
        return TorchVector(torch.as_tensor(tree.bin_of_node, device=P.device)[node][:, None])

    def look_up(self, table: Floats, place: TorchVector) -> TorchVector:
        return TorchVector(self._tensor(table)[place.tensor[:, 0]])

    def softmax(self, a: TorchVector) -> TorchVector:
        return TorchVector(torch.softmax(a.tensor, dim=1))

    def log_softmax(self, a: TorchVector) -> TorchVector:
        return TorchVector(torch.log_softmax(a.tensor, dim=1))
