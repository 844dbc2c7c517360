"""Cross-fitted IRP: E[Y | forecast] for each row, estimated from other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from isoroc._folds import deal_folds
from isoroc._growth import GrowthOptions, grow_tree
from isoroc._input import InputError, Sample
from isoroc._simplex import Floats
from isoroc._top import TopReduction
from isoroc._tree import BinTree
from isoroc.metrics._grouping import sum_rows

#: Rows are dealt into this many folds,
N_FOLDS = 5
#: and into two where there are more rows than this: then half of them are plenty.
MANY_ROWS = 100_000
#: More classes than FULL are reduced to the TOP largest probabilities and the rest.
FULL, TOP = 4, 2
#: Weight of rows that moves the residual of a bin half way from that of the bin it was split from.
SHRINKAGE = 100.0


def calibrated(sample: Sample) -> Floats:
    """E[Y | forecast] for each row, as IRP learns it from the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.tile([0.1, 0.9], 500)
    >>> y = (np.arange(1000) % 4 == 1).astype(np.uint8)
    >>> calibrated(Sample(p, y, None))[:4].round(1)
    array([0. , 0.5, 0. , 0.5])
    """
    return _cross_fit(sample, _learn_values)


def directions(sample: Sample) -> Floats:
    """Sign of E[Y | forecast] - forecast for each row, as IRP partitions of other rows tell it.

    A bin's forecasts differ among themselves, and by more than its mean label differs from their
    mean. So this rests on mean residuals, each shrunk to that of the bin above (hierarchical
    shrinkage, Agarwal et al. 2022), for which deep bins say little and the first splits much.
    """
    return _cross_fit(sample, _learn_signs)


def reduce_classes(sample: Sample) -> Sample:
    """The sample; with many classes, the sample of the largest probabilities and the rest."""
    if sample.forecasts.ndim == 1 or sample.forecasts.shape[1] <= FULL:
        return sample
    return TopReduction(TOP, 0.0).reduce_sample(sample)


def _cross_fit(sample: Sample, learn: Callable[[Sample, Floats], Floats]) -> Floats:
    """What is learned for the forecasts of each fold from the other folds.

    Which rows share a fold is fixed, so that metrics are functions of their input. Only ratios of
    weights matter: they are scaled to sum to Kish's effective number of rows.
    """
    n = len(sample.codes)
    if n < 2:
        raise InputError("y_prob", None, "one row only", "holding rows out takes two or more")
    if sample.weights is not None:
        weights = sample.weights * (sample.weights.sum() / (sample.weights @ sample.weights))
        sample = replace(sample, weights=weights)
    n_folds = N_FOLDS if n <= MANY_ROWS else 2
    fold = deal_folds(n, n_folds, np.random.default_rng(0))
    learned = np.empty_like(sample.forecasts)
    for held_out in range(fold.max() + 1):
        inside = fold == held_out
        learned[inside] = learn(sample.take(~inside), sample.forecasts[inside])
    return learned


def _learn_values(sample: Sample, new: Floats) -> Floats:
    """Values of IRP, grown on a sample, for other forecasts."""
    if sample.forecasts.ndim == 2 and sample.forecasts.shape[1] > FULL:
        reduction = TopReduction.fit(TOP, sample)
        return reduction.expand(_learn_values(reduce_classes(sample), reduction.reduce(new)), new)
    tree = _grow(sample)
    values = tree.values(pseudocount=1.0)[tree.bins][tree.bin_of(new)]
    return values if new.ndim == 2 else np.asarray(values[:, 1])


def _learn_signs(sample: Sample, new: Floats) -> Floats:
    tree = _grow(sample)
    bin_of = tree.bin_of(sample.forecasts)
    columns = sample.forecasts.reshape(len(sample.codes), -1)
    expected = np.zeros((len(tree.class_weights), columns.shape[1]))  # of each node and class
    expected[tree.bins] = sum_rows(bin_of, columns, sample.weights, len(tree.bins))
    for s in reversed(range(tree.n_splits)):
        children = tree.children[s]
        expected[tree.split_nodes[s]] = expected[children[children >= 0]].sum(axis=0)

    weight = tree.class_weights.sum(axis=1, keepdims=True)
    own = (tree.class_weights[:, -columns.shape[1] :] - expected) / weight
    shrunk = np.zeros_like(own)
    trust = weight / (weight + SHRINKAGE)
    shrunk[0] = trust[0] * own[0]
    for s in range(tree.n_splits):
        parent = shrunk[tree.split_nodes[s]]
        children = tree.children[s][tree.children[s] >= 0]
        shrunk[children] = parent + trust[children] * (own[children] - parent)
    signs = np.sign(shrunk[tree.bins][tree.bin_of(new)])
    return signs if new.ndim == 2 else np.asarray(signs[:, 0])


def _grow(sample: Sample) -> BinTree:
    """The tree that `IRPCalibrator` would grow."""
    K = sample.n_classes
    return grow_tree(sample, GrowthOptions(smoothing=np.full(K, 1 / K)))
