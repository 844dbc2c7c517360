"""The ROC surface as users ask for it: its points, and the volume under it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from isoroc._support.progress import progress
from isoroc._support.seeds import check_random_state
from isoroc._support.table import Table
from isoroc.metrics._roc import roc_convex_hull, symmetric_roc_curve
from isoroc.metrics._surface.bodies import Cases, Hull, pair_curves
from isoroc.metrics._surface.few_rows import all_points, are_few
from isoroc.metrics._surface.many_classes import FoundHull, default_directions, search_hull
from isoroc.metrics._surface.three_classes import scan_all

#: With more classes, a bound would take minutes and say little.
MOST_CLASSES = 12


@dataclass(frozen=True, repr=False)
class Volume:
    """Volume under a ROC surface, and how it was computed. ``float(volume)`` is its value."""

    value: float
    volume: Literal["hull", "boxes"]
    exact: bool
    """Whether all thresholds were taken into account. Otherwise the value is a lower bound."""
    resolution: int | None = None
    """If not exact, the `resolution` that was used."""
    n_points: int = field(default=0, compare=False)
    """Number of ROC points that span the volume."""
    n_directions: int = field(default=0, compare=False)
    """For four classes or more, in how many directions the hull was searched."""
    n_ascents: int = field(default=0, compare=False)
    """Number of ascents in these directions, from several starts each."""

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        how = _how(self.exact, self.resolution, self.n_directions, self.n_ascents)
        return f"Volume({self.value:.6g}, {self.volume}, {how}, {self.n_points} points)"


def _how(exact: bool, resolution: int | None, n_directions: int, n_ascents: int) -> str:  # noqa: FBT001
    if exact:
        return "exact"
    if n_directions:
        return f"lower bound, {n_directions:,} directions, {n_ascents:,} ascents"
    return f"lower bound, resolution {resolution}"


@dataclass(frozen=True, eq=False, repr=False)
class RocSurface:
    """Points of a ROC surface, and thresholds that reach them."""

    thresholds: Floats
    """Thresholds gamma, shape (m, K). Their coordinates sum to 1."""
    shares: Floats
    """Entry [q, k]: the share of class k that is in its own region under threshold q."""
    spans: NDArray[np.bool_]
    """Which points are corners of the convex hull, shape (m,). Beyond six classes all points are
    marked: the corners of the pyramids that were found, a few of which lie inside the hull."""
    classes: NDArray[Any]
    """The class of each column."""
    hull: Volume
    """What `volume` returns."""

    def volume(self) -> Volume:
        """Volume of the convex hull of the points, the origin and the unit vectors.

        Beyond six classes it is the volume of the pyramids in this hull, which is smaller.
        """
        return self.hull

    @property
    def table(self) -> Table:
        """One row per point: columns ``gamma_...`` and ``share_...`` per class, and ``spans``."""
        columns: dict[str, Any] = {}
        for name, values in (("gamma", self.thresholds), ("share", self.shares)):
            columns |= {f"{name}_{c}": values[:, k] for k, c in enumerate(self.classes.tolist())}
        return Table(columns, spans=self.spans)

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`table` as a dataframe of the named library."""
        return self.table.frame(backend)

    def __repr__(self) -> str:
        m, K = self.shares.shape
        hull = self.hull
        how = _how(hull.exact, hull.resolution, hull.n_directions, hull.n_ascents)
        return f"RocSurface({m} points, {self.spans.sum()} of the hull, {K} classes, {how})"


