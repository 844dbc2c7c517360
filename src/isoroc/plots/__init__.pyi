from ._calibration import CalibrationDisplay as CalibrationDisplay
from ._decisions import DecisionCurveDisplay as DecisionCurveDisplay
from ._online import OnlineDisplay as OnlineDisplay
from ._path import PathDisplay as PathDisplay
from ._risk_coverage import RiskCoverageDisplay as RiskCoverageDisplay
from ._roc import RocDisplay as RocDisplay
from ._segments import SegmentsDisplay as SegmentsDisplay
from ._simplex import SimplexDisplay as SimplexDisplay
