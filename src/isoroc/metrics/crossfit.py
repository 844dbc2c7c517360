"""Cross-fitted IRP: what the labels of other rows say about each forecast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc.bins import BinTree
from isoroc.counts import BinaryCounts, Counts
from isoroc.growth.best_first import Growth, grow, regrow
from isoroc.growth.pav import grow_isotonic
from isoroc.growth.sweep import Sweep
from isoroc.metrics.grouping import sum_rows
from isoroc.ranks import TopReduction
from isoroc.simplex import Floats

#: Rows are dealt into this many folds,
N_FOLDS = 5
#: and into two where there are more rows than this: then half of them are plenty.
MANY_ROWS = 100_000
#: Cells that trees for three classes and more are grown on, as in `IRPCalibrator`.
MAX_CELLS = 10_000
#: More classes than FULL are reduced to the TOP largest probabilities and the rest.
FULL, TOP = 4, 2
#: Weight of rows that moves the residual of a bin half way from that of the bin it was split from.
SHRINKAGE = 100.0


class View(NamedTuple):
    """One question of calibration: forecasts, what came true, and weights."""

    forecasts: Floats
    """A forecast array, 1-D for two classes."""
    codes: NDArray[np.unsignedinteger[Any]]
    weights: Floats | None

    def take(self, rows: NDArray[Any]) -> View:
        """The same of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return View(self.forecasts[rows], self.codes[rows], weights)

    def residuals(self) -> Floats:
        """Outcomes less forecasts, in the shape of the forecasts."""
        if self.forecasts.ndim == 1:
            return np.asarray(self.codes - self.forecasts)
        residual = -self.forecasts
        residual[np.arange(len(residual)), self.codes] += 1
        return residual


def calibrated(view: View) -> Floats:
    """E[Y | forecast] for each row, as IRP learns it from the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.tile([0.1, 0.9], 500)
    >>> y = (np.arange(1000) % 4 == 1).astype(np.uint8)
    >>> calibrated(View(p, y, None))[:4].round(1)
    array([0. , 0.5, 0. , 0.5])
    """
    return _cross_fit(view, _learn_values)


def directions(view: View) -> Floats:
    """Sign of E[Y | forecast] - forecast for each row, as IRP partitions of other rows tell it.

    A bin's forecasts differ among themselves, and by more than its mean label differs from their
    mean. So this rests on mean residuals, each shrunk to that of the bin above (hierarchical
    shrinkage, Agarwal et al. 2022), for which deep bins say little and the first splits much.
    """
    return _cross_fit(view, _learn_signs)


def reduce_classes(view: View) -> View:
    """The view as it is or, of many classes, that of their ranks: the largest ones and the rest."""
    if view.forecasts.ndim == 1 or view.forecasts.shape[1] <= FULL:
        return view
    reduction = TopReduction(TOP, 0.0)
    ranks = reduction.labels(view.forecasts, view.codes).astype(np.uint8)
    return View(reduction.reduce(view.forecasts), ranks, view.weights)


def _cross_fit(view: View, learn: Callable[[View, Floats], Floats]) -> Floats:
    """What is learned for the forecasts of each fold from the other folds.

    Which rows share a fold is fixed, so that metrics are functions of their input. Only ratios of
    weights matter: they are scaled to sum to Kish's effective number of rows.
    """
    n = len(view.codes)
    if n < 2:
        raise ValueError("y_prob: one row only; holding rows out takes two or more.")
    if view.weights is not None:
        weights = view.weights * (view.weights.sum() / (view.weights @ view.weights))
        view = view._replace(weights=weights)
    n_folds = min(N_FOLDS if n <= MANY_ROWS else 2, n)
    fold = np.random.default_rng(0).permutation(n) % n_folds
    learned = np.empty_like(view.forecasts)
    for held_out in range(n_folds):
        inside = fold == held_out
        learned[inside] = learn(view.take(~inside), view.forecasts[inside])
    return learned


def _learn_values(view: View, new: Floats) -> Floats:
    """Values of IRP, grown on a view, for other forecasts."""
    if view.forecasts.ndim == 2 and view.forecasts.shape[1] > FULL:
        reduction = TopReduction.fit(TOP, *view)
        return reduction.expand(_learn_values(reduce_classes(view), reduction.reduce(new)), new)
    tree = _grow(view)
    values = tree.values(pseudocount=1.0)[tree.bins][tree.bin_of(new)]
    return values if new.ndim == 2 else np.asarray(values[:, 1])


def _learn_signs(view: View, new: Floats) -> Floats:
    tree = _grow(view)
    bin_of = tree.bin_of(view.forecasts)
    columns = view.forecasts.reshape(len(view.codes), -1)
    expected = np.zeros((len(tree.class_weights), columns.shape[1]))  # of each node and class
    expected[tree.bins] = sum_rows(bin_of, columns, view.weights, len(tree.bins))
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


def _grow(view: View) -> BinTree:
    """The tree that `IRPCalibrator` would grow."""
    if view.forecasts.ndim == 1:
        return grow_isotonic(BinaryCounts.from_arrays(*view), smoothing=np.full(2, 0.5))
    K = view.forecasts.shape[1]
    counts = Counts.from_arrays(*view, max_cells=MAX_CELLS)

    def start(counts: Counts) -> Growth:
        return Growth(
            counts,
            smoothing=np.full(K, 1 / K),
            monotony="tree",
            min_bin_weight=20.0,
            min_lift=1.0,
        )

    tree = grow(start(counts), Sweep(1, np.random.RandomState(0)))
    return tree if counts.exact else regrow(tree, start(Counts.of_rows(*view)))
