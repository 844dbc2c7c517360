"""The ROC surface of any number of classes, and the volume under it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from isoroc._counts import Counts
from isoroc._input import Sample
from isoroc._simplex import Floats
from isoroc.metrics._inputs import check_outcomes
from isoroc.metrics._roc import roc_convex_hull, symmetric_roc_curve
from isoroc.metrics._surface.ascents import corners_around, support
from isoroc.metrics._surface.bodies import Body, Boxes, Hull
from isoroc.metrics._surface.corners import all_lines, scan
from isoroc.metrics._surface.points import Cases, pair_curves

#: Three classes: steps of work up to which all lines of thresholds are scanned,
EXACT_WORK = {"hull": 2 * 10**8, "boxes": 3 * 10**7}
#: and how many lines, in each of two directions, are scanned beyond that: at least and at most,
N_LINES = (50, 200)
#: between them as many as make this when multiplied by the number of rows.
LINE_WORK = 2 * 10**7
#: More classes: ascents for the hull, by number of classes,
N_ASCENTS = {4: 1000, 5: 1000, 6: 500, 7: 300}
#: for each of them so many boxes at most whose union is measured,
N_BOXES = {4: 20, 5: 8, 6: 2, 7: 1}
#: the distance of corners on a line, and the cells that ascents work on where rows are many.
BOX_STEP = 0.1
MAX_CELLS = 4096


@dataclass(frozen=True, eq=False, repr=False)
class RocSurface:
    """Points of a ROC surface, and thresholds that reach them.

    Attributes
    ----------
    points : ndarray of shape (m, K)
        Entry [q, k]: the share of class k that is in region k under threshold q.
    thresholds : ndarray of shape (m, K)
        Thresholds gamma, their coordinates sum to 1: with ``isoroc._simplex.regions(P, gamma)`` the
        forecasts fall into those regions.
    exact : bool
        Whether no undominated point is missing.
    resolution : int or None
        What was searched where it is not exact, see `roc_surface`.
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
    """A volume under a ROC surface, and how it was computed. ``float(volume)`` is its value.

    Attributes
    ----------
    value : float
    volume : "hull" or "boxes"
    exact : bool
        Whether all thresholds were accounted for; otherwise the value is a lower bound.
    resolution : int or None
        What was searched where it is not exact, see `volume_under_surface`.
    n_points : int
        ROC points that span the volume.
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
    return "exact" if exact else f"resolution {resolution}"


def roc_surface(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    resolution: int | None = None,
) -> RocSurface:
    """The ROC surface: how much of each class a threshold can get right at the same time.

    A threshold gamma puts a forecast p into region k where ``p_k - gamma_k`` is largest; its ROC
    point is the share of each class that falls into the region of its own. Of all those points,
    many millions, these are returned: for two classes the symmetric ROC curve; for three all that
    no other dominates, and the undominated ones of two classes while the third is out of reach;
    for more classes points that span the hull, as far as they were found.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or real scores that increase with the probability of the second of two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.
    resolution : int, default=None
        For three classes, how many lines of thresholds to scan in each of two directions; by
        default all of them up to some thousand rows, and 50 to 200 beyond. For more classes, in
        how many directions to look for the hull. Two classes need none.

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
    sample = _check(y_true, y_prob, sample_weight, labels, resolution)
    K = sample.n_classes
    if K == 2:
        curve = symmetric_roc_curve(y_true, y_prob, sample_weight=sample_weight, labels=labels)
        scores = curve.thresholds
        scores[0] = np.nextafter(scores[1], -np.inf)
        points = np.column_stack([curve.p0, curve.p1])
        return RocSurface(points, np.column_stack([1 - scores, scores]), exact=True)
    counts = Counts.from_arrays(sample.forecasts, sample.codes, sample.weights)
    if K == 3:
        rows, _, searched = _scan(counts, "boxes", resolution)
        rows = np.vstack([rows, pair_curves(counts, hull=False)])
    else:
        searched = resolution or N_ASCENTS[K]
        rows = _support(sample, counts, searched)
    thresholds = np.ascontiguousarray(rows[:, K:])
    points, first = np.unique(Cases.of(counts).reach(thresholds), axis=0, return_index=True)
    return RocSurface(points, thresholds[first], exact=searched is None, resolution=searched)


