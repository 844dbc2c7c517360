from ._cost import CostCurveDisplay
from ._monitor import MonitorDisplay
from ._path import PathDisplay
from ._reliability import ReliabilityDisplay
from ._roc import RocDisplay
from ._simplex import SimplexDisplay
from ._surface import RocSurfaceDisplay

__all__ = [
    "CostCurveDisplay",
    "MonitorDisplay",
    "PathDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "RocSurfaceDisplay",
    "SimplexDisplay",
]
