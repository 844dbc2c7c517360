"""What all calibrators with bins have in common."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np

from isoroc._calibrators.base import Calibrator
from isoroc._growth import pull_tree
from isoroc._input import InputError, Sample, check_forecasts, check_number, to_array
from isoroc._maps.binned import BinMap
from isoroc._persistence import states
from isoroc._simplex import Floats, Ints
from isoroc._tree import BinTree


class BinCalibrator(BinMap, Calibrator):
    """Base of the calibrators that sort forecasts into the bins of a `BinTree`.

    A subclass has the parameters `pseudocount` and `prior` and says how the tree is grown.
    """

    pseudocount: float | Literal["auto"]
    prior: Any

    prior_share: ClassVar[float] = 0.3

    def _fit(self, sample: Sample) -> None:
        self.check_pseudocount()
        self._fit_tree(sample)

    @abstractmethod
    def _fit_tree(self, sample: Sample) -> None:
        """Set `tree_` and the prior (`_set_prior`), and what else the subclass predicts with."""

    def _set_prior(
        self, constant: Floats, means: Floats | None = None, forecast_pseudocount: float = 0.0
    ) -> None:
        """Set `prior_` and `pseudocount_`.

        Parameters
        ----------
        constant : ndarray of shape (K,)
            The part of the prior that is the same for all bins.
        means : ndarray of shape (N, K)
            Mean forecast of each node, the other part.
        forecast_pseudocount : float
            Pseudocount of the mean forecast.
        """
        constant_pseudocount = self.constant_pseudocount()
        self.pseudocount_ = constant_pseudocount + forecast_pseudocount
        self.prior_ = constant
        if means is not None and forecast_pseudocount:
            pseudocounts = constant_pseudocount * constant + forecast_pseudocount * means
            self.prior_ = pseudocounts / pseudocounts.sum(axis=1, keepdims=True)

    def _set_tree(self, tree: BinTree, sample: Sample) -> None:
        """Set a tree that was grown without regard to the prior, and the prior."""
        self.tree_ = tree
        constant = self.resolve_prior(sample.class_weights())
        if not self.prior_is_forecast():
            self._set_prior(constant)
            return
        pseudocounts = self.constant_pseudocount() * constant
        _, means, found = pull_tree(tree, sample, pseudocounts, self.forecast_pseudocount())
        self._set_prior(constant, means, found)

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, and the parameter that `pseudocount_` rests on."""
        super()._check_fitted(n_classes)
        if self.pseudocount != "auto":
            states.number(most=states.LARGEST_WEIGHT)(self.pseudocount, "pseudocount", {})

    def apply(self, P: Any) -> Ints:
        """Row of `bins_` in which each forecast lies, shape (n,)."""
        forecasts = self._check_new(P)
        return self.tree_.bin_of(self._to_bin_space(forecasts))

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
        forecasts = self._check_new(P)
        bin_of = self.tree_.bin_of(self._to_bin_space(forecasts))
        values = self._node_values()
        for node_of_bin in self.tree_.stages():
            stage = np.take(values[node_of_bin], bin_of, axis=0)
            yield self._from_bin_space(stage, forecasts)

    def check_pseudocount(self) -> None:
        """Raise an error if the pseudocount is not a number >= 0 or "auto"."""
        if self.pseudocount != "auto":
            check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)

    def prior_is_forecast(self) -> bool:
        """Whether the mean forecast of a bin's rows is part of its prior."""
        return isinstance(self.prior, str) and self.prior == "forecast"

    def constant_pseudocount(self) -> float:
        """Pseudocount of the part of the prior that is the same for all bins.

        If the rest of the prior is the mean forecast, this part is worth one row: enough that no
        value is 0 where the model says 0.
        """
        if self.pseudocount == "auto":
            return 1.0
        given = float(self.pseudocount)
        return min(given, 1.0) if self.prior_is_forecast() else given

    def forecast_pseudocount(self) -> float | None:
        """Pseudocount of the mean forecast; None if it is to be found by evidence."""
        if self.pseudocount == "auto":
            return None
        return float(self.pseudocount) - self.constant_pseudocount()

    def held_out_loss(self, train: Sample, test: Sample) -> float:
        """Total log loss of rows under a fit to others."""
        self.fit_sample(train)
        Q = self.calibrate(test.forecasts)
        likelihood = Q[np.arange(len(Q)), test.codes].clip(min=1e-300)
        return -float(test.row_weights() @ np.log(likelihood))

    def resolve_prior(self, class_weights: Floats) -> Floats:
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
