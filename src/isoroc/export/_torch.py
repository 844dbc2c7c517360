"""Calibrators as modules of torch, in double precision."""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import torch

from isoroc._backends.standard import ArrayVector
from isoroc._backends.torch import TorchOps, trace
from isoroc._input import InputError
from isoroc.export._exportable import check_exportable


def to_torch(calibrator: Any) -> Any:
    """Module that calibrates as `predict_proba` does.

    The module takes forecasts of shape (n, K), or (n,) or (n, 1) if the calibrator was fitted to
    scores, and returns calibrated forecasts of shape (n, K) in double precision. Smooth maps have
    gradients. Rows that `predict_proba` would refuse become NaN.

    The numbers of the calibrator are buffers: they are part of `state_dict`, and `to` moves them to
    other devices but leaves them doubles. `torch.export` and `torch.compile` need one graph for any
    number of rows.

    The module of a `SegmentCalibrator` takes a second tensor, of shape (n, J), which its
    ``encode_segments`` returns: numbers, and places of categories in ``map_.levels``. NaN stands
    for a segment that is missing or unknown.

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
    >>> module
    TorchCalibrator(
      TemperatureCalibrator, columns=1, classes=2
      (formula): Formula()
    )
    """
    return TorchCalibrator(calibrator, check_exportable(calibrator))


class TorchCalibrator(torch.nn.Module):
    """A fitted calibrator in operations of torch: see `to_torch`."""

    def __init__(self, calibrator: Any, name: str) -> None:
        super().__init__()
        self.fitted = name
        self.n_columns = calibrator.n_features_in_
        self.n_classes = len(calibrator.classes_)
        self.n_segments = len(calibrator.map_.segments)

        def formula(ops: TorchOps, rows: ArrayVector) -> ArrayVector:
            X, *columns = ops.split(rows, [self.n_columns, *[1] * self.n_segments])
            places = [calibrator.map_.locate(ops, j, column) for j, column in enumerate(columns)]
            Q, good = calibrator.map_.calibrate(ops, X, places)
            return ops.where(good, Q, math.nan)

        self.formula = trace(formula, self.n_columns + self.n_segments)
        self.mark = hashlib.sha256(self.formula.code.encode()).digest()

    def forward(self, forecasts: Any, segments: Any = None) -> Any:
        """Calibrated forecasts, shape (n, K)."""
        P = forecasts[:, None] if forecasts.ndim == 1 else forecasts
        if P.ndim != 2 or P.shape[1] != self.n_columns:
            problem = f"the shape is {tuple(forecasts.shape)}"
            raise InputError("forecasts", None, problem, f"expected {self.n_columns} columns")
        if (segments is None) != (not self.n_segments):
            fix = f"expected {self.n_segments or 'no'} columns of segments, as in fit"
            raise InputError("segments", None, "are missing or were not given in fit", fix)
        parts = [P] if segments is None else [P, segments.reshape(-1, self.n_segments)]
        return self.formula(torch.cat([part.to(torch.float64) for part in parts], dim=1))

    def extra_repr(self) -> str:
        return f"{self.fitted}, columns={self.n_columns}, classes={self.n_classes}"

    def _apply(self, fn: Callable[..., Any], *options: Any, **others: Any) -> Any:
        """Move the numbers to another device. They stay doubles, also after ``half()``."""

        def move(tensor: Any) -> Any:
            moved = fn(tensor)
            return moved if moved.dtype == tensor.dtype else tensor.to(moved.device)

        return super()._apply(move, *options, **others)

    def get_extra_state(self) -> Any:
        """Hash of the operations for `load_state_dict`, as a tensor, which every format stores."""
        return torch.frombuffer(bytearray(self.mark), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Raise an error for the numbers of a module with other operations."""
        if not torch.equal(state.cpu(), self.get_extra_state()):
            fix = "load them into to_torch of the calibrator that they came from"
            raise InputError("state_dict", None, "belongs to other operations", fix)
