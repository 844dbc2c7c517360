from ._calibration import (
    CalibrationCurve,
    calibration_curve,
    calibration_error,
    expected_calibration_error,
    smooth_calibration_error,
)
from ._direction import calibration_direction
from ._expected import expected
from ._resampling import BootstrapResult, bootstrap, by_group
from ._roc import (
    RocCurve,
    Separability,
    auc,
    hull_auc,
    pairwise_separability,
    roc_convex_hull,
    symmetric_roc_curve,
)
from ._scores import (
    Decomposition,
    ProbabilityScorer,
    brier_score_loss,
    decompose,
    log_loss,
    scorers,
)
from ._significance import CalibrationTest, calibration_test
from ._summary import CalibrationSummary, calibration_summary
from ._surface.surface import RocSurface, Volume, roc_surface, volume_under_surface

__all__ = [
    "BootstrapResult",
    "CalibrationCurve",
    "CalibrationSummary",
    "CalibrationTest",
    "Decomposition",
    "ProbabilityScorer",
    "RocCurve",
    "RocSurface",
    "Separability",
    "Volume",
    "auc",
    "bootstrap",
    "brier_score_loss",
    "by_group",
    "calibration_curve",
    "calibration_direction",
    "calibration_error",
    "calibration_summary",
    "calibration_test",
    "decompose",
    "expected",
    "expected_calibration_error",
    "hull_auc",
    "log_loss",
    "pairwise_separability",
    "roc_convex_hull",
    "roc_surface",
    "scorers",
    "smooth_calibration_error",
    "symmetric_roc_curve",
    "volume_under_surface",
]
