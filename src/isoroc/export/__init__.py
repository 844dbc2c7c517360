"""Calibrators that leave Python: ONNX, SQL and torch, all doing what `predict_proba` does.

Each needs its extra: ``onnx``, ``sql`` (sqlglot) or ``torch``.
"""

from isoroc._support.lazy import attach

__getattr__, __dir__, __all__ = attach(
    __name__, __file__, needs={"onnx": "onnx", "sqlglot": "sqlglot", "torch": "torch"}
)
