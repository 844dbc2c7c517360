"""HistogramCalibrator: fixed bins for two classes."""

from __future__ import annotations

import numbers
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from isoroc._calibrators.binned import BinCalibrator
from isoroc._growth import cut_at
from isoroc._input import InputError, Sample, check_number, check_option
from isoroc._maps import BinMap
from isoroc._simplex import Floats, binary_scores


class HistogramCalibrator(BinCalibrator):
    """Regular binning for two classes: fixed bins, each with its observed rate.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins; those without calibration points are joined to a neighbour.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, over [0, 1] or the range of scores beyond it, or of equal weight.
    pseudocount : float or "auto", default="auto"
        Weight of the prior in every bin's value, as in `IRPCalibrator`.
    prior : {"forecast", "uniform", "marginal"} or array-like of shape (2,), default="uniform"
        What the pseudocount pulls towards.

    Attributes
    ----------
    classes_, n_features_in_, scores_, summary_, map_, checksum, tree_, prior_, pseudocount_
        As in `IRPCalibrator`.
    n_bins_, bin_values_, bins_, path_
        As in `IRPCalibrator`.

    See Also
    --------
    IRPCalibrator : Bins that depend on the outcomes.
    RecursiveBinningCalibrator : Fixed bins for any number of classes.

    Notes
    -----
    A score on the border of two bins belongs to the lower one. Which one is the lower depends on
    the order of the columns, where forecasts have two.

    References
    ----------
    Zadrozny and Elkan, Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers, ICML 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import HistogramCalibrator
    >>> p = np.linspace(0, 1, 101)
    >>> HistogramCalibrator(n_bins=4, pseudocount=0).fit(p, p > 0.5).bins_["rate"].round(2)
    array([0., 0., 1., 1.])
    """

    _uses_column_order: ClassVar[bool] = True

    def __init__(
        self,
        *,
        n_bins: int = 10,
        strategy: Literal["uniform", "quantile"] = "uniform",
        pseudocount: float | Literal["auto"] = "auto",
        prior: Literal["forecast", "uniform", "marginal"] | ArrayLike = "uniform",
    ) -> None:
        self.n_bins = n_bins
        self.strategy = strategy
        self.pseudocount = pseudocount
        self.prior = prior

    def _fit(self, sample: Sample) -> BinMap:
        check_number("n_bins", self.n_bins, numbers.Integral, minimum=1)
        check_option("strategy", self.strategy, ("uniform", "quantile"))
        if sample.n_classes != 2:
            problem = (
                "Only binary classification is supported. The type of the target is multiclass"
            )
            fix = "RecursiveBinningCalibrator takes any number of classes"
            raise InputError("P", None, f"{sample.n_classes} columns. {problem}", fix)
        kind, sample = sample.kind, sample.on_simplex()
        return self._map_of_fixed(kind, cut_at(sample, self._cuts(sample)), sample)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _cuts(self, sample: Sample) -> Floats:
        scores, weight = binary_scores(sample.forecasts), sample.row_weights()
        inner = np.arange(1, self.n_bins) / self.n_bins
        if self.strategy == "uniform":
            low, high = min(scores.min(), 0.0), max(scores.max(), 1.0)
            return np.asarray(low + inner * (high - low))
        order = np.argsort(scores)
        position = np.searchsorted(np.cumsum(weight[order]), inner * weight.sum())
        return np.unique(scores[order[position]])
