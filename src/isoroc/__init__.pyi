from . import decisions, export, metrics, plots
from ._calibrators.auto import AutoCalibrator
from ._calibrators.base import IdentityCalibrator
from ._calibrators.classifier import CalibratedClassifier
from ._calibrators.irp import IRPCalibrator
from ._calibrators.isotonic import IsotonicCalibrator, VennAbersCalibrator
from ._calibrators.kernel import KernelCalibrator
from ._calibrators.matrix import MatrixCalibrator
from ._calibrators.monotone import MonotoneCalibrator
from ._calibrators.multilabel import MultiLabelCalibrator
from ._calibrators.online import OnlineCalibrator
from ._calibrators.ordinal import CumulativeCalibrator, OrdinalCalibrator
from ._calibrators.prior import PriorEstimate, adjust_prior, estimate_prior
from ._calibrators.registry import load
from ._calibrators.segment import SegmentCalibrator
from ._calibrators.sigmoid import BetaCalibrator, SigmoidCalibrator
from ._calibrators.spline import SplineCalibrator
from ._calibrators.temperature import TemperatureCalibrator
from ._core.intervals import Estimate
from ._core.ledger import RegretBound
from ._core.verdict import Verdict
from ._counts import Counts
from ._evaluation.evaluate import evaluate
from ._evaluation.evaluation import Evaluation
from ._evaluation.monitor import BatchReport, CalibrationMonitor
from ._input import InputError
from ._maps.loading import LoadedMap, load_map
from ._maps.modelfile import ModelFileError
from ._report.report import Report
from ._support.table import Table

__all__ = [
    "AutoCalibrator",
    "BatchReport",
    "BetaCalibrator",
    "CalibratedClassifier",
    "CalibrationMonitor",
    "Counts",
    "CumulativeCalibrator",
    "Estimate",
    "Evaluation",
    "IRPCalibrator",
    "IdentityCalibrator",
    "InputError",
    "IsotonicCalibrator",
    "KernelCalibrator",
    "LoadedMap",
    "MatrixCalibrator",
    "ModelFileError",
    "MonotoneCalibrator",
    "MultiLabelCalibrator",
    "OnlineCalibrator",
    "OrdinalCalibrator",
    "PriorEstimate",
    "RegretBound",
    "Report",
    "SegmentCalibrator",
    "SigmoidCalibrator",
    "SplineCalibrator",
    "Table",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
    "Verdict",
    "adjust_prior",
    "decisions",
    "estimate_prior",
    "evaluate",
    "export",
    "load",
    "load_map",
    "metrics",
    "plots",
]
__version__: str
