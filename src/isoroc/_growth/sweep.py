"""Finding gamma by exact line searches, the default."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from typing import NamedTuple

import numpy as np

from isoroc._core.growth import Ascent
from isoroc._growth.grid import best_of
from isoroc._growth.growth import Growth, Split, Surroundings
from isoroc._simplex import Floats, Ints

#: Points closer than this along an axis are ties: no threshold is put between them. It is a
#: thousand times the rounding of p - gamma, so predictions sort the points as the search did.
MIN_GAP = 1e-12
#: Rounds over all axes after which an ascent that still creeps is stopped.
MAX_CYCLES = 20
#: Starts are compared on at most this many points of a bin; the winner is refined on all.
SCOUTED = 400
#: Points tried as thresholds where line searches find nothing,
N_POINTS = 16
#: in bins whose mean forecast has a coordinate above this.
NEAR_VERTEX = 0.99


class _Ascent(NamedTuple):
    """A line search or a round of them: over which points of the bin, from where, along what."""

    points: Floats
    weights: Floats
    start: Floats
    axes: Ints
    around: Surroundings
    share: float = 1.0  # of the bin's points


class Sweep:
    """Best threshold of a bin among those that exact line searches find.

    Two families compete. A *full* split gives every class a region: coordinate ascent from the
    bin's mean forecast and from `n_starts` - 1 of its points. A *pair* split has regions for two
    classes only, the other thresholds being out of reach; one line search finds its optimum. Full
    splits gain more at once, pair splits gain more for each bin that they add and constrain later
    growth less.

    Where neither finds a split worth making and the bin lies at a vertex, some of its own points
    are tried as thresholds. That reaches what line searches cannot: there the forecasts of a
    confident model differ by far less than the rounding of ``p - gamma``, unless gamma has the
    same tiny coordinates.

    Parameters
    ----------
    n_starts : int
        Number of ascents for the full split.
    random_state : RandomState
        Draws the points to start from.
    n_threads : int
        Ascents to run at a time; the kernels hold no lock.
    """

    def __init__(
        self, n_starts: int, random_state: np.random.RandomState, n_threads: int = 1
    ) -> None:
        self.n_starts = n_starts
        self.seed = random_state.randint(2**31 - 1)
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __call__(self, growth: Growth, node: int) -> Split | None:
        """Best split of a bin that keeps the tree ROC monotone, or None."""
        if not growth.can_be_split(node):
            return None
        around = growth.surroundings(node)
        members = growth.members[node]
        points, weights = growth.points[members], growth.point_weights[members]
        # Draws depend on the bin, not on the order in which bins are searched.
        random_state = np.random.RandomState((self.seed + int(members.sum())) % 2**32)
        ascents = list(self._full(points, weights, around, random_state))
        if len(members) > 2 * SCOUTED and len(ascents) > 1:
            ascents = [self._scout(growth, ascents, random_state)]
        if growth.thresholds:  # the first split shall have as many regions as it can
            ascents += self._pairs(points, weights, around)
        found = [split for split in self._climb(growth, ascents) if growth.is_worth_it(split)]
        if found:
            # The first of equals, where equals may differ by rounding.
            least = max(map(growth.score, found)) * (1 - 1e-9)
            return next(split for split in found if growth.score(split) >= least)
        if points.mean(axis=0).max() < NEAR_VERTEX:
            return None
        rows = random_state.permutation(len(members))[:N_POINTS]
        return best_of(
            growth, node, _without_ties(points[rows], _by_weight(points, weights)), around
        )

    def _full(
        self,
        points: Floats,
        weights: Floats,
        around: Surroundings,
        random_state: np.random.RandomState,
    ) -> Iterator[_Ascent]:
        axes = _by_weight(points, weights)
        weight = weights.sum(axis=1)
        yield _Ascent(points, weights, weight @ points / weight.sum(), axes, around)
        if self.n_starts > 1:
            for row in random_state.permutation(len(points))[: self.n_starts - 1]:
                yield _Ascent(points, weights, points[row], axes, around)

    def _pairs(self, points: Floats, weights: Floats, around: Surroundings) -> Iterator[_Ascent]:
        K = points.shape[1]
        for i, j in combinations(_by_weight(points, weights), 2) if K > 2 else ():
            start = np.full(K, 2.0)  # no point of the simplex reaches these regions
            start[[i, j]] = 0.0
            yield _Ascent(points, weights, start, np.array([i]), around)

    def _scout(
        self, growth: Growth, ascents: list[_Ascent], random_state: np.random.RandomState
    ) -> _Ascent:
        """Of some ascents over the same points the one that does best on a sample of them."""
        points, weights, _, axes, around, _ = ascents[0]
        drawn = np.sort(random_state.permutation(len(points))[:SCOUTED])
        few = around._replace(region=np.ascontiguousarray(around.region[drawn]))
        share = SCOUTED / len(points)
        starts = [ascent.start for ascent in ascents]
        tried = self._climb(
            growth, [_Ascent(points[drawn], weights[drawn], s, axes, few, share) for s in starts]
        )
        best = max(tried, key=lambda split: split.gain, default=None)
        return ascents[0] if best is None else ascents[0]._replace(start=best.gamma)

    def _climb(self, growth: Growth, ascents: list[_Ascent]) -> list[Split]:
        """The splits at which ascents end."""
        if self.pool is None:
            ends = [_climb(growth, ascent) for ascent in ascents]
        else:
            ends = list(self.pool.map(lambda ascent: _climb(growth, ascent), ascents))
        return [split for split in ends if split is not None]


def _by_weight(points: Floats, weights: Floats) -> Ints:
    """Classes in descending order of weight, then of forecasts: not by the order of the columns."""
    return np.asarray(np.lexsort((-points.sum(axis=0), -weights.sum(axis=0))))


def _without_ties(gammas: Floats, classes: Ints) -> Floats:
    """Thresholds at points, moved by so little that only ties are decided.

    A point is on the boundary of all regions of itself as threshold, and the rule for ties, the
    lowest index, depends on the order of the classes. Here the largest coordinate stays as it is,
    and the others grow by some 1e-12 of their size, more for classes later in the given order.
    """
    rank = np.argsort(classes) + 1.0
    moved = gammas * (1 + 1e-12 * rank) + 1e-300 * rank
    largest = np.arange(len(gammas)), gammas.argmax(axis=1)
    moved[largest] = gammas[largest]
    return np.asarray(moved)


def _climb(growth: Growth, ascent: _Ascent) -> Split | None:
    problem = Ascent(
        ascent.points,
        ascent.weights,
        ascent.around,
        smoothing=growth.smoothing,
        slack=growth.least_slack,
        min_weight=ascent.share * growth.min_bin_weight,
        min_gap=MIN_GAP,
    )
    gamma = ascent.start.copy()
    gain, children = problem.climb(gamma, ascent.axes.astype(np.int32), MAX_CYCLES)
    if gain <= 0:
        return None
    gamma += (1 - gamma.sum()) / len(gamma)
    return Split.of(gamma, gain, children[children.sum(axis=1) > 0])
