from ._calibration import CalibrationDisplay
from ._cost import CostCurveDisplay
from ._decision_curve import DecisionCurveDisplay
from ._gains import GroupsDisplay, LearningCurveDisplay, MembersDisplay
from ._map import MapDisplay
from ._monitor import MonitorDisplay
from ._path import PathDisplay
from ._roc import RocDisplay, RocSurfaceDisplay
from ._simplex import SimplexDisplay

__all__ = [
    "CalibrationDisplay",
    "CostCurveDisplay",
    "DecisionCurveDisplay",
    "GroupsDisplay",
    "LearningCurveDisplay",
    "MapDisplay",
    "MembersDisplay",
    "MonitorDisplay",
    "PathDisplay",
    "RocDisplay",
    "RocSurfaceDisplay",
    "SimplexDisplay",
]
