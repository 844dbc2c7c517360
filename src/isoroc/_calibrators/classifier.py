"""CalibratedClassifier: any classifier with any calibrator behind it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isoroc._calibrators.base import Documented
from isoroc._calibrators.mixing import agreed
from isoroc._calibrators.registry import methods
from isoroc._calibrators.segment import SegmentCalibrator
from isoroc._core.types import Floats, Ints
from isoroc._core.verdict import Verdict
from isoroc._input import (
    InputError,
    Weighting,
    check_clusters,
    check_option,
    check_order,
    check_segments,
    check_two_classes,
    check_weights,
    encode_labels,
    to_array,
)

Response = Literal["auto", "predict_proba", "decision_function"]


@dataclass(frozen=True, eq=False)
class CalibratedPair:
    """A fitted classifier, and a calibrator of its forecasts of rows it was not trained on."""

    estimator: Any
    calibrator: Any
    classes: NDArray[Any]
    response: str
    segments: tuple[Any, ...] = ()
    """Columns of the features that are segments."""

    @property
    def calibrators(self) -> list[Any]:
        """The calibrator in a list, as scikit-learn has it."""
        return [self.calibrator]

    def respond(self, X: Any) -> Floats:
        """Input of the calibrator: logits if it takes them, otherwise forecasts."""
        takes_logits = has_fit_parameter(self.calibrator, "unit")
        return respond(self.estimator, X, self.classes, self.response, logits=takes_logits)

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, shape (n, K)."""
        further = {"segments": take_columns(X, self.segments)} if self.segments else {}
        Q = self.calibrator.predict_proba(self.respond(X), **further)
        known = has_fit_parameter(self.calibrator, "labels")
        wanted = self.classes if known else np.arange(len(self.classes))
        return in_columns(Q, getattr(self.calibrator, "classes_", self.classes), wanted)


