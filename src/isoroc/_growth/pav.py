"""Two classes: isotonic regression, and the order in which recursive partitioning reaches it."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from isoroc._core.pav import best_cut
from isoroc._core.rows import lift
from isoroc._counts import BinaryCounts
from isoroc._simplex import Floats, midpoint
from isoroc._tree import BinTree


def grow_isotonic(
    counts: BinaryCounts,
    *,
    smoothing: Floats,
    max_bins: int | None = None,
    min_bin_weight: float = 0.0,
    min_lift: float = 0.0,
) -> BinTree:
    """Tree of the isotonic regression, its splits in the order of the IRP path.

    Parameters
    ----------
    counts : BinaryCounts
    smoothing : ndarray of shape (2,)
        ``pseudocount * prior``, what is added to the class weights of a bin for its value.
    max_bins : int, default=None
        Stop the path there.
    min_bin_weight : float
        No split leaves a lighter bin.
    min_lift : float
        How many times the lift in log likelihood that chance alone would give, one half, a split
        must have.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 1, 0, 1, 1], dtype=np.uint8)
    >>> counts = BinaryCounts.from_arrays(np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.9]), y)
    >>> tree = grow_isotonic(counts, smoothing=np.zeros(2))
    >>> tree.thresholds[:, 1].round(3), tree.class_weights[tree.bins, 1]
    (array([0.25, 0.6 ]), array([0., 1., 2.]))
    """
    low, high, weights = counts.isotonic_blocks()
    blocks = Blocks(low, high, weights, np.zeros(len(weights)))
    return grow_on_blocks(
        blocks,
        smoothing=smoothing,
        max_bins=max_bins,
        min_bin_weight=min_bin_weight,
        min_lift=min_lift,
    )[0]


class Blocks(NamedTuple):
    """Neighbouring blocks of scores, ascending."""

    low: Floats
    """(m,): lowest score of each block,"""
    high: Floats
    """(m,): and highest."""
    weights: Floats
    """(m, 2): class weights."""
    forecasts: Floats
    """(m,): weighted sum of the second probabilities; not used where these have no weight."""

    def values(self, smoothing: Floats, forecast_weight: float) -> Floats:
        """Value of each block: ``smoothing`` and the weighted mean forecast added to its labels."""
        mean = self.forecasts / self.weights.sum(axis=1)
        smoothed = self.weights + smoothing + forecast_weight * np.column_stack([1 - mean, mean])
        return np.asarray(smoothed[:, 1] / smoothed.sum(axis=1))

    def pool(self, smoothing: Floats, forecast_weight: float) -> Blocks:
        """Pool blocks until their values increase strictly.

        Blocks come with increasing means, but a light block is drawn to the prior more than a heavy
        one. Whole runs of blocks out of order are pooled at a time, so the result does not depend
        on which end one starts from.
        """
        blocks = self
        while True:
            value = blocks.values(smoothing, forecast_weight)
            in_order = value[:-1] + _gap(forecast_weight) < value[1:]
            first = np.flatnonzero(np.append(True, in_order))
            if len(first) == len(value):
                return blocks
            last = np.append(first[1:], len(value)) - 1
            sums = (np.add.reduceat(a, first) for a in (blocks.weights, blocks.forecasts))
            blocks = Blocks(blocks.low[first], blocks.high[last], *sums)


def grow_on_blocks(
    blocks: Blocks,
    *,
    smoothing: Floats,
    forecast_weight: float = 0.0,
    max_bins: int | None = None,
    min_bin_weight: float = 0.0,
    min_lift: float = 0.0,
) -> tuple[BinTree, Floats]:
    """Tree of the isotonic regression with these blocks, and the mean forecast of each node.

    Parameters
    ----------
    blocks : Blocks
        Of the isotonic regression.
    smoothing, max_bins, min_bin_weight, min_lift
        As in `grow_isotonic`.
    forecast_weight : float
        Weight of the mean forecast of a bin's rows in its value.

    Returns
    -------
    tree : BinTree
    means : ndarray of shape (N, 2)
    """
    low, high, weights, forecasts = blocks = blocks.pool(smoothing, forecast_weight)
    path = _Path(blocks, smoothing, forecast_weight, min_bin_weight, min_lift)
    splits = path.grow(len(weights) if max_bins is None else max_bins)

    # Nodes are ranges of blocks. The root is node 0 and split s appends nodes 2s + 1 and 2s + 2.
    node_of = {(0, len(weights)): 0}
    split_nodes = np.empty(len(splits), dtype=np.intp)
    for s, (start, cut, stop) in enumerate(splits):
        split_nodes[s] = node_of[start, stop]
        node_of[start, cut] = 2 * s + 1
        node_of[cut, stop] = 2 * s + 2
    cuts = np.array([cut for _, cut, _ in splits], dtype=np.intp)
    threshold = midpoint(high[cuts - 1], low[cuts])
    tree = BinTree(
        thresholds=np.column_stack([1 - threshold, threshold]),
        children=np.arange(1, 2 * len(splits) + 1).reshape(-1, 2),
        split_nodes=split_nodes,
        class_weights=np.array([weights[start:stop].sum(axis=0) for start, stop in node_of]),
    )
    sums = np.array([forecasts[start:stop].sum() for start, stop in node_of])
    mean = (sums / tree.class_weights.sum(axis=1)).clip(0, 1)
    return tree, np.column_stack([1 - mean, mean])


def pool_smoothed(
    low: Floats, high: Floats, weights: Floats, smoothing: Floats
) -> tuple[Floats, Floats, Floats]:
    """Pool blocks until their smoothed values increase strictly; see `Blocks.pool`."""
    pooled = Blocks(low, high, weights, np.zeros(len(weights))).pool(smoothing, 0.0)
    return pooled.low, pooled.high, pooled.weights


def _gap(forecast_weight: float) -> float:
    """By how much values must increase.

    Mean forecasts are rounded, and values are computed from them in more than one place.
    """
    return 1e-14 if forecast_weight else 0.0


class _Path:
    """Best-first splitting of a sequence of isotonic blocks: the IRP path.

    The best split of a bin is at the point of its cumulative sum diagram farthest from the chord.
    That point is a vertex of the greatest convex minorant, hence an end of a block, so blocks are
    all that has to be searched. A bin is the range of blocks [start, stop).

    The means of unions of blocks are in order by themselves. Their smoothed values need not be:
    a split is taken only if it leaves them in order, and a bin for which none does waits until
    a neighbour is split. Without smoothing no bin ever waits and the path ends at the blocks.
    """

    def __init__(
        self,
        blocks: Blocks,
        smoothing: Floats,
        forecast_weight: float,
        min_bin_weight: float,
        min_lift: float,
    ) -> None:
        weights = self.weights = np.ascontiguousarray(blocks.weights)
        self.forecasts = np.ascontiguousarray(blocks.forecasts)
        self.smoothing = smoothing
        self.forecast_weight = forecast_weight
        self.min_bin_weight = min_bin_weight
        self.min_lift = min_lift
        # The bins, found by their start and by their stop.
        self.stop_of = {0: len(weights)}
        self.start_of = {len(weights): 0}

    def grow(self, max_bins: int) -> list[tuple[int, int, int]]:
        """Splits (start, cut, stop) in the order of the path."""
        splits: list[tuple[int, int, int]] = []
        waiting: set[tuple[int, int]] = set()
        queue = [(-np.inf, 0, self.stop_of[0])]
        while queue and len(splits) + 1 < max_bins:
            _, start, stop = heapq.heappop(queue)
            cut, gain = self._best_cut(start, stop)
            if cut < 0 or self._lift(start, cut, stop) < self.min_lift * 0.5:
                waiting.add((start, stop))
            elif queue and gain < -queue[0][0]:
                heapq.heappush(queue, (-gain, start, stop))
            else:
                splits.append((start, cut, stop))
                self.stop_of[start], self.start_of[cut] = cut, start
                self.stop_of[cut], self.start_of[stop] = stop, cut
                freed = waiting & {
                    (self.start_of.get(start, -1), start),
                    (stop, self.stop_of.get(stop, -1)),
                }
                waiting -= freed
                for bin_ in ((start, cut), (cut, stop), *freed):
                    heapq.heappush(queue, (-np.inf, *bin_))
        return splits

    def _lift(self, start: int, cut: int, stop: int) -> float:
        """By how much a cut raises the log likelihood of the bin's labels."""
        if not self.min_lift:
            return np.inf
        parts = self.weights[start:cut], self.weights[cut:stop]
        return lift(np.array([part.sum(axis=0) for part in parts]))

    def _best_cut(self, start: int, stop: int) -> tuple[int, float]:
        """The cut with the largest gain that keeps the values in order, -1 if there is none.

        Its height over the chord is M(gamma) / 4.
        """
        return best_cut(
            self.weights,
            self.forecasts,
            self.start_of.get(start, -1),
            start,
            stop,
            self.stop_of.get(stop, -1),
            self.smoothing,
            self.forecast_weight,
            _gap(self.forecast_weight),
            self.min_bin_weight,
        )
