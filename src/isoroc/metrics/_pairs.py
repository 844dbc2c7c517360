"""Pairs of rows whose order one score reverses or ties against another, counted by sorting."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isoroc._simplex import Floats, Ints


class PairWeights(NamedTuple):
    """Total weights of pairs of rows; a pair weighs the product of the weights of its rows."""

    ordered: float
    """Pairs with different scores before."""
    reversed: float
    """Pairs with the opposite order after."""
    tied: float
    """Pairs with different scores before and equal ones after."""


class _Level(NamedTuple):
    """Pairs counted by one bit of the ranks, see `PairChanges`."""

    high: Ints
    """Rows whose bit is 1, in order."""
    low: Ints
    """Rows whose bit is 0 and that follow a row of their block whose bit is 1."""
    first: Ints
    """Number of high rows before the block of each low row."""
    last: Ints
    """Number of high rows before each low row."""


class PairChanges:
    """Counts pairs of rows that change their order between two scores, for any weights of the rows.

    The rows are sorted by the score before, and their ranks by the score after are compared bit by
    bit: two ranks are out of order iff, at the highest bit in which they differ, the earlier row
    has a 1 and the later row a 0. So each bit takes one cumulative sum per set of weights, and all
    n (n - 1) / 2 pairs are counted in O(n log n).

    Examples
    --------
    >>> import numpy as np
    >>> changes = PairChanges(np.array([1.0, 2.0, 3.0]), np.array([5.0, 4.0, 5.0]))
    >>> changes(np.ones(3))
    PairWeights(ordered=3.0, reversed=1.0, tied=1.0)
    >>> changes(np.array([2.0, 3.0, 1.0]))
    PairWeights(ordered=11.0, reversed=6.0, tied=2.0)
    """

    def __init__(self, before: Floats, after: Floats) -> None:
        self._before, self._after = (np.unique(x, return_inverse=True)[1] for x in (before, after))
        both = self._after * (self._before.max() + 1) + self._before
        cells, self._cell = np.unique(both, return_inverse=True)
        self._after_of_cell = cells // (self._before.max() + 1)
        order = np.lexsort((self._after, self._before))  # ties before must not count as reversed
        self._levels = [level for level in _levels(self._after, order) if len(level.low)]

    def __call__(self, weights: Floats) -> PairWeights:
        groups = np.bincount(self._before, weights)
        out_of_order = 0.0
        for high, low, first, last in self._levels:
            above = np.append(0.0, np.cumsum(weights[high]))
            out_of_order += float(weights[low] @ (above[last] - above[first]))
        # Equal sums cancel exactly, so a map without new ties gets exactly 0.
        tied = np.bincount(self._after, weights) ** 2 - np.bincount(
            self._after_of_cell, np.bincount(self._cell, weights) ** 2
        )
        total = float(groups.sum())
        return PairWeights(
            ordered=max(0.0, total**2 - float(groups @ groups)) / 2,
            reversed=out_of_order,
            tied=max(0.0, float(tied.sum())) / 2,
        )


def _levels(rank: Ints, order: Ints) -> list[_Level]:
    """For each bit of the ranks, from the highest: which rows are out of order at this bit."""
    levels = []
    for bit in reversed(range(int(rank.max()).bit_length())):
        ranks = rank[order]  # sorted by their higher bits, and within such a block as at the start
        block, is_high = ranks >> (bit + 1), (ranks >> bit) & 1 == 1
        n_high = np.append(0, np.cumsum(is_high))
        start = n_high[np.searchsorted(block, block)]
        late = np.flatnonzero(~is_high & (n_high[:-1] > start))
        levels.append(_Level(order[is_high], order[late], start[late], n_high[late]))
        order = order[np.argsort(ranks >> bit, kind="stable")]
    return levels
