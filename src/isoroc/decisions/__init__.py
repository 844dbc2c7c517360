"""From probabilities to decisions: actions of least expected cost, and other class priors."""

from isoroc._support.lazy import attach

# The public names stand in __init__.pyi. Each is imported when it is first used.
__getattr__, __dir__, __all__ = attach(__name__, __file__)
