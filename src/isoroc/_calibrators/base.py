"""Calibrator, what all calibrators have in common, and IdentityCalibrator, the simplest one."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from importlib.metadata import metadata
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from narwhals.stable.v2.dependencies import is_into_dataframe
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from isoroc._backends import NUMPY, ops_for
from isoroc._calibrators import frames
from isoroc._calibrators.floors import without_noise
from isoroc._calibrators.thresholds import CarriedThresholds, carry_over
from isoroc._core.types import Floats, Ints
from isoroc._counts import Counts
from isoroc._input import (
    InputError,
    Sample,
    UnitOption,
    Weighting,
    categories_of,
    check_new,
    check_order,
    check_sample,
    check_two_classes,
    check_units,
    in_order,
    range_of,
    to_array,
    warn_if_reversed,
    with_readable_names,
)
from isoroc._input.kinds import columns_of, count_columns
from isoroc._input.seen import Fingerprint, remember_output
from isoroc._maps import IdentityMap, Map
from isoroc._maps.loading import MAX_CLASSES, map_document
from isoroc._maps.modelfile import Fault, checksum, encode, write
from isoroc._maps.modelfile.checks import Check
from isoroc._support.threads import one_blas_thread

#: Attributes that a model file holds for every calibrator.
COMMON = ("classes_", "n_features_in_", "feature_names_in_")


class FromMap:
    """A fitted attribute: a function of the map, by default its number of the same name."""

    def __init__(self, read: Callable[[Any], Any] | None = None) -> None:
        self._read = read

    def __set_name__(self, owner: type, name: str) -> None:
        self._read = self._read or attrgetter(name.removesuffix("_"))

    def __get__(self, calibrator: Any, owner: type) -> Any:
        if calibrator is None:
            return self
        check_is_fitted(calibrator, "map_")
        return self._read(calibrator.map_)  # type: ignore[misc]


class Documented:
    """Links scikit-learn's HTML representation to the documentation, if its address is known."""

    _doc_link_module = "isoroc"

    @property
    def _doc_link_template(self) -> str:
        for address in metadata("isoroc").get_all("Project-URL") or ():
            if address.startswith("Documentation, "):
                return f"{address.removeprefix('Documentation, ')}/calibrators.md"
        return ""


