"""Displays: ``from_estimator``, ``from_predictions``, ``.plot(ax=...)`` and ``.frame()``.

Requires matplotlib and mpltern, the extra ``plots``.
"""

from isoroc._support.lazy import attach

_BOTH = "matplotlib mpltern"
_NEEDS = {"matplotlib": _BOTH, "mpltern": _BOTH}
__getattr__, __dir__, __all__ = attach(__name__, __file__, needs=_NEEDS)
