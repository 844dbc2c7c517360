"""Backends: the vector operations that maps are made of, for arrays, ONNX and SQL."""

from isoroc._backends.array import NUMPY
from isoroc._backends.ops import Ops, Truth, V, added
from isoroc._backends.standard import ops_for

__all__ = ["NUMPY", "Ops", "Truth", "V", "added", "ops_for"]
