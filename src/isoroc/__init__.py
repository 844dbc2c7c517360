"""Calibration of classifier probabilities for any number of classes."""

from isoroc._support.lazy import attach

__version__ = "0.1.0"

# The public names stand in __init__.pyi; each is imported when it is first used.
__getattr__, __dir__, __all__ = attach(__name__, __file__)
