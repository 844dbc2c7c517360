from ._onnx import calibrate_onnx, to_onnx
from ._sql import counts_sql, to_sql
from ._torch import to_torch

__all__ = ["calibrate_onnx", "counts_sql", "to_onnx", "to_sql", "to_torch"]
