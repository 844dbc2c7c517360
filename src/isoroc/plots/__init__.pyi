from ._calibration import CalibrationDisplay as CalibrationDisplay
from ._decisions import DecisionCurveDisplay as DecisionCurveDisplay
from ._path import PathDisplay as PathDisplay
from ._roc import RocDisplay as RocDisplay
from ._segments import SegmentsDisplay as SegmentsDisplay
from ._simplex import SimplexDisplay as SimplexDisplay
