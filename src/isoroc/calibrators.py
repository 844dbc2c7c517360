"""Calibrators: scikit-learn estimators that map forecasts to calibrated forecasts."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from isoroc.bins import BinTree
from isoroc.counts import BinaryCounts
from isoroc.growth.pav import grow_isotonic
from isoroc.monotony import Certificate, certify
from isoroc.simplex import (
    Floats,
    Ints,
    binary_scores,
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


class IRPCalibrator(ClassifierMixin, BaseEstimator):
    """Isotonic recursive partitioning: calibration that keeps the ROC curve's convex hull.

    For two classes this is isotonic regression of the label on the score, found as a path of
    nested partitions. On the calibration set its bins have zero calibration error (with
    ``pseudocount=0``), no monotone map has a lower cross entropy or Brier score, and the ROC curve
    of the calibrated forecasts is the convex hull of the ROC curve before.

    Parameters
    ----------
    pseudocount : float, default=1.0
        Weight of the prior in every bin's value: ``(class weights + pseudocount * prior) /
        (bin weight + pseudocount)``. With 0 a bin's value is its observed rate, 0 and 1 included;
        above 0 no forecast is ever certain.
    prior : {"uniform", "marginal"} or array-like of shape (K,), default="uniform"
        What the pseudocount pulls towards: all classes alike, the class shares of the calibration
        set, or given probabilities.
    max_bins : int, default=None
        Keep the first splits of the path only. By default it grows to its end.
    min_bin_weight : float, default=0.0
        Make no split that leaves a bin of less weight.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Columns of the forecasts; 1 for scores.
    tree_ : BinTree
        The partition with its class weights.
    prior_ : ndarray of shape (K,)
        The prior that was used.
    n_bins_ : int
        Number of bins.
    bins_ : Table
        One row a bin, by ascending score: it holds the scores with ``lower < score <= upper``;
        its weight, the observed rate of the second class with a 95 % interval (Wilson, weights
        taken as counts of rows), and the calibrated value.
    path_ : Table
        One row a stage, from one bin to `n_bins_`: the gain and the threshold of the split that
        led to it, and the cross entropy of the calibration set under it.
    certificate_ : Certificate
        For each split the threshold that makes it again on the calibrated forecasts.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc import IRPCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=1000)                    # logits of an overconfident model
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-scores / 3))
    >>> cal = IRPCalibrator(max_bins=4).fit(scores, y)
    >>> cal.predict_proba([-2.0, 0.0, 2.0]).round(3)
    array([[0.61 , 0.39 ],
           [0.461, 0.539],
           [0.407, 0.593]])
    >>> cal.bins_
         lower     upper  weight     rate  rate_low  rate_high    value
          -inf  -0.96842     172  0.38953   0.31983    0.46406  0.39017
      -0.96842  -0.54032     135  0.46667    0.3846    0.55058  0.46691
      -0.54032   0.55353     425  0.53882   0.49129    0.58566  0.53873
       0.55353       inf     268  0.59328   0.53356    0.65037  0.59294
    """

    def __init__(
        self,
        *,
        pseudocount: float = 1.0,
        prior: Literal["uniform", "marginal"] | ArrayLike = "uniform",
        max_bins: int | None = None,
        min_bin_weight: float = 0.0,
    ) -> None:
        self.pseudocount = pseudocount
        self.prior = prior
        self.max_bins = max_bins
        self.min_bin_weight = min_bin_weight

    def fit(self, P: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the calibration map from forecasts and outcomes.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts: probabilities of shape (n, 2), or n real scores that increase with the
            probability of the second class, such as logits.
        y : array-like of shape (n,)
            The label that came true for each row.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row; weight 2 is the same as the row twice.

        Returns
        -------
        self
        """
        self._check_parameters()
        if y is None:
            raise ValueError("y: requires y to be passed, but the target y is None.")
        forecasts = check_forecasts(P)
        n_classes = count_classes(forecasts)
        if n_classes > 2:
            raise ValueError(
                f"P: {n_classes} columns. Only binary classification is supported. The type of "
                "the target is multiclass; calibrate one class against the rest."
            )
        weights = check_weights(sample_weight, len(forecasts))
        classes, codes = encode_labels(y, n_classes)
        check_length(codes, len(forecasts), name="y")
        counts = BinaryCounts.from_arrays(binary_scores(forecasts), codes, weights)
        class_weights = counts.class_weights
        check_two_classes(class_weights, classes)

        self._remember_columns(P, forecasts, reset=True)
        self.classes_: NDArray[Any] = classes
        self.prior_ = self._resolve_prior(class_weights)
        self.tree_: BinTree = grow_isotonic(
            counts,
            smoothing=self.pseudocount * self.prior_,
            max_bins=self.max_bins,
            min_bin_weight=self.min_bin_weight,
        )
        return self

    def predict_proba(self, P: Any) -> Floats:
        """Calibrated forecasts, shape (n, K); rows sum to one."""
        bin_of = self.apply(P)
        return np.take(self._bin_values(), bin_of, axis=0)

    def predict(self, P: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        bin_of = self.apply(P)
        return np.asarray(self.classes_[self._bin_values().argmax(axis=1)[bin_of]])

    def apply(self, P: Any) -> Ints:
        """Row of `bins_` in which each forecast lies, shape (n,)."""
        forecasts = self._check_new(P)
        return self.tree_.bin_of(forecasts)

    def staged_predict_proba(self, P: Any) -> Iterator[Floats]:
        """Calibrated forecasts of every stage of `path_`, from one bin to `n_bins_`."""
        bin_of = self.apply(P)
        values = self._node_values()
        for node_of_bin in self.tree_.stages():
            yield np.take(values[node_of_bin], bin_of, axis=0)

    @property
    def n_bins_(self) -> int:
        """Number of bins."""
        check_is_fitted(self, "tree_")
        return len(self.tree_.bins)

    @property
    def bins_(self) -> Table:
        """One row a bin, by ascending score."""
        check_is_fitted(self, "tree_")
        class_weights = self.tree_.class_weights[self.tree_.bins]
        weight = class_weights.sum(axis=1)
        rate = class_weights[:, 1] / weight
        rate_low, rate_high = _wilson_interval(rate, weight)
        return Table(
            lower=np.append(-np.inf, self.tree_.cuts),
            upper=np.append(self.tree_.cuts, np.inf),
            weight=weight,
            rate=rate,
            rate_low=rate_low,
            rate_high=rate_high,
            value=self._bin_values()[:, 1],
        )

    @property
    def path_(self) -> Table:
        """One row a stage, from one bin to `n_bins_`."""
        check_is_fitted(self, "tree_")
        tree = self.tree_
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = -np.nansum(tree.class_weights * np.log(self._node_values()), axis=1)
        change = loss[tree.children].sum(axis=1) - loss[tree.split_nodes]
        stages = np.arange(tree.n_splits + 1)
        return Table(
            n_bins=stages + 1,
            gain=np.append(np.nan, tree.gains()),
            threshold=np.append(np.nan, tree.thresholds[:, 1]),
            cross_entropy=np.cumsum(np.append(loss[0], change)) / tree.class_weights[0].sum(),
        )

    @property
    def certificate_(self) -> Certificate:
        """For each split the threshold that makes it again on the calibrated forecasts."""
        check_is_fitted(self, "tree_")
        return certify(self.tree_, self._bin_values())

    def _node_values(self) -> Floats:
        check_is_fitted(self, "tree_")
        return self.tree_.values(self.pseudocount, self.prior_)

    def _bin_values(self) -> Floats:
        return self._node_values()[self.tree_.bins]

    def _check_new(self, P: Any) -> Floats:
        check_is_fitted(self, "tree_")
        forecasts = check_forecasts(P)
        self._remember_columns(P, forecasts, reset=False)
        return forecasts

    def _remember_columns(self, P: Any, forecasts: Floats, *, reset: bool) -> None:
        """Set or compare n_features_in_ and feature_names_in_."""
        named = P if getattr(P, "ndim", 0) == 2 else forecasts.reshape(len(forecasts), -1)
        validate_data(self, X=named, reset=reset, skip_check_array=True)

    def _check_parameters(self) -> None:
        _check_number("pseudocount", self.pseudocount, numbers.Real, minimum=0)
        _check_number("min_bin_weight", self.min_bin_weight, numbers.Real, minimum=0)
        if self.max_bins is not None:
            _check_number("max_bins", self.max_bins, numbers.Integral, minimum=1)

    def _resolve_prior(self, class_weights: Floats) -> Floats:
        if isinstance(self.prior, str):
            if self.prior == "uniform":
                return np.full(len(class_weights), 1 / len(class_weights))
            if self.prior == "marginal":
                return np.asarray(class_weights / class_weights.sum())
            raise ValueError(
                f'prior: expected "uniform", "marginal" or probabilities, got {self.prior!r}.'
            )
        prior = check_forecasts(to_array(self.prior, name="prior").reshape(1, -1), name="prior")
        if prior.shape != (1, len(class_weights)):
            raise ValueError(
                f"prior: expected {len(class_weights)} probabilities, one for each class, "
                f"got {prior.size}."
            )
        return np.asarray(prior[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _check_number(name: str, value: Any, kind: type[Any], *, minimum: float) -> None:
    expected = "an integer" if kind is numbers.Integral else "a number"
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name}: expected {expected} >= {minimum}, got {value!r}.")
    if not minimum <= value < np.inf:
        raise ValueError(f"{name}: expected {expected} >= {minimum}, got {value!r}.")


def _wilson_interval(rate: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """95 % score interval of a binomial rate (Wilson 1927)."""
    shrink = 1 / (1 + _Z95**2 / weight)
    centre = shrink * (rate + _Z95**2 / (2 * weight))
    half = shrink * _Z95 * np.sqrt(rate * (1 - rate) / weight + (_Z95 / (2 * weight)) ** 2)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)
