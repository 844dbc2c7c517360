"""Calibrators with bins: what they have in common, and those whose bins ignore the labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._core.simplex import binary_scores
from isoroc._core.tree import BinTree
from isoroc._core.types import Floats, Ints
from isoroc._growth import cut_at, pull_tree
from isoroc._input import InputError, Sample, check_forecasts, check_number, check_option, to_array
from isoroc._input.kinds import Kind
from isoroc._maps import BinMap
from isoroc._support.table import Table


class BinCalibrator(Calibrator):
    """Base of the calibrators that sort forecasts into the bins of a `BinTree`.

    A subclass has the parameters `pseudocount` and `prior`; its `_fit` says how the tree is grown.
    """

    pseudocount: float | Literal["auto"]
    prior: Any

    _shares: ClassVar[tuple[float, float]] = (0.3, 0.3)
    _uses_order_only: ClassVar[bool] = True

    map_: BinMap
    tree_, prior_, pseudocount_, bin_values_ = FromMap(), FromMap(), FromMap(), FromMap()
    n_bins_ = FromMap(lambda own: len(own.tree.bins))

    @property
    def bins_(self) -> Table:
        """One row per bin: bounds (two classes), weight, observed rates with intervals, values."""
        check_is_fitted(self, "map_")
        return self.map_.bins([str(label) for label in self.classes_])

    @property
    def path_(self) -> Table:
        """One row per stage, from one bin to `n_bins_`: the split that led to it, and the loss."""
        check_is_fitted(self, "map_")
        return self.map_.path([str(label) for label in self.classes_])

    def apply(self, P: Any) -> Ints:
        """Row of `bins_` in which each forecast lies, shape (n,)."""
        values = self._check_new(P)
        return np.asarray(self.map_.bin_of(values))

    def staged_predict_proba(self, P: Any) -> Iterator[Floats]:
        """Calibrated forecasts of every stage of `path_`, from one bin to `n_bins_`.

        Yields
        ------
        ndarray of shape (n, K)
            The forecasts of a stage.
        """
        values = self._check_new(P)
        return self.map_.stages(values)

    def _map_of(
        self,
        kind: Kind,
        tree: BinTree,
        constant: Floats,
        *,
        means: Floats | None = None,
        forecast_pseudocount: float = 0.0,
    ) -> BinMap:
        """The map of a tree with a prior that all bins share, and their mean forecasts (N, K)."""
        own, _ = self._pseudocounts()
        prior = constant
        if means is not None and forecast_pseudocount:
            pseudocounts = own * constant + forecast_pseudocount * means
            prior = pseudocounts / pseudocounts.sum(axis=1, keepdims=True)
        pseudocount = own + forecast_pseudocount
        return BinMap(kind=kind, tree=tree, prior=prior, pseudocount=pseudocount, reduction=None)

    def _map_of_fixed(self, kind: Kind, tree: BinTree, sample: Sample) -> BinMap:
        """The map of a tree that was grown without regard to the prior."""
        check_number("pseudocount", self.pseudocount, minimum=0, others=("auto",))
        constant = self._resolve_prior(sample.class_weights())
        if not self._prior_is_forecast():
            return self._map_of(kind, tree, constant)
        own, rest = self._pseudocounts()
        _, means, found, _ = pull_tree(tree, sample, own * constant, rest)
        return self._map_of(kind, tree, constant, means=means, forecast_pseudocount=found)

    def _prior_is_forecast(self) -> bool:
        """Whether the mean forecast of a bin's rows is part of its prior."""
        return isinstance(self.prior, str) and self.prior == "forecast"

    def _pseudocounts(self) -> tuple[float, float | None]:
        """Pseudocounts of the part of the prior that all bins share, and of mean forecasts.

        With mean forecasts the first is worth one row, enough that no value is 0 where the model
        says 0. The second is None if it is to be found by evidence.
        """
        if self.pseudocount == "auto":
            return 1.0, None
        given = float(self.pseudocount)
        own = min(given, 1.0) if self._prior_is_forecast() else given
        return own, given - own

    def _resolve_prior(self, class_weights: Floats) -> Floats:
        """Probabilities that are the same for all bins: what `prior` stands for.

        For "forecast" these are the uniform ones that mean forecasts are mixed with.
        """
        K = len(class_weights)
        if isinstance(self.prior, str):
            if self.prior in ("uniform", "forecast"):
                return np.full(K, 1 / K)
            if self.prior == "marginal":
                return np.asarray(class_weights / class_weights.sum())
            fix = 'expected "forecast", "uniform", "marginal" or probabilities'
            raise InputError("prior", None, f"is {self.prior!r}", fix)
        prior = check_forecasts(to_array(self.prior, name="prior").reshape(1, -1), name="prior")
        if prior.shape != (1, K):
            fix = f"expected {K}, one for each class"
            raise InputError("prior", None, f"{prior.size} probabilities", fix)
        return np.asarray(prior[0])


@dataclass(eq=False, repr=False, kw_only=True)
class HistogramCalibrator(BinCalibrator):
    """Regular binning for two classes: fixed bins, each with its observed rate.

    Parameters
    ----------
    n_bins : int, default=10
        Number of bins; those without calibration points are joined to a neighbour.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, over [0, 1] or the range of scores beyond it, or of equal weight.
    pseudocount, prior
        As in `IRPCalibrator`, but for ``prior="uniform"`` by default.

    Attributes
    ----------
    classes_, n_features_in_, unit_, summary_, map_, checksum
        As in `IdentityCalibrator`.
    tree_, prior_, pseudocount_, n_bins_, bin_values_, bins_, path_
        As in `IRPCalibrator`.

    See Also
    --------
    IRPCalibrator : Bins that depend on the outcomes.

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

    n_bins: int = 10
    strategy: Literal["uniform", "quantile"] = "uniform"
    pseudocount: float | Literal["auto"] = "auto"
    prior: Literal["forecast", "uniform", "marginal"] | ArrayLike = "uniform"

    _uses_column_order: ClassVar[bool] = True

    def _fit(self, sample: Sample) -> BinMap:
        check_number("n_bins", self.n_bins, int, minimum=1)
        check_option("strategy", self.strategy, ("uniform", "quantile"))
        if sample.n_classes != 2:
            problem = (
                "Only binary classification is supported. The type of the target is multiclass"
            )
            fix = "IRPCalibrator takes any number of classes"
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
