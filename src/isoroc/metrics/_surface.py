"""The volume under the ROC surface. For three classes all corners are found by scanning lines.

Write a = gamma_0 - gamma_1 and b = gamma_0 - gamma_2. A forecast is in its own region when the
threshold (a, b) lies in a cone with its tip at the forecast. The class decides which of three
cones. An undominated threshold lies in a cell of the plane that is on the inner side of every
border around it. Move a and b up from there by the same amount: only borders of forecasts of
class 0 are in the way, vertical and horizontal ones. So each such cell touches a vertical line
a = p_0 - p_1 or a horizontal line b = p_0 - p_2 through a forecast p of class 0. Along a line one
sort counts everything, and a corner is where a gain is followed by a loss. Any class can take the
role of class 0. The one with the fewest forecasts does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core import surface as kernels
from isoroc._core.special import convex_hull
from isoroc._core.types import Floats, Ints
from isoroc._counts import BinaryCounts, Points
from isoroc._growth import MIN_GAP
from isoroc._input import InputError, check_every_class, check_number, check_option, check_outcomes
from isoroc.metrics._roc import roc_convex_hull, symmetric_roc_curve


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


class Boxes:
    """Union of the boxes between the origin and points. `kept` are those that span it."""

    concave = False  # the border on the last axis, as a function of the other axes

    def __init__(self, points: Floats) -> None:
        order = np.lexsort(-points.T[::-1])
        points = np.ascontiguousarray(points[order])
        undominated, self.volume = kernels.undominated(points)
        kept = np.flatnonzero(undominated)
        self.kept = order[kept]
        self._points = points[kept]

    def heights(self, cells: int, order: Ints) -> Floats:
        """How far the body of three classes reaches on the last axis, shape (cells + 2,) * 2.

        Entry [i, j] is for the line over (i / cells, j / cells) on the other two axes, negative
        where the line misses the body. `order` is the order of the axes.
        """
        table = np.full((cells + 2, cells + 2), -1.0)
        i, j = (cells * self._points[:, order[:2]].T).astype(np.intp)
        np.maximum.at(table, (i, j), self._points[:, order[2]])
        for axis in (0, 1):
            table = np.flip(np.maximum.accumulate(np.flip(table, axis), axis=axis), axis)
        return np.ascontiguousarray(table)


class Hull:
    """Convex hull of the points, the origin and the unit vectors."""

    concave = True

    def __init__(self, points: Floats) -> None:
        K = points.shape[1]
        hull = convex_hull(np.vstack([points, np.zeros(K), np.eye(K)]))
        self.kept = np.sort(hull.vertices[hull.vertices < len(points)]).astype(np.intp)
        self.volume = float(hull.volume)
        self._faces = np.unique(hull.equations, axis=0)

    def heights(self, cells: int, order: Ints) -> Floats:
        """How far the hull reaches on the last axis, see `Boxes`."""
        # A face is normal @ point + offset = 0, the hull on the side where that is negative.
        faces = self._faces[:, [*order, 3]]
        above = faces[:, 2] > 1e-9
        planes = faces[above][:, [0, 1, 3]] / -faces[above][:, 2:3]
        sort = np.argsort(-planes[:, 1])
        table = kernels.lower_envelope(np.ascontiguousarray(planes[sort]), cells)
        axis = np.arange(cells + 2) / cells
        for u, v, _, offset in faces[~above]:
            table[u * axis[:, None] + v * axis + offset > 1e-12] = -1e9
        return table


#: What ROC points span, a set in the unit cube.
Body = Boxes | Hull


def merge_ties(values: Floats) -> Floats:
    """Values in which ties are replaced by the lowest value of the tie."""
    order = np.argsort(values)
    ascending = values[order]
    first = np.append(True, np.diff(ascending) > MIN_GAP)
    merged = np.empty_like(values)
    merged[order] = ascending[first][np.cumsum(first) - 1]
    return merged


def pair_curves(counts: Points) -> Floats:
    """Undominated points of the hulls of the ROC curves of all pairs of classes, shape (m, K)."""
    (n, K) = counts.forecasts.shape
    curves = []
    codes = np.repeat(np.array([0, 1], dtype=np.uint8), n)
    for i, j in combinations(range(K), 2):
        scores = np.tile(merge_ties(counts.forecasts[:, j] - counts.forecasts[:, i]), 2)
        binary = BinaryCounts.from_arrays(scores, codes, counts.class_weights[:, [i, j]].T.ravel())
        _, _, weights = binary.isotonic_blocks()
        lost = np.vstack([np.zeros(2), np.cumsum(weights, axis=0)]) / weights.sum(axis=0)
        points = np.zeros((len(lost), K))
        p = lost[:, 0]
        q = 1 - lost[:, 1]
        points[:, i] = p
        points[:, j] = q
        undominated = np.append(True, np.diff(p) > 0) & np.append(np.diff(q) < 0, True)
        curves.append(points[undominated])
    return np.vstack(curves)


class Lines(NamedTuple):
    """Parallel lines of thresholds, and the forecasts on both sides."""

    order: Ints  # the classes in the roles 0, 1 and 2. Lines go through forecasts of the first
    right: Floats  # like `left`, an argument of `kernels.scan_lines`
    left: Floats
    values: Floats  # shape (L, 2): a, and the largest difference below it
    totals: Floats  # weight of each class, in that order

    @property
    def work(self) -> int:
        """Number of steps of a scan."""
        return len(self.values) * (len(self.right) + len(self.left))

    def thin(self, most: int) -> Self:
        """At most `most` of the lines, evenly spaced."""
        chosen = np.linspace(0, len(self.values) - 1, min(most, len(self.values)))
        return self._replace(values=self.values[np.unique(chosen.round().astype(np.intp))])


def all_lines(counts: Points) -> list[Lines]:
    """Vertical and horizontal lines that meet the cell of every undominated threshold."""
    fewest = int(np.count_nonzero(counts.class_weights, axis=0).argmin())
    families = []
    for steps in ([0, 1, 2], [0, 2, 1]):
        order = np.add(fewest, steps) % 3
        P = counts.forecasts[:, order]
        weights = counts.class_weights[:, order]
        x, z, w = (merge_ties(P[:, i] - P[:, j]) for i, j in ((0, 1), (0, 2), (1, 2)))
        values = np.unique(x)
        through = np.isin(values, x[weights[:, 0] > 0])
        lines = np.column_stack([values, np.append(values[0] - 1, values[:-1])])[through]
        # The last line lies beyond all forecasts and puts the first class out of reach.
        lines = np.vstack([lines, [values[-1] + 1, values[-1]]])
        right = _events(x, z, weights[:, [0, 2]])
        left = _events(x, w, weights[:, [1, 2]])
        families.append(Lines(order, right, left, lines, weights.sum(axis=0)))
    return families


def _events(x: Floats, position: Floats, weights: Floats) -> Floats:
    """Rows (x, position, weight), sorted by position. Losses have negative weight and go first."""
    losers, gainers = (np.flatnonzero(column > 0) for column in weights.T)
    rows = np.append(losers, gainers)
    change = np.append(-weights[losers, 0], weights[gainers, 1])
    sort = np.lexsort((change > 0, position[rows]))
    return np.column_stack([x[rows], position[rows], change])[sort]


def scan(
    families: list[Lines], body: type[Body], start: Floats, *, step: float = 0.0
) -> tuple[Floats, Body]:
    """The corners on some lines, at least `step` apart, that span a body, and the body.

    `start` has points known already. For a hull they must include the hulls of all pairs of
    classes. Then the hull contains the projection of any corner to a face of the cube, because with
    one class out of reach the others can only gain, and so everything that a corner dominates. The
    table of heights relies on that.
    """
    # A finer table costs more and skips more corners.
    cells = int(np.clip(sum(family.work for family in families) ** 0.5 / 16, 64, 512))
    spanned = body(start)
    points = start[spanned.kept]
    batch = 8192  # corners to find before the body is computed again, then twice as many
    for lines in families:
        # An order of the lines that covers the plane early, so that the table is good early.
        values = lines.values[np.argsort(np.arange(len(lines.values)) * 0.618034 % 1)]
        line = 0
        classes = np.argsort(lines.order)
        while line < len(values):
            table = spanned.heights(cells, lines.order)
            fixed = lines.totals, table, body.concave, step, MIN_GAP
            corners, line = kernels.scan_lines(lines.right, lines.left, values, line, batch, *fixed)
            points = np.vstack([points, corners[:, classes]])
            spanned = body(points)
            points = points[spanned.kept]
            batch *= 2
    return points, spanned


def _scan_lines(
    counts: Points, volume: str, resolution: int | None, most_steps: int = 2 * 10**8
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
