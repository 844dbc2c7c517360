"""Calibrators as modules of torch, in double precision on the device of their input."""

from __future__ import annotations

import math
from typing import Any

import torch

from isoroc._backends.torch import TorchOps, TorchVector
from isoroc._input import InputError
from isoroc._maps.mixture import calibrated, is_grouped
from isoroc.export._exportable import check_exportable


def to_torch(calibrator: Any) -> Any:
    """Module that calibrates as `predict_proba` does.

    The module takes forecasts of shape (n, K), or (n,) or (n, 1) where the calibrator was fitted to
    scores, and returns calibrated forecasts of shape (n, K) in double precision on the same device.
    Smooth maps have gradients. Rows that `predict_proba` would refuse become NaN.

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
        fix = "export common_ or an entry of members_, or use to_onnx or to_sql"
        raise InputError("calibrator", None, "tensors hold no names of groups", fix)
    return _Module(calibrator)


class _Module(torch.nn.Module):
    def __init__(self, calibrator: Any) -> None:
        super().__init__()
        self._calibrator = calibrator

    def forward(self, forecasts: Any) -> Any:
        n_columns = self._calibrator.n_features_in_
        P = forecasts.to(torch.float64).reshape(len(forecasts), -1)
        if P.shape[1] != n_columns:
            fix = f"expected {n_columns} columns"
            raise InputError("forecasts", None, f"{P.shape[1]} columns", fix)
        ops = TorchOps(P.device)
        Q, good = calibrated(ops, self._calibrator, TorchVector(P))
        return ops.where(good, Q, math.nan).tensor
