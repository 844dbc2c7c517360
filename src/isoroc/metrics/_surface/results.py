"""What `roc_surface` and `volume_under_surface` return."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from isoroc._simplex import Floats


@dataclass(frozen=True, eq=False, repr=False)
class RocSurface:
    """Points of a ROC surface, and thresholds that reach them.

    Attributes
    ----------
    points : ndarray of shape (m, K)
        Entry [q, k]: the share of class k that is in region k under threshold q.
    thresholds : ndarray of shape (m, K)
        Thresholds gamma that reach the points; their coordinates sum to 1.
    exact : bool
        Whether all points that `roc_surface` describes were found.
    resolution : int or None
        If not exact, the `resolution` that was used, see `roc_surface`.
    """

    points: Floats
    thresholds: Floats
    exact: bool
    resolution: int | None = None

    def __repr__(self) -> str:
        m, K = self.points.shape
        return f"RocSurface({m} points, {K} classes, {_how(self.exact, self.resolution)})"


@dataclass(frozen=True, repr=False)
class Volume:
    """Volume under a ROC surface, and how it was computed. ``float(volume)`` is its value.

    Attributes
    ----------
    value : float
    volume : "hull" or "boxes"
    exact : bool
        Whether all thresholds were taken into account; otherwise the value is a lower bound.
    resolution : int or None
        If not exact, the `resolution` that was used, see `volume_under_surface`.
    n_points : int
        Number of ROC points that span the volume.
    """

    value: float
    volume: Literal["hull", "boxes"]
    exact: bool
    resolution: int | None = None
    n_points: int = field(default=0, compare=False)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        how = _how(self.exact, self.resolution)
        return f"Volume({self.value:.6g}, {self.volume}, {how}, {self.n_points} points)"


def _how(exact: bool, resolution: int | None) -> str:  # noqa: FBT001
    return "exact" if exact else f"lower bound, resolution {resolution}"
