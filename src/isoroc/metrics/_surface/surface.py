"""The ROC surface of any number of classes, and the volume under it."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core.types import Floats
from isoroc._counts import Points
from isoroc._input import (
    InputError,
    Sample,
    check_every_class,
    check_number,
    check_option,
    check_outcomes,
)
from isoroc.metrics._roc import roc_convex_hull, symmetric_roc_curve
from isoroc.metrics._surface.line_scan import all_lines, scan
from isoroc.metrics._surface.roc_points import Body, Boxes, Cases, Hull, pair_curves


@dataclass(frozen=True, eq=False, repr=False)
class RocSurface:
    """Points of a ROC surface, and thresholds that reach them."""

    points: Floats
    """Entry [q, k]: the share of class k that is in region k under threshold q."""
    thresholds: Floats
    """Thresholds gamma that reach the points, shape (m, K); their coordinates sum to 1."""
    exact: bool
    """Whether all points that `roc_surface` describes were found."""
    resolution: int | None = None
    """If not exact, the `resolution` that was used, see `roc_surface`."""

    def __repr__(self) -> str:
        m, K = self.points.shape
        return f"RocSurface({m} points, {K} classes, {_how(self.exact, self.resolution)})"


@dataclass(frozen=True, repr=False)
class Volume:
    """Volume under a ROC surface, and how it was computed. ``float(volume)`` is its value."""

    value: float
    volume: Literal["hull", "boxes"]
    exact: bool
    """Whether all thresholds were taken into account; otherwise the value is a lower bound."""
    resolution: int | None = None
    """If not exact, the `resolution` that was used, see `roc_surface`."""
    n_points: int = field(default=0, compare=False)
    """Number of ROC points that span the volume."""

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        how = _how(self.exact, self.resolution)
        return f"Volume({self.value:.6g}, {self.volume}, {how}, {self.n_points} points)"


def _how(exact: bool, resolution: int | None) -> str:  # noqa: FBT001
    return "exact" if exact else f"lower bound, resolution {resolution}"


def roc_surface(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    resolution: int | None = None,
) -> RocSurface:
    """The ROC surface: the shares of each class that one threshold can classify correctly.

    A threshold gamma puts a forecast p into the region k with the largest ``p_k - gamma_k``. Its
    ROC point holds, for each class, the share of rows that fall into their own region. For two
    classes this is the symmetric ROC curve; for three, all undominated points, also of each pair of
    classes while the third is out of reach.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels : array-like
        As in `log_loss`, with two or three classes. Scores of two classes may be any numbers.
    resolution : int, default=None
        For three classes, how many lines of thresholds to scan in each of two directions. By
        default all of them up to some thousand rows, and 50 to 200 beyond.

    Returns
    -------
    RocSurface

    Examples
    --------
    >>> from isoroc.metrics import roc_surface
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]]
    >>> surface = roc_surface([0, 1, 2, 0, 2], P)
    >>> surface
    RocSurface(6 points, 3 classes, exact)
    >>> surface.points[-2:]
    array([[1. , 1. , 0. ],
           [1. , 1. , 0.5]])
    """
    sample = _check_sample(y_true, y_prob, sample_weight, labels, resolution)
    if sample.n_classes == 2:
        curve = sample.measure(symmetric_roc_curve)
        scores = curve.thresholds
        scores[0] = np.nextafter(scores[1], -np.inf)
        points = np.column_stack([curve.p0, curve.p1])
        return RocSurface(points, np.column_stack([1 - scores, scores]), exact=True)
    counts = Points.from_arrays(*sample.arrays)
    rows, _, used = _scan_lines(counts, "boxes", resolution)
    rows = np.vstack([rows, pair_curves(counts, hull=False)])
    thresholds = np.ascontiguousarray(rows[:, 3:])
    points, first = np.unique(Cases.of(counts).reach(thresholds), axis=0, return_index=True)
    return RocSurface(points, thresholds[first], exact=used is None, resolution=used)


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

    Two volumes have this name. The *hull* is the convex hull of the ROC points, the origin and the
    unit vectors: what random mixtures of thresholds reach. Its volume is 1 for perfect forecasts
    and 1 / K! for constant ones. The *boxes* are the set that ROC points dominate: what single
    thresholds reach. Their volume is 0 for constant forecasts. For two classes these are the area
    under the convex hull of the ROC curve, and the area under its steps, in which ties count 0.

    Parameters
    ----------
    y_true, y_prob : array-like
        As in `roc_surface`.
    volume : {"hull", "boxes"}
        Which of the two volumes.
    resolution, sample_weight, labels
        As in `roc_surface`. A volume that is not exact is a lower bound.

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
    sample = _check_sample(y_true, y_prob, sample_weight, labels, resolution)
    if sample.n_classes == 2:
        curve = sample.measure(roc_convex_hull if volume == "hull" else symmetric_roc_curve)
        value = curve.area() if volume == "hull" else float(np.diff(curve.p0) @ curve.p1[1:])
        return Volume(value, volume, exact=True, n_points=len(curve.p0))
    rows, body, used = _scan_lines(Points.from_arrays(*sample.arrays), volume, resolution)
    return Volume(body.volume, volume, used is None, used, len(rows))


def _check_sample(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Any, resolution: int | None
) -> Sample:
    """Rows with positive weight; all classes must be among them."""
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    check_number("resolution", resolution, int, minimum=1, others=(None,))
    if sample.n_classes > 3:
        problem = f"{sample.n_classes} classes, but the ROC surface is computed for two and three"
        fix = "compare the AUC of each class against the rest instead"
        raise InputError("y_prob", None, problem, fix)
    sample = sample.positive()
    check_every_class(sample, "a ROC surface needs all classes")
    return sample


def _scan_lines(
    counts: Points,
    volume: Literal["hull", "boxes"],
    resolution: int | None,
    most_steps: int = 2 * 10**8,
) -> tuple[Floats, Body, int | None]:
    """Rows that span a volume of three classes, the body, and the resolution if not exact.

    All lines are scanned if that takes at most `most_steps` steps, 15 % of that for boxes.
    """
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
    return *scan(families, body, pair_curves(counts, hull=True), step=step), used
