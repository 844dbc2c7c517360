from ._cost import CostCurveDisplay
from ._decision_curve import DecisionCurveDisplay
from ._intervals import GroupsDisplay, MembersDisplay
from ._learning import LearningCurveDisplay
from ._map import MapDisplay
from ._monitor import MonitorDisplay
from ._path import PathDisplay
from ._reliability import ReliabilityDisplay
from ._roc import RocDisplay
from ._simplex import SimplexDisplay
from ._surface import RocSurfaceDisplay

__all__ = [
    "CostCurveDisplay",
    "DecisionCurveDisplay",
    "GroupsDisplay",
    "LearningCurveDisplay",
    "MapDisplay",
    "MembersDisplay",
    "MonitorDisplay",
    "PathDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "RocSurfaceDisplay",
    "SimplexDisplay",
]
