"""Backends: the vector operations that maps are made of, for NumPy, torch, ONNX and SQL."""

from isoroc._backends.array import NUMPY, NumpyOps
from isoroc._backends.ops import Ops, Truth, V, Value, added

__all__ = ["NUMPY", "NumpyOps", "Ops", "Truth", "V", "Value", "added"]
