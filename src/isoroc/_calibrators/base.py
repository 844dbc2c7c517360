"""Calibrator: what all calibrators have in common."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from isoroc._calibrators.at_scale import AtScale
from isoroc._calibrators.document import to_document
from isoroc._calibrators.thresholds import CarriedThresholds, FittedMap, carry_over
from isoroc._input import (
    Sample,
    Scores,
    check_counts,
    check_sample,
    check_two_classes,
    in_order,
    warn_if_reversed,
    with_readable_names,
)
from isoroc._maps.base import CalibrationMap
from isoroc._persistence import write
from isoroc._simplex import Floats, Ints
from isoroc._threads import one_blas_thread


class Calibrator(CalibrationMap, AtScale, ClassifierMixin, BaseEstimator):
    """Base of all calibrators: estimators that learn a map.

    A subclass says how the map is learned from a `Sample` (`_fit`). What is learned is applied and
    written by its other base, a `CalibrationMap`, which knows nothing of estimators.
    """

    #: Share in a mixture before any row is seen, relative to that of other members.
    prior_share: ClassVar[float] = 1.0

    @abstractmethod
    def _fit(self, sample: Sample) -> None:
        """Check the parameters and set the fitted attributes."""

    def check_is_fitted(self, attribute: str = "classes_") -> None:
        """Raise an error unless the calibrator is fitted."""
        check_is_fitted(self, attribute)

    def fit_sample(self, sample: Sample) -> None:
        """Learn the map from a sample; `fit` is this with the checks around it."""
        self.scores_ = sample.scores
        with one_blas_thread():
            self._fit(sample if self.reads_logs else sample.on_simplex())

    def fit_out_of_fold(self, sample: Sample, fold: Ints) -> Floats:
        """Learn the map from a sample; return forecasts of its rows that did not see their fold."""
        self.scores_ = sample.scores
        with one_blas_thread():
            return self._fit_out_of_fold(sample if self.reads_logs else sample.on_simplex(), fold)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> Floats:
        """Fit to all rows, and then to those outside each fold.

        A subclass overrides this where it has a cheaper way to forecasts of unseen rows.
        """
        self._fit(sample)
        Q = np.empty((len(fold), sample.n_classes))
        for held_out in range(fold.max() + 1):
            inside = fold == held_out
            part: Self = clone(self)
            part.scores_ = sample.scores
            part.fit_part(sample.take(~inside), self)
            Q[inside] = part.calibrate(sample.forecasts[inside])
        return Q

    def fit_part(self, sample: Sample, whole: Self) -> None:  # noqa: ARG002
        """Learn the map from some of the rows to which `whole` was fitted.

        A subclass overrides this where the fit to all rows is a good start.
        """
        self._fit(sample)

    def fit(
        self,
        P: Any,
        y: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        scores: Scores = "auto",
    ) -> Self:
        """Learn the calibration map from forecasts and outcomes.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts: one column of probabilities per class, shape (n, K), or, for two classes, n
            scores that increase with the probability of the second class.
        y : array-like of shape (n,)
            The label that came true for each row.
        labels : array-like of shape (K,), default=None
            The class of each column, or the two classes in the order in which scores increase. By
            default columns are matched to labels by name where a dataframe has the labels as column
            names; otherwise columns follow the sorted labels. Required if some class is absent
            from `y`.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row. Weights are counts: weight 2 is the same as the row twice.
        scores : {"auto", "probability", "logit"}, default="auto"
            What the forecasts are. Logits of two classes are log odds, those of more classes are
            turned into probabilities by the softmax. "auto" takes columns for probabilities, and
            scores for probabilities if all of them lie in [0, 1]; it warns where that is in doubt.

        Returns
        -------
        self
        """
        sample = check_sample(P, y, sample_weight, labels, scores=scores, warn=self.reads_logs)
        warn_if_reversed(sample)
        return self.fit_validated(sample, P)

    def fit_validated(self, sample: Sample, P: Any = None) -> Self:
        """Fit to a sample whose parts have been checked.

        Parameters
        ----------
        sample : Sample
            With its classes.
        P : dataframe or array, default=None
            Where the forecasts come from: its column names are remembered.
        """
        if sample.fold is None:  # weights of cells are what is left of them after a decay
            check_counts(sample.weights)
        class_weights = sample.class_weights()
        check_two_classes(class_weights, sample.classes)
        summary = {
            "rows": len(sample),
            "weight": float(class_weights.sum()),
            "class_weights": class_weights.tolist(),
        }
        self.fit_sample(sample.positive())
        self._remember_columns(P, sample.forecasts, reset=True)
        self.classes_ = sample.classes
        self.summary_ = summary
        return self

    def predict(self, P: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(P).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def carry_over(self, thresholds: Any, P: Any = None) -> CarriedThresholds:
        """Thresholds on the calibrated forecasts that repeat decisions made on forecasts before.

        For two classes and a strictly increasing map, such as temperature scaling, the decisions
        are the same for every forecast. Otherwise the thresholds with the fewest changed decisions
        on the rows `P` are returned: for two classes the best ones, for more the best ones that
        line searches from several starts find.

        Parameters
        ----------
        thresholds : float or array-like of shape (K,)
            Two classes: a number; the decision is the second class iff its score is above the
            number. For two columns of logits the score is their difference. More classes: a vector
            gamma; the decision is the class with the largest ``p - gamma``, the first on ties.
        P : array-like, dataframe or series, default=None
            Forecasts of rows on which decisions are compared. Required except for two classes and
            a strictly increasing map.

        Returns
        -------
        CarriedThresholds
            With attributes `thresholds`, `n_changed`, `n_rows` and `exact`.

        Examples
        --------
        >>> from isoroc import IsotonicCalibrator, TemperatureCalibrator
        >>> p, y = [0.1, 0.2, 0.7, 0.9, 0.95], [0, 1, 0, 1, 1]
        >>> print(TemperatureCalibrator().fit(p, y).carry_over(0.8))
        0.653831: the same decision for every forecast, as the map is increasing.
        >>> print(IsotonicCalibrator().fit(p, y).carry_over(0.5, p))
        0.5: 1 of 5 decisions change (20.00%).
        """
        check_is_fitted(self, "classes_")
        fitted = FittedMap(
            self.calibrate,
            n_classes=len(self.classes_),
            columns=self.n_features_in_ > 1,
            logits=self.scores_ == "logit",
            unit=self.takes_probabilities(),
            increasing=self.is_increasing(),
        )
        return carry_over(fitted, thresholds, None if P is None else self._check_new(P))

    def save(self, path: str | os.PathLike[str], *, summary: dict[str, Any] | None = None) -> None:
        """Write the fitted calibrator to a model file; `isoroc.load` reads it.

        The file is JSON, holds every number exactly and nothing that could be executed. It appears
        whole or not at all.

        Parameters
        ----------
        path : path-like
            The file; one that exists is replaced.
        summary : dict, default=None
            What to add to `summary_` in the file, such as metrics: any JSON values.
        """
        check_is_fitted(self, "classes_")
        entries = getattr(self, "summary_", {}) | (summary or {})
        write(path, to_document(self, "model"), entries)

    def _check_new(self, P: Any) -> Floats:
        check_is_fitted(self, "classes_")
        if hasattr(self, "feature_names_in_"):
            P = in_order(P, self.feature_names_in_.tolist())
        forecasts = super()._check_new(P)
        self._remember_columns(P, forecasts, reset=False)
        return forecasts

    def _remember_columns(self, P: Any, forecasts: Floats, *, reset: bool) -> None:
        """Set or compare n_features_in_ and feature_names_in_."""
        if type(P) is np.ndarray and not reset and not hasattr(self, "feature_names_in_"):
            return  # there are no names, and `check_forecasts` has compared the number
        columns = forecasts.reshape(len(forecasts), -1)
        named = with_readable_names(P) if is_into_dataframe(P) else columns
        validate_data(self, X=named, reset=reset, skip_check_array=True)
