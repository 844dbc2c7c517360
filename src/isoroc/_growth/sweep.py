"""Finding gamma by exact line searches, the default."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc._core.growth import Ascent
from isoroc._growth.grid import best_of
from isoroc._growth.growth import Growth, Split, Surroundings
from isoroc._simplex import Floats

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


class _Bin(NamedTuple):
    """What the kernel sees of a bin."""

    points: Floats
    weights: Floats
    around: Surroundings
    share: float = 1.0  # of the bin's points


class _Start(NamedTuple):
    """Where an ascent starts, and the coordinates that it moves in turn."""

    gamma: Floats
    axes: NDArray[np.int32]


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
        self.draws = np.random.RandomState(0)  # making one takes longer than most searches
        self.pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __call__(self, growth: Growth, node: int) -> Split | None:
        """Best split of a bin that keeps the tree ROC monotone, or None."""
        if not growth.can_be_split(node):
            return None
        members = growth.members[node]
        points, weights = growth.points[members], growth.point_weights[members]
        here = _Bin(points, weights, growth.surroundings(node))
        axes = _by_weight(points, weights)
        # Draws depend on the bin, not on the order in which bins are searched.
        self.draws.seed((self.seed + int(members.sum())) % 2**32)
        starts = self._full(here, axes)
        if len(members) > 2 * SCOUTED and len(starts) > 1:
            starts = [self._scout(growth, here, starts)]
        if growth.thresholds:  # the first split shall have as many regions as it can
            starts += _pairs(tuple(axes.tolist()))
        found = [split for split in self._climb(growth, here, starts) if growth.is_worth_it(split)]
        if found:
            # The first of equals, where equals may differ by rounding.
            least = max(map(growth.score, found)) * (1 - 1e-9)
            return next(split for split in found if growth.score(split) >= least)
        if points.mean(axis=0).max() < NEAR_VERTEX:
            return None
        rows = self.draws.permutation(len(members))[:N_POINTS]
        return best_of(growth, node, _without_ties(points[rows], axes), here.around)

    def _full(self, here: _Bin, axes: NDArray[np.int32]) -> list[_Start]:
        weight = here.weights.sum(axis=1)
        starts = [_Start(weight @ here.points / weight.sum(), axes)]
        if self.n_starts > 1:
            rows = self.draws.permutation(len(here.points))[: self.n_starts - 1]
            starts += [_Start(here.points[row], axes) for row in rows]
        return starts

    def _scout(self, growth: Growth, here: _Bin, starts: list[_Start]) -> _Start:
        """Of some ascents the one that does best on a sample of the points."""
        drawn = np.sort(self.draws.permutation(len(here.points))[:SCOUTED])
        around = here.around._replace(region=np.ascontiguousarray(here.around.region[drawn]))
        share = SCOUTED / len(here.points)
        few = _Bin(here.points[drawn], here.weights[drawn], around, share)
        tried = self._climb(growth, few, starts)
        best = max(tried, key=lambda split: split.gain, default=None)
        return starts[0] if best is None else starts[0]._replace(gamma=best.gamma)

    def _climb(self, growth: Growth, here: _Bin, starts: list[_Start]) -> list[Split]:
        """The splits at which ascents end."""
        if self.pool is None:
            problem = _problem(growth, here)
            ends = [_climb(problem, start) for start in starts]
        else:  # ascents at the same time need a problem each
            ends = list(self.pool.map(lambda start: _climb(_problem(growth, here), start), starts))
        return [split for split in ends if split is not None]


@lru_cache(maxsize=64)
def _pairs(classes: tuple[int, ...]) -> list[_Start]:
    """One start for each pair of classes."""
    K = len(classes)
    starts = []
    for i, j in combinations(classes, 2) if K > 2 else ():
        gamma = np.full(K, 2.0)  # no point of the simplex reaches these regions
        gamma[[i, j]] = 0.0
        starts.append(_Start(gamma, np.array([i], dtype=np.int32)))
    return starts


def _by_weight(points: Floats, weights: Floats) -> NDArray[np.int32]:
    """Classes in descending order of weight, then of forecasts: not by the order of the columns."""
    order = np.lexsort((-points.sum(axis=0), -weights.sum(axis=0)))
    return np.asarray(order, dtype=np.int32)


def _without_ties(gammas: Floats, classes: NDArray[np.int32]) -> Floats:
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


def _problem(growth: Growth, here: _Bin) -> Ascent:
    return Ascent(
        here.points,
        here.weights,
        here.around,
        smoothing=growth.smoothing,
        slack=growth.least_slack,
        min_weight=here.share * growth.min_bin_weight,
        min_gap=MIN_GAP,
    )


def _climb(problem: Ascent, start: _Start) -> Split | None:
    gamma = start.gamma.copy()
    gain, children = problem.climb(gamma, start.axes, MAX_CYCLES)
    if gain <= 0:
        return None
    gamma += (1 - gamma.sum()) / len(gamma)
    return Split.of(gamma, gain, children[children.sum(axis=1) > 0])
