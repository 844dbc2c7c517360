"""Calibrators that leave Python: ONNX graphs and SQL queries that do what `predict_proba` does.

Each needs its extra: ``pip install 'isoroc[onnx]'``, ``pip install 'isoroc[sql]'``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoroc.export._onnx import to_onnx as to_onnx
    from isoroc.export._sql import to_sql as to_sql

__all__ = ["to_onnx", "to_sql"]

_MODULES = {"to_onnx": "isoroc.export._onnx", "to_sql": "isoroc.export._sql"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'isoroc.export' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
