"""Any classifier with any calibrator behind it."""

from isoroc._classifier.classifier import CalibratedClassifier

__all__ = ["CalibratedClassifier"]
