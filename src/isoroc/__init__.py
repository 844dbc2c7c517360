"""Calibration of classifier probabilities for any number of classes."""

from isoroc._support.lazy import attach

__version__ = "0.1.0"

# __init__.pyi lists the public names. Each is imported when it is first used.
__getattr__, __dir__, __all__ = attach(__name__, __file__)
