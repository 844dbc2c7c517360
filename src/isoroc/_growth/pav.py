"""Two classes: isotonic regression, as a tree in the order of the IRP path and as step functions.

The loop that pools adjacent violators is in `_core/pav.pyx`, that of the path in `_core/path.pyx`.

A step function is its ascending cuts and one value more: ``values[i]`` for the scores with i cuts
below them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from isoroc._core.path import split_blocks, sum_ranges
from isoroc._core.pav import with_one_more
from isoroc._counts import BinaryCounts
from isoroc._growth.options import GrowthOptions
from isoroc._simplex import Floats, Ints, as_matrix, midpoint
from isoroc._tree import BinTree, bin_values


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

    @classmethod
    def of(
        cls, counts: BinaryCounts, scores: Literal["probability", "logit"] | None = None
    ) -> Blocks:
        """Blocks of the isotonic regression; sums of forecasts need to know what scores are."""
        low, high, weights = counts.isotonic_blocks()
        sums = np.zeros(len(low)) if scores is None else counts.forecasts_in(low, high, scores)
        return cls(low, high, weights, sums)

    def means(self) -> Floats:
        """Mean forecast of each block, shape (m, 2)."""
        return as_matrix(self.forecasts / self.weights.sum(axis=1))

    def values(self, pseudocounts: Floats, forecast_pseudocount: float = 0.0) -> Floats:
        """Value of each block, the probability of the second class, shape (m,)."""
        if forecast_pseudocount:
            pseudocounts = pseudocounts + forecast_pseudocount * self.means()
        return np.asarray(bin_values(self.weights, pseudocounts)[:, 1])

    def pool(self, pseudocounts: Floats, forecast_pseudocount: float = 0.0) -> Blocks:
        """Pool blocks until their values increase strictly.

        Blocks come with increasing means, but a light block is drawn to the prior more than a heavy
        one. Whole runs of blocks out of order are pooled at a time, so the result does not depend
        on which end one starts from.
        """
        blocks = self
        while True:
            value = blocks.values(pseudocounts, forecast_pseudocount)
            in_order = value[:-1] + _gap(forecast_pseudocount) < value[1:]
            first = np.flatnonzero(np.append(True, in_order))
            if len(first) == len(value):
                return blocks
            last = np.append(first[1:], len(value)) - 1
            sums = (np.add.reduceat(a, first) for a in (blocks.weights, blocks.forecasts))
            blocks = Blocks(blocks.low[first], blocks.high[last], *sums)


class Path(NamedTuple):
    """Tree of pooled blocks."""

    tree: BinTree
    blocks: Blocks
    ranges: Ints
    """(N, 2): the blocks [start, stop) of each node."""

    def means(self) -> Floats:
        """Mean forecast of each node, shape (N, 2)."""
        forecasts = self.blocks.forecasts
        sums = np.array([forecasts[start:stop].sum() for start, stop in self.ranges.tolist()])
        return as_matrix((sums / self.tree.class_weights.sum(axis=1)).clip(0, 1))


def grow_isotonic(
    blocks: Blocks, options: GrowthOptions, forecast_pseudocount: float = 0.0
) -> Path:
    """Tree of the isotonic regression, its splits in the order of the IRP path.

    Parameters
    ----------
    blocks : Blocks
        Of the isotonic regression.
    options : GrowthOptions
        Of these, `pseudocounts`, `max_bins`, `min_bin_weight` and `min_lift` are used.
    forecast_pseudocount : float
        Rows that the mean forecast of a bin's own rows stands for in its value.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 1, 0, 1, 1], dtype=np.uint8)
    >>> counts = BinaryCounts.from_arrays(np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.9]), y)
    >>> tree = grow_isotonic(Blocks.of(counts), GrowthOptions(np.zeros(2))).tree
    >>> tree.thresholds[:, 1].round(3), tree.class_weights[tree.bins, 1]
    (array([0.25, 0.6 ]), array([0., 1., 2.]))
    """
    blocks = blocks.pool(options.pseudocounts, forecast_pseudocount)
    nodes, splits = split_blocks(
        blocks.weights,
        blocks.forecasts,
        options.pseudocounts,
        forecast_pseudocount,
        _gap(forecast_pseudocount),
        options.min_bin_weight or 0.0,
        options.min_lift or 0.0,
        len(blocks.low) if options.max_bins is None else options.max_bins,
    )
    start, cut, stop = splits.T
    ranges = np.empty((1 + 2 * len(splits), 2), dtype=np.intp)
    ranges[0] = 0, len(blocks.low)
    ranges[1::2, 0], ranges[1::2, 1] = start, cut
    ranges[2::2, 0], ranges[2::2, 1] = cut, stop
    tree = BinTree(
        thresholds=as_matrix(midpoint(blocks.high[cut - 1], blocks.low[cut])),
        children=np.arange(1, len(ranges)).reshape(-1, 2),
        split_nodes=nodes,
        class_weights=sum_ranges(blocks.weights, ranges),
    )
    return Path(tree, blocks, ranges)


def _gap(forecast_pseudocount: float) -> float:
    """By how much values must increase.

    Mean forecasts are rounded, and values are computed from them in more than one place.
    """
    return 1e-14 if forecast_pseudocount else 0.0


def isotonic_steps(counts: BinaryCounts, pseudocounts: Floats) -> tuple[Floats, Floats]:
    """Isotonic regression of the class on the score, its blocks' values smoothed.

    Parameters
    ----------
    counts : BinaryCounts
    pseudocounts : ndarray of shape (2,)
        What is added to the class weights of a block for its value. Blocks whose values it would
        bring out of order are pooled.

    Returns
    -------
    cuts, values : ndarrays
        A step function.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 0, 1, 0, 1, 1], dtype=np.uint8)
    >>> counts = BinaryCounts.from_arrays(np.array([0.1, 0.2, 0.3, 0.4, 0.8, 0.9]), y)
    >>> isotonic_steps(counts, np.array([0.5, 0.5]))
    (array([0.25, 0.6 ]), array([0.16666667, 0.5       , 0.83333333]))
    """
    blocks = Blocks.of(counts).pool(pseudocounts)
    return midpoint(blocks.high[:-1], blocks.low[1:]), blocks.values(pseudocounts)


def venn_abers_steps(counts: BinaryCounts, extra: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Isotonic regression at any score, had one more row been seen there: of class 0, of class 1.

    Parameters
    ----------
    counts : BinaryCounts
    extra : float
        Weight of the row.

    Returns
    -------
    cuts, lower, upper : ndarrays
        Two step functions with the same cuts.

    Examples
    --------
    >>> import numpy as np
    >>> counts = BinaryCounts.from_arrays(np.array([0.2, 0.7]), np.array([0, 1], dtype=np.uint8))
    >>> cuts, lower, upper = venn_abers_steps(counts)
    >>> cuts, lower, upper
    (array([0.2, 0.7]), array([0. , 0. , 0.5]), array([0.5, 1. , 1. ]))
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
