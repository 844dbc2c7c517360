"""RecursiveBinningCalibrator: the binning that the paper compares with."""

from __future__ import annotations

import numbers
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from isoroc._calibrators.binned import BinCalibrator
from isoroc._growth import split_at_centroids
from isoroc._input import Sample, check_number
from isoroc._maps import BinMap


class RecursiveBinningCalibrator(BinCalibrator):
    """Recursive binning: every region is split at its centroid, independently of the labels.

    The paper's comparison. Regions are split breadth first at the mean of their lattice points.

    Parameters
    ----------
    depth : int, default=4
        How often regions are split; K classes give at most ``K ** depth`` bins. No region is
        split if that leaves more than ``250000 / K`` bins, so that the tree is small enough for a
        model file.
    pseudocount : float or "auto", default="auto"
        Weight of the prior in every bin's value, as in `IRPCalibrator`.
    prior : {"forecast", "uniform", "marginal"} or array-like of shape (K,), default="uniform"
        What the pseudocount pulls towards.
    grid_size : int, default=None
        The lattice has step 1 / grid_size; by default 1000 for two classes, 100 for three and
        fewer for more.

    Attributes
    ----------
    classes_, n_features_in_, scores_, summary_, map_, checksum, tree_, prior_, pseudocount_
        As in `IRPCalibrator`.
    n_bins_, bin_values_, bins_, path_
        As in `IRPCalibrator`.

    See Also
    --------
    IRPCalibrator : Chooses splits by the outcomes, subject to ROC monotonicity.

    Notes
    -----
    Lattice points on a border belong to the region of the first class that it touches, so
    centroids depend a little on the order of the columns.

    References
    ----------
    Berta, Bach and Jordan, Classifier calibration with ROC-regularized isotonic regression,
    AISTATS 2024.

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

    _uses_column_order: ClassVar[bool] = True

    def __init__(
        self,
        *,
        depth: int = 4,
        pseudocount: float | Literal["auto"] = "auto",
        prior: Literal["forecast", "uniform", "marginal"] | ArrayLike = "uniform",
        grid_size: int | None = None,
    ) -> None:
        self.depth = depth
        self.pseudocount = pseudocount
        self.prior = prior
        self.grid_size = grid_size

    def _fit(self, sample: Sample) -> BinMap:
        check_number("depth", self.depth, numbers.Integral, minimum=0)
        if self.grid_size is not None:
            check_number("grid_size", self.grid_size, numbers.Integral, minimum=1)
        kind, sample = sample.kind, sample.on_simplex()
        tree = split_at_centroids(sample, self.depth, self.grid_size)
        return self._map_of_fixed(kind, tree, sample)
