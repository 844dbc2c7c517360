"""What all calibrators with bins have in common."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators.base import Calibrator, FromMap
from isoroc._growth import pull_tree
from isoroc._input import InputError, Sample, check_forecasts, check_number, to_array
from isoroc._kinds import Kind
from isoroc._maps import BinMap
from isoroc._simplex import Floats, Ints
from isoroc._table import Table
from isoroc._tree import BinTree


class BinCalibrator(Calibrator):
    """Base of the calibrators that sort forecasts into the bins of a `BinTree`.

    A subclass has the parameters `pseudocount` and `prior`; its `_fit` says how the tree is grown.
    """

    pseudocount: float | Literal["auto"]
    prior: Any

    _shares: ClassVar[tuple[float, float]] = (0.3, 0.3)
    _uses_order_only: ClassVar[bool] = True

    map_: BinMap
    tree_ = FromMap()
    prior_ = FromMap()
    pseudocount_ = FromMap()
    bin_values_ = FromMap()

    @property
    def n_bins_(self) -> int:
        """Number of bins."""
        check_is_fitted(self, "map_")
        return len(self.map_.tree.bins)

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

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`.

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
        own = self._constant_pseudocount()
        prior = constant
        if means is not None and forecast_pseudocount:
            pseudocounts = own * constant + forecast_pseudocount * means
            prior = pseudocounts / pseudocounts.sum(axis=1, keepdims=True)
        pseudocount = own + forecast_pseudocount
        return BinMap(kind=kind, tree=tree, prior=prior, pseudocount=pseudocount, reduction=None)

    def _map_of_fixed(self, kind: Kind, tree: BinTree, sample: Sample) -> BinMap:
        """The map of a tree that was grown without regard to the prior."""
        self._check_pseudocount()
        constant = self._resolve_prior(sample.class_weights())
        if not self._prior_is_forecast():
            return self._map_of(kind, tree, constant)
        pseudocounts = self._constant_pseudocount() * constant
        _, means, found = pull_tree(tree, sample, pseudocounts, self._forecast_pseudocount())
        return self._map_of(kind, tree, constant, means=means, forecast_pseudocount=found)

    def _check_pseudocount(self) -> None:
        """Raise an error if the pseudocount is not a number >= 0 or "auto"."""
        if self.pseudocount != "auto":
            check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)

    def _prior_is_forecast(self) -> bool:
        """Whether the mean forecast of a bin's rows is part of its prior."""
        return isinstance(self.prior, str) and self.prior == "forecast"

    def _constant_pseudocount(self) -> float:
        """Pseudocount of the part of the prior that is the same for all bins.

        If the rest of the prior is the mean forecast, this part is worth one row: enough that no
        value is 0 where the model says 0.
        """
        if self.pseudocount == "auto":
            return 1.0
        given = float(self.pseudocount)
        return min(given, 1.0) if self._prior_is_forecast() else given

    def _forecast_pseudocount(self) -> float | None:
        """Pseudocount of the mean forecast; None if it is to be found by evidence."""
        if self.pseudocount == "auto":
            return None
        return float(self.pseudocount) - self._constant_pseudocount()

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
