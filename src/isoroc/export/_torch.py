"""Calibrators as modules of torch, in double precision on the device of their input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isoroc._counts import ArrayArithmetic
from isoroc._simplex import Floats
from isoroc._tree import BinTree
from isoroc._writer import Writer
from isoroc.export._maps import check_exportable, is_grouped, write_map

try:
    import torch
except ImportError as error:
    raise ImportError("to_torch needs torch: pip install torch") from error


def to_torch(calibrator: Any) -> Any:
    """Module that calibrates as `predict_proba` does.

    The module takes forecasts of shape (n, K), or (n,) or (n, 1) where the calibrator was fitted to
    scores, and returns calibrated forecasts of shape (n, K) in double precision on the same device.
    It is differentiable where the map is: smooth maps have gradients, step functions have none. A
    row that `predict_proba` would refuse comes out as NaN.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.

    Returns
    -------
    torch.nn.Module

    Examples
    --------
    >>> import pytest
    >>> torch = pytest.importorskip("torch")
    >>> import isoroc
    >>> calibrator = isoroc.TemperatureCalibrator().fit([0.1, 0.3, 0.7, 0.9], [0, 1, 0, 1])
    >>> module = to_torch(calibrator)
    >>> p = torch.tensor([0.8], dtype=torch.float64, requires_grad=True)
    >>> module(p)[0, 1].backward()
    >>> bool(p.grad > 0)
    True
    """
    check_exportable(calibrator)
    if is_grouped(calibrator):
        raise TypeError(
            "calibrator: tensors hold no names of groups; export common_ or an entry of members_, "
            "or use to_onnx or to_sql."
        )
    return _Module(calibrator)


class _Module(torch.nn.Module):
    def __init__(self, calibrator: Any) -> None:
        super().__init__()
        self._calibrator = calibrator

    def forward(self, forecasts: Any) -> Any:
        n_columns = self._calibrator.n_features_in_
        P = forecasts.to(torch.float64).reshape(len(forecasts), -1)
        if P.shape[1] != n_columns:
            raise ValueError(f"forecasts: expected {n_columns} columns, got {P.shape[1]}.")
        columns = write_map(_TorchWriter(torch, device=P.device), self._calibrator, list(P.T))
        return torch.stack([column.expand(len(P)) for column in columns], dim=1)


class _TorchWriter(ArrayArithmetic, Writer[Any]):
    """Columns are tensors of shape (n,)."""

    def log(self, a: Any) -> Any:
        return torch.log(a)

    def exp(self, a: Any) -> Any:
        return torch.exp(a)

    def locate(self, cuts: Floats, score: Any) -> Any:
        return torch.searchsorted(self._tensor(cuts), score.detach().contiguous())

    def look_up(self, table: Floats, place: Any) -> list[Any]:
        return list(self._tensor(table)[place].T)

    def route(self, tree: BinTree, columns: Sequence[Any]) -> Any:
        P = torch.stack(list(columns), dim=1).detach()
        node = torch.zeros(len(P), dtype=torch.int64, device=P.device)
        for split, at in enumerate(tree.split_nodes.tolist()):
            here = torch.nonzero(node == at)[:, 0]
            children = tree.children[split]
            kept = np.flatnonzero(children >= 0)
            margins = P[here][:, kept] - self._tensor(tree.thresholds[split, kept])
            _, best = self.largest(list(margins.T))
            node[here] = self._tensor(children[kept])[best.to(torch.int64)]
        place = np.full(len(tree.class_weights), -1)
        place[tree.bins] = np.arange(len(tree.bins))
        return self._tensor(place)[node]

    def _tensor(self, values: Any) -> Any:
        return torch.as_tensor(np.ascontiguousarray(values), **self._options)
