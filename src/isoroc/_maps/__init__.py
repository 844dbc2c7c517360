"""Maps: what fitted calibrators do with forecasts, as values.

A map is a frozen dataclass: its numbers, with what must hold for them, and one formula over `Ops`.
Everything else follows from these: `predict_proba`, the model file, ONNX, SQL and torch. Importing
maps loads neither SciPy nor scikit-learn, so that a saved model is quick to serve.
"""

from isoroc._maps.base import Forecasts, IdentityMap, Map, state
from isoroc._maps.bins import BaggedMap, BinMap, TiltedMap
from isoroc._maps.mixture import GroupedMap, MixtureMap
from isoroc._maps.monotone import MonotoneMap
from isoroc._maps.scaling import (
    KernelMap,
    MatrixMap,
    SigmoidMap,
    SplineMap,
    TemperatureMap,
)
from isoroc._maps.steps import StepMap, VennAbersMap

__all__ = [
    "BaggedMap",
    "BinMap",
    "Forecasts",
    "GroupedMap",
    "IdentityMap",
    "KernelMap",
    "Map",
    "MatrixMap",
    "MixtureMap",
    "MonotoneMap",
    "SigmoidMap",
    "SplineMap",
    "StepMap",
    "TemperatureMap",
    "TiltedMap",
    "VennAbersMap",
    "state",
]
