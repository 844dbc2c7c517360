"""CalibratedClassifier: any classifier with any calibrator behind it."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isoroc._calibrators.auto import AutoCalibrator
from isoroc._folds import usable_folds
from isoroc._input import (
    InputError,
    check_option,
    check_two_classes,
    check_weights,
    encode_labels,
)
from isoroc._response import Response, in_columns, method_of, respond, to_forecasts
from isoroc._simplex import Floats, Ints
from isoroc.decisions import PriorEstimate, adjust_prior, estimate_prior
from isoroc.decisions._inputs import check_shares


class _Outcomes(NamedTuple):
    """The labels as classes and numbers, and the weights of the rows."""

    classes: NDArray[Any]
    codes: Ints
    weights: Floats | None


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated on data that it was not trained on.

    Parameters
    ----------
    estimator : classifier
        The classifier to calibrate.
    calibrator : calibrator, default=None
        Anything with ``fit(P, y)`` and ``predict_proba(P)``, ``AutoCalibrator(random_state=0)`` by
        default. It sees forecasts of shape (n, K), or (n, 1) for the decision function of two
        classes. If its ``fit`` takes ``labels``, it sees the labels themselves, otherwise integers
        0 to K - 1; if it takes ``scores``, decision functions of several classes are logits, else
        probabilities.
    cv : int, splitter, iterable or "prefit", default=5
        How to split the data so that every forecast the calibrator learns from is of a row that
        the classifier was not trained on. To calibrate a classifier that is already fitted, wrap
        it in scikit-learn's ``FrozenEstimator``: it is not fitted again, and all the data
        calibrate it. ``cv="prefit"`` is a synonym.
    ensemble : bool, default=False
        If false, one calibrator learns from the forecasts of all folds, and the classifier is
        trained once more on all the data. If true, each fold's classifier keeps a calibrator of
        its own, and their forecasts are averaged.
    response : {"auto", "predict_proba", "decision_function"}, default="auto"
        What to calibrate; "auto" takes probabilities where the classifier has them. Decision
        functions are calibrated as logits.
    prior : array-like of shape (K,) or mapping of labels to shares, default=None
        Class shares of the population that is forecast, if they differ from those of the rows in
        `fit` and nothing else does; see `isoroc.decisions.adjust_prior`. `adapt_prior` estimates
        them.
    n_jobs : int, default=None
        How many folds to train at a time, as in joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    estimators_, calibrators_ : list
        The fitted pairs: one, or one for each fold with ``ensemble=True``.
    class_shares_ : ndarray of shape (K,)
        Weighted class shares of the rows in `fit`.
    prior_ : ndarray of shape (K,) or None
        Class shares that forecasts are adjusted to: those of `prior` or of `adapt_prior`.
    n_features_in_ : int
        As the classifier reports it, and `feature_names_in_` too.

    See Also
    --------
    AutoCalibrator : The default calibrator.
    sklearn.calibration.CalibratedClassifierCV : Calibrates each class against the rest.

    Notes
    -----
    With ``ensemble=False`` the forecast of x is ``g(f(x))``, f trained on all rows and g fitted to
    forecasts of models that had not seen the rows. With ``ensemble=True`` it is the mean of
    ``g_j(f_j(x))`` over the folds j. A `prior` multiplies the forecast of each class by its share
    in the prior over its share in the rows of `fit`, and rows are divided by their sum.

    Examples
    --------
    >>> from isoroc import CalibratedClassifier
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(n_samples=600, random_state=0)
    >>> clf = CalibratedClassifier(GaussianNB()).fit(X, y)
    >>> clf.predict_proba(X[:2]).round(1)
    array([[1. , 0. ],
           [0.1, 0.9]])
    >>> clf.calibrators_[0].verdict_[:9]
    'calibrate'
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = None,
        *,
        cv: Any = 5,
        ensemble: bool = False,
        response: Response = "auto",
        prior: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response = response
        self.prior = prior
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Train and calibrate the classifier.

        Parameters
        ----------
        X : array-like or dataframe
            What the classifier takes.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row, for the calibrator and, where it takes weights, the classifier.
        groups : array-like of shape (n,), default=None
            Groups of rows, for splitters that keep them together.
        **fit_params
            Passed on to the classifier's ``fit``, cut to the fold's rows where they are as long
            as the data. With metadata routing enabled, passed as was requested.

        Returns
        -------
        self
        """
        if y is None:
            raise InputError("y", None, "requires y to be passed, but the target y is None")
        prefit = self._check_parameters()
        X, y = indexable(X, y)
        labels = self.estimator.classes_ if prefit else np.unique(column_or_1d(y))
        classes, columns = encode_labels(y, len(labels), labels=labels)
        codes: Ints = columns.astype(np.intp)
        weights = check_weights(sample_weight, len(codes))
        totals = np.bincount(codes, weights, len(classes)).astype(np.float64)
        check_two_classes(totals, classes)
        shares = np.asarray(totals / totals.sum())
        prior = None
        if self.prior is not None:
            _check_adjustable(shares, classes)
            prior = check_shares(self.prior, classes, name="prior", positive=False)
        outcomes = _Outcomes(np.asarray(classes), codes, weights)
        if prefit:
            forecasts = self._respond(self.estimator, X, classes)
            estimators = [self.estimator]
            calibrators = [self._calibrate(self.estimator, forecasts, outcomes, slice(None))]
        else:
            estimators, calibrators = self._fit_folds(X, y, outcomes, groups, fit_params)
        self.classes_: NDArray[Any] = outcomes.classes
        self.class_shares_: Floats = shares
        self.prior_: Floats | None = prior
        self.estimators_, self.calibrators_ = estimators, calibrators
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimators[0], attribute):
                setattr(self, attribute, getattr(estimators[0], attribute))
        return self

    def _check_parameters(self) -> bool:
        """Check the parameters; returns whether the classifier is used without fitting it again."""
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "fit"):
            problem = f"expected a classifier, got {self.estimator!r}"
            raise InputError("estimator", None, problem, "pass an instance of a classifier")
        if is_regressor(self.estimator):
            problem = f"{type(self.estimator).__name__} is a regressor"
            raise InputError("estimator", None, problem, "pass a classifier")
        is_calibrator = hasattr(self.calibrator, "predict_proba")
        if self.calibrator is not None and (isinstance(self.calibrator, type) or not is_calibrator):
            problem = f"expected a calibrator, got {self.calibrator!r}"
            raise InputError("calibrator", None, problem, "pass an instance, as AutoCalibrator()")
        check_option("ensemble", self.ensemble, (True, False))
        check_option("response", self.response, ("auto", "predict_proba", "decision_function"))
        if isinstance(self.cv, str) and self.cv != "prefit":
            problem = f'expected a number, a splitter or "prefit", got {self.cv!r}'
            raise InputError("cv", None, problem)
        prefit = isinstance(self.cv, str) or isinstance(self.estimator, FrozenEstimator)
        if prefit:
            check_is_fitted(self.estimator)
        return prefit

    def _fit_folds(
        self, X: Any, y: Any, outcomes: _Outcomes, groups: Any, fit_params: dict[str, Any]
    ) -> tuple[list[Any], list[Any]]:
        """Classifiers and their calibrators, trained and fitted on different rows."""
        training, splitting = self._route(outcomes.weights, groups, fit_params)
        n_rows = len(outcomes.codes)
        try:
            folds = list(check_cv(self.cv, y, classifier=True).split(X, y, **splitting))
        except ValueError as error:
            raise InputError("cv", None, f"cannot split {n_rows} rows ({error})") from error
        folds = usable_folds(folds, outcomes.codes, calibrated_apart=self.ensemble)
        trainings = [train for train, _ in folds]
        if not self.ensemble:
            trainings.append(np.arange(n_rows))
        trained = Parallel(n_jobs=self.n_jobs)(
            delayed(_train)(clone(self.estimator), X, y, rows, training) for rows in trainings
        )
        held_out = [
            self._respond(estimator, _safe_indexing(X, rows), outcomes.classes)
            for estimator, (_, rows) in zip(trained, folds, strict=False)
        ]
        if not self.ensemble:
            rows, forecasts = np.concatenate([own for _, own in folds]), np.concatenate(held_out)
            return trained[-1:], [self._calibrate(trained[-1], forecasts, outcomes, rows)]
        calibrators = [
            self._calibrate(estimator, forecasts, outcomes, rows)
            for estimator, forecasts, (_, rows) in zip(trained, held_out, folds, strict=True)
        ]
        return trained, calibrators

    def _route(
        self, weights: Floats | None, groups: Any, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters of the classifier's fit and of the splitter's split."""
        splitting = {} if groups is None else {"groups": groups}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weights, **splitting, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        if weights is None:
            return fit_params, splitting
        if has_fit_parameter(self.estimator, "sample_weight"):
            return fit_params | {"sample_weight": weights}, splitting
        name = type(self.estimator).__name__
        warnings.warn(
            f"sample_weight: {name} takes no weights, so only the calibrator uses them.",
            UserWarning,
            stacklevel=4,
        )
        return fit_params, splitting

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, shape (n, K), adjusted to `prior_` if there is one."""
        check_is_fitted(self, "calibrators_")
        Q = self._predict_unadjusted(X)
        if self.prior_ is None:
            return Q
        return adjust_prior(Q, self.class_shares_, self.prior_)

    def _predict_unadjusted(self, X: Any) -> Floats:
        """Calibrated probabilities for the class shares of the rows in `fit`."""
        total = sum(
            in_columns(
                calibrator.predict_proba(self._respond(estimator, X, self.classes_)),
                getattr(calibrator, "classes_", self.classes_),
                self.classes_ if _knows_labels(calibrator) else np.arange(len(self.classes_)),
            )
            for estimator, calibrator in zip(self.estimators_, self.calibrators_, strict=True)
        )
        return np.asarray(total / len(self.calibrators_))

    def adapt_prior(self, X: Any, **options: Any) -> PriorEstimate:
        """Estimate the class shares of new rows without labels, and forecast for these from now on.

        Parameters
        ----------
        X : array-like or dataframe
            New rows, as `predict_proba` takes them.
        **options
            `confidence`, `n_resamples`, `random_state` and `sample_weight` of
            `isoroc.decisions.estimate_prior`, which says what must hold.

        Returns
        -------
        PriorEstimate
            Estimated shares with intervals, and a test of whether they differ from those of the
            rows in `fit`. The shares become `prior_`.

        Examples
        --------
        >>> from isoroc import CalibratedClassifier
        >>> from sklearn.datasets import make_classification
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = make_classification(n_samples=2000, random_state=0)
        >>> clf = CalibratedClassifier(GaussianNB()).fit(X[:1000], y[:1000])
        >>> few = [i for i in range(1000, 2000) if y[i] == 0 or i % 5 == 0]  # fewer of class 1
        >>> clf.adapt_prior(X[few], random_state=0).prior.round(2), y[few].mean().round(2)
        (array([0.85, 0.15]), np.float64(0.15))
        """
        check_is_fitted(self, "calibrators_")
        _check_adjustable(self.class_shares_, self.classes_)
        Q = self._predict_unadjusted(X)
        found = estimate_prior(Q, self.class_shares_, labels=self.classes_, **options)
        self.prior_ = found.prior
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def forecast(self, estimator: Any, X: Any, classes: NDArray[Any]) -> Floats:
        """Forecasts of a fitted classifier with one column for each of classes, or scores."""
        method = method_of(estimator, self.response)
        return to_forecasts(respond(estimator, X, classes, method), method)

    def _respond(self, estimator: Any, X: Any, classes: NDArray[Any]) -> Floats:
        """What the calibrator gets: logits where it takes them, otherwise forecasts."""
        if self.calibrator is None or has_fit_parameter(self.calibrator, "scores"):
            return respond(estimator, X, classes, method_of(estimator, self.response))
        return self.forecast(estimator, X, classes)

    def _calibrate(self, estimator: Any, forecasts: Floats, outcomes: _Outcomes, rows: Any) -> Any:
        """A calibrator, fitted to a classifier's forecasts of the given rows."""
        if self.calibrator is None:
            calibrator: Any = AutoCalibrator(random_state=0)
        else:
            calibrator = clone(self.calibrator, safe=False)
        classes, codes, weights = outcomes
        further: dict[str, Any] = {}
        labels = codes[rows]
        if _knows_labels(calibrator):
            labels, further["labels"] = classes[labels], classes
        if has_fit_parameter(calibrator, "scores"):
            logits = method_of(estimator, self.response) == "decision_function"
            further["scores"] = "logit" if logits else "probability"
        if weights is not None and has_fit_parameter(calibrator, "sample_weight"):
            further["sample_weight"] = weights[rows]
        return calibrator.fit(forecasts, labels, **further)

    def get_metadata_routing(self) -> MetadataRouter:
        """Who gets which metadata: the classifier's fit and the splitter's split."""
        fit = MethodMapping().add(caller="fit", callee="fit")
        split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self.estimator, method_mapping=fit)
        return router.add(splitter=self.cv, method_mapping=split)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if hasattr(self.calibrator, "__sklearn_tags__"):
            of_calibrator = get_tags(self.calibrator).classifier_tags
            if of_calibrator is not None:
                tags.classifier_tags.multi_class = of_calibrator.multi_class
        return tags


def _train(estimator: Any, X: Any, y: Any, rows: Ints, params: dict[str, Any]) -> Any:
    """Classifier fitted to some rows; parameters with one entry per row are cut to them."""
    n_rows = len(indexable(y)[0])

    def cut(value: Any) -> Any:
        by_row = hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n_rows
        return _safe_indexing(value, rows) if by_row else value

    params = {name: cut(value) for name, value in params.items()}
    return estimator.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **params)


def _knows_labels(calibrator: Any) -> bool:
    """Whether a calibrator is fitted to the labels themselves, otherwise to their numbers."""
    return bool(has_fit_parameter(calibrator, "labels"))


def _check_adjustable(shares: Floats, classes: NDArray[Any]) -> None:
    """Refuse to adjust the share of a class that did not occur."""
    if not shares.all():
        problem = f"class {classes[int(np.argmin(shares))]!s} did not occur in the rows of fit"
        raise InputError("prior", None, problem, "fit to rows of all classes")
