"""Finding gamma on a lattice, as the paper's experiments do."""

from __future__ import annotations

import math

import numpy as np

from isoroc._core.rows import count_children
from isoroc._growth.best_first import Growth, Split, Surroundings
from isoroc._input import InputError
from isoroc._simplex import Floats, lattice
from isoroc._tree import split_gains

#: Smaller gains, as shares of the weight, are rounding errors.
LEAST_GAIN = 1e-12
#: Lattice steps by number of classes: the paper's for 2 and 3, of about that many points above.
STEPS = {2: 1000, 3: 100, 4: 30, 5: 15}
#: Points that a lattice has at most where its step is not given, and where it is.
USUAL_POINTS, MAX_POINTS = 100_000, 2_000_000


def steps_for(n_classes: int, steps: int | None = None) -> int:
    """Lattice steps to use: those given, or as many as make a lattice of moderate size."""

    def n_points(steps: int) -> int:
        return math.comb(steps + n_classes - 1, steps)

    if steps is None:
        steps = STEPS.get(n_classes, 8)
        while steps > 1 and n_points(steps) > USUAL_POINTS:
            steps -= 1
        return steps
    if n_points(steps) > MAX_POINTS:
        raise InputError(
            "grid_size",
            None,
            f"a lattice of {n_classes} classes with step 1/{steps} has "
            f"{n_points(steps):.3g} points",
            f"at most {MAX_POINTS:.0e} fit into memory, so use a larger step, or another "
            "calibrator",
        )
    return steps


class Grid:
    """Best threshold of a bin among the points of a lattice of step 1/steps that lie in it."""

    def __init__(self, n_classes: int, steps: int | None = None) -> None:
        self.lattice = lattice(n_classes, steps_for(n_classes, steps))

    def __call__(self, growth: Growth, node: int) -> Split | None:
        """Lattice point of largest gain that keeps the tree ROC monotone, or None."""
        if not growth.can_be_split(node):
            return None
        tree = growth.tree()
        inside = tree.bins[tree.bin_of(self.lattice)] == node
        return best_of(growth, node, self.lattice[inside], growth.surroundings(node))


def best_of(growth: Growth, node: int, gammas: Floats, around: Surroundings) -> Split | None:
    """Of some thresholds the one of largest gain that is possible and worth it, or None."""
    points = growth.members[node]
    P, Y = growth.points[points], growth.point_weights[points]
    children = count_children(P, Y, gammas)
    weight = children.sum(axis=2)
    gain = split_gains(children)
    kept = weight > 0
    light = np.where(kept, weight, np.inf).min(axis=1) < growth.min_bin_weight
    possible = (kept.sum(axis=1) > 1) & ~light & (gain > LEAST_GAIN * Y.sum())
    possible[possible] = growth.are_plausible(children[possible], around.bound)
    rounded = np.round(gain[possible] / Y.sum(), 12)  # equals are tried in their order
    for c in np.flatnonzero(possible)[np.argsort(-rounded, kind="stable")]:
        split = Split.of(gammas[c], float(gain[c]), children[c][kept[c]])
        if growth.is_worth_it(split) and growth.plan(node, split.gamma) is not None:
            return split
    return None
