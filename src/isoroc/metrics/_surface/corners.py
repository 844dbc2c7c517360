"""The ROC surface of three classes, exactly: all its corners, on lines of thresholds.

Write a = gamma_0 - gamma_1 and b = gamma_0 - gamma_2. As the threshold (a, b) moves, a forecast is
in its own region on a cone with its tip at the forecast: one of three cones, by its class. A
threshold that no other dominates lies in a cell of the plane that is on the inner side of every
border around it. From there move a and b up by the same amount: the only borders in the way are
those of forecasts of class 0, vertical and horizontal ones. So each such cell touches a vertical
line a = p_0 - p_1 or a horizontal line b = p_0 - p_2 through a forecast p of class 0. Along a line
one sort counts everything, and a corner is where a gain is followed by a loss. Any class can play
the part of class 0; the one with the fewest forecasts does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isoroc._core import surface as kernels
from isoroc._counts import Counts
from isoroc._growth.sweep import MIN_GAP
from isoroc._simplex import Floats, Ints
from isoroc.metrics._surface.bodies import Body
from isoroc.metrics._surface.points import merge_ties, sum_to_one

#: Corners are reduced to those of use once this many wait; later, once twice as many do.
BATCH = 8192


class Lines(NamedTuple):
    """Parallel lines of thresholds, and the forecasts that they meet."""

    order: Ints
    """The classes in their parts; the lines are through forecasts of the first."""
    right: Floats
    left: Floats
    """What `kernels.corners` takes."""
    values: Floats
    """Shape (L, 2): a, and the largest difference below it."""
    totals: Floats
    """Weight of each class, in that order."""

    @property
    def work(self) -> int:
        """Steps that scanning takes."""
        return len(self.values) * (len(self.right) + len(self.left))

    def thin(self, most: int) -> Lines:
        """At most so many of the lines, evenly spaced."""
        chosen = np.linspace(0, len(self.values) - 1, min(most, len(self.values)))
        return self._replace(values=self.values[np.unique(chosen.round().astype(np.intp))])


def all_lines(counts: Counts) -> list[Lines]:
    """The lines that meet every undominated threshold, vertical and horizontal ones."""
    fewest = int(np.count_nonzero(counts.class_weights, axis=0).argmin())
    i, j = (fewest + 1) % 3, (fewest + 2) % 3
    return [_lines(counts, np.array([fewest, i, j])), _lines(counts, np.array([fewest, j, i]))]


def _lines(counts: Counts, order: Ints) -> Lines:
    P, weights = counts.forecasts[:, order], counts.class_weights[:, order]
    x, z, w = (merge_ties(P[:, i] - P[:, j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    # One line beyond all forecasts puts the first class out of reach.
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


def _events(x: Floats, place: Floats, weights: Floats) -> Floats:
    """Rows (x, place, weight), ascending in place; a loss has negative weight and comes first."""
    losers, gainers = (np.flatnonzero(column > 0) for column in weights.T)
    rows = np.append(losers, gainers)
    change = np.append(-weights[losers, 0], weights[gainers, 1])
    sort = np.lexsort((change > 0, place[rows]))
    return np.column_stack([x[rows], place[rows], change])[sort]


def scan(
    families: list[Lines], body: type[Body], start: Floats, *, step: float = 0.0
) -> tuple[Floats, Body]:
    """The corners on some lines that span a body, as rows, and the body.

    Parameters
    ----------
    families : list of Lines
    body : Hull or Boxes
    start : ndarray of shape (m, 6)
        Rows known already. For a hull they must hold the hulls of all pairs of classes. Then any
        corner's projection to a face of the cube is in the hull, for with one class out of reach
        the others can only gain, and so is all that a corner dominates: what the table of heights
        takes for granted.
    step : float
        Corners of one line closer than this are thinned.
    """
    # Finer tables cost more and spare more.
    cells = int(np.clip(sum(family.work for family in families) ** 0.5 / 16, 64, 512))
    spanned = body(start[:, :3])
    rows = start[spanned.kept]
    batch = BATCH
    for lines in families:
        # Lines in an order that soon covers the plane, so that the table is good early.
        values = lines.values[np.argsort(np.arange(len(lines.values)) * 0.618034 % 1)]
        line = 0
        while line < len(values):
            found, line = kernels.corners(
                lines.right,
                lines.left,
                values,
                line,
                batch,
                lines.totals,
                spanned.heights(cells, lines.order),
                body.concave,
                step,
                MIN_GAP,
            )
            rows = np.vstack([rows, _rows(found, lines.order)])
            spanned = body(rows[:, :3])
            rows = rows[spanned.kept]
            batch *= 2
    return rows, spanned


def _rows(found: Floats, order: Ints) -> Floats:
    """Corners (p, a, b) as rows, their columns in the order of the classes."""
    thresholds = np.zeros((len(found), 3))
    thresholds[:, order[1:]] = -found[:, 3:]
    points = found[:, np.argsort(order)]
    return np.hstack([points, sum_to_one(thresholds)])
