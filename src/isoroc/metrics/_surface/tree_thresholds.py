"""The ROC surface of any number of classes, exactly, from a finite set of thresholds.

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

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product

import numpy as np

from isoroc._estimation.grouping import distinct_rows
from isoroc._growth import MIN_GAP
from isoroc._simplex import Floats
from isoroc.metrics._surface.roc_points import OUT_OF_REACH, Cases, sum_to_one

#: Number of thresholds to evaluate at a time, at least.
BLOCK = 2**15
#: Rows are right by this margin, so that rounding decides nothing and gaps of MIN_GAP are ties.
MARGIN = MIN_GAP / 2


def count_thresholds(cases: Cases) -> int:
    """Number of thresholds of all classes; those of subsets are fewer."""
    sizes = np.bincount(cases.codes, minlength=cases.forecasts.shape[1]).tolist()
    return int(min(sizes) * sum(sizes) ** (len(sizes) - 2))


def all_points(cases: Cases) -> Floats:
    """Rows that include every undominated ROC point of all classes and of every subset of them."""
    K = cases.forecasts.shape[1]
    subsets = (chosen for size in range(2, K + 1) for chosen in combinations(range(K), size))
    rows = np.hstack([np.eye(K), sum_to_one(OUT_OF_REACH * (1 - np.eye(K)))])
    waiting: list[Floats] = []
    n_waiting = 0
    for thresholds in (block for chosen in subsets for block in _thresholds(cases, chosen)):
        waiting.append(thresholds)
        n_waiting += len(thresholds)
        if n_waiting >= BLOCK:
            rows = _add_points(rows, cases, waiting)
            waiting, n_waiting = [], 0
    return _add_points(rows, cases, waiting)


def _add_points(rows: Floats, cases: Cases, blocks: list[Floats]) -> Floats:
    """Rows and those of more thresholds, one for each distinct point."""
    if blocks:
        thresholds = np.vstack(blocks)
        rows = np.vstack([rows, np.hstack([cases.reach(thresholds), sum_to_one(thresholds)])])
    points = np.ascontiguousarray(rows[:, : cases.forecasts.shape[1]])
    return rows[distinct_rows(points)]


def _thresholds(cases: Cases, chosen: Sequence[int]) -> Iterator[Floats]:
    """Thresholds of all trees on some of the classes, one array per tree."""
    K = cases.forecasts.shape[1]
    by_class = [cases.forecasts[cases.codes == k] for k in range(K)]
    # The first one is the root: the fewer rows it has, the fewer combinations there are.
    classes = sorted(chosen, key=lambda k: len(by_class[k]))
    others = [k for k in range(K) if k not in chosen]
    leads = {
        (i, j): np.unique(by_class[i][:, i] - by_class[i][:, j]) - MARGIN
        for i in classes
        for j in classes
        if i != j
    }
    for parents in _trees(len(classes)):
        gamma = np.zeros((1, K))
        for child, parent in parents:
            i, j = classes[parent], classes[child]
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
    ancestors, depth = parents, (parents != 0).astype(np.intp)
    for _ in range(size - 2):
        ancestors = np.take_along_axis(parents, ancestors, axis=1)
        depth += ancestors != 0
    is_tree = (ancestors == 0).all(axis=1)
    parents, order = parents[is_tree], np.argsort(depth[is_tree, 1:], axis=1, kind="stable") + 1
    return [
        [(child, above[child]) for child in children]
        for above, children in zip(parents.tolist(), order.tolist(), strict=True)
    ]
