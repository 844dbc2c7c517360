"""The ROC surface of four or five classes and few distinct forecasts, exactly.

A row of class k is right iff gamma_k - gamma_j <= p_k - p_j for every other class j. So the
thresholds at which all rows of a given set are right are the solutions of a system of difference
constraints. If the set has a row of some class, called the *root*, the system has a solution in
which all differences gamma_root - gamma_j are as large as possible at the same time: the lengths of
the shortest paths from the root, where the edge k -> j has length min(p_k - p_j) over the rows of
class k in the set. Shortest paths form a tree, and one row of class k gives the length of each of
its edges k -> j. Trying every tree with every choice of rows therefore reaches, for every set of
rows that some threshold gets right, a threshold that gets all of them right. By Cayley's formula
there are n_root * n ** (K - 2) combinations.

Sets without a row of the root are right when the root is out of reach. So the same is done for
every subset of the classes, with all others out of reach.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, permutations, product

import numpy as np

from isoroc._core.simplex import sum_to_one
from isoroc._core.types import Floats
from isoroc._growth import MIN_GAP
from isoroc.metrics._surface.bodies import OUT_OF_REACH, Cases


def are_few(cases: Cases, most_classes: int = 5, most_thresholds: int = 500_000) -> bool:
    """Whether all thresholds can be tried. Those of subsets of classes are fewer."""
    sizes = np.bincount(cases.codes, minlength=cases.forecasts.shape[1]).tolist()
    if len(sizes) > most_classes:
        return False
    return bool(min(sizes) * sum(sizes) ** (len(sizes) - 2) <= most_thresholds)


def all_points(cases: Cases) -> tuple[Floats, Floats]:
    """Thresholds and ROC points, with every undominated point of all classes and of subsets."""
    K = cases.forecasts.shape[1]
    subsets = [chosen for size in range(2, K + 1) for chosen in combinations(range(K), size)]
    thresholds = sum_to_one(OUT_OF_REACH * (1 - np.eye(K)))
    points = cases.reach(thresholds)
    for chosen in subsets:
        found = np.vstack(list(_thresholds(cases, chosen)))
        thresholds = np.vstack([thresholds, sum_to_one(found)])
        points = np.vstack([points, cases.reach(thresholds[len(points) :])])
        points, first = np.unique(points, axis=0, return_index=True)
        thresholds = thresholds[first]
    return thresholds, points


def _thresholds(cases: Cases, chosen: Sequence[int]) -> Iterator[Floats]:
    """Thresholds of all trees on some of the classes, one array per tree."""
    K = cases.forecasts.shape[1]
    by_class = [cases.forecasts[cases.codes == k] for k in range(K)]
    # The first one is the root: the fewer rows it has, the fewer combinations there are.
    classes = sorted(chosen, key=lambda k: len(by_class[k]))
    others = [k for k in range(K) if k not in chosen]
    # Rows are right by a margin, so that gaps of MIN_GAP are ties. The margin is another for each
    # pair of classes, so that no other row ties and rounding decides nothing.
    leads = {
        (i, j): np.unique(by_class[i][:, i] - by_class[i][:, j])
        - MIN_GAP * (0.4 + 0.2 * (0.618034 * (1 + i * K + j) % 1))
        for i, j in permutations(classes, 2)
    }
    for tree in _trees(len(classes)):
        gamma = np.zeros((1, K))
        for child, parent in tree:
            i = classes[parent]
            j = classes[child]
            longer = np.repeat(gamma, len(leads[i, j]), axis=0)
            longer[:, j] = np.subtract.outer(gamma[:, i], leads[i, j]).ravel()
            gamma = longer
        gamma[:, others] = gamma[:, classes].max(axis=1, keepdims=True) + OUT_OF_REACH
        yield gamma


@cache
def _trees(size: int) -> list[list[tuple[int, int]]]:
    """All trees on the nodes 0 to size - 1: pairs (child, parent), each node after its parent."""
    parents = np.array(list(product(range(size), repeat=size - 1)))
    parents = np.insert(parents, 0, 0, axis=1)  # the root is its own parent
    ancestors = parents
    depth = (parents != 0).astype(np.intp)
    for _ in range(size - 2):
        ancestors = np.take_along_axis(parents, ancestors, axis=1)
        depth += ancestors != 0
    is_tree = (ancestors == 0).all(axis=1)
    parents = parents[is_tree]
    order = np.argsort(depth[is_tree, 1:], axis=1, kind="stable") + 1
    return [
        [(child, above[child]) for child in children]
        for above, children in zip(parents.tolist(), order.tolist(), strict=True)
    ]