class Calibrator(Documented, ClassifierMixin, BaseEstimator, ABC):
    """Base of all calibrators: a subclass has parameters and `_fit`, which learns a map.

    Forecasts, the model file, ONNX, SQL and torch follow from the map, `map_`.
    """

    #: Prior share in a mixture, for two classes and for more, relative to other members. Chosen on
    #: the data sets of the page on evidence.
    _shares: ClassVar[tuple[float, float]] = (1.0, 1.0)
    #: Members with less weight are dropped from a mixture, with up to 30 classes and with more.
    _least_weights: ClassVar[tuple[float, float]] = (0.01, 0.01)
    #: Whether cross-validation is part of the fit, so that the folds of counts are needed.
    _uses_folds: ClassVar[bool] = False
    #: Whether only the order of scores counts, so that their unit need not be known.
    _uses_order_only: ClassVar[bool] = False
    #: Whether the fit uses forecasts as given, also where noise is in place of zeros.
    _keeps_noise: ClassVar[bool] = False
    #: Whether the order of the classes counts, so that labels which are names need `labels`.
    _orders_classes: ClassVar[bool] = False
    #: Whether a row has one outcome, and not any number of labels.
    _has_classes: ClassVar[bool] = True
    #: Up to this many rows, folds share nothing of a fit.
    _separate_rows: ClassVar[int] = 500
    #: Attributes besides the map that a model file holds, and what must be true of each.
    _state: ClassVar[dict[str, Check]] = {}

    map_: Map
    classes_: NDArray[Any]
    n_features_in_: int
    summary_: dict[str, Any]
    unit_ = FromMap(lambda fitted: fitted.kind.unit)

    @abstractmethod
    def _fit(self, sample: Sample) -> Map:
        """Check the parameters, learn from a sample, set `_state` and return the map."""

    def _fit_part(self, sample: Sample, whole: Any) -> Map:  # noqa: ARG002
        """The map for some of the rows that `whole` was fitted to, which may be a good start."""
        return self._fit(sample)

    def _fit_out_of_fold(self, sample: Sample, fold: Ints) -> tuple[Map, Floats]:
        """The map for all rows, and forecasts of each fold by a map fitted to the others."""
        whole = self._fit(sample)
        few = len(sample) <= self._separate_rows
        Q = np.empty((len(fold), sample.n_classes))
        for held_out in range(fold.max() + 1):
            inside = fold == held_out
            part = sample.take(~inside)
            fresh = copy(self)
            fitted = fresh._fit(part) if few else fresh._fit_part(part, whole)
            Q[inside] = fitted.apply(sample.forecasts[inside])
        return whole, Q

    def fit(
        self,
        P: Any,
        y: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        weighting: Weighting = "importance",
        clusters: Any = None,
        unit: UnitOption = "auto",
    ) -> Self:
        """Learn the calibration map from forecasts and outcomes.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts: one column of probabilities per class, shape (n, K), or, for two classes, n
            scores that increase with the probability of the second class.
        y : array-like of shape (n,) or (n, K)
            The label that came true for each row, or the shares of the classes (soft labels).
        labels : array-like of shape (K,), default=None
            The class of each column, or the two classes in the order in which scores increase. By
            default columns are matched by name, and otherwise follow the sorted labels. Required if
            some class is absent from `y`.
        sample_weight : array-like of shape (n,), default=None
            Weight of each row.
        weighting : {"importance", "frequency"}, default="importance"
            Only ratios of importance weights matter, and unequal weights lower the effective number
            of rows. A frequency of 2 is the row twice.
        clusters : array-like of shape (n,), default=None
            Cluster of each row, such as the patient of a visit. Unseen rows are forecast without
            their whole cluster, and standard errors allow for the dependence.
        unit : str, default="auto"
            What the forecasts are: "probability", "percent", "proportion" (divided by the sum of
            the row), "logit" (log odds if there is one column), "log_probability", or "rank" (only
            the order of scores counts). With "auto", columns are probabilities. Scores are
            probabilities if all lie in [0, 1], and log odds otherwise.

        Returns
        -------
        self
        """
        if self._orders_classes and labels is None:
            labels = categories_of(y)
        sample = check_sample(
            P, y, sample_weight, labels, clusters=clusters, unit=unit, clip=True, advice="pass"
        )
        if not self._uses_order_only:
            check_units(sample, unit)
        warn_if_reversed(sample)
        return self._fit_validated(sample, weighting, P, in_order=labels is not None)

    def _fit_validated(
        self, sample: Sample, weighting: Weighting, P: Any = None, *, in_order: bool = False
    ) -> Self:
        """Fit to a checked sample, and remember the column names of `P`."""
        if self._orders_classes and not in_order:
            check_order(sample.classes)
        if sample.unit == "rank" and not self._uses_order_only:
            problem = f'is "rank", but {type(self).__name__} uses more than the order of scores'
            raise InputError("unit", None, problem, "use IsotonicCalibrator or IRPCalibrator")
        totals = sample.class_weights()
        check_two_classes(totals, sample.classes)
        counted = sample.positive().effective(weighting)
        keeps_noise = self._keeps_noise or self._uses_order_only
        with one_blas_thread():
            fitted = self._fit(counted if keeps_noise else without_noise(counted))
        self._remember_columns(P, sample.forecasts, reset=True)
        self.map_ = fitted
        self.classes_ = sample.classes
        if counted is not sample:
            totals = counted.class_weights()
        counts = {"weight": float(totals.sum()), "class_weights": totals.tolist()}
        self.summary_ = {"rows": sample.n_rows} | counts | range_of(sample)
        self.summary_ |= Fingerprint.of(sample).entry()
        self._finish()
        return self

    def _finish(self) -> None:
        """Set up the calibrators inside this one after a fit or a load."""

    def fit_counts(self, counts: Counts, *, weighting: Weighting = "importance") -> Self:
        """Learn the calibration map from counts, with the folds of the counts.

        Each cell stands for its rows with their mean forecast.

        Parameters
        ----------
        counts : Counts
            Counts of forecasts and outcomes.
        weighting : {"importance", "frequency"}, default="importance"
            Meaning of the weights, as in `fit`.

        Examples
        --------
        >>> from isoroc import Counts, IsotonicCalibrator
        >>> counts = Counts.from_arrays([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
        >>> IsotonicCalibrator(pseudocount=0).fit_counts(counts).predict_proba([0.5])
        array([[0.5, 0.5]])
        """
        given: Any = counts
        if not isinstance(given, Counts):
            problem = f"is {type(given).__name__}"
            raise InputError("counts", None, problem, "expected Counts; pass rows to fit")
        sample = counts.sample(per_fold=self._uses_folds)
        if not len(sample):
            raise InputError("counts", None, "hold no rows", "at least one is needed")
        warn_if_reversed(sample)
        self._fit_validated(sample, weighting)
        self.summary_ = self.summary_ | {"rows": counts.n_rows}
        if self._uses_folds:  # the fingerprint does not depend on the folds
            cells = counts.sample(per_fold=False)
            self.summary_ |= Fingerprint.of(cells).entry()
        return self

    def predict_frame(
        self, df: Any, probs: str | Sequence[str], *, names: Sequence[str] | None = None
    ) -> Any:
        """Add columns of calibrated forecasts to a dataframe, lazily where the engine is lazy.

        DuckDB runs the query of `isoroc.export.to_sql`. Workers of other engines need isoroc.

        Parameters
        ----------
        df : dataframe
            A dataframe of pandas, polars, pyarrow, Dask or PySpark, or a relation of DuckDB.
        probs : str or sequence of str
            Columns of the forecasts, in the order of `classes_`, or the one column of scores.
        names : sequence of str, default=None
            Names of the new columns, by default ``calibrated_`` followed by the label.

        Returns
        -------
        dataframe
            The type of `df`. Rows that `predict_proba` would refuse get missing values.

        Examples
        --------
        >>> import polars as pl
        >>> from isoroc import IsotonicCalibrator
        >>> calibrator = IsotonicCalibrator().fit([0.1, 0.3, 0.6, 0.9], ["no", "yes", "no", "yes"])
        >>> calibrator.predict_frame(pl.DataFrame({"p": [0.5]}), probs="p").columns
        ['p', 'calibrated_no', 'calibrated_yes']
        """
        return frames.predict_frame(self, df, probs, names)

    @property
    def checksum(self) -> str | None:
        """Checksum of the model file that `save` would write, or None if it cannot be saved."""
        check_is_fitted(self, "map_")
        try:
            return checksum(to_document(self), self.summary_)
        except (Fault, ValueError):
            return None

    def predict_proba(self, P: Any) -> Floats:
        """Calibrated forecasts, shape (n, K), one column per class of `classes_`. Rows sum to 1.

        Parameters
        ----------
        P : array-like, dataframe or series
            Forecasts as in `fit`. Columns of a dataframe are matched by name where `fit` saw names.
            Arrays of torch or CuPy stay on their device under scikit-learn's `array_api_dispatch`.
        """
        ops = ops_for(P)
        values = self._check_new(P, ops)  # raises an error if there is no map yet
        Q = self.map_.apply(values)
        remember_output(Q, self.summary_)
        return ops.like(P, Q)  # type: ignore[no-any-return]

    def predict(self, P: Any) -> NDArray[Any]:
        """Label with the largest calibrated probability, the first of `classes_` on ties."""
        best = to_array(self.predict_proba(P), name="P").argmax(axis=1)
        return np.asarray(self.classes_[best])

    def carry_over(self, thresholds: Any, P: Any = None) -> CarriedThresholds:
        """Thresholds on the calibrated forecasts that repeat decisions made on uncalibrated ones.

        With two classes, a strictly increasing map repeats every decision. Other maps change as few
        decisions on the rows `P` as possible. With more classes, no decision on these rows changes
        if there is such a threshold. Otherwise the result is the calibrated forecast of gamma.

        Parameters
        ----------
        thresholds : float or array-like of shape (K,)
            For two classes, a number: the second class is chosen if its score is above it. For
            more, a vector gamma: the class with the largest ``p - gamma`` is chosen.
        P : array-like, dataframe or series, default=None
            Forecasts of rows on which decisions are compared. Required unless the map is strictly
            increasing.

        Returns
        -------
        CarriedThresholds
            With `thresholds`, `n_changed`, `n_rows` and `exact`.

        Examples
        --------
        >>> from isoroc import IsotonicCalibrator, TemperatureCalibrator
        >>> p, y = [0.1, 0.2, 0.7, 0.9, 0.95], [0, 1, 0, 1, 1]
        >>> print(TemperatureCalibrator().fit(p, y).carry_over(0.8))
        0.680977: the same decision for every forecast, as the map is increasing.
        >>> print(IsotonicCalibrator().fit(p, y).carry_over(0.5, p))
        0.5: 1 of 5 decisions change (20.00%).
        """
        check_is_fitted(self, "map_")
        values = None if P is None else self._check_new(P)
        return carry_over(self.map_, len(self.classes_), thresholds, values)

    def save(self, path: str | os.PathLike[str], *, summary: dict[str, Any] | None = None) -> None:
        """Write the fitted calibrator to a model file, which `isoroc.load` reads.

        The file is JSON with exact numbers and nothing executable. An existing file is replaced.

        Parameters
        ----------
        path : path-like
            The file.
        summary : dict, default=None
            JSON values to add to `summary_` in the file, such as metrics.
        """
        check_is_fitted(self, "map_")
        write(path, to_document(self), self.summary_ | (summary or {}))

    def _check_new(self, P: Any, ops: Any = NUMPY) -> Floats:
        """Forecast array of new rows, with columns in the order of the fit."""
        check_is_fitted(self, "map_")
        if hasattr(self, "feature_names_in_"):
            P = in_order(P, self.feature_names_in_.tolist())
        forecasts = check_new(P, self.map_.kind, self.n_features_in_, self.summary_, ops)
        self._remember_columns(P, forecasts, reset=False)
        return forecasts

    def _remember_columns(self, P: Any, forecasts: Floats, *, reset: bool) -> None:
        """Set or compare n_features_in_ and feature_names_in_."""
        named = type(P) is not np.ndarray and is_into_dataframe(P)
        if named or hasattr(self, "feature_names_in_"):
            X = with_readable_names(P) if named else columns_of(forecasts)
            validate_data(self, X=X, reset=reset, skip_check_array=True)
        elif reset:  # `check_new` compares the number
            self.n_features_in_ = count_columns(forecasts)