@dataclass(eq=False, repr=False)
class CalibratedClassifier(Documented, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with probabilities calibrated on data that it was not trained on.

    It takes the parameters of scikit-learn's ``CalibratedClassifierCV`` and can replace it.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier to calibrate, by default ``LinearSVC(random_state=0)``. One that is wrapped
        in scikit-learn's ``FrozenEstimator`` is not fitted again, and all rows calibrate it.
    method : str, default="auto"
        Name of a calibrator of isoroc without "Calibrator": "auto", "isotonic", "venn-abers", ...
    cv : int, splitter, iterable or "prefit", default=None
        How to split the data so that the calibrator learns from rows that the classifier was not
        trained on. The default is 5 stratified folds. "prefit" is the same as ``FrozenEstimator``.
    n_jobs : int, default=None
        Number of folds trained at a time.
    ensemble : bool or "auto", default="auto"
        If true, the classifier of each fold keeps its own calibrator, and forecasts are averaged.
        If false, one calibrator learns from the forecasts of all folds, and the classifier is
        trained once more on all rows. "auto" is false for frozen classifiers.
    calibrator : calibrator, default=None
        An instance in place of `method`: anything with ``fit(P, y)`` and ``predict_proba(P)``. Its
        ``fit`` also gets ``labels``, ``unit``, ``sample_weight``, ``weighting``, ``clusters`` and
        ``segments`` if it takes them. Without ``labels`` it sees integers 0 to K - 1.
    segments : sequence of str or int, default=None
        Columns of `X`, by name or by position. Forecasts are corrected within their segments by a
        `SegmentCalibrator` around the calibrator.
    random_state : int, RandomState or None, default=0
        Seed of the calibrator that `method` names.
    response : {"auto", "predict_proba", "decision_function"}, default="auto"
        What to calibrate. "auto" prefers probabilities. Decision functions are logits.
    weighting : {"importance", "frequency"}, default="importance"
        Meaning of the sample weights, as in `fit` of the calibrator.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels.
    calibrated_classifiers_ : list
        The fitted pairs, each with attributes `estimator` and `calibrator`: one, or one per fold.
    n_features_in_ : int
        As reported by the classifier, like `feature_names_in_`.

    See Also
    --------
    AutoCalibrator : The default calibrator.
    isoroc.adjust_prior : Forecasts for a population with other class shares.
    sklearn.calibration.CalibratedClassifierCV : Calibrates each class against the rest.

    Notes
    -----
    The forecast of x is the mean of ``g_j(f_j(x))`` over the folds j, with classifiers f_j and
    calibrators g_j, or ``g(f(x))`` with ``ensemble=False``.

    Examples
    --------
    >>> from isoroc import CalibratedClassifier
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(n_samples=600, random_state=0)
    >>> clf = CalibratedClassifier(GaussianNB(), ensemble=False).fit(X, y)
    >>> clf.predict_proba(X[:2]).round(1)
    array([[1. , 0. ],
           [0.1, 0.9]])
    >>> clf.verdict_.should_calibrate
    True
    """

    estimator: Any = None
    method: str = "auto"
    _: KW_ONLY
    cv: Any = None
    n_jobs: int | None = None
    ensemble: bool | Literal["auto"] = "auto"
    calibrator: Any = None
    segments: Any = None
    random_state: int | np.random.RandomState | None = 0
    response: Response = "auto"
    weighting: Weighting = "importance"

    # scikit-learn calls the clusters of a splitter groups. A search or a pipeline with metadata
    # routing passes on either without being asked.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True, "clusters": True}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, where ``calibrator__x`` sets x of the calibrator that `method` names."""
        if self.calibrator is None and any(name.startswith("calibrator__") for name in params):
            self.method = params.get("method", self.method)
            self.calibrator = self._make_calibrator()
        return super().set_params(**params)  # type: ignore[no-any-return]

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        clusters: Any = None,
        **fit_params: Any,
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
        clusters : array-like of shape (n,), default=None
            Cluster of each row, such as the patient of a visit. Rows of one cluster share a fold. A
            splitter in `cv` must ensure this, and gets the clusters if it takes groups.
        **fit_params
            Passed to ``fit`` of the classifier, as requested if metadata routing is enabled. Those
            with one entry per row are cut to the rows of the fold. ``groups``, the name that
            scikit-learn routes, are passed to the splitter only.

        Returns
        -------
        self
        """
        if y is None:
            raise InputError("y", None, "requires y to be passed, but the target y is None")
        frozen = self._check_parameters()
        X, y = indexable(X, y)
        labels = self.estimator.classes_ if frozen else np.unique(to_array(y, name="y"))
        classes, columns = encode_labels(y, len(labels), labels=labels)
        if getattr(self._make_calibrator(), "_orders_classes", False):
            check_order(
                classes, "pass labels that are numbers, such as the codes of an OrdinalEncoder"
            )
        codes: Ints = columns.astype(np.intp)
        n = len(codes)
        weights = check_weights(sample_weight, n)
        numbers = check_clusters(clusters, n, of="X")
        check_two_classes(np.bincount(codes, weights, len(classes)).astype(np.float64), classes)
        rows: dict[str, Any] = {"sample_weight": weights, "clusters": numbers}
        if self.segments is not None:
            rows["segments"] = check_segments(take_columns(X, self.segments), n, of="X")
        if frozen:
            trained = [self.estimator]
            parts = [np.arange(n)]
        else:
            training, splitting = self._route(weights, clusters, fit_params)
            folds = self._split(X, y, codes, numbers, splitting)
            trainings = [train for train, _ in folds]
            parts = [part for _, part in folds]
            if self.ensemble is False:
                trainings.append(np.arange(n))
            trained = Parallel(n_jobs=self.n_jobs)(
                delayed(_train)(self._make_estimator(), X, y, part, training) for part in trainings
            )
        pairs = [self._make_pair(estimator, np.asarray(classes)) for estimator in trained]
        forecasts = [
            pair.respond(X if frozen else _safe_indexing(X, part))
            for pair, part in zip(pairs, parts, strict=False)
        ]
        if self.ensemble is False:
            forecasts = [np.concatenate(forecasts)]
            parts = [np.concatenate(parts)]
            pairs = pairs[-1:]
        for pair, P, part in zip(pairs, forecasts, parts, strict=True):
            cut = {name: values[part] for name, values in rows.items() if values is not None}
            self._calibrate(pair, P, codes[part], cut)
        self.classes_: NDArray[Any] = np.asarray(classes)
        self.calibrated_classifiers_ = pairs
        for attribute in ("n_features_in_", "feature_names_in_"):
            if hasattr(pairs[0].estimator, attribute):
                setattr(self, attribute, getattr(pairs[0].estimator, attribute))
        return self

    def _check_parameters(self) -> bool:
        """Check the parameters, and return whether the classifier is used without a new fit."""
        given = self.estimator
        calibrator = self.calibrator
        if given is not None and (isinstance(given, type) or not hasattr(given, "fit")):
            problem = f"expected a classifier, got {given!r}"
            raise InputError("estimator", None, problem, "pass an instance of a classifier")
        if given is not None and is_regressor(given):
            problem = f"{type(given).__name__} is a regressor"
            raise InputError("estimator", None, problem, "pass a classifier")
        has_method = calibrator is None or hasattr(calibrator, "predict_proba")
        if isinstance(calibrator, type) or not has_method:
            problem = f"expected a calibrator, got {calibrator!r}"
            fix = 'pass an instance, such as AutoCalibrator(), or a name, such as method="auto"'
            raise InputError("calibrator", None, problem, fix)
        check_option("method", self.method, tuple(methods()))
        check_option("ensemble", self.ensemble, (True, False, "auto"))
        check_option("response", self.response, ("auto", "predict_proba", "decision_function"))
        if isinstance(self.cv, str) and self.cv != "prefit":
            problem = f'expected a number, a splitter or "prefit", got {self.cv!r}'
            raise InputError("cv", None, problem)
        frozen = isinstance(self.cv, str) or isinstance(given, FrozenEstimator)
        if frozen:
            check_is_fitted(given)
        return frozen

    def _make_estimator(self) -> Any:
        """The classifier to train."""
        if self.estimator is not None:
            return clone(self.estimator)
        from sklearn.svm import LinearSVC  # noqa: PLC0415  # slow to import, and few use it

        default = LinearSVC(random_state=0)
        if get_config()["enable_metadata_routing"]:
            default.set_fit_request(sample_weight=True)
        return default

    def _make_calibrator(self) -> Any:
        """The calibrator to fit."""
        if self.calibrator is not None:
            made = clone(self.calibrator, safe=False)
        else:
            made = methods()[self.method]()
            if "random_state" in made.get_params(deep=False):
                made.set_params(random_state=self.random_state)
        if self.segments is not None and not has_fit_parameter(made, "segments"):
            made = SegmentCalibrator(made)
        return made

    def _make_pair(self, estimator: Any, classes: NDArray[Any]) -> CalibratedPair:
        """A fitted classifier with the calibrator to fit."""
        method = method_of(estimator, self.response)
        columns = () if self.segments is None else tuple(self.segments)
        return CalibratedPair(estimator, self._make_calibrator(), classes, method, columns)

    def _calibrate(
        self, pair: CalibratedPair, forecasts: Floats, codes: Ints, rows: dict[str, Any]
    ) -> None:
        """Fit the calibrator of a pair. `rows` has further arguments with one entry per row."""
        takes = partial(has_fit_parameter, pair.calibrator)
        given = rows | {"labels": pair.classes, "weighting": self.weighting}
        given["unit"] = "logit" if pair.response == "decision_function" else "probability"
        labels = pair.classes[codes] if takes("labels") else codes
        taken = {name: value for name, value in given.items() if takes(name)}
        pair.calibrator.fit(forecasts, labels, **taken)

    def _split(
        self, X: Any, y: Any, codes: Ints, clusters: Ints | None, splitting: dict[str, Any]
    ) -> list[tuple[Ints, Ints]]:
        """Rows to train on and rows held out, for each fold that can be used."""
        # Slow to import, and the registry imports this module for every command.
        from sklearn.model_selection import LeaveOneOut, StratifiedGroupKFold, check_cv  # noqa: PLC0415

        cv = self.cv
        ensemble = self.ensemble is not False  # "auto" is True unless the classifier is frozen
        if clusters is not None and (cv is None or isinstance(cv, int)):
            cv = StratifiedGroupKFold(cv or 5)
            splitting = {"groups": clusters}
        n_folds = self.cv if isinstance(self.cv, int) else getattr(self.cv, "n_splits", 1)
        if ensemble and (n_folds > np.bincount(codes).min() or isinstance(self.cv, LeaveOneOut)):
            problem = (
                "LeaveOneOut cross-validation does not hold out several classes at a time"
                if isinstance(self.cv, LeaveOneOut)
                else f"Requesting {n_folds}-fold cross-validation, but a class has fewer rows"
            )
            raise InputError("cv", None, problem, "use fewer folds, or ensemble=False")
        try:
            folds = list(check_cv(cv, y, classifier=True).split(X, y, **splitting))
        except (TypeError, ValueError) as error:
            raise InputError("cv", None, f"cannot split {len(codes)} rows ({error})") from error
        for f, (train, held_out) in enumerate(folds):
            if clusters is not None and np.intersect1d(clusters[train], clusters[held_out]).size:
                problem = f"fold {f} holds out rows of clusters that it also trains on"
                raise InputError("cv", None, problem, "pass a number, or a splitter of groups")
            if len(np.unique(codes[train])) < 2:
                problem = f"fold {f} leaves rows of one class only to train on"
                raise InputError("cv", None, problem, "use fewer folds, or stratified ones")
        if not ensemble:
            return folds
        usable = [fold for fold in folds if len(np.unique(codes[fold[1]])) > 1]
        if not usable:
            problem = "every fold holds out rows of one class only, but calibration needs two"
            raise InputError("cv", None, problem, "use fewer folds, or ensemble=False")
        if len(usable) < len(folds):
            n_left_out = len(folds) - len(usable)
            problem = f"cv: {n_left_out} of {len(folds)} folds hold out rows of one class only"
            effect = "their classifiers cannot be calibrated and are left out"
            warnings.warn(f"{problem}; {effect}.", UserWarning, stacklevel=3)
        return usable

    def _route(
        self, weights: Floats | None, clusters: Any, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters of the classifier's fit and of the splitter's split."""
        training = {name: value for name, value in fit_params.items() if name != "groups"}
        groups = fit_params.get("groups")
        if groups is not None and clusters is not None:
            problem = "is scikit-learn's name for clusters, which are given too"
            raise InputError("groups", None, problem, "pass clusters alone")
        if clusters is not None and self._splits_groups():
            groups = clusters
        given = {} if groups is None else {"groups": groups}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", sample_weight=weights, **given, **training)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        splitting = given if self._splits_groups() else {}
        if weights is not None:
            estimator = self._make_estimator()
            if has_fit_parameter(estimator, "sample_weight"):
                training["sample_weight"] = weights
            else:
                problem = f"{type(estimator).__name__} takes no weights"
                message = f"sample_weight: {problem}, so only the calibrator uses them."
                warnings.warn(message, UserWarning, stacklevel=3)
        return training, splitting

    def _splits_groups(self) -> bool:
        """Whether the splitter takes groups."""
        if hasattr(self.cv, "split") and not hasattr(self.cv, "get_metadata_routing"):
            return "groups" in signature(self.cv.split).parameters
        return bool(get_routing_for_object(self.cv).consumes("split", ["groups"]))

    @property
    def estimators_(self) -> list[Any]:
        """The fitted classifiers: one, or one per fold."""
        return [pair.estimator for pair in self.calibrated_classifiers_]

    @property
    def calibrators_(self) -> list[Any]:
        """The fitted calibrators: one, or one per fold."""
        return [pair.calibrator for pair in self.calibrated_classifiers_]

    @property
    def verdict_(self) -> Verdict:
        """Whether calibration helps, by majority if there are several calibrators."""
        return agreed([calibrator.verdict_ for calibrator in self.calibrators_])

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities, shape (n, K)."""
        check_is_fitted(self, "calibrated_classifiers_")
        pairs = self.calibrated_classifiers_
        return np.asarray(sum(pair.predict_proba(X) for pair in pairs) / len(pairs))

    def predict(self, X: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def forecast(self, estimator: Any, X: Any, classes: NDArray[Any]) -> Floats:
        """Forecasts of a fitted classifier with one column for each of classes, or scores."""
        return respond(estimator, X, classes, method_of(estimator, self.response))

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata routing: what the classifier's fit and the splitter's split receive."""
        fitting = MethodMapping().add(caller="fit", callee="fit")
        splitting = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(estimator=self._make_estimator(), method_mapping=fitting)
        return router.add(splitter=self.cv, method_mapping=splitting)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._make_estimator() if self.estimator is None else self.estimator)
        for name in ("sparse", "allow_nan", "positive_only"):
            setattr(tags.input_tags, name, getattr(inner.input_tags, name))
        return tags


