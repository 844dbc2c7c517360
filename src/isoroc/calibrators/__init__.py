"""Calibrators: scikit-learn estimators that map forecasts to calibrated forecasts."""

from isoroc.calibrators.binning import HistogramCalibrator, RecursiveBinningCalibrator
from isoroc.calibrators.irp import IRPCalibrator

__all__ = ["HistogramCalibrator", "IRPCalibrator", "RecursiveBinningCalibrator"]
