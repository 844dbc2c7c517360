"""Measures of forecasts: ``metric(y_true, y_prob, *, sample_weight=None, labels=None)``."""

from isoroc.metrics._calibration import calibration_error
from isoroc.metrics._decomposition import Decomposition, decompose
from isoroc.metrics._groups import GroupReport, by_group, group_report
from isoroc.metrics._order import OrderReport, order_report
from isoroc.metrics._resampling import BootstrapResult, bootstrap
from isoroc.metrics._roc import RocCurve, auc, hull_auc, roc_convex_hull, symmetric_roc_curve
from isoroc.metrics._scorers import ProbabilityScorer, scorers
from isoroc.metrics._scores import brier_score, cross_entropy
from isoroc.metrics._separability import Separability, pairwise_separability
from isoroc.metrics._significance import CalibrationTest, calibration_test
from isoroc.metrics._smooth import smooth_calibration_error
from isoroc.metrics._surface.results import RocSurface, Volume
from isoroc.metrics._surface.surface import roc_surface, volume_under_surface

__all__ = [
    "BootstrapResult",
    "CalibrationTest",
    "Decomposition",
    "GroupReport",
    "OrderReport",
    "ProbabilityScorer",
    "RocCurve",
    "RocSurface",
    "Separability",
    "Volume",
    "auc",
    "bootstrap",
    "brier_score",
    "by_group",
    "calibration_error",
    "calibration_test",
    "cross_entropy",
    "decompose",
    "group_report",
    "hull_auc",
    "order_report",
    "pairwise_separability",
    "roc_convex_hull",
    "roc_surface",
    "scorers",
    "smooth_calibration_error",
    "symmetric_roc_curve",
    "volume_under_surface",
]