def take_columns(X: Any, columns: Sequence[Any]) -> Any:
    """Columns of features by name, or by position in an array."""
    try:
        part = _safe_indexing(X, list(columns), axis=1)
    except (IndexError, KeyError, ValueError) as error:
        fix = "name columns of a dataframe, or pass positions in an array"
        raise InputError("segments", None, f"are not columns of X ({error})", fix) from error
    return dict(zip(map(str, columns), part.T, strict=True)) if type(part) is np.ndarray else part


def _train(estimator: Any, X: Any, y: Any, rows: Ints, params: dict[str, Any]) -> Any:
    """Classifier fitted to some rows. Parameters with one entry per row are cut to them."""

    def cut(value: Any) -> Any:
        per_row = hasattr(value, "__len__") and not isinstance(value, str) and len(value) == len(y)
        return _safe_indexing(value, rows) if per_row else value

    params = {name: cut(value) for name, value in params.items()}
    return estimator.fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **params)


def method_of(estimator: Any, response: Response) -> str:
    """Name of the method with the output to calibrate."""
    if response == "auto":
        response = "predict_proba" if hasattr(estimator, "predict_proba") else "decision_function"
    if not hasattr(estimator, response):
        problem = f"{type(estimator).__name__} has no {response}"
        fix = "calibrating needs predict_proba or decision_function"
        raise InputError("response", None, problem, fix)
    return response


def respond(
    estimator: Any, X: Any, classes: NDArray[Any], method: str, *, logits: bool = False
) -> Floats:
    """Forecasts in the order of `classes`, or one column of scores. Decisions may stay logits."""
    output = np.asarray(getattr(estimator, method)(X), dtype=np.float64)
    have = estimator.classes_
    if output.ndim == 1:
        if len(classes) == 2:
            return (output if list(have) == list(classes) else -output).reshape(-1, 1)
        # A fold may have left two of several classes to train on.
        output = np.column_stack([np.zeros(len(output)), output])
    if method == "predict_proba":
        return in_columns(output, have, classes)
    output = in_columns(output, have, classes, output.min(axis=1) - 1e3)  # below all
    return output if logits else np.asarray(softmax(output, axis=1))


def in_columns(
    output: NDArray[Any], have: NDArray[Any], want: NDArray[Any], missing: float | Floats = 0.0
) -> Floats:
    """Columns of the classes `have` in the order of `want`, with others filled with `missing`."""
    column_of = {label: k for k, label in enumerate(want.tolist())}
    full = np.empty((len(output), len(want)))
    full[:] = np.reshape(missing, (-1, 1))
    full[:, [column_of[label] for label in have.tolist()]] = output
    return full
