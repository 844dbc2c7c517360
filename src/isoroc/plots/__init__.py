"""Displays: ``from_estimator``, ``from_predictions``, ``.plot(ax=...)`` and ``.frame()``.

They need matplotlib and mpltern, ``pip install 'isoroc[plots]'``.
"""

try:
    import matplotlib  # noqa: F401, ICN001
    import mpltern  # noqa: F401 -- registers the axes of SimplexDisplay
except ImportError as error:
    raise ImportError(
        "isoroc.plots needs matplotlib and mpltern: pip install 'isoroc[plots]'"
    ) from error

from isoroc.plots.path import PathDisplay
from isoroc.plots.reliability import ReliabilityDisplay
from isoroc.plots.roc import RocDisplay
from isoroc.plots.simplex import SimplexDisplay
from isoroc.plots.surface import RocSurfaceDisplay

__all__ = [
    "PathDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "RocSurfaceDisplay",
    "SimplexDisplay",
]
