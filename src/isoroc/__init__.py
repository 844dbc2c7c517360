"""Calibrate classifiers without spoiling how well they rank and separate their classes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoroc import metrics as metrics
    from isoroc.calibrators import HistogramCalibrator as HistogramCalibrator
    from isoroc.calibrators import IRPCalibrator as IRPCalibrator
    from isoroc.calibrators import RecursiveBinningCalibrator as RecursiveBinningCalibrator
    from isoroc.classifier import CalibratedClassifier as CalibratedClassifier

__version__ = "0.1.0"

# Public names and the rooms they live in, imported when first asked for.
_ROOMS = {
    "CalibratedClassifier": "isoroc.classifier",
    "HistogramCalibrator": "isoroc.calibrators",
    "IRPCalibrator": "isoroc.calibrators",
    "RecursiveBinningCalibrator": "isoroc.calibrators",
    "metrics": "isoroc.metrics",
}

__all__ = [
    "CalibratedClassifier",
    "HistogramCalibrator",
    "IRPCalibrator",
    "RecursiveBinningCalibrator",
    "metrics",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'isoroc' has no attribute {name!r}")
    room = import_module(_ROOMS[name])
    return room if _ROOMS[name] == f"isoroc.{name}" else getattr(room, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
