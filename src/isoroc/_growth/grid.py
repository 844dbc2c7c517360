"""Finding gamma on a lattice, as the paper's experiments do."""

from __future__ import annotations

import numpy as np

from isoroc._core.rows import count_children
from isoroc._growth.growth import Growth, Split, Surroundings
from isoroc._simplex import Floats, lattice

#: Lattice steps by number of classes: the paper's for 2 and 3, of about that many points above.
STEPS = {2: 1000, 3: 100, 4: 30, 5: 15}


def steps_for(n_classes: int, steps: int | None = None) -> int:
    """Lattice steps to use where none are given."""
    return steps or STEPS.get(n_classes, 8)


class Grid:
    """Best threshold of a bin among the lattice points that lie in it.

    Parameters
    ----------
    n_classes : int
    steps : int, default=None
        The lattice has step 1/steps.
    """

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
    mean = Y.sum(axis=0) / Y.sum()
    gain = np.abs(children - weight[:, :, None] * mean).sum(axis=(1, 2))
    kept = weight > 0
    light = np.where(kept, weight, np.inf).min(axis=1) < growth.min_bin_weight
    possible = (kept.sum(axis=1) > 1) & ~light & (gain > 0)
    possible[possible] = growth.are_plausible(children[possible], around.bound)
    for c in np.flatnonzero(possible)[np.argsort(-gain[possible], kind="stable")]:
        split = Split.of(gammas[c], float(gain[c]), children[c][kept[c]])
        if growth.is_worth_it(split) and growth.plan(node, split.gamma) is not None:
            return split
    return None
