"""CalibratedClassifier: any classifier with any calibrator behind it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isoroc._calibrators.irp import IRPCalibrator
from isoroc._input import check_two_classes, check_weights, encode_labels
from isoroc._simplex import Floats, Ints

Response = Literal["auto", "predict_proba", "decision_function"]


class _Pair(NamedTuple):
    """A fitted classifier and the calibrator of its forecasts."""

    estimator: Any
    calibrator: Any


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated on data that it was not trained on.

    Parameters
    ----------
    estimator : classifier
        The classifier to calibrate.
    calibrator : calibrator, default=None
        Anything with ``fit(P, y)`` and ``predict_proba(P)``, ``IRPCalibrator()`` by default. It
        sees forecasts of shape (n, K), or (n, 1) for the decision function of two classes, and
        the labels as integers 0 to K - 1.
    cv : int, splitter, iterable or "prefit", default=5
        How to split the data so that every forecast the calibrator learns from is of a row that
        the classifier was not trained on. With "prefit", or where `estimator` is a
        ``FrozenEstimator``, the classifier is used as it is and all the data calibrate it.
    ensemble : bool, default=False
        If false, one calibrator learns from the forecasts of all folds, and the classifier is
        trained once more on all the data. If true, each fold's classifier keeps a calibrator of
        its own, and their forecasts are averaged.
    response : {"auto", "predict_proba", "decision_function"}, default="auto"
        What to calibrate; "auto" takes probabilities where the classifier has them. The decision
        function of three or more classes is turned into probabilities by the softmax.
    n_jobs : int, default=None
        How many folds to train at a time, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    estimators_, calibrators_ : list
        The fitted pairs: one, or one for each fold with ``ensemble=True``.
    n_features_in_ : int
        As the classifier reports it, and `feature_names_in_` too.

    Examples
    --------
    >>> from isoroc import CalibratedClassifier, IRPCalibrator
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(n_samples=600, random_state=0)
    >>> clf = CalibratedClassifier(GaussianNB(), IRPCalibrator(), cv=5).fit(X, y)
    >>> clf.predict_proba(X[:2]).round(2)
    array([[1.  , 0.  ],
           [0.15, 0.85]])
    >>> clf.calibrators_[0].n_bins_
    15
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = None,
        *,
        cv: Any = 5,
        ensemble: bool = False,
        response: Response = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response = response
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Train and calibrate the classifier.

        Parameters
        ----------
        X : array-like or dataframe
            What the classifier takes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row, for the calibrator and, where it takes weights, the classifier.
        **fit_params
            Passed on to the classifier's ``fit``, cut to the fold's rows where they are as long
            as the data. With metadata routing enabled, passed as was requested.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError("y: requires y to be passed, but the target y is None.")
        X, y = indexable(X, y)
        prefit = self._is_prefit()
        labels = self.estimator.classes_ if prefit else None
        n_classes = len(np.unique(y)) if labels is None else len(labels)
        classes, columns = encode_labels(y, n_classes, labels=labels)
        codes: Ints = columns.astype(np.intp)
        weights = check_weights(sample_weight, len(codes))
        check_two_classes(np.bincount(codes, weights).astype(np.float64), classes)
        training, splitting = self._route(weights, fit_params)
        everything = np.arange(len(codes))

        if prefit:
            forecasts = self.forecast(self.estimator, X, classes)
            pairs = [_Pair(self.estimator, self._calibrate(forecasts, codes, weights, everything))]
        else:
            folds = list(check_cv(self.cv, y, classifier=True).split(X, y, **splitting))
            trainings = [train for train, _ in folds]
            if not self.ensemble:
                trainings.append(everything)
            trained = Parallel(n_jobs=self.n_jobs)(
                delayed(_train)(clone(self.estimator), X, y, rows, training) for rows in trainings
            )
            held_out = [
                self.forecast(estimator, _safe_indexing(X, rows), classes)
                for estimator, (_, rows) in zip(trained, folds, strict=False)
            ]
            if self.ensemble:
                pairs = [
                    _Pair(estimator, self._calibrate(forecasts, codes, weights, rows))
                    for estimator, forecasts, (_, rows) in zip(
                        trained, held_out, folds, strict=True
                    )
                ]
            else:
                rows = np.concatenate([rows for _, rows in folds])
                forecasts = np.concatenate(held_out)
                pairs = [_Pair(trained[-1], self._calibrate(forecasts, codes, weights, rows))]

        self.classes_: NDArray[Any] = classes
        self.estimators_ = [pair.estimator for pair in pairs]
        self.calibrators_ = [pair.calibrator for pair in pairs]
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(pairs[0].estimator, attribute):
                setattr(self, attribute, getattr(pairs[0].estimator, attribute))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, shape (n, K)."""
        check_is_fitted(self, "calibrators_")
        total = sum(
            _in_columns(
                calibrator.predict_proba(self.forecast(estimator, X, self.classes_)),
                getattr(calibrator, "classes_", None),
                np.arange(len(self.classes_)),
            )
            for estimator, calibrator in zip(self.estimators_, self.calibrators_, strict=True)
        )
        return np.asarray(total / len(self.calibrators_))

    def predict(self, X: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _is_prefit(self) -> bool:
        if isinstance(self.cv, str) and self.cv != "prefit":
            raise ValueError(f'cv: expected a number, a splitter or "prefit", got {self.cv!r}.')
        prefit = isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator)
        if prefit:
            check_is_fitted(self.estimator)
        return prefit

    def _route(
        self, weights: Floats | None, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters of the classifier's fit and of the splitter's split."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weights, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        training = dict(fit_params)
        if weights is not None and has_fit_parameter(self.estimator, "sample_weight"):
            training["sample_weight"] = weights
        return training, {}

    def forecast(self, estimator: Any, X: Any, classes: NDArray[Any]) -> Floats:
        """Forecasts of a fitted classifier with one column for each of classes, or scores."""
        method = self.response
        if method == "auto":
            method = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
        if method not in ("predict_proba", "decision_function"):
            raise ValueError(
                'response: expected "auto", "predict_proba" or "decision_function", '
                f"got {self.response!r}."
            )
        output = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
        if method == "predict_proba":
            return _in_columns(output, estimator.classes_, classes)
        if output.ndim == 1:
            return output.reshape(-1, 1)
        return np.asarray(
            softmax(_in_columns(output, estimator.classes_, classes, -np.inf), axis=1)
        )

    def _calibrate(self, forecasts: Floats, codes: Ints, weights: Floats | None, rows: Any) -> Any:
        """Calibrator fitted to forecasts of the given rows."""
        calibrator = (
            IRPCalibrator() if self.calibrator is None else clone(self.calibrator, safe=False)
        )
        if weights is not None and has_fit_parameter(calibrator, "sample_weight"):
            return calibrator.fit(forecasts, codes[rows], sample_weight=weights[rows])
        return calibrator.fit(forecasts, codes[rows])

    def get_metadata_routing(self) -> MetadataRouter:
        """Who gets which metadata: the classifier's fit and the splitter's split."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self.estimator,
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags


def _train(estimator: Any, X: Any, y: Any, rows: Ints, params: dict[str, Any]) -> Any:
    """Classifier fitted to some rows; parameters with one entry a row are cut to them."""
    n_rows = len(indexable(y)[0])
    cut = {
        name: _safe_indexing(value, rows) if _has_length(value, n_rows) else value
        for name, value in params.items()
    }
    return estimator.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **cut)


def _has_length(value: Any, n_rows: int) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n_rows


def _in_columns(
    output: NDArray[Any], have: NDArray[Any] | None, want: NDArray[Any], missing: float = 0.0
) -> Floats:
    """Columns of the classes `have` in the places of `want`; a fold may miss some class."""
    if have is None or len(have) == len(want):
        return np.asarray(output)
    full = np.full((len(output), len(want)), missing)
    full[:, np.searchsorted(want, have)] = output
    return full
