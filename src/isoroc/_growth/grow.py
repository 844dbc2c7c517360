"""grow_tree: from a sample to the tree of its bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from isoroc._core.rows import route
from isoroc._counts import BinaryCounts, Points
from isoroc._growth.best_first import grow, regrow
from isoroc._growth.grid import Grid
from isoroc._growth.growth import Growth, Monotonicity
from isoroc._growth.pav import grow_isotonic
from isoroc._growth.sweep import Sweep
from isoroc._input import Sample, slices
from isoroc._progress import Report
from isoroc._simplex import Floats
from isoroc._tree import BinTree

#: Seed of growth where none is given: what RandomState(0) draws.
SEED = 209652396


@dataclass(frozen=True, eq=False)
class GrowthOptions:
    """How a tree is grown; the parameters of `IRPCalibrator` of the same names.

    Attributes
    ----------
    smoothing : ndarray of shape (K,)
        ``pseudocount * prior``, what is added to the class weights of a bin for its value.
    min_bin_weight, min_lift : float or None
        None stands for the default: no condition for two classes. For more, a bin has a thirtieth
        of the total weight, but need not have more than 20, and the lift must be that of chance.
    n_threads : int
        Searches to run at a time.
    random_state : RandomState or None
        Draws a seed where growth needs one; None stands for a fixed one.
    report : callable
        Is called with a line of text as growth goes on.
    """

    smoothing: Floats
    monotonicity: Monotonicity = "tree"
    search: Literal["sweep", "grid"] = "sweep"
    grid_size: int | None = None
    n_starts: int = 1
    max_bins: int | None = None
    min_bin_weight: float | None = None
    min_lift: float | None = None
    max_cells: int = 10_000
    n_threads: int = 1
    random_state: np.random.RandomState | None = None
    report: Report = lambda _: None


def grow_tree(sample: Sample, options: GrowthOptions) -> BinTree:
    """Tree of the isotonic recursive partition of a sample.

    Two classes are pooled exactly, unless growth is to be free of any condition. Otherwise the
    tree is grown best first on counts, and where these are cells, its splits are made again on the
    rows themselves.

    Examples
    --------
    >>> import numpy as np
    >>> sample = Sample(np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 0, 1, 1], dtype=np.uint8))
    >>> tree = grow_tree(sample, GrowthOptions(smoothing=np.zeros(2)))
    >>> tree.thresholds[:, 1], tree.class_weights[tree.bins]
    (array([0.25]), array([[2., 0.], [0., 2.]]))
    """
    tree, _ = grow_with_leaves(sample, options)
    return tree


def grow_with_leaves(sample: Sample, options: GrowthOptions) -> tuple[BinTree, Leaves | None]:
    """Tree of `grow_tree`, and the leaves in which all rows were counted, if they were."""
    K = sample.n_classes
    limits = limits_of(sample, options)
    if K == 2 and options.monotonicity is not None:
        return grow_isotonic(BinaryCounts.from_sample(sample), **limits), None

    def start(counts: Points) -> Growth:
        return Growth(counts, monotonicity=options.monotonicity, **limits)

    # Scores of two classes may be any real numbers: they stay exact, no cells.
    max_cells = None if K == 2 else options.max_cells
    counts = Points.from_arrays(*sample.arrays, max_cells=max_cells)
    search = (
        Grid(K, options.grid_size)
        if options.search == "grid"
        else Sweep(options.n_starts, _seed(options.random_state), options.n_threads)
    )
    tree = grow(start(counts), search, report=options.report)
    if counts.exact:
        return tree, None
    if options.monotonicity == "global":  # a split answers for rows that it does not see
        return regrow(tree, start(Points.of_rows(sample))), None
    leaves = Leaves.of(tree, sample)
    return regrow(tree, start(leaves.points)), leaves


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaves of a tree that hold rows.

    Attributes
    ----------
    points : Points
        One of the rows of each leaf, with the weights of all. Every split above a leaf sends all
        its rows to the same region, so splits of the tree divide these points as they divide the
        rows. A region that has no child in the tree counts as a leaf too.
    sums : ndarray of shape (m, K)
        Sum of the weighted forecasts in each leaf.
    """

    points: Points
    sums: Floats

    @classmethod
    def of(cls, tree: BinTree, sample: Sample) -> Leaves:
        """Leaves of a tree into which the rows of a sample fall."""
        K = sample.n_classes
        children = tree.children.copy()
        missing = children < 0
        m = len(tree.class_weights) + np.count_nonzero(missing)
        children[missing] = np.arange(len(tree.class_weights), m)
        split_of_node = np.full(m, -1, dtype=np.intp)
        split_of_node[tree.split_nodes] = np.arange(tree.n_splits)
        forecasts, codes, weights = sample.arrays
        points, class_weights, sums = np.zeros((3, m, K))
        held = np.zeros(m, dtype=np.bool_)
        for rows in slices(len(sample)):
            P, some = forecasts[rows], None if weights is None else weights[rows]
            leaf = route(P, tree.thresholds, children, split_of_node)
            new = ~held[leaf]
            points[leaf[new]] = P[new]
            held[leaf] = True
            class_weights += np.bincount(leaf * K + codes[rows], some, m * K).reshape(m, K)
            for k, column in enumerate(P.T):
                sums[:, k] += np.bincount(leaf, column if some is None else column * some, m)
        return cls(Points(points[held], class_weights[held]), sums[held])


def limits_of(sample: Sample, options: GrowthOptions) -> dict[str, Any]:
    """What bounds growth on a sample, with the defaults that depend on it."""
    K = sample.n_classes
    bin_weight = 0.0 if K == 2 else min(20.0, float(sample.class_weights().sum()) / 30)
    return {
        "smoothing": options.smoothing,
        "max_bins": options.max_bins,
        "min_bin_weight": _default(options.min_bin_weight, bin_weight),
        "min_lift": _default(options.min_lift, 0.0 if K == 2 else 1.0),
    }


def _seed(random_state: np.random.RandomState | None) -> int:
    return SEED if random_state is None else random_state.randint(2**31 - 1)


def _default(value: float | None, default: float) -> float:
    return default if value is None else value
