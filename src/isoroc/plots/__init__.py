"""Displays: ``from_estimator``, ``from_predictions``, ``.plot(ax=...)`` and ``.frame()``.

Requires matplotlib and mpltern, the extra ``plots``.
"""

try:
    import matplotlib  # noqa: F401, ICN001
    import mpltern  # noqa: F401 -- registers the axes of SimplexDisplay
except ImportError as error:
    raise ImportError(
        "isoroc.plots needs matplotlib and mpltern: pip install matplotlib mpltern"
    ) from error

from isoroc.plots._cost import CostCurveDisplay
from isoroc.plots._monitor import MonitorDisplay
from isoroc.plots._path import PathDisplay
from isoroc.plots._reliability import ReliabilityDisplay
from isoroc.plots._roc import RocDisplay
from isoroc.plots._simplex import SimplexDisplay
from isoroc.plots._surface import RocSurfaceDisplay

__all__ = [
    "CostCurveDisplay",
    "MonitorDisplay",
    "PathDisplay",
    "ReliabilityDisplay",
    "RocDisplay",
    "RocSurfaceDisplay",
    "SimplexDisplay",
]
