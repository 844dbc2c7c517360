"""Two classes: isotonic regression, as a tree in the order of the IRP path and as step functions.

A step function has ascending cuts and one more value than cuts. ``values[i]`` applies above i of
the cuts.
"""

from typing import Literal, NamedTuple, Self

import numpy as np

from isoroc._core.pav import irp_path, with_one_more
from isoroc._core.simplex import as_matrix, midpoint
from isoroc._core.tree import BinTree, bin_values
from isoroc._core.types import Floats
from isoroc._counts import BinaryCounts
from isoroc._growth.best_first import GrowthOptions


class Blocks(NamedTuple):
    """Neighbouring blocks of scores, ascending."""

    low: Floats  # (m,) lowest score of each block
    high: Floats  # (m,) highest score of each block
    weights: Floats  # (m, 2) class weights
    forecasts: Floats  # (m,) weighted sum of the second probabilities, 0 if not needed

    @classmethod
    def of(
        cls, counts: BinaryCounts, scores: Literal["probability", "logit"] | None = None
    ) -> Self:
        """Blocks of the isotonic regression, with sums of forecasts if `scores` is given."""
        low, high, weights = counts.isotonic_blocks()
        sums = np.zeros(len(low)) if scores is None else counts.forecasts_in(low, high, scores)
        return cls(low, high, weights, sums)

    def sums(self) -> Floats:
        """Class weights and sums of forecasts, shape (m, 3)."""
        return np.column_stack([self.weights, self.forecasts])

    def means(self) -> Floats:
        """Mean forecast of each block, shape (m, 2)."""
        return as_matrix(self.forecasts / self.weights.sum(axis=1))

    def values(self, pseudocounts: Floats, forecast_pseudocount: float = 0.0) -> Floats:
        """Value of each block, the probability of the second class, shape (m,)."""
        if forecast_pseudocount:
            pseudocounts = pseudocounts + forecast_pseudocount * self.means()
        return np.asarray(bin_values(self.weights, pseudocounts)[:, 1])

    def pool(self, pseudocounts: Floats, forecast_pseudocount: float = 0.0) -> Self:
        """Pool runs of blocks that are out of order until values increase strictly."""
        blocks = self
        while True:
            value = blocks.values(pseudocounts, forecast_pseudocount)
            in_order = value[:-1] + _gap(forecast_pseudocount) < value[1:]
            if in_order.all():
                return blocks
            first = np.flatnonzero(np.append(True, in_order))
            last = np.append(first[1:], len(value)) - 1
            sums = (np.add.reduceat(a, first) for a in (blocks.weights, blocks.forecasts))
            blocks = type(self)(blocks.low[first], blocks.high[last], *sums)


def grow_isotonic(
    blocks: Blocks, options: GrowthOptions, forecast_pseudocount: float = 0.0
) -> tuple[BinTree, Floats]:
    """Tree of the isotonic regression, split as the IRP path, and sums of second probabilities."""
    blocks = blocks.pool(options.pseudocounts, forecast_pseudocount)
    sums = blocks.sums()
    min_weight, min_lift = options.least()
    nodes, splits = irp_path(
        sums,
        options.pseudocounts,
        forecast_pseudocount,
        _gap(forecast_pseudocount),
        min_weight,
        min_lift / 2,
        options.max_bins or len(sums),
    )
    start, cut, stop = splits.T
    ranges = np.empty((1 + 2 * len(splits), 2), dtype=np.intp)
    ranges[0] = 0, len(blocks.low)
    ranges[1::2, 0] = start
    ranges[1::2, 1] = cut
    ranges[2::2, 0] = cut
    ranges[2::2, 1] = stop
    # Every other sum covers the blocks between a stop and the next start. The row of zeros makes
    # the last stop a valid index.
    sums = np.add.reduceat(np.vstack([sums, np.zeros(3)]), ranges.ravel())[::2]
    tree = BinTree(
        thresholds=as_matrix(midpoint(blocks.high[cut - 1], blocks.low[cut])),
        children=np.arange(1, len(ranges)).reshape(-1, 2),
        split_nodes=nodes,
        class_weights=np.ascontiguousarray(sums[:, :2]),
    )
    return tree, sums[:, 2]


def _gap(forecast_pseudocount: float) -> float:
    """Minimum increase between values: above the rounding error of mean forecasts."""
    return 1e-14 if forecast_pseudocount else 0.0


def isotonic_steps(counts: BinaryCounts, pseudocounts: Floats) -> tuple[Floats, Floats]:
    """Cuts and values of the smoothed isotonic regression, with blocks out of order pooled."""
    blocks = Blocks.of(counts).pool(pseudocounts)
    return midpoint(blocks.high[:-1], blocks.low[1:]), blocks.values(pseudocounts)


def venn_abers_steps(counts: BinaryCounts, extra: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Isotonic regression at any score with one more row there, of class 0 and of class 1.

    `extra` is the weight of the row. Returns the cuts that the two step functions share, and their
    lower and upper values.
    """
    scores, weights = counts.distinct()
    p1 = with_one_more(weights, extra)
    # The same with scores and classes turned around.
    p0 = 1 - with_one_more(np.ascontiguousarray(weights[::-1, ::-1]), extra)[::-1]
    # Between two scores a row of class 1 pools with the next and one of class 0 with the last, so
    # p0 rises at a score and p1 just above it. A cut just below a score makes it the former.
    cuts = np.column_stack([np.nextafter(scores, -np.inf), scores]).ravel()
    lower = np.append(0.0, np.repeat(p0, 2))
    upper = np.append(np.repeat(p1, 2), 1.0)
    change = (np.diff(lower) != 0) | (np.diff(upper) != 0)
    kept = np.append(True, change)
    return cuts[change], lower[kept], upper[kept]
