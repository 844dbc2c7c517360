"""Binning without a monotony condition: what the paper compares with."""

from __future__ import annotations

import numbers
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from isoroc.calibrators.base import Sample
from isoroc.calibrators.binned import BinCalibrator
from isoroc.counts import Counts
from isoroc.growth.best_first import Growth
from isoroc.growth.grid import steps_for
from isoroc.parameters import check_number, check_option
from isoroc.simplex import Floats, lattice, regions


class RecursiveBinningCalibrator(BinCalibrator):
    """Recursive binning: every region is split at its centroid, whatever the labels say.

    The paper's comparison. Regions are split breadth first at the mean of their lattice points.

    Parameters
    ----------
    depth : int, default=4
        How often regions are split; K classes give at most ``K ** depth`` bins.
    pseudocount : float, default=1.0
        Weight of the prior in every bin's value.
    prior : {"uniform", "marginal"} or array-like of shape (K,), default="uniform"
        What the pseudocount pulls towards.
    grid_size : int, default=None
        The lattice has step 1 / grid_size; by default 1000 for two classes, 100 for three and
        fewer for more.

    Attributes
    ----------
    classes_, n_features_in_, tree_, prior_, n_bins_, bin_values_, bins_, path_
        As in `IRPCalibrator`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import RecursiveBinningCalibrator
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet(np.ones(3), size=500)
    >>> y = [rng.choice(3, p=p) for p in P]
    >>> RecursiveBinningCalibrator(depth=2).fit(P, y).n_bins_
    9
    """

    def __init__(
        self,
        *,
        depth: int = 4,
        pseudocount: float = 1.0,
        prior: Literal["uniform", "marginal"] | ArrayLike = "uniform",
        grid_size: int | None = None,
    ) -> None:
        self.depth = depth
        self.pseudocount = pseudocount
        self.prior = prior
        self.grid_size = grid_size

    def _fit_tree(self, sample: Sample) -> None:
        check_number("depth", self.depth, numbers.Integral, minimum=0)
        if self.grid_size is not None:
            check_number("grid_size", self.grid_size, numbers.Integral, minimum=1)
        growth, prior = _start(self, sample)
        K = sample.n_classes
        level = {0: lattice(K, steps_for(K, self.grid_size))}
        for _ in range(self.depth):
            next_level: dict[int, Floats] = {}
            for node, points in level.items():
                gamma = points.mean(axis=0)
                children = growth.attempt(node, gamma)
                if children is not None:
                    region = regions(points, gamma)
                    kept = [k for k in range(K) if children[k] >= 0 and (region == k).any()]
                    next_level |= {int(children[k]): points[region == k] for k in kept}
            level = next_level
        self.tree_, self.prior_ = growth.tree(), prior


class HistogramCalibrator(BinCalibrator):
    """Regular binning for two classes: fixed bins, each with its observed rate.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins; those without calibration points are joined to a neighbour.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, over [0, 1] or the range of scores beyond it, or of equal weight.
    pseudocount : float, default=1.0
        Weight of the prior in every bin's value.
    prior : {"uniform", "marginal"} or array-like of shape (2,), default="uniform"
        What the pseudocount pulls towards.

    Attributes
    ----------
    classes_, n_features_in_, tree_, prior_, n_bins_, bin_values_, bins_, path_
        As in `IRPCalibrator`.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import HistogramCalibrator
    >>> p = np.linspace(0, 1, 101)
    >>> HistogramCalibrator(n_bins=4, pseudocount=0).fit(p, p > 0.5).bins_["rate"].round(2)
    array([0., 0., 1., 1.])
    """

    def __init__(
        self,
        *,
        n_bins: int = 10,
        strategy: Literal["uniform", "quantile"] = "uniform",
        pseudocount: float = 1.0,
        prior: Literal["uniform", "marginal"] | ArrayLike = "uniform",
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.pseudocount = pseudocount
        self.prior = prior

    def _fit_tree(self, sample: Sample) -> None:
        check_number("n_bins", self.n_bins, numbers.Integral, minimum=1)
        check_option("strategy", self.strategy, ("uniform", "quantile"))
        if sample.n_classes != 2:
            raise ValueError(
                f"P: {sample.n_classes} columns. Only binary classification is supported. The "
                "type of the target is multiclass; RecursiveBinningCalibrator takes any number."
            )
        growth, prior = _start(self, sample)
        last = 0
        for cut in self._cuts(growth.points[:, 1], growth.point_weights.sum(axis=1)):
            children = growth.attempt(last, np.array([1 - cut, cut]))
            last = last if children is None else int(children[1])
        self.tree_, self.prior_ = growth.tree(), prior

    def _cuts(self, scores: Floats, weight: Floats) -> Floats:
        inner = np.arange(1, self.n_bins) / self.n_bins
        if self.strategy == "uniform":
            low, high = min(scores.min(), 0.0), max(scores.max(), 1.0)
            return np.asarray(low + inner * (high - low))
        order = np.argsort(scores)
        position = np.searchsorted(np.cumsum(weight[order]), inner * weight.sum())
        return np.unique(scores[order[position]])


def _start(calibrator: BinCalibrator, sample: Sample) -> tuple[Growth, Floats]:
    """Growth without conditions over all of a sample, and the prior."""
    prior = calibrator._resolve_prior(sample.class_weights())  # noqa: SLF001
    smoothing = calibrator.pseudocount * prior
    return Growth(Counts.of_rows(*sample), smoothing=smoothing, monotony=None), prior
