"""The ROC surface of three classes: all corners are found by scanning lines of thresholds.

Write a = gamma_0 - gamma_1 and b = gamma_0 - gamma_2. A forecast is in its own region when the
threshold (a, b) lies in a cone with its tip at the forecast. The class decides which of three
cones. An undominated threshold lies in a cell of the plane that is on the inner side of every
border around it. Move a and b up from there by the same amount: only borders of forecasts of
class 0 are in the way, vertical and horizontal ones. So each such cell touches a vertical line
a = p_0 - p_1 or a horizontal line b = p_0 - p_2 through a forecast p of class 0. Along a line one
sort counts everything, and a corner is where a gain is followed by a loss. Any class can take the
role of class 0. The one with the fewest forecasts does.
"""

from typing import NamedTuple, Self

import numpy as np

from isoroc._core import surface as kernels
from isoroc._core.simplex import sum_to_one
from isoroc._core.types import Floats, Ints
from isoroc._counts import Points
from isoroc._growth import MIN_GAP
from isoroc.metrics._surface.bodies import Body, Boxes, Hull, merge_ties, pair_curves


class Lines(NamedTuple):
    """Parallel lines of thresholds, and the forecasts on both sides."""

    order: Ints  # the classes in the roles 0, 1 and 2. Lines go through forecasts of the first
    right: Floats  # argument of `kernels.scan_lines`
    left: Floats  # argument of `kernels.scan_lines`
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
    """Rows of the corners on some lines, at least `step` apart, that span a body, and the body.

    `start` has rows known already. For a hull they must include the hulls of all pairs of
    classes. Then the hull contains the projection of any corner to a face of the cube, because with
    one class out of reach the others can only gain, and so everything that a corner dominates. The
    table of heights relies on that.
    """
    # A finer table costs more and skips more corners.
    cells = int(np.clip(sum(family.work for family in families) ** 0.5 / 16, 64, 512))
    spanned = body(start[:, :3])
    rows = start[spanned.kept]
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
            gammas = np.column_stack([np.zeros(len(corners)), -corners[:, 3:]])
            found = np.hstack([corners[:, classes], sum_to_one(gammas)[:, classes]])
            rows = np.vstack([rows, found])
            spanned = body(rows[:, :3])
            rows = rows[spanned.kept]
            batch *= 2
    return rows, spanned


def scan_all(
    counts: Points, volume: str, resolution: int | None, most_steps: int = 2 * 10**8
) -> tuple[Floats, Body, int | None]:
    """Rows that span a volume of three classes, the body, and the resolution if not exact."""
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
