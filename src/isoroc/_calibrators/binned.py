"""What all calibrators with bins have in common."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy
from sklearn.utils.validation import check_is_fitted

from isoroc._calibrators import written
from isoroc._calibrators.base import Calibrator
from isoroc._input import InputError, Sample, check_forecasts, check_number, to_array
from isoroc._intervals import wilson
from isoroc._persistence import states
from isoroc._simplex import Floats, Ints
from isoroc._table import Table
from isoroc._tree import BinTree
from isoroc._writer import C, Writer


class BinCalibrator(Calibrator):
    """Base of the calibrators that sort forecasts into the bins of a `BinTree`.

    A subclass has the parameters `pseudocount` and `prior` and says how the tree is grown.
    """

    pseudocount: float
    prior: Any
    tree_: BinTree
    prior_: Floats

    fitted_state: ClassVar[dict[str, states.Check]] = {
        "tree_": states.tree("K"),
        "prior_": states.probabilities("K"),
    }

    def _fit(self, sample: Sample) -> None:
        check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        self._fit_tree(sample)

    @abstractmethod
    def _fit_tree(self, sample: Sample) -> None:
        """Set `tree_`, `prior_` and what else the subclass needs to predict."""

    def _to_bin_space(self, forecasts: Floats) -> Floats:
        """Forecasts as the tree takes them."""
        return forecasts

    def _from_bin_space(self, Q: Floats, forecasts: Floats) -> Floats:  # noqa: ARG002
        """Calibrated forecasts of the K classes from values of the bins."""
        return Q

    def _bin_space_names(self) -> list[str]:
        """What the columns of the bins' values stand for."""
        return [str(label) for label in self.classes_]

    def _calibrate(self, forecasts: Floats) -> Floats:
        bin_of = self.tree_.bin_of(self._to_bin_space(forecasts))
        return self._from_bin_space(np.take(self.bin_values_, bin_of, axis=0), forecasts)

    def _write(self, w: Writer[C], columns: Sequence[C]) -> list[C]:
        return written.bin_values(w, self.tree_, self.bin_values_, columns)

    def _check_fitted(self, n_classes: int) -> None:
        """Check the fitted attributes, and the parameter that the bins' values rest on."""
        super()._check_fitted(n_classes)
        states.number(most=states.LARGEST_WEIGHT)(self.pseudocount, "pseudocount", {})

    def apply(self, P: Any) -> Ints:
        """Row of `bins_` in which each forecast lies, shape (n,)."""
        forecasts = self._check_new(P)
        return self.tree_.bin_of(self._to_bin_space(forecasts))

    def staged_predict_proba(self, P: Any) -> Iterator[Floats]:
        """Calibrated forecasts of every stage of `path_`, from one bin to `n_bins_`."""
        forecasts = self._check_new(P)
        bin_of = self.tree_.bin_of(self._to_bin_space(forecasts))
        values = self._node_values()
        for node_of_bin in self.tree_.stages():
            stage = np.take(values[node_of_bin], bin_of, axis=0)
            yield self._from_bin_space(stage, forecasts)

    @property
    def n_bins_(self) -> int:
        """Number of bins."""
        check_is_fitted(self, "tree_")
        return len(self.tree_.bins)

    @property
    def bin_values_(self) -> Floats:
        """Calibrated forecast of each bin, shape (n_bins_, K)."""
        return self._node_values()[self.tree_.bins]

    @property
    def bins_(self) -> Table:
        """One row a bin: bounds (two classes), weight, observed rates with intervals, values."""
        values = self.bin_values_
        class_weights = self.tree_.class_weights[self.tree_.bins]
        weight = class_weights.sum(axis=1)
        table = Table()
        if self.tree_.n_classes == 2:
            table["lower"] = np.append(-np.inf, self.tree_.cuts)
            table["upper"] = np.append(self.tree_.cuts, np.inf)
        table["weight"] = weight
        for k, suffix in self._columns():
            rate = class_weights[:, k] / weight
            low, high = wilson(rate, weight)
            table |= {
                f"rate{suffix}": rate,
                f"rate_low{suffix}": low,
                f"rate_high{suffix}": high,
                f"value{suffix}": values[:, k],
            }
        return table

    @property
    def path_(self) -> Table:
        """One row a stage, from one bin to `n_bins_`: the split that led to it, and the loss."""
        values = self._node_values()
        tree = self.tree_
        with np.errstate(divide="ignore"):
            loss = -xlogy(tree.class_weights, values).sum(axis=1)
        exists = tree.children >= 0
        change = np.where(exists, loss[tree.children], 0).sum(axis=1) - loss[tree.split_nodes]
        table = Table(
            n_bins=np.append(1, 1 + np.cumsum(exists.sum(axis=1) - 1)),
            gain=np.append(np.nan, tree.gains()),
        )
        for k, suffix in self._columns():
            table[f"threshold{suffix}"] = np.append(np.nan, tree.thresholds[:, k])
        total = tree.class_weights[0].sum()
        table["cross_entropy"] = np.cumsum(np.append(loss[0], change)) / total
        return table

    def _columns(self) -> list[tuple[int, str]]:
        """Classes to show in tables and the suffix of their columns; the second of two."""
        if self.tree_.n_classes == 2:
            return [(1, "")]
        return [(k, f"_{name}") for k, name in enumerate(self._bin_space_names())]

    def _node_values(self) -> Floats:
        check_is_fitted(self, "tree_")
        return self.tree_.values(self.pseudocount, self.prior_)

    def resolve_prior(self, class_weights: Floats) -> Floats:
        """Probabilities that the parameter `prior` stands for."""
        K = len(class_weights)
        if isinstance(self.prior, str):
            if self.prior == "uniform":
                return np.full(K, 1 / K)
            if self.prior == "marginal":
                return np.asarray(class_weights / class_weights.sum())
            fix = 'expected "uniform", "marginal" or probabilities'
            raise InputError("prior", None, f"is {self.prior!r}", fix)
        prior = check_forecasts(to_array(self.prior, name="prior").reshape(1, -1), name="prior")
        if prior.shape != (1, K):
            fix = f"expected {K}, one for each class"
            raise InputError("prior", None, f"{prior.size} probabilities", fix)
        return np.asarray(prior[0])