class IdentityCalibrator(Calibrator):
    """The map that leaves forecasts unchanged, for comparison and for mixtures.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, in the order of the columns.
    n_features_in_ : int
        Number of columns of the forecasts, 1 for scores.
    unit_, summary_, map_, checksum
        Unit of the forecasts, rows and weights of the fit, the fitted map, and the checksum of its
        model file.

    See Also
    --------
    AutoCalibrator : Mixes this map with others.

    Notes
    -----
    The calibrated forecast is p itself, or ``softmax(z)`` of logits z.

    Examples
    --------
    >>> from isoroc import IdentityCalibrator
    >>> IdentityCalibrator().fit([0.2, 0.7], [0, 1]).predict_proba([0.25])
    array([[0.75, 0.25]])
    """

    _shares: ClassVar[tuple[float, float]] = (9.0, 4.0)

    def _fit(self, sample: Sample) -> IdentityMap:
        return IdentityMap(kind=sample.kind)


def to_document(calibrator: Any) -> dict[str, Any]:
    """The ``model`` of a model file for a fitted calibrator."""
    if (n_classes := len(calibrator.classes_)) > MAX_CLASSES:
        fix = f"a model file holds at most {MAX_CLASSES}"
        raise InputError("model", None, f"{n_classes} classes", fix)
    common = [name for name in COMMON if hasattr(calibrator, name)]
    document = _document(calibrator, "model", [*common, *calibrator._state])
    return document | {"map": map_document(calibrator.map_, "model.map")}


