from ._golden import GoldenRows, golden_rows
from ._onnx import to_onnx
from ._sql import counts_sql, to_sql
from ._torch import to_torch

__all__ = ["GoldenRows", "counts_sql", "golden_rows", "to_onnx", "to_sql", "to_torch"]
