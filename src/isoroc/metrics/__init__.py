"""Measures of forecasts: ``metric(y_true, y_prob, *, sample_weight=None, labels=None)``."""

from isoroc.metrics.roc import RocCurve, auc, hull_auc, roc_convex_hull, symmetric_roc_curve

__all__ = ["RocCurve", "auc", "hull_auc", "roc_convex_hull", "symmetric_roc_curve"]