def _document(calibrator: Any, place: str, learned: Sequence[str] | None = None) -> dict[str, Any]:
    """The document of a calibrator without its map, by default with the attributes `_state`."""
    name_of_class = type(calibrator).__name__
    ours = type(calibrator).__module__.startswith("isoroc.")
    if not isinstance(calibrator, Calibrator) or not ours:
        fix = "calibrators of isoroc can; use skops or pickle for others"
        raise InputError(place, None, f"{name_of_class} cannot be stored in a model file", fix)
    learned = list(calibrator._state) if learned is None else learned
    parameters = {
        name: encode(value, f"{place}.parameters.{name}", partial(_document, learned=()))
        for name, value in calibrator.get_params(deep=False).items()
    }
    state = {
        name: encode(getattr(calibrator, name), f"{place}.state.{name}", _document)
        for name in learned
    }
    return {"type": "calibrator", "kind": name_of_class, "parameters": parameters, "state": state}


def fit_sample(calibrator: Calibrator, sample: Sample, weighting: Weighting) -> None:
    """Fit a calibrator to a checked sample."""
    calibrator._fit_validated(sample, weighting)


def attach_fitted(parent: Calibrator, inside: Sequence[Any], maps: Sequence[Map]) -> None:
    """Turn calibrators inside another one into fitted calibrators of their own."""
    if len(inside) != len(maps):
        raise Fault("model.state", f"expected {len(maps)} calibrators, got {len(inside)}")
    for calibrator, fitted in zip(inside, maps, strict=True):
        if not isinstance(calibrator, Calibrator):
            raise Fault("model.state", "expected calibrators")
        calibrator.map_ = fitted
        for name in (*COMMON, "summary_"):
            if hasattr(parent, name):
                setattr(calibrator, name, getattr(parent, name))
        calibrator._finish()
