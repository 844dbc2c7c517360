"""Calibrators that leave Python: ONNX, SQL and torch, all doing what `predict_proba` does.

Each needs its extra: ``onnx``, ``sql`` (sqlglot) or ``torch``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoroc.export._counts_sql import counts_sql as counts_sql
    from isoroc.export._onnx import calibrate_onnx as calibrate_onnx
    from isoroc.export._onnx import to_onnx as to_onnx
    from isoroc.export._sql import to_sql as to_sql
    from isoroc.export._torch import to_torch as to_torch

__all__ = ["calibrate_onnx", "counts_sql", "to_onnx", "to_sql", "to_torch"]

#: Where each function is, and the package that it needs.
_PLACES = {
    "calibrate_onnx": ("isoroc.export._onnx", "onnx"),
    "counts_sql": ("isoroc.export._counts_sql", "sqlglot"),
    "to_onnx": ("isoroc.export._onnx", "onnx"),
    "to_sql": ("isoroc.export._sql", "sqlglot"),
    "to_torch": ("isoroc.export._torch", "torch"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'isoroc.export' has no attribute {name!r}")
    module, package = _PLACES[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(f"{name} needs {package}: pip install {package}") from error
