"""Calibrators: scikit-learn estimators that map forecasts to calibrated forecasts."""

from isoroc.calibrators.auto import AutoCalibrator
from isoroc.calibrators.bagging import BaggedIRPCalibrator
from isoroc.calibrators.binning import HistogramCalibrator, RecursiveBinningCalibrator
from isoroc.calibrators.identity import IdentityCalibrator
from isoroc.calibrators.irp import IRPCalibrator
from isoroc.calibrators.isotonic import IsotonicCalibrator
from isoroc.calibrators.matrix import MatrixCalibrator
from isoroc.calibrators.spline import SplineCalibrator
from isoroc.calibrators.temperature import TemperatureCalibrator
from isoroc.calibrators.venn_abers import VennAbersCalibrator

__all__ = [
    "AutoCalibrator",
    "BaggedIRPCalibrator",
    "HistogramCalibrator",
    "IRPCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "MatrixCalibrator",
    "RecursiveBinningCalibrator",
    "SplineCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
]
