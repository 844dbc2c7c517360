"""Bins that are pulled towards the mean forecast of their own rows.

The value of a bin is ``(class weights + smoothing + c * mean forecast) / their sum``. A bin of few
rows then says what the model says rather than that all classes are alike. How much the model
deserves is in the labels: given the bins, these are draws from a Dirichlet-multinomial
distribution with parameters ``smoothing + c * mean forecast``, and c is the likeliest weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from isoroc._counts import BinaryCounts
from isoroc._growth.grow import GrowthOptions, grow_with_leaves, limits_of
from isoroc._growth.growth import LEAST_SLACK
from isoroc._growth.pav import Blocks, grow_on_blocks
from isoroc._input import Sample, slices
from isoroc._monotonicity import bounds_below, bounds_of, largest_slack, regions_held
from isoroc._simplex import Floats, Ints, second_probabilities
from isoroc._tree import BinTree

#: Weights to choose from. Where the model is calibrated the likelihood grows without end, but ever
#: more slowly, and more than a hundred rows were no better on test rows.
WEIGHTS = np.append(0.0, np.geomspace(0.01, 100.0, 33))


class Pulled(NamedTuple):
    """A tree whose bins are pulled towards their mean forecasts."""

    tree: BinTree
    means: Floats
    """(N, K): mean forecast of the rows of each node,"""
    weight: float
    """and its weight in the value of the node."""


def grow_pulled(sample: Sample, options: GrowthOptions, weight: float | None) -> Pulled:
    """Tree as of `grow_tree`, with mean forecasts as a further part of the prior.

    Two classes: blocks of the isotonic regression are pooled until their values increase, and the
    values of every stage of the path do. More classes: the tree is that of `grow_tree`, and the
    weight the largest one that leaves every split its certificate.

    Parameters
    ----------
    sample : Sample
    options : GrowthOptions
    weight : float or None
        Weight of the mean forecasts, at most; None finds it by evidence.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> sample = Sample(p, (rng.random(200) < p).astype(np.uint8))
    >>> pulled = grow_pulled(sample, GrowthOptions(smoothing=np.full(2, 0.5)), None)
    >>> pulled.weight
    100.0
    """
    smoothing = options.smoothing
    if sample.n_classes == 2 and options.monotonicity is not None:
        counts = BinaryCounts.from_sample(sample)
        low, high, weights = counts.isotonic_blocks()
        sums = counts.forecasts_in(low, high, sample.scores)
        if weight is None:
            mean = sums / weights.sum(axis=1)
            weight = likeliest_weight(weights, np.column_stack([1 - mean, mean]), smoothing)
        blocks = Blocks(low, high, weights, sums)
        tree, means = grow_on_blocks(blocks, forecast_weight=weight, **limits_of(sample, options))
        return Pulled(tree, means, weight)
    tree, leaves = grow_with_leaves(sample, options)
    if leaves is None:
        means = mean_forecasts(tree, sample)
    else:
        means = _means(tree, tree.bin_of(leaves.points.forecasts), leaves.sums)
    if weight is None:
        weight = likeliest_weight(tree.class_weights[tree.bins], means[tree.bins], smoothing)
    slack = _slack_of(tree, sample, options)
    least = LEAST_SLACK[options.monotonicity]
    for less in (weight, *(float(c) for c in WEIGHTS[:0:-1] if c < weight)):
        if slack(pulled_values(tree, means, smoothing, less)) >= least:
            return Pulled(tree, means, less)
    return Pulled(tree, means, 0.0)  # growth has seen to it that these values have certificates


def likeliest_weight(class_weights: Floats, means: Floats, smoothing: Floats) -> float:
    """Weight of the mean forecasts of bins under which their labels are likeliest.

    Parameters
    ----------
    class_weights, means : ndarrays of shape (B, K)
        Weight of each class in each bin, and mean forecast of its rows.
    smoothing : ndarray of shape (K,)
        What else is added to the class weights of a bin; above 0.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.array([[18.0, 2.0], [7.0, 13.0]])
    >>> means = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> likeliest_weight(labels, means, np.full(2, 0.5))
    100.0
    >>> round(likeliest_weight(labels, means[::-1], np.full(2, 0.5)), 2)  # forecasts that mislead
    0.13
    """
    weight = class_weights.sum(axis=1)

    def evidence(c: float) -> float:
        prior = smoothing + c * means
        total = prior.sum(axis=1)
        of_bins = gammaln(total) - gammaln(total + weight)
        return float(of_bins.sum() + (gammaln(prior + class_weights) - gammaln(prior)).sum())

    return float(max(WEIGHTS, key=evidence))


def mean_forecasts(tree: BinTree, sample: Sample) -> Floats:
    """Mean forecast of the rows of a sample in each node of its tree, shape (N, K)."""
    B = len(tree.bins)
    sums = np.zeros((B, sample.n_classes))
    for rows in slices(len(sample)):
        P = sample.forecasts[rows]
        bin_of = tree.bin_of(P)
        if P.ndim == 1:
            p = second_probabilities(P, sample.scores)
            P = np.column_stack([1 - p, p])
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


def pulled_values(tree: BinTree, means: Floats, smoothing: Floats, weight: float) -> Floats:
    """Values of the bins, shape (B, K)."""
    values = tree.class_weights + smoothing + weight * means
    return np.asarray(values / values.sum(axis=1, keepdims=True))[tree.bins]


def _slack_of(tree: BinTree, sample: Sample, options: GrowthOptions) -> Callable[[Floats], float]:
    """Smallest slack of the splits as a function of the values of the bins."""
    if options.monotonicity is None or not tree.n_splits:
        return lambda _: np.inf
    if options.monotonicity == "tree":
        return lambda values: float(largest_slack(bounds_below(tree, values)).min())
    held = regions_held(tree, sample.forecasts)
    return lambda values: float(largest_slack(bounds_of(values, held)).min())
