"""The volume under the ROC surface."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core.types import Floats
from isoroc._counts import Points
from isoroc._input import InputError, check_every_class, check_number, check_option, check_outcomes
from isoroc.metrics._roc import roc_convex_hull, symmetric_roc_curve
from isoroc.metrics._surface.line_scan import all_lines, scan
from isoroc.metrics._surface.roc_points import Body, Boxes, Hull, pair_curves


@dataclass(frozen=True, repr=False)
class Volume:
    """Volume under a ROC surface, and how it was computed. ``float(volume)`` is its value."""

    value: float
    volume: Literal["hull", "boxes"]
    exact: bool
    """Whether all thresholds were taken into account; otherwise the value is a lower bound."""
    resolution: int | None = None
    """If not exact, the `resolution` that was used."""
    n_points: int = field(default=0, compare=False)
    """Number of ROC points that span the volume."""

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"lower bound, resolution {self.resolution}"
        return f"Volume({self.value:.6g}, {self.volume}, {how}, {self.n_points} points)"


def volume_under_surface(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    volume: Literal["hull", "boxes"] = "hull",
    resolution: int | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> Volume:
    """Volume under the ROC surface: how well forecasts separate the classes, between 0 and 1.

    A threshold gamma puts a forecast p into the region k with the largest ``p_k - gamma_k``. Its
    ROC point holds, for each class, the share of rows that fall into their own region. The points
    of all thresholds are the ROC surface, the symmetric ROC curve of two classes.

    The *hull* is the convex hull of the ROC points, the origin and the unit vectors: what random
    mixtures of thresholds reach. Its volume is 1 for perfect forecasts and 1 / K! for constant
    ones. The *boxes* are the set that ROC points dominate: what single thresholds reach. Their
    volume is 0 for constant forecasts. For two classes these are the areas under the convex hull of
    the ROC curve and under its steps, in which ties count 0.

    Parameters
    ----------
    y_true, y_prob : array-like
        As in `log_loss`, with two or three classes. Scores of two classes may be any numbers.
    volume : {"hull", "boxes"}, default="hull"
        Which of the two volumes.
    resolution : int, default=None
        For three classes, how many lines of thresholds to scan in each of two directions: by
        default all up to some thousand rows, and 50 to 200 beyond, for a lower bound.
    sample_weight, labels : array-like, default=None
        As in `log_loss`.

    Returns
    -------
    Volume

    Examples
    --------
    >>> from isoroc.metrics import volume_under_surface
    >>> y = [0, 1, 2, 0, 2]
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]]
    >>> volume_under_surface(y, P)
    Volume(0.875, hull, exact, 6 points)
    >>> float(volume_under_surface(y, P, volume="boxes"))
    0.75
    """
    check_option("volume", volume, ("hull", "boxes"))
    check_number("resolution", resolution, int, minimum=1, others=(None,))
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    if sample.n_classes > 3:
        problem = f"{sample.n_classes} classes, but the ROC surface is computed for two and three"
        fix = "compare the AUC of each class against the rest instead"
        raise InputError("y_prob", None, problem, fix)
    sample = sample.positive()
    check_every_class(sample, "a ROC surface needs all classes")
    if sample.n_classes == 2:
        curve = sample.measure(roc_convex_hull if volume == "hull" else symmetric_roc_curve)
        value = curve.area() if volume == "hull" else float(np.diff(curve.p0) @ curve.p1[1:])
        return Volume(value, volume, exact=True, n_points=len(curve.p0))
    points, body, used = _scan_lines(Points.from_arrays(*sample.arrays), volume, resolution)
    return Volume(body.volume, volume, used is None, used, len(points))


def _scan_lines(
    counts: Points,
    volume: Literal["hull", "boxes"],
    resolution: int | None,
    most_steps: int = 2 * 10**8,
) -> tuple[Floats, Body, int | None]:
    """Points that span a volume of three classes, the body, and the resolution if not exact."""
    families = all_lines(counts)
    n_steps = sum(lines.work for lines in families)
    if resolution is None and n_steps > (most_steps if volume == "hull" else most_steps * 3 // 20):
        resolution = int(np.clip(most_steps // 10 // len(counts.forecasts), 50, 200))
    used = None
    if resolution is not None and any(len(lines.values) > resolution for lines in families):
        used = resolution
        families = [lines.thin(resolution) for lines in families]
    # If only some lines are scanned, corners on a line need not be much closer than the lines.
    step = 0.0 if used is None or volume == "hull" else 0.25 / used
    body = Hull if volume == "hull" else Boxes
    return *scan(families, body, pair_curves(counts), step=step), used