def volume_under_surface(
    y_true: Any,
    y_prob: Any,
    *,
    volume: Literal["hull", "boxes"] = "hull",
    resolution: int | None = None,
    sample_weight: Any = None,
    labels: Any = None,
) -> Volume:
    """Volume under the ROC surface: how well forecasts separate the classes, between 0 and 1.

    Two volumes go by this name. The *hull* is the convex hull of the ROC points, the origin and
    the unit vectors: what mixtures of thresholds reach. Perfect forecasts have volume 1, constant
    ones 1 / K!. The *boxes* are all that ROC points dominate, what thresholds reach without
    mixing; constant forecasts have volume 0. For two classes these are the area under the convex
    hull of the ROC curve, and the area under its steps, where ties count nothing.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or real scores that increase with the probability of the second of two classes.
    volume : {"hull", "boxes"}
        Which volume is meant.
    resolution : int, default=None
        For three classes, how many lines of thresholds to scan in each of two directions; by
        default all of them up to some thousand rows, and 50 to 200 beyond. For more classes, in
        how many directions to look for the hull. Volumes that are not exact are lower bounds, the
        closer the higher the resolution. Two classes need none.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

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
    if volume not in EXACT_WORK:
        raise ValueError(f"volume: expected 'hull' or 'boxes', got {volume!r}.")
    sample = _check(y_true, y_prob, sample_weight, labels, resolution)
    K = sample.n_classes
    if K == 2:
        curve = (roc_convex_hull if volume == "hull" else symmetric_roc_curve)(
            y_true, y_prob, sample_weight=sample_weight, labels=labels
        )
        value = curve.area() if volume == "hull" else float(np.diff(curve.p0) @ curve.p1[1:])
        return Volume(value, volume, exact=True, n_points=len(curve.p0))
    counts = Counts.from_arrays(sample.forecasts, sample.codes, sample.weights)
    if K == 3:
        rows, body, searched = _scan(counts, volume, resolution)
        return Volume(body.volume, volume, searched is None, searched, len(rows))
    searched = resolution or N_ASCENTS[K]
    rows = _support(sample, counts, searched)
    if volume == "hull":
        body = Hull(rows[:, :K])
    else:
        corners = corners_around(Cases.of(counts), rows, BOX_STEP)
        body = Boxes(corners, most=N_BOXES[K] * searched)
    return Volume(body.volume, volume, exact=False, resolution=searched, n_points=len(body.kept))


def _check(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Any, resolution: int | None
) -> Sample:
    """Rows that weigh something, of all classes, and no more classes than can be computed."""
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    if resolution is not None and (resolution < 1 or resolution % 1):
        raise ValueError(f"resolution: expected a positive integer or None, got {resolution!r}.")
    K = sample.n_classes
    if max(N_ASCENTS) < K:
        raise ValueError(
            f"y_prob: {K} classes; the faces of a ROC surface grow beyond count after "
            f"{max(N_ASCENTS)}. pairwise_separability takes any number."
        )
    sample = sample.positive()
    missing = np.bincount(sample.codes, minlength=K) == 0
    if missing.any():
        name = sample.classes[missing.argmax()]
        raise ValueError(f"y_true: no row of class {name!r}; a ROC surface needs all classes.")
    return sample


def _scan(
    counts: Counts, volume: Literal["hull", "boxes"], resolution: int | None
) -> tuple[Floats, Body, int | None]:
    """Rows that span a volume of three classes, the body, and the lines scanned if not all."""
    families = all_lines(counts)
    if resolution is None and sum(lines.work for lines in families) > EXACT_WORK[volume]:
        resolution = int(np.clip(LINE_WORK // len(counts.forecasts), *N_LINES))
    searched = None
    if resolution is not None and any(len(lines.values) > resolution for lines in families):
        searched = resolution
        families = [lines.thin(resolution) for lines in families]
    bodies: dict[str, type[Body]] = {"hull": Hull, "boxes": Boxes}
    # Where lines are some way apart, corners on a line need not be much closer.
    step = 0.0 if searched is None or volume == "hull" else 0.25 / searched
    rows, body = scan(families, bodies[volume], pair_curves(counts, hull=True), step=step)
    return rows, body, searched


def _support(sample: Sample, counts: Counts, n_ascents: int) -> Floats:
    """Rows that span the hull of more classes."""
    if len(counts.forecasts) <= MAX_CELLS:
        return support(Cases.of(counts), n_ascents)
    cells = Counts.from_arrays(sample.forecasts, sample.codes, sample.weights, MAX_CELLS)
    rows = support(Cases.of(cells), n_ascents)
    K = sample.n_classes
    return np.hstack([Cases.of(counts).reach(rows[:, K:]), rows[:, K:]])
