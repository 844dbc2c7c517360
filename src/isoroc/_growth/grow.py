"""grow_tree: from a sample to the tree of its bins; and bins pulled to the forecasts of their rows.

With ``prior="forecast"`` the value of a bin has the pseudocounts ``constant + c * mean forecast``.
A bin of few rows then says what the model says rather than that all classes are alike. How much the
model deserves is in the labels: given the bins, these are draws from a Dirichlet-multinomial
distribution with the pseudocounts as parameters, and c is the one that makes them likeliest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from isoroc._core.rows import route
from isoroc._counts import BinaryCounts, Points
from isoroc._growth.best_first import LEAST_SLACK, Growth, GrowthOptions, grow, regrow
from isoroc._growth.grid import Grid
from isoroc._growth.pav import Blocks, grow_isotonic
from isoroc._growth.sweep import Sweep
from isoroc._input import Sample, slices
from isoroc._monotonicity import bounds_of, largest_slack, regions_held
from isoroc._simplex import Floats, Ints, as_matrix, second_probabilities
from isoroc._tree import BinTree, bin_values

#: Seed of growth where none is given: what RandomState(0) draws.
SEED = 209652396
#: Pseudocounts of mean forecasts to choose from. Where the model is calibrated the likelihood grows
#: without end, but ever more slowly, and more than a hundred rows were no better on test rows.
FORECAST_PSEUDOCOUNTS = np.append(0.0, np.geomspace(0.01, 100.0, 33))


def grow_tree(sample: Sample, options: GrowthOptions) -> BinTree:
    """Tree of the isotonic recursive partition of a sample.

    Two classes are pooled exactly, unless growth is to be free of any condition. Otherwise the tree
    is grown best first on counts, and where these are cells, its splits are made again on the rows.
    """
    options = options.for_sample(sample)
    if _is_isotonic(sample, options):
        return grow_isotonic(Blocks.of(BinaryCounts.from_sample(sample)), options).tree
    return _grow_best_first(sample, options)[0]


class Pulled(NamedTuple):
    """A tree whose bins are pulled towards their mean forecasts."""

    tree: BinTree
    means: Floats  # (N, K): mean forecast of the rows of each node,
    forecast_pseudocount: float  # and the rows that it stands for in the value of the node


def grow_pulled(
    sample: Sample,
    options: GrowthOptions,
    forecast_pseudocount: float | None,
    tempered: Floats | None = None,
) -> Pulled:
    """Tree as of `grow_tree`, with mean forecasts as a further part of the prior.

    They stand for `forecast_pseudocount` rows; None finds the number by evidence. Two classes:
    blocks are pooled until their values increase. More classes: the tree is that of `grow_tree`,
    the means may be of `tempered` forecasts, shape (n, K), and the pseudocount is lowered to the
    largest one that leaves every split its certificate.
    """
    options = options.for_sample(sample)
    constant = options.pseudocounts
    if _is_isotonic(sample, options):
        blocks = Blocks.of(BinaryCounts.from_sample(sample), sample.kind.scores)
        if forecast_pseudocount is None:
            forecast_pseudocount = likeliest_pseudocount(blocks.weights, blocks.means(), constant)
        path = grow_isotonic(blocks, options, forecast_pseudocount)
        return Pulled(path.tree, path.means(), forecast_pseudocount)
    tree, leaves = _grow_best_first(sample, options)
    if leaves is None or tempered is not None:
        means = mean_forecasts(tree, sample, tempered)
    else:
        means = leaves.means_in(tree)
    most = forecast_pseudocount
    if most is None:
        most = likeliest_pseudocount(tree.class_weights[tree.bins], means[tree.bins], constant)
    slack = _slack_of(tree, sample, options)
    for c in (most, *(float(c) for c in FORECAST_PSEUDOCOUNTS[:0:-1] if c < most)):
        values = bin_values(tree.class_weights, constant + c * means)[tree.bins]
        if slack(values) >= LEAST_SLACK[options.monotonicity]:
            return Pulled(tree, means, c)
    return Pulled(tree, means, 0.0)  # growth has seen to it that these values have certificates


def pull_tree(
    tree: BinTree, sample: Sample, constant: Floats, forecast_pseudocount: float | None
) -> Pulled:
    """A tree grown without regard to mean forecasts, pulled towards those of its sample.

    `constant` holds the pseudocounts that are the same for all bins.
    """
    means = mean_forecasts(tree, sample)
    c = forecast_pseudocount
    if c is None:
        c = likeliest_pseudocount(tree.class_weights[tree.bins], means[tree.bins], constant)
    return Pulled(tree, means, c)


def likeliest_pseudocount(class_weights: Floats, means: Floats, constant: Floats) -> float:
    """Pseudocount of the mean forecasts of bins under which their labels are likeliest.

    Class weights and means have shape (B, K); `constant`, (K,), is added to all bins.
    """
    weight = class_weights.sum(axis=1)

    def evidence(c: float) -> float:
        pseudocounts = constant + c * means
        total = pseudocounts.sum(axis=1)
        of_bins = gammaln(total) - gammaln(total + weight)
        of_classes = gammaln(pseudocounts + class_weights) - gammaln(pseudocounts)
        return float(of_bins.sum() + of_classes.sum())

    return float(max(FORECAST_PSEUDOCOUNTS, key=evidence))


def mean_forecasts(tree: BinTree, sample: Sample, tempered: Floats | None = None) -> Floats:
    """Mean forecast, plain or tempered, of the rows of a sample in each node, shape (N, K)."""
    B = len(tree.bins)
    sums = np.zeros((B, sample.n_classes))
    for rows in slices(len(sample)):
        P = sample.forecasts[rows]
        bin_of = tree.bin_of(P)
        if tempered is not None:
            P = tempered[rows]
        elif P.ndim == 1:
            P = as_matrix(second_probabilities(P, sample.kind.scores))
        weights = 1.0 if sample.weights is None else sample.weights[rows]
        for k, column in enumerate(P.T):
            sums[:, k] += np.bincount(bin_of, column * weights, B)
    return _means(tree, np.arange(B), sums)


def _means(tree: BinTree, bin_of: Ints, sums: Floats) -> Floats:
    """Mean forecast of each node, shape (N, K), from sums of forecasts in parts of the bins."""
    total = np.zeros_like(tree.class_weights)
    np.add.at(total, tree.bins[bin_of], sums)
    for node, children in zip(tree.split_nodes[::-1], tree.children[::-1], strict=True):
        total[node] = total[children[children >= 0]].sum(axis=0)
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def _slack_of(tree: BinTree, sample: Sample, options: GrowthOptions) -> Callable[[Floats], float]:
    """Smallest slack of the splits as a function of the values of the bins."""
    if options.monotonicity is None or not tree.n_splits:
        return lambda _: np.inf
    held = regions_held(tree, sample.forecasts if options.monotonicity == "global" else None)
    return lambda values: float(largest_slack(bounds_of(values, held)).min())


def _is_isotonic(sample: Sample, options: GrowthOptions) -> bool:
    return sample.n_classes == 2 and options.monotonicity is not None


def _grow_best_first(sample: Sample, options: GrowthOptions) -> tuple[BinTree, Leaves | None]:
    """Tree grown best first, and the leaves in which all rows were counted, if they were."""
    K = sample.n_classes
    # Scores of two classes may be any real numbers: they stay exact, no cells.
    max_cells = None if K == 2 else options.max_cells
    counts = Points.from_arrays(*sample.arrays, max_cells=max_cells)
    if options.search == "grid":
        tree = grow(Growth(counts, options), Grid(K, options.grid_size))
    else:
        state = options.random_state
        seed = SEED if state is None else state.randint(2**31 - 1)
        tree = grow(Growth(counts, options), Sweep(options.n_starts, seed, options.n_threads))
    if counts.exact:
        return tree, None
    if options.monotonicity == "global":  # a split answers for rows that it does not see
        return regrow(tree, Growth(Points.of_rows(sample), options)), None
    leaves = Leaves.of(tree, sample)
    return regrow(tree, Growth(leaves.points, options)), leaves


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaves of a tree that hold rows: a point of each, and the sums of their weighted forecasts.

    A point is one of the rows, with the weights of all. Every split above a leaf sends all its rows
    to the same region, so splits of the tree divide these points as they divide the rows. A region
    that has no child in the tree counts as a leaf too.
    """

    points: Points
    sums: Floats

    def means_in(self, tree: BinTree) -> Floats:
        """Mean forecast of each node of a tree with splits of theirs, shape (N, K)."""
        return _means(tree, tree.bin_of(self.points.forecasts), self.sums)

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
