"""What all calibrators with bins have in common."""

from __future__ import annotations

import numbers
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from isoroc.bins import BinTree
from isoroc.simplex import (
    Floats,
    Ints,
    check_forecasts,
    check_length,
    check_two_classes,
    check_weights,
    count_classes,
    encode_labels,
    to_array,
)
from isoroc.table import Table

#: Two-sided 95 % point of the normal distribution.
_Z95 = 1.959963984540054


class Sample(NamedTuple):
    """Validated calibration data."""

    forecasts: Floats
    codes: NDArray[np.unsignedinteger[Any]]
    weights: Floats | None

    @property
    def n_classes(self) -> int:
        """K."""
        return count_classes(self.forecasts)

    def class_weights(self) -> Floats:
        """Total weight of each class, shape (K,)."""
        if self.weights is None and self.n_classes == 2:  # many millions of rows: no copy of them
            ones = np.count_nonzero(self.codes)
            return np.array([len(self.codes) - ones, ones], dtype=np.float64)
        return np.bincount(self.codes, self.weights, self.n_classes).astype(np.float64)

    def take(self, rows: NDArray[Any]) -> Sample:
        """Sample of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Sample(self.forecasts[rows], self.codes[rows], weights)


class BinCalibrator(ClassifierMixin, BaseEstimator):
    """Base of the calibrators that sort forecasts into the bins of a `BinTree`.

    A subclass has the parameters `pseudocount` and `prior` and says how the tree is grown.
    """

    pseudocount: float
    prior: Any
    tree_: BinTree
    prior_: Floats
    classes_: NDArray[Any]

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

    def fit(self, P: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the calibration map from forecasts and outcomes.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts: probabilities of shape (n, K), or, for two classes, n real scores that
            increase with the probability of the second class, such as logits.
        y : array-like of shape (n,)
            The label that came true for each row. Where some class never did, integers 0 to K - 1.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row; weight 2 is the same as the row twice.

        Returns
        -------
        self
        """
        check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        if y is None:
            raise ValueError("y: requires y to be passed, but the target y is None.")
        forecasts = check_forecasts(P)
        weights = check_weights(sample_weight, len(forecasts))
        classes, codes = encode_labels(y, count_classes(forecasts))
        check_length(codes, len(forecasts), name="y")
        sample = Sample(forecasts, codes, weights)
        check_two_classes(sample.class_weights(), classes)
        if weights is not None and not weights.all():
            sample = sample.take(np.flatnonzero(weights))
        self._fit_tree(sample)
        self._remember_columns(P, forecasts, reset=True)
        self.classes_ = classes
        return self

    def predict_proba(self, P: Any) -> Floats:
        """Calibrated forecasts, shape (n, K); rows sum to one."""
        return self._calibrate(self._check_new(P))

    def _calibrate(self, forecasts: Floats) -> Floats:
        bin_of = self.tree_.bin_of(self._to_bin_space(forecasts))
        return self._from_bin_space(np.take(self.bin_values_, bin_of, axis=0), forecasts)

    def predict(self, P: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(P).argmax(axis=1)
        return np.asarray(self.classes_[best])

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
            low, high = _wilson_interval(rate, weight)
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

    def _check_new(self, P: Any) -> Floats:
        check_is_fitted(self, "tree_")
        forecasts = check_forecasts(P)
        self._remember_columns(P, forecasts, reset=False)
        return forecasts

    def _remember_columns(self, P: Any, forecasts: Floats, *, reset: bool) -> None:
        """Set or compare n_features_in_ and feature_names_in_."""
        named = P if getattr(P, "ndim", 0) == 2 else forecasts.reshape(len(forecasts), -1)
        validate_data(self, X=named, reset=reset, skip_check_array=True)

    def _resolve_prior(self, class_weights: Floats) -> Floats:
        K = len(class_weights)
        if isinstance(self.prior, str):
            if self.prior == "uniform":
                return np.full(K, 1 / K)
            if self.prior == "marginal":
                return np.asarray(class_weights / class_weights.sum())
            raise ValueError(
                f'prior: expected "uniform", "marginal" or probabilities, got {self.prior!r}.'
            )
        prior = check_forecasts(to_array(self.prior, name="prior").reshape(1, -1), name="prior")
        if prior.shape != (1, K):
            raise ValueError(
                f"prior: expected {K} probabilities, one for each class, got {prior.size}."
            )
        return np.asarray(prior[0])


def check_number(name: str, value: Any, kind: type[Any], *, minimum: float) -> None:
    """Refuse what is not a number of a kind (numbers.Real, numbers.Integral) >= minimum."""
    expected = "an integer" if kind is numbers.Integral else "a number"
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name}: expected {expected} >= {minimum}, got {value!r}.")
    if not minimum <= value < np.inf:
        raise ValueError(f"{name}: expected {expected} >= {minimum}, got {value!r}.")


def check_option(name: str, value: Any, options: tuple[Any, ...]) -> None:
    """Refuse what is not one of the options."""
    if not any(value is option or value == option for option in options):
        raise ValueError(f"{name}: expected one of {options}, got {value!r}.")


def _wilson_interval(rate: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """95 % score interval of a binomial rate (Wilson 1927)."""
    shrink = 1 / (1 + _Z95**2 / weight)
    centre = shrink * (rate + _Z95**2 / (2 * weight))
    half = shrink * _Z95 * np.sqrt(rate * (1 - rate) / weight + (_Z95 / (2 * weight)) ** 2)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
