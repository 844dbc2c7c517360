"""Calibrate classifiers without spoiling how well they rank and separate their classes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoroc import metrics as metrics
    from isoroc.calibrators import AutoCalibrator as AutoCalibrator
    from isoroc.calibrators import BaggedIRPCalibrator as BaggedIRPCalibrator
    from isoroc.calibrators import HistogramCalibrator as HistogramCalibrator
    from isoroc.calibrators import IdentityCalibrator as IdentityCalibrator
    from isoroc.calibrators import IRPCalibrator as IRPCalibrator
    from isoroc.calibrators import IsotonicCalibrator as IsotonicCalibrator
    from isoroc.calibrators import MatrixCalibrator as MatrixCalibrator
    from isoroc.calibrators import RecursiveBinningCalibrator as RecursiveBinningCalibrator
    from isoroc.calibrators import SplineCalibrator as SplineCalibrator
    from isoroc.calibrators import TemperatureCalibrator as TemperatureCalibrator
    from isoroc.calibrators import VennAbersCalibrator as VennAbersCalibrator
    from isoroc.calibrators.load import load as load
    from isoroc.classifier import CalibratedClassifier as CalibratedClassifier

__version__ = "0.1.0"

# Public names and the rooms they live in, imported when first asked for.
_ROOMS = {
    "AutoCalibrator": "isoroc.calibrators",
    "BaggedIRPCalibrator": "isoroc.calibrators",
    "CalibratedClassifier": "isoroc.classifier",
    "HistogramCalibrator": "isoroc.calibrators",
    "IRPCalibrator": "isoroc.calibrators",
    "IdentityCalibrator": "isoroc.calibrators",
    "IsotonicCalibrator": "isoroc.calibrators",
    "MatrixCalibrator": "isoroc.calibrators",
    "RecursiveBinningCalibrator": "isoroc.calibrators",
    "SplineCalibrator": "isoroc.calibrators",
    "TemperatureCalibrator": "isoroc.calibrators",
    "VennAbersCalibrator": "isoroc.calibrators",
    "load": "isoroc.calibrators.load",
    "metrics": "isoroc.metrics",
}

__all__ = [
    "AutoCalibrator",
    "BaggedIRPCalibrator",
    "CalibratedClassifier",
    "HistogramCalibrator",
    "IRPCalibrator",
    "IdentityCalibrator",
    "IsotonicCalibrator",
    "MatrixCalibrator",
    "RecursiveBinningCalibrator",
    "SplineCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
    "load",
    "metrics",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'isoroc' has no attribute {name!r}")
    room = import_module(_ROOMS[name])
    return room if _ROOMS[name] == f"isoroc.{name}" else getattr(room, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
