from ._calibration import CalibrationDisplay as CalibrationDisplay
from ._decisions import DecisionCurveDisplay as DecisionCurveDisplay
from ._groups import GroupsDisplay as GroupsDisplay
from ._map import MapDisplay as MapDisplay
from ._monitor import MonitorDisplay as MonitorDisplay
from ._path import PathDisplay as PathDisplay
from ._roc import RocDisplay as RocDisplay
from ._simplex import SimplexDisplay as SimplexDisplay
