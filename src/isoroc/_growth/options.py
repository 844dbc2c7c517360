"""GrowthOptions: how a tree is grown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from isoroc._input import Sample
from isoroc._progress import Report
from isoroc._simplex import Floats

Monotonicity = Literal["global", "tree"] | None


@dataclass(frozen=True, eq=False)
class GrowthOptions:
    """How a tree is grown; the parameters of `IRPCalibrator` of the same names.

    Attributes
    ----------
    pseudocounts : ndarray of shape (K,)
        ``pseudocount * prior``, what is added to the class weights of a bin for its value.
    min_bin_weight : float or None
        No split leaves a lighter bin. None stands for the default: 0 for two classes, for more a
        thirtieth of the total weight, but at most 20.
    min_lift : float or None
        How many times the lift that chance alone would give a split must have: half for each
        class beyond the first and bin beyond the first, the mean of the likelihood ratio
        statistic where there is nothing to find. None stands for the default: 0 for two classes,
        1 for more.
    n_threads : int
        Searches to run at a time.
    random_state : RandomState or None
        Draws a seed where growth needs one; None stands for a fixed one.
    report : callable
        Is called with a line of text as growth goes on.
    """

    pseudocounts: Floats
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

    def for_sample(self, sample: Sample) -> GrowthOptions:
        """The same options with the defaults that depend on the sample."""
        several = sample.n_classes > 2
        weight, lift = self.min_bin_weight, self.min_lift
        if weight is None and several:
            weight = min(20.0, float(sample.class_weights().sum()) / 30)
        if lift is None and several:
            lift = 1.0
        return replace(self, min_bin_weight=weight or 0.0, min_lift=lift or 0.0)