def roc_surface(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    resolution: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> RocSurface:
    """The ROC surface: the shares of each class that one threshold can classify correctly.

    A threshold gamma puts a forecast p into the region k with the largest ``p_k - gamma_k``. Its
    ROC point holds, for each class, the share of rows that fall into their own region. For two
    classes the returned points are the symmetric ROC curve. For three classes they are all
    undominated points, also of each pair of classes while the third is out of reach. For more
    classes they are the corners that ascents found, of the hull or, beyond six classes, of pyramids
    in it.

    Parameters
    ----------
    y_true, y_prob, resolution, random_state, verbose, sample_weight, labels
        As in `volume_under_surface`.

    Returns
    -------
    RocSurface

    Examples
    --------
    >>> from isoroc.metrics import roc_surface
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.1, 0.1, 0.8]]
    >>> surface = roc_surface([0, 1, 2, 0, 2], P)
    >>> surface
    RocSurface(6 points, 6 of the hull, 3 classes, exact)
    >>> surface.shares[-2:]
    array([[1. , 1. , 0. ],
           [1. , 1. , 0.5]])
    >>> surface.volume()
    Volume(0.875, hull, exact, 6 points)
    """
    sample = _check(y_true, y_prob, sample_weight, labels, resolution)
    K = sample.n_classes
    if K == 2:
        return _curve(sample)
    if K > 3:
        found = _search(sample, resolution, random_state, verbose)
        spans = np.ones(len(found.points), dtype=np.bool_)
        hull = _volume_of(found, resolution)
        return RocSurface(found.thresholds, found.points, spans, sample.classes, hull)
    counts = Points.from_arrays(*sample.arrays)
    rows, _, used = scan_all(counts, "boxes", resolution)
    thresholds = np.vstack([rows, pair_curves(counts, hull=False)])[:, K:]
    points, first = np.unique(Cases.of(counts).reach(thresholds), axis=0, return_index=True)
    body = Hull(points)
    spans = np.zeros(len(points), dtype=np.bool_)
    spans[body.kept] = True
    hull = Volume(body.volume, "hull", used is None, used, len(body.kept))
    return RocSurface(thresholds[first], points, spans, sample.classes, hull)


def hull_points(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> Floats:
    """ROC points of three classes that span the hull of their surface.

    They are points of `roc_surface` too, whose other points take most of its time.
    """
    sample = _check(y_true, y_prob, sample_weight, labels, None)
    counts = Points.from_arrays(*sample.arrays)
    rows, _, _ = scan_all(counts, "hull", None)
    return np.unique(Cases.of(counts).reach(rows[:, 3:]), axis=0)


def volume_under_surface(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    volume: Literal["hull", "boxes"] = "hull",
    resolution: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
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

    Two and three classes are exact, and so are four and five with few distinct forecasts. Otherwise
    the hull is a lower bound, which becomes looser with the number of classes.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts of at most twelve classes, or scores that increase with the probability of the
        second of two classes.
    volume : {"hull", "boxes"}, default="hull"
        Which of the two volumes. Boxes are computed for two and three classes.
    resolution : int, default=None
        For three classes, how many lines of thresholds to scan in each of two directions: by
        default all up to some thousand rows, and 50 to 200 beyond, for a lower bound. For more
        classes, in how many directions to search the hull, by default 1,500, 1,000 and 500 for
        four, five and six classes, and 10,000 for more, which are shared by many small hulls.
    random_state : int, RandomState or None, default=0
        Seed of the starts of ascents, for four classes or more.
    verbose : int, default=0
        Whether to show progress on standard error, for four classes or more.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.

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

    Four classes, a lower bound:

    >>> import numpy as np
    >>> P = np.random.default_rng(0).dirichlet(np.full(4, 0.3), size=200)
    >>> bound = volume_under_surface(P.argmax(axis=1), P)
    >>> round(float(bound), 6), bound.exact
    (1.0, False)
    """
    check_option("volume", volume, ("hull", "boxes"))
    sample = _check(y_true, y_prob, sample_weight, labels, resolution)
    if sample.n_classes == 2:
        curve = sample.measure(roc_convex_hull if volume == "hull" else symmetric_roc_curve)
        value = curve.area() if volume == "hull" else float(np.diff(curve.p0) @ curve.p1[1:])
        return Volume(value, volume, exact=True, n_points=len(curve.p0))
    if sample.n_classes == 3:
        rows, body, used = scan_all(Points.from_arrays(*sample.arrays), volume, resolution)
        return Volume(body.volume, volume, used is None, used, len(rows))
    if volume == "boxes":
        problem = (
            '"boxes" needs all undominated thresholds, which are found for two and three classes'
        )
        raise InputError("volume", None, problem, 'use volume="hull", whose corners ascents find')
    return _volume_of(_search(sample, resolution, random_state, verbose), resolution)


def _check(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Any, resolution: int | None
) -> Sample:
    """Rows with positive weight. All classes must be among them."""
    check_number("resolution", resolution, int, minimum=1, others=(None,))
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    if (K := sample.n_classes) > MOST_CLASSES:
        cost = f"{2**K:,} subsets of classes and {comb(K, 4):,} hulls to search"
        problem = f"{K} classes: even a loose bound would have {cost}"
        fix = (
            f"merge classes to at most {MOST_CLASSES}, or compare the AUC of each against the rest"
        )
        raise InputError("y_prob", None, problem, fix)
    sample = sample.positive()
    check_every_class(sample, "a ROC surface needs all classes")
    return sample


def _search(
    sample: Sample, resolution: int | None, random_state: Any, verbose: int, max_cells: int = 4096
) -> FoundHull:
    """The hull of four classes or more. With many rows, ascents are made on cells of forecasts."""
    cases = Cases.of(Points.from_arrays(*sample.arrays))
    if resolution is None and are_few(cases):
        thresholds, points = all_points(cases)
        body = Hull(points)
        return FoundHull(thresholds[body.kept], points[body.kept], body.volume)
    few = cases
    if len(sample) > max_cells:
        few = Cases.of(Points.from_arrays(*sample.arrays, max_cells))
    n_directions = resolution or default_directions(sample.n_classes)
    with progress("ROC surface", shown=verbose > 0) as report:
        return search_hull(cases, few, n_directions, check_random_state(random_state), report)


def _volume_of(found: FoundHull, resolution: int | None) -> Volume:
    searched = found.n_directions, found.n_ascents
    exact = not found.n_ascents
    used = None if exact else resolution or default_directions(found.points.shape[1])
    return Volume(found.volume, "hull", exact, used, len(found.points), *searched)


def _curve(sample: Sample) -> RocSurface:
    """The symmetric ROC curve of two classes."""
    curve = sample.measure(symmetric_roc_curve)
    scores = curve.thresholds
    scores[0] = np.nextafter(scores[1], -np.inf)
    points = np.column_stack([curve.p0, curve.p1])
    corners = sample.measure(roc_convex_hull)
    spans = np.isin(scores, corners.thresholds[1:])
    spans[0] = True
    hull = Volume(corners.area(), "hull", exact=True, n_points=len(corners.p0))
    thresholds = np.column_stack([1 - scores, scores])
    return RocSurface(thresholds, points, spans, sample.classes, hull)
