"""Two classes: isotonic regression, as a tree in the order of the IRP path and as step functions.

A step function is its ascending cuts and one value more: ``values[i]`` above i of the cuts.
"""

import heapq
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from isoroc._core.pav import Cuts, with_one_more
from isoroc._core.rows import lift
from isoroc._core.simplex import as_matrix, midpoint
from isoroc._core.tree import BinTree, bin_values
from isoroc._core.types import Floats, Ints
from isoroc._counts import BinaryCounts
from isoroc._growth.best_first import GrowthOptions


class Blocks(NamedTuple):
    """Neighbouring blocks of scores, ascending."""

    low: Floats  # (m,) lowest score of each block,
    high: Floats  # and highest
    weights: Floats  # (m, 2) class weights
    forecasts: Floats  # (m,) weighted sum of the second probabilities, where these have weight

    @classmethod
    def of(
        cls, counts: BinaryCounts, scores: Literal["probability", "logit"] | None = None
    ) -> Self:
        """Blocks of the isotonic regression; sums of forecasts need to know what scores are."""
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
            first = np.flatnonzero(np.append(True, in_order))
            if len(first) == len(value):
                return blocks
            last = np.append(first[1:], len(value)) - 1
            sums = (np.add.reduceat(a, first) for a in (blocks.weights, blocks.forecasts))
            blocks = type(self)(blocks.low[first], blocks.high[last], *sums)


def grow_isotonic(
    blocks: Blocks, options: GrowthOptions, forecast_pseudocount: float = 0.0
) -> tuple[BinTree, Floats]:
    """Tree of the isotonic regression, split in the order of the IRP path, and mean forecasts."""
    blocks = blocks.pool(options.pseudocounts, forecast_pseudocount)
    nodes, splits = irp_path(blocks, options, forecast_pseudocount)
    start, cut, stop = splits.T
    ranges = np.empty((1 + 2 * len(splits), 2), dtype=np.intp)
    ranges[0] = 0, len(blocks.low)
    ranges[1::2, 0], ranges[1::2, 1] = start, cut
    ranges[2::2, 0], ranges[2::2, 1] = cut, stop
    # Every other sum is that of the blocks between a stop and the next start; a last one ends it.
    sums = np.vstack([blocks.sums(), np.zeros(3)])
    sums = np.add.reduceat(sums, ranges.ravel())[::2]
    tree = BinTree(
        thresholds=as_matrix(midpoint(blocks.high[cut - 1], blocks.low[cut])),
        children=np.arange(1, len(ranges)).reshape(-1, 2),
        split_nodes=nodes,
        class_weights=np.ascontiguousarray(sums[:, :2]),
    )
    return tree, as_matrix((sums[:, 2] / tree.class_weights.sum(axis=1)).clip(0, 1))


def irp_path(
    blocks: Blocks, options: GrowthOptions, forecast_pseudocount: float
) -> tuple[Ints, Ints]:
    """Best-first splitting of a sequence of isotonic blocks: the IRP path.

    The best split of a bin is at the point of its cumulative sum diagram farthest from the chord, a
    vertex of the greatest convex minorant, hence an end of a block. Means of unions of blocks are
    in order by themselves. Smoothed values need not be: a bin for which no split leaves them in
    order waits until a neighbour is split.

    Returns the nodes that are split, where split s appends the nodes 2s + 1 and 2s + 2 to the node
    0, and the splits (start, cut, stop) as ranges of blocks, shape (S, 3).
    """
    sums, m = blocks.sums(), len(blocks.low)
    min_weight, min_lift = options.least()
    min_lift /= 2
    gap = _gap(forecast_pseudocount)
    cuts = Cuts(sums, options.pseudocounts, forecast_pseudocount, gap, min_weight)
    max_bins = m if options.max_bins is None else options.max_bins
    # Of bins by their stop, by their start; -1 where there is none.
    start_of, stop_of, node_of = [-1] * (m + 1), [-1] * (m + 1), [0] * (m + 1)
    start_of[m], stop_of[0] = 0, m
    waits = [False] * (m + 1)  # whether no cut of the bin is known
    nodes: list[int] = []
    splits: list[tuple[int, int, int]] = []
    pending = [0]  # bins to search, by their start
    queue: list[tuple[Any, ...]] = []  # height of a bin's best cut, and what it was found for
    while (pending or queue) and len(splits) + 1 < max_bins:
        if pending:
            start, searched = pending.pop(), None
        else:
            _, start, cut, searched = heapq.heappop(queue)
        stop = stop_of[start]
        around = start_of[start], start, stop, stop_of[stop]
        if around != searched:
            cut, height = cuts.best(*around)
            waits[start] = cut < 0
            if cut >= 0 and min_lift > 0:
                parts = np.add.reduceat(sums[start:stop, :2], [0, cut - start])
                waits[start] = lift(parts) < min_lift
            if waits[start]:
                continue
            if pending or (queue and height < -queue[0][0]):
                heapq.heappush(queue, (-height, start, cut, around))
                continue
        nodes.append(node_of[start])
        node_of[start], node_of[cut] = 2 * len(nodes) - 1, 2 * len(nodes)
        splits.append((start, cut, stop))
        stop_of[start] = start_of[stop] = cut
        start_of[cut], stop_of[cut] = start, stop
        waits[start], waits[cut] = cut - start > 1, stop - cut > 1
        pending = [begin for begin in (stop, cut, start, start_of[start]) if waits[begin]]
    return np.array(nodes, dtype=np.intp), np.array(splits, dtype=np.intp).reshape(-1, 3)


def _gap(forecast_pseudocount: float) -> float:
    """By how much values must increase: more than mean forecasts may be rounded."""
    return 1e-14 if forecast_pseudocount else 0.0


def isotonic_steps(counts: BinaryCounts, pseudocounts: Floats) -> tuple[Floats, Floats]:
    """Cuts and values of the smoothed isotonic regression; blocks out of order are pooled."""
    blocks = Blocks.of(counts).pool(pseudocounts)
    return midpoint(blocks.high[:-1], blocks.low[1:]), blocks.values(pseudocounts)


def venn_abers_steps(counts: BinaryCounts, extra: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Isotonic regression at any score with one more row there, of class 0 and of class 1.

    Returns the cuts that two step functions share, and their lower and upper values; `extra` is the
    weight of the row.
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
