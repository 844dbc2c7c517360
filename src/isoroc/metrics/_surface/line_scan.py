"""The ROC surface of three classes, exactly: all its corners, found by scanning lines.

Write a = gamma_0 - gamma_1 and b = gamma_0 - gamma_2. A forecast is in its own region when the
threshold (a, b) lies in a cone with its tip at the forecast; the class decides which of three
cones. An undominated threshold lies in a cell of the plane that is on the inner side of every
border around it. Move a and b up from there by the same amount: only borders of forecasts of
class 0 are in the way, vertical and horizontal ones. So each such cell touches a vertical line
a = p_0 - p_1 or a horizontal line b = p_0 - p_2 through a forecast p of class 0. Along a line one
sort counts everything, and a corner is where a gain is followed by a loss. Any class can take the
role of class 0; the one with the fewest forecasts does.
"""

from typing import NamedTuple, Self

import numpy as np

from isoroc._core import surface as kernels
from isoroc._core.types import Floats, Ints
from isoroc._counts import Points
from isoroc._growth import MIN_GAP
from isoroc.metrics._surface.roc_points import Body, merge_ties


class Lines(NamedTuple):
    """Parallel lines of thresholds, and the forecasts on both sides."""

    order: Ints  # the classes in the roles 0, 1 and 2; lines go through forecasts of the first
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
    i, j = (fewest + 1) % 3, (fewest + 2) % 3
    return [_lines(counts, np.array([fewest, i, j])), _lines(counts, np.array([fewest, j, i]))]


def _lines(counts: Points, order: Ints) -> Lines:
    P, weights = counts.forecasts[:, order], counts.class_weights[:, order]
    x, z, w = (merge_ties(P[:, i] - P[:, j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    # The last line lies beyond all forecasts and puts the first class out of reach.
    values = np.unique(x)
    through = np.isin(values, x[weights[:, 0] > 0])
    below = np.append(values[0] - 1, values[:-1])
    lines = np.column_stack([values, below])[through]
    return Lines(
        order,
        _events(x, z, weights[:, [0, 2]]),
        _events(x, w, weights[:, [1, 2]]),
        np.vstack([lines, [values[-1] + 1, values[-1]]]),
        weights.sum(axis=0),
    )


def _events(x: Floats, position: Floats, weights: Floats) -> Floats:
    """Rows (x, position, weight), sorted by position; losses have negative weight and go first."""
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
    batch = 8192  # corners to find before the body is computed again; then twice as many
    for lines in families:
        # An order of the lines that covers the plane early, so that the table is good early.
        values = lines.values[np.argsort(np.arange(len(lines.values)) * 0.618034 % 1)]
        line, classes = 0, np.argsort(lines.order)
        while line < len(values):
            table = spanned.heights(cells, lines.order)
            fixed = lines.totals, table, body.concave, step, MIN_GAP
            corners, line = kernels.scan_lines(lines.right, lines.left, values, line, batch, *fixed)
            points = np.vstack([points, corners[:, classes]])
            spanned = body(points)
            points = points[spanned.kept]
            batch *= 2
    return points, spanned
