"""From a sample to the tree of its bins: grown, pulled to the forecasts of its rows, or fixed.

With ``prior="forecast"`` the value of a bin has the pseudocounts ``constant + c * mean forecast``.
Given the bins, labels are draws from a Dirichlet-multinomial distribution with these parameters,
and c is the one that makes them likeliest.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from isoroc._core.rows import route
from isoroc._core.simplex import as_matrix, second_probabilities
from isoroc._core.tree import BinTree, bin_values
from isoroc._core.types import Floats, Ints
from isoroc._counts import BinaryCounts, Points
from isoroc._growth.best_first import LEAST_SLACK, Growth, GrowthOptions, grow, regrow
from isoroc._growth.pav import Blocks, grow_isotonic
from isoroc._growth.search import GridSearch, Sweep
from isoroc._input import Sample, slices
from isoroc._maps.monotonicity import bounds_of, largest_slack, regions_held

#: Pseudocounts of mean forecasts to choose from. Where the model is calibrated the likelihood grows
#: without end, but ever more slowly, and more than a hundred rows were no better on test rows.
FORECAST_PSEUDOCOUNTS = np.append(0.0, np.geomspace(0.01, 100.0, 33))


def grow_tree(sample: Sample, options: GrowthOptions) -> BinTree:
    """Tree of the isotonic recursive partition of a sample.

    Two classes are pooled exactly, unless growth is free of any condition. Otherwise the tree is
    grown best first on counts. If these are counts of cells, its splits are repeated on the rows.
    """
    options = options.for_sample(sample)
    if _is_isotonic(sample, options):
        return grow_isotonic(Blocks.of(BinaryCounts.from_sample(sample)), options)[0]
    return _grow_best_first(sample, options)[0]


class Pulled(NamedTuple):
    """A tree whose bins may be pulled towards their mean forecasts."""

    tree: BinTree
    means: Any = None  # (N, K) array: mean forecast of the rows of each node
    forecast_pseudocount: float = 0.0  # rows that a mean forecast counts as in its node
    bin_of: Ints | None = None  # (n,): bin of each row, where it had to be found


def grow_pulled(
    sample: Sample,
    options: GrowthOptions,
    forecast_pseudocount: float | None,
    tempered: Floats | None = None,
) -> Pulled:
    """Tree as from `grow_tree`, with mean forecasts as a further part of the prior.

    They count as `forecast_pseudocount` rows. None learns the number by evidence. For more than
    two classes, `tempered` forecasts, shape (n, K), may replace the plain ones, and the pseudocount
    is lowered to the largest one that leaves every split its certificate.
    """
    options = options.for_sample(sample)
    constant = options.pseudocounts
    if _is_isotonic(sample, options):
        blocks = Blocks.of(BinaryCounts.from_sample(sample), sample.kind.scores)
        if forecast_pseudocount is None:
            forecast_pseudocount = likeliest_pseudocount(blocks.weights, blocks.means(), constant)
        tree, sums = grow_isotonic(blocks, options, forecast_pseudocount)
        means = as_matrix((sums / tree.class_weights.sum(axis=1)).clip(0, 1))
        return Pulled(tree, means, forecast_pseudocount)
    tree, bin_of = _grow_best_first(sample, options)
    means = mean_forecasts(tree, bin_of, sample, tempered)
    c = forecast_pseudocount
    if c is None:
        c = likeliest_pseudocount(tree.class_weights[tree.bins], means[tree.bins], constant)
    keeps_order = _order_check(tree, sample, options)
    for lower in (c, *(float(other) for other in FORECAST_PSEUDOCOUNTS[:0:-1] if other < c)):
        values = bin_values(tree.class_weights, constant + lower * means)[tree.bins]
        if keeps_order(values):
            return Pulled(tree, means, lower, bin_of)
    return Pulled(tree, means, 0.0, bin_of)  # growth kept certificates of values without a pull


def likeliest_pseudocount(class_weights: Floats, means: Floats, constant: Floats) -> float:
    """Pseudocount of the mean forecasts (B, K) of bins under which their labels are likeliest."""
    pseudocounts = constant + FORECAST_PSEUDOCOUNTS[:, None, None] * means
    total = constant.sum() + FORECAST_PSEUDOCOUNTS[:, None]  # means sum to 1
    of_bins = gammaln(total) - gammaln(total + class_weights.sum(axis=1))
    of_classes = gammaln(pseudocounts + class_weights) - gammaln(pseudocounts)
    evidence = of_bins.sum(axis=1) + of_classes.sum(axis=(1, 2))
    return float(FORECAST_PSEUDOCOUNTS[evidence.argmax()])


def mean_forecasts(
    tree: BinTree, bin_of: Ints, sample: Sample, tempered: Floats | None = None
) -> Floats:
    """Mean forecast, plain or tempered, of the rows of a sample in each node, shape (N, K)."""
    B = len(tree.bins)
    sums = np.zeros((B, sample.n_classes))
    for rows in slices(len(sample)):
        P = sample.forecasts[rows]
        if tempered is not None:
            P = tempered[rows]
        elif P.ndim == 1:
            P = as_matrix(second_probabilities(P, sample.kind.scores))
        weights = 1.0 if sample.weights is None else sample.weights[rows]
        for k, column in enumerate(P.T):
            sums[:, k] += np.bincount(bin_of[rows], column * weights, B)
    return bin_values(tree.add_up(sums), 0.0)


def _order_check(tree: BinTree, sample: Sample, options: GrowthOptions) -> Callable[[Floats], bool]:
    """Whether every split keeps its certificate, as a function of the values of the bins."""
    if options.monotonicity is None or not tree.n_splits:
        return lambda _: True
    held = regions_held(tree, sample.forecasts if options.monotonicity == "global" else None)
    every = np.arange(tree.n_splits)
    suspects = every[:0]  # splits that failed last, which are likely to fail again

    def keeps_order(values: Floats) -> bool:
        nonlocal suspects
        for splits in (suspects, every):
            slack = largest_slack(bounds_of(values, held[splits]))
            failing = slack < LEAST_SLACK[options.monotonicity]
            if failing.any():
                suspects = splits[failing]
                return False
        return True

    return keeps_order


def _is_isotonic(sample: Sample, options: GrowthOptions) -> bool:
    return sample.n_classes == 2 and options.monotonicity is not None


def _grow_best_first(sample: Sample, options: GrowthOptions) -> tuple[BinTree, Ints]:
    """A tree, and the bin of each row."""
    K = sample.n_classes
    # Scores of two classes may be any real numbers: they stay exact, no cells.
    max_cells = None if K == 2 else options.max_cells
    counts = Points.from_arrays(*sample.arrays, max_cells=max_cells)
    if options.search == "grid":
        tree = grow(Growth(counts, options), GridSearch(K, options.grid_size))
    else:
        state = options.random_state
        seed = (
            209652396 if state is None else state.randint(2**31 - 1)
        )  # as RandomState(0) draws it
        tree = grow(Growth(counts, options), Sweep(seed))
    if counts.exact:
        return tree, tree.bin_of(sample.forecasts)
    if options.monotonicity == "global":  # its certificate includes rows that it does not see
        tree = regrow(tree, Growth(Points.of_rows(sample), options))
        return tree, tree.bin_of(sample.forecasts)
    points, leaf = points_of_leaves(tree, sample)
    tree = regrow(tree, Growth(points, options))
    return tree, tree.bin_of(points.forecasts)[leaf]


def points_of_leaves(tree: BinTree, sample: Sample) -> tuple[Points, Ints]:
    """One row of each nonempty leaf, with the weights of all its rows, and the leaf of each row.

    Every split above a leaf sends all its rows to the same region, so splits divide these points as
    they divide the rows. A region that has no child in the tree counts as a leaf.
    """
    K = sample.n_classes
    children = tree.children.copy()
    missing = children < 0
    m = len(tree.class_weights) + np.count_nonzero(missing)
    children[missing] = np.arange(len(tree.class_weights), m)
    split_of_node = np.full(m, -1, dtype=np.intp)
    split_of_node[tree.split_nodes] = np.arange(tree.n_splits)
    forecasts, codes, weights = sample.arrays
    points, class_weights = np.zeros((2, m, K))
    held = np.zeros(m, dtype=np.bool_)
    leaf_of = np.empty(len(sample), dtype=np.intp)
    for rows in slices(len(sample)):
        P = forecasts[rows]
        some = None if weights is None else weights[rows]
        leaf_of[rows] = leaf = route(P, tree.thresholds, children, split_of_node)
        new = ~held[leaf]
        points[leaf[new]] = P[new]
        held[leaf] = True
        class_weights += np.bincount(leaf * K + codes[rows], some, m * K).reshape(m, K)
    number = np.cumsum(held) - 1
    return Points(points[held], class_weights[held]), number[leaf_of]
