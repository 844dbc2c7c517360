"""Backends: the vector operations that maps are made of, for arrays, ONNX and SQL."""

import sys
from importlib import import_module
from typing import Any

import numpy as np

from isoroc._backends.array import NUMPY
from isoroc._backends.ops import Ops, Truth, V, added
from isoroc._backends.standard import ArrayOps

__all__ = ["NUMPY", "Ops", "Truth", "V", "added", "ops_for"]


def ops_for(values: Any) -> Any:
    """Operations of the library of an array if scikit-learn dispatches to it, otherwise NumPy's."""
    if type(values) is np.ndarray:
        return NUMPY
    sklearn = sys.modules.get("sklearn")  # its settings can only be changed after an import
    if sklearn is None or not sklearn.get_config()["array_api_dispatch"]:
        return NUMPY
    compat = import_module("sklearn.externals.array_api_compat")
    if not compat.is_array_api_obj(values) or compat.is_numpy_array(values):
        return NUMPY
    if compat.is_torch_array(values):
        from isoroc._backends.torch import TorchOps  # noqa: PLC0415

        return TorchOps(values.device)
    return ArrayOps(compat.array_namespace(values), compat.device(values))
