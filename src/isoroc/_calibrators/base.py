"""What all calibrators have in common: validated data in, rows that sum to one out."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from isoroc._calibrators.document import to_document
from isoroc._input import Sample, check_forecasts, check_sample, check_two_classes
from isoroc._persistence import write
from isoroc._simplex import Floats, Ints


class Calibrator(ClassifierMixin, BaseEstimator):
    """Base of all calibrators.

    A subclass says how the map is learned from a `Sample` and how it is applied to a forecast
    array, and names the attributes that the latter rests on.
    """

    #: Fitted attributes, besides `classes_`, that predictions and tables rest on.
    _fitted: ClassVar[tuple[str, ...]]

    classes_: NDArray[Any]
    #: What it was fitted on: rows, weight and class weights; of a loaded one all that was saved.
    summary_: dict[str, Any]

    @abstractmethod
    def _fit(self, sample: Sample) -> None:
        """Check the parameters and set the fitted attributes."""

    @abstractmethod
    def _calibrate(self, forecasts: Floats) -> Floats:
        """Calibrated forecasts, shape (n, K), of a forecast array."""

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> Floats:
        """Fit to a sample; return forecasts of its rows that did not see their own fold.

        A subclass that knows a cheaper way to honest forecasts of its own calibration set takes it.
        """
        Q = np.empty((len(fold), sample.n_classes))
        for held_out in range(fold.max() + 1):
            inside = fold == held_out
            part: Self = self._for_part_of(sample)
            part._fit(sample.take(~inside))
            Q[inside] = part._calibrate(sample.forecasts[inside])
        self._fit(sample)
        return Q

    def _for_part_of(self, sample: Sample) -> Self:  # noqa: ARG002
        """Calibrator with the same parameters that is to be fitted to some rows of a sample."""
        part: Self = clone(self)
        return part

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
        sample = check_sample(P, y, sample_weight)
        class_weights = sample.class_weights()
        check_two_classes(class_weights, sample.classes)
        summary = {
            "rows": len(sample),
            "weight": float(class_weights.sum()),
            "class_weights": class_weights.tolist(),
        }
        self._fit(sample.positive())
        self._remember_columns(P, sample.forecasts, reset=True)
        self.classes_ = sample.classes
        self.summary_ = summary
        return self

    def predict_proba(self, P: Any) -> Floats:
        """Calibrated forecasts, shape (n, K); rows sum to one."""
        return self._calibrate(self._check_new(P))

    def predict(self, P: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(P).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def save(self, path: str | os.PathLike[str], *, summary: dict[str, Any] | None = None) -> None:
        """Write the fitted calibrator to a model file; `isoroc.load` reads it.

        The file is JSON, holds every number exactly and nothing that could be executed. It appears
        whole or not at all.

        Parameters
        ----------
        path : path-like
            The file; one that exists is replaced.
        summary : dict, default=None
            What to add to `summary_` in the file, such as metrics: anything that JSON can say.
        """
        check_is_fitted(self, "classes_")
        told = getattr(self, "summary_", {}) | (summary or {})
        write(path, to_document(self, "model"), told)

    def _check_new(self, P: Any) -> Floats:
        check_is_fitted(self, "classes_")
        forecasts = check_forecasts(P)
        self._remember_columns(P, forecasts, reset=False)
        return forecasts

    def _remember_columns(self, P: Any, forecasts: Floats, *, reset: bool) -> None:
        """Set or compare n_features_in_ and feature_names_in_."""
        named = P if getattr(P, "ndim", 0) == 2 else forecasts.reshape(len(forecasts), -1)
        validate_data(self, X=named, reset=reset, skip_check_array=True)
