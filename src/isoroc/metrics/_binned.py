"""Binned calibration: the expected calibration error, and the calibration curve."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from isoroc._estimation.grouping import group_quantile, group_uniform
from isoroc._input import (
    InputError,
    check_confidence,
    check_number,
    check_option,
    check_probabilities,
)
from isoroc._intervals import wilson
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc.metrics._calibration import calibration_error

Strategy = Literal["uniform", "quantile"]


def expected_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    kind: Literal["auto", "top", "classwise"] = "auto",
    sample_weight: Any = None,
    labels: Any = None,
) -> float:
    """Expected calibration error (ECE) in bins, as torchmetrics and netcal compute it.

    It is too large by what chance adds to each bin and too small by what differs within bins, so it
    depends on the bins. `calibration_error` needs none and is 0 on average for calibrated
    forecasts.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], or of equal weight.
    kind : {"auto", "top", "classwise"}, default="auto"
        What is compared with frequencies. "top": the largest probability. "classwise": the
        probability of each class, mean over the classes. "auto": the probability of the second of
        two classes, and "top" for more.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Returns
    -------
    float
        Weighted mean over the bins of ``|frequency - mean forecast|``.

    See Also
    --------
    calibration_error : Other norms, canonical calibration, and estimates without bins.

    Examples
    --------
    >>> from isoroc.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.15, 0.8, 0.9], n_bins=2), 4)
    0.2625
    """
    check_number("n_bins", n_bins, numbers.Integral, minimum=1)
    check_option("strategy", strategy, ("uniform", "quantile"))
    check_option("kind", kind, ("auto", "top", "classwise"))
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    return calibration_error(
        sample.codes,
        sample.forecasts,
        kind=("classwise" if sample.n_classes == 2 else "top") if kind == "auto" else kind,
        bins=n_bins if strategy == "uniform" else "quantile",
        n_bins=None if strategy == "uniform" else n_bins,
        sample_weight=sample.weights,
        labels=range(sample.n_classes),
    )


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """Frequencies against mean forecasts in bins, with intervals.

    ``prob_true, prob_pred = curve`` works as with scikit-learn's function.

    Attributes
    ----------
    prob_true, prob_pred : ndarray of shape (b,)
        Frequency and mean forecast of each bin that holds rows.
    low, high : ndarray of shape (b,)
        Wilson interval of the frequency.
    weight : ndarray of shape (b,)
        Weight of the rows in the bin.
    """

    prob_true: Floats
    prob_pred: Floats
    low: Floats
    high: Floats
    weight: Floats

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.prob_true, self.prob_pred))

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """All attributes as a dataframe of the named library."""
        return Table(vars(self)).frame(backend)


def calibration_curve(
    y_true: Any,
    y_prob: Any,
    *,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: Strategy = "uniform",
    sample_weight: Any = None,
    labels: Any = None,
    confidence: float = 0.95,
) -> CalibrationCurve:
    """Frequencies of a class against its forecasts in bins, with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    pos_label : label, default=None
        The class; the second of two by default. Required for more than two classes.
    n_bins : int, default=5
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], or of equal weight.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weights are counts of rows.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.
    confidence : float, default=0.95
        Of the intervals.

    Returns
    -------
    CalibrationCurve

    See Also
    --------
    isoroc.plots.CalibrationDisplay : Draws curves that need no bins.

    Examples
    --------
    >>> from isoroc.metrics import calibration_curve
    >>> curve = calibration_curve([0, 0, 0, 1, 1, 1], [0.0, 0.1, 0.2, 0.8, 0.9, 1.0], n_bins=2)
    >>> prob_true, prob_pred = curve
    >>> prob_true, prob_pred.round(1), curve.low.round(2)
    (array([0., 1.]), array([0.1, 0.9]), array([0.  , 0.44]))
    """
    check_number("n_bins", n_bins, numbers.Integral, minimum=1)
    check_option("strategy", strategy, ("uniform", "quantile"))
    check_confidence(confidence)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    classes = sample.classes.tolist()
    if pos_label is None and len(classes) > 2:
        shown = ", ".join(map(repr, classes[:10]))
        problem = f"is None, but there are {len(classes)} classes"
        raise InputError("pos_label", None, problem, f"pass one of {shown}")
    if pos_label is not None and pos_label not in classes:
        raise InputError("pos_label", None, f"is {pos_label!r}", f"the classes are {classes}")
    k = 1 if pos_label is None else classes.index(pos_label)
    p, weights = np.ascontiguousarray(sample.forecasts[:, k]), sample.row_weights()
    bins = (
        group_uniform(p, n_bins)
        if strategy == "uniform"
        else group_quantile(p, sample.weights, n_bins)
    )
    total: Floats = np.bincount(bins, weights).astype(np.float64)
    kept = total > 0
    true = np.bincount(bins, weights * (sample.codes == k))[kept] / total[kept]
    predicted = np.bincount(bins, weights * p)[kept] / total[kept]
    return CalibrationCurve(true, predicted, *wilson(true, total[kept], confidence), total[kept])
