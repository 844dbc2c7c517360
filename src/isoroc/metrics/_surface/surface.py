"""The ROC surface of any number of classes, and the volume under it."""

from __future__ import annotations

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
from isoroc.metrics._surface.many_classes import (
    all_points,
    ascend_to_hull,
    corners_around,
    count_thresholds,
)
from isoroc.metrics._surface.roc_points import Body, Boxes, Cases, Hull, pair_curves

#: Three classes: all lines of thresholds are scanned if that takes at most this many steps.
EXACT_WORK = {"hull": 2 * 10**8, "boxes": 3 * 10**7}
#: Otherwise LINE_WORK / n of them, 50 to 200, are scanned in each of two directions.
LINE_WORK = 2 * 10**7
#: More classes: all thresholds of trees are evaluated if there are at most this many.
EXACT_THRESHOLDS = 500_000
#: Otherwise: number of ascents by number of classes,
N_ASCENTS = {4: 1000, 5: 1000, 6: 500, 7: 300}
#: maximum number of boxes per ascent,
N_BOXES = {4: 20, 5: 8, 6: 2, 7: 1}
#: and the number of cells for ascents on many rows.
MAX_CELLS = 4096


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
    ROC point holds, for each class, the share of rows that fall into their own region. Returned
    are, for two classes, the symmetric ROC curve; for three, all undominated points, also of each
    pair of classes while the third is out of reach; for more, points that span the hull.

    Parameters
    ----------
    y_true, y_prob : array-like of shape (n,), and (n, K) or (n,)
        Labels; forecasts, or scores that increase with the probability of the second class.
    sample_weight, labels : array-like of shape (n,) and (K,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).
    resolution : int, default=None
        For three classes, how many lines of thresholds to scan in each of two directions; by
        default all of them up to some thousand rows, and 50 to 200 beyond. For more classes, in
        how many directions to search for the hull; by default the result is exact for few rows
        (about 125 for four classes, 40 for five), and 300 to 1,000 directions are searched beyond.

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
    K = sample.n_classes
    if K == 2:
        curve = sample.measure(symmetric_roc_curve)
        scores = curve.thresholds
        scores[0] = np.nextafter(scores[1], -np.inf)
        points = np.column_stack([curve.p0, curve.p1])
        return RocSurface(points, np.column_stack([1 - scores, scores]), exact=True)
    counts = Points.from_arrays(sample.forecasts, sample.codes, sample.weights)
    if K == 3:
        rows, _, used = _scan_lines(counts, "boxes", resolution)
        rows = np.vstack([rows, pair_curves(counts, hull=False)])
    else:
        rows, used = _search(sample, counts, resolution)
        rows = rows[Hull(rows[:, :K]).kept]
    thresholds = np.ascontiguousarray(rows[:, K:])
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
    y_true, y_prob : array-like of shape (n,), and (n, K) or (n,)
        Labels; forecasts, or scores that increase with the probability of the second class.
    volume : {"hull", "boxes"}
        Which of the two volumes.
    resolution : int, default=None
        As in `roc_surface`. A volume that is not exact is a lower bound.
    sample_weight, labels : array-like of shape (n,) and (K,), default=None
        Weight of each row, and the classes in the order of the columns (sorted by default).

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
    K = sample.n_classes
    if K == 2:
        curve = sample.measure(roc_convex_hull if volume == "hull" else symmetric_roc_curve)
        value = curve.area() if volume == "hull" else float(np.diff(curve.p0) @ curve.p1[1:])
        return Volume(value, volume, exact=True, n_points=len(curve.p0))
    counts = Points.from_arrays(sample.forecasts, sample.codes, sample.weights)
    if K == 3:
        rows, body, used = _scan_lines(counts, volume, resolution)
        return Volume(body.volume, volume, used is None, used, len(rows))
    rows, used = _search(sample, counts, resolution)
    if volume == "hull":
        body = Hull(rows[:, :K])
    elif used is None:
        body = Boxes(rows[:, :K])
    else:
        corners = corners_around(Cases.of(counts), rows, step=0.1)
        body = Boxes(corners, most=N_BOXES[K] * used)
    return Volume(body.volume, volume, used is None, used, len(body.kept))


def _check_sample(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Any, resolution: int | None
) -> Sample:
    """Rows with positive weight; all classes must be among them."""
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    check_number("resolution", resolution, int, minimum=1, others=(None,))
    K = sample.n_classes
    if max(N_ASCENTS) < K:
        problem = f"{K} classes, but hulls have too many faces beyond {max(N_ASCENTS)}"
        fix = "compare the AUC of each class against the rest instead"
        raise InputError("y_prob", None, problem, fix)
    sample = sample.positive()
    check_every_class(sample, "a ROC surface needs all classes")
    return sample


def _scan_lines(
    counts: Points, volume: Literal["hull", "boxes"], resolution: int | None
) -> tuple[Floats, Body, int | None]:
    """Rows that span a volume of three classes, the body, and the resolution if not exact."""
    families = all_lines(counts)
    if resolution is None and sum(lines.work for lines in families) > EXACT_WORK[volume]:
        resolution = int(np.clip(LINE_WORK // len(counts.forecasts), 50, 200))
    used = None
    if resolution is not None and any(len(lines.values) > resolution for lines in families):
        used = resolution
        families = [lines.thin(resolution) for lines in families]
    # If only some lines are scanned, corners on a line need not be much closer than the lines.
    step = 0.0 if used is None or volume == "hull" else 0.25 / used
    body = Hull if volume == "hull" else Boxes
    return *scan(families, body, pair_curves(counts, hull=True), step=step), used


def _search(sample: Sample, counts: Points, resolution: int | None) -> tuple[Floats, int | None]:
    """Rows that span the hull of four classes or more, and the resolution if not exact."""
    cases = Cases.of(counts)
    if count_thresholds(cases) <= (resolution or EXACT_THRESHOLDS):
        return all_points(cases), None
    K = sample.n_classes
    n_ascents = resolution or N_ASCENTS[K]
    if len(counts.forecasts) <= MAX_CELLS:
        return ascend_to_hull(cases, n_ascents), n_ascents
    cells = Points.from_arrays(sample.forecasts, sample.codes, sample.weights, MAX_CELLS)
    thresholds = ascend_to_hull(Cases.of(cells), n_ascents)[:, K:]
    return np.hstack([cases.reach(thresholds), thresholds]), n_ascents
