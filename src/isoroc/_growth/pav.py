"""Two classes: isotonic regression, and the order in which recursive partitioning reaches it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isoroc._core.path import split_blocks, sum_ranges
from isoroc._counts import BinaryCounts
from isoroc._simplex import Floats, Ints, midpoint
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
    blocks = Blocks(low, high, weights, np.zeros(len(weights))).pool(smoothing, 0.0)
    return _grow(
        blocks,
        smoothing=smoothing,
        forecast_weight=0.0,
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
        smoothed = self.weights + smoothing
        if forecast_weight:
            mean = self.forecasts / self.weights.sum(axis=1)
            smoothed += forecast_weight * np.column_stack([1 - mean, mean])
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
    blocks = blocks.pool(smoothing, forecast_weight)
    tree, ranges = _grow(
        blocks,
        smoothing=smoothing,
        forecast_weight=forecast_weight,
        max_bins=max_bins,
        min_bin_weight=min_bin_weight,
        min_lift=min_lift,
    )
    sums = np.array([blocks.forecasts[start:stop].sum() for start, stop in ranges.tolist()])
    mean = (sums / tree.class_weights.sum(axis=1)).clip(0, 1)
    return tree, np.column_stack([1 - mean, mean])


def _grow(
    blocks: Blocks,
    *,
    smoothing: Floats,
    forecast_weight: float,
    max_bins: int | None,
    min_bin_weight: float,
    min_lift: float,
) -> tuple[BinTree, Ints]:
    """Tree of pooled blocks, and the range of blocks of each node, shape (N, 2)."""
    nodes, splits = split_blocks(
        blocks.weights,
        blocks.forecasts,
        smoothing,
        forecast_weight,
        _gap(forecast_weight),
        min_bin_weight,
        min_lift,
        len(blocks.low) if max_bins is None else max_bins,
    )
    start, cut, stop = splits.T
    ranges = np.empty((1 + 2 * len(splits), 2), dtype=np.intp)
    ranges[0] = 0, len(blocks.low)
    ranges[1::2, 0], ranges[1::2, 1] = start, cut
    ranges[2::2, 0], ranges[2::2, 1] = cut, stop
    threshold = midpoint(blocks.high[cut - 1], blocks.low[cut])
    tree = BinTree(
        thresholds=np.column_stack([1 - threshold, threshold]),
        children=np.arange(1, len(ranges)).reshape(-1, 2),
        split_nodes=nodes,
        class_weights=sum_ranges(blocks.weights, ranges),
    )
    return tree, ranges


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
