"""Finding gamma: by exact line searches, the default, or on a lattice, as the paper does."""

import math
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isoroc._core.growth import Ascent
from isoroc._core.rows import count_children
from isoroc._core.simplex import lattice
from isoroc._core.tree import split_gains
from isoroc._core.types import Floats
from isoroc._counts import N_BITS, rounded
from isoroc._growth.best_first import Growth, Split
from isoroc._input import InputError

#: Points closer than this along an axis are ties: no threshold is put between them. It is a
#: thousand times the rounding of p - gamma, so predictions sort the points as the search did.
MIN_GAP = 1e-12
LEAST_GAIN = 1e-12  # smaller gains, as shares of the weight, are rounding errors


class Sweep:
    """Best threshold of a bin among those that exact line searches find.

    Two families compete. A *full* split gives every class a region: coordinate ascent from the
    bin's mean forecast. A *pair* split has regions for two classes only, the other thresholds being
    out of reach, and one line search finds its optimum. Full splits gain more at once. Pair splits
    gain more for each bin that they add, and constrain later growth less.

    Where neither finds a split worth making and the bin lies at a vertex, some of its own points
    are tried as thresholds. There the forecasts of a confident model differ by far less than the
    rounding of ``p - gamma``, unless gamma has the same tiny coordinates.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, growth: Growth, node: int) -> Split | None:
        """Best split of a bin that keeps the tree ROC monotone, or None."""
        if not growth.can_be_split(node):
            return None
        members = growth.members[node]
        points = growth.points[members]
        weight = growth.point_weights[members].sum(axis=1)
        classes = _by_weight(points, growth.class_weights[node])
        gammas, axes = families(classes, pairs=bool(growth.thresholds))
        gammas = gammas.copy()
        gammas[0] = weight @ points / weight.sum()
        splits = [split for split in climb(growth, node, gammas, axes) if growth.is_worth_it(split)]
        if splits:
            # The first of equals, where equals may differ by rounding.
            scores = np.array([growth.score(split) for split in splits])
            return splits[int(np.argmax(scores >= scores.max() * (1 - 1e-9)))]
        if points.mean(axis=0).max() < 0.99:  # the bin is not at a vertex
            return None
        # The order depends on the bin, not on earlier searches.
        random_state = np.random.RandomState((self.seed + int(members.sum())) % 2**32)
        rows = random_state.permutation(len(members))[:16]
        return best_of(growth, node, _without_ties(points[rows], axes[0]))


def climb(growth: Growth, node: int, gammas: Floats, axes: NDArray[np.int32]) -> list[Split]:
    """Splits of a bin at the ends of ascents along `axes` from `gammas`, which are overwritten."""
    members = growth.members[node]
    weights = growth.point_weights[members]
    ascent = Ascent(
        rounded(growth.points[members], N_BITS),
        weights,
        growth.surroundings(node),
        pseudocounts=growth.pseudocounts,
        slack=growth.least_slack,
        min_weight=growth.min_bin_weight,
        min_gap=MIN_GAP,
    )
    max_cycles = 20  # over the axes, against endless ascents among rounding errors
    gains, children = ascent.climb(gammas, axes, max_cycles)
    gammas += (1 - gammas.sum(axis=1, keepdims=True)) / gammas.shape[1]
    kept = np.asarray(children.any(axis=2))
    gaining = np.flatnonzero(gains > LEAST_GAIN * weights.sum()).tolist()
    return [Split(gammas[a], float(gains[a]), children[a][kept[a]]) for a in gaining]


@lru_cache(maxsize=64)
def families(classes: tuple[int, ...], *, pairs: bool) -> tuple[Floats, NDArray[np.int32]]:
    """Starts of ascents, and the coordinates that each moves in turn, -1 after the last.

    The first row is for the full split, whose start is not set here, and the others for pairs.
    """
    K = len(classes)
    both = list(combinations(classes, 2)) if pairs and K > 2 else []
    gammas = np.full((1 + len(both), K), 2.0)  # no point of the simplex reaches these regions
    axes = np.full((1 + len(both), K), -1, dtype=np.int32)
    axes[0] = classes
    for row, (i, j) in enumerate(both, start=1):
        gammas[row, [i, j]] = 0.0
        axes[row, 0] = i
    return gammas, axes


def _by_weight(points: Floats, class_weights: Floats) -> tuple[int, ...]:
    """Classes in descending order of weight, then of forecasts: not by the order of the columns."""
    weights: list[float] = class_weights.tolist()
    K = len(weights)
    ties = points.sum(axis=0).tolist() if len(set(weights)) < K else weights
    return tuple(sorted(range(K), key=lambda k: (-weights[k], -ties[k])))


def _without_ties(gammas: Floats, classes: NDArray[np.int32]) -> Floats:
    """Thresholds at points, moved by about 1e-12, more for later classes, to break ties only."""
    rank = np.argsort(classes) + 1.0
    moved = gammas * (1 + 1e-12 * rank) + 1e-300 * rank
    largest = np.arange(len(gammas)), gammas.argmax(axis=1)
    moved[largest] = gammas[largest]
    return np.asarray(moved)


def steps_for(n_classes: int, steps: int | None = None, most_points: int = 2_000_000) -> int:
    """Lattice steps to use: those given, the paper's for two and three classes, or fewer."""

    def n_points(steps: int) -> int:
        return math.comb(steps + n_classes - 1, steps)

    if steps is None:
        steps = {2: 1000, 3: 100, 4: 30, 5: 15}.get(n_classes, 8)
        while steps > 1 and n_points(steps) > 100_000:
            steps -= 1
        return steps
    if n_points(steps) > most_points:
        lattice_of = f"a lattice of {n_classes} classes with step 1/{steps}"
        fix = f"at most {most_points:.0e} fit into memory, so use a larger step"
        raise InputError("grid_size", None, f"{lattice_of} has {n_points(steps):.3g} points", fix)
    return steps


class GridSearch:
    """Best threshold of a bin among the points of a lattice of step 1/steps that lie in it."""

    def __init__(self, n_classes: int, steps: int | None = None) -> None:
        self.lattice = lattice(n_classes, steps_for(n_classes, steps))

    def __call__(self, growth: Growth, node: int) -> Split | None:
        """Lattice point of largest gain that keeps the tree ROC monotone, or None."""
        if not growth.can_be_split(node):
            return None
        tree = growth.tree()
        inside = tree.bins[tree.bin_of(self.lattice)] == node
        return best_of(growth, node, self.lattice[inside])


def best_of(growth: Growth, node: int, gammas: Floats) -> Split | None:
    """The threshold of largest gain that is possible and worth it, or None."""
    points = growth.members[node]
    P = growth.points[points]
    Y = growth.point_weights[points]
    children = count_children(P, Y, gammas)
    weight = children.sum(axis=2)
    gain = split_gains(children)
    kept = weight > 0
    light = np.where(kept, weight, np.inf).min(axis=1) < growth.min_bin_weight
    possible = (kept.sum(axis=1) > 1) & ~light & (gain > LEAST_GAIN * Y.sum())
    rounded = np.round(gain[possible] / Y.sum(), 12)  # equals are tried in their order
    for c in np.flatnonzero(possible)[np.argsort(-rounded, kind="stable")]:
        split = Split(gammas[c], float(gain[c]), children[c][kept[c]])
        if growth.is_worth_it(split) and growth.plan(node, split.gamma) is not None:
            return split
    return None
