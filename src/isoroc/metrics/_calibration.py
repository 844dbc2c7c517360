"""Calibration errors, binned and cross-fitted, and calibration curves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core.intervals import design_effect, mean, wilson
from isoroc._core.types import Floats, Ints
from isoroc._input import (
    Aspect,
    InputError,
    Sample,
    check_confidence,
    check_number,
    check_option,
    check_probabilities,
    split_by_kind,
)
from isoroc._support.table import Table
from isoroc.metrics._estimation.calibration_terms import Bins, Parts, over_classes
from isoroc.metrics._estimation.grouping import (
    group_equal,
    group_frequent,
    group_means,
    group_quantile,
    group_rows,
    is_discrete,
)

Norm = Literal["l1", "l2", "max"]
#: Bins of equal width, or of about equal weight.
Strategy = Literal["uniform", "quantile"]
#: A class, several of them, or the most probable class.
Event = int | slice | None


def calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    norm: Norm = "l1",
    kind: Aspect = "canonical",
    bins: Bins | None = None,
    n_bins: int | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Calibration error: mean distance of ``E[Y | p]`` from the forecast p, for any K.

    0 for calibrated forecasts, 1 for certain forecasts that are always wrong (Definition 1.2 of the
    paper).

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    norm : {"l1", "l2", "max"}, default="l1"
        Distance and average. "l1": half the sum of absolute differences, mean over rows (the
        expected calibration error). "l2": root of half the sum of squares, root mean square over
        rows. "max": as "l1", but the maximum over bins. For two classes the distance is the
        difference of one probability.
    kind : {"canonical", "classwise", "top"}, default="canonical"
        What must be calibrated. "canonical": the whole forecast. "classwise": the probability of
        each class by itself (mean over the classes, or the maximum for "max"). "top": the largest
        probability, compared with the accuracy (confidence calibration). The first two are the
        same for two classes.
    bins : int, "quantile", "exact", "ties", "irp" or None, default=None
        How ``E[Y | p]`` is estimated.

        - A number: mean label in that many bins of equal width (in every coordinate).
        - "quantile": mean label in `n_bins` bins of equal weight.
        - "exact": mean label of equal forecasts.
        - "ties": the same less what chance adds to squared errors (Ferro and Fricker 2012, and
          Kumar, Liang and Ma 2019). As "irp" for ``norm="l1"``.
        - "irp": cross-fitted, see Notes. It needs no bins and does not mistake chance for error.
        - None: "ties" if each of m distinct forecasts has at least ``m (K - 1)`` rows on average (m
          for one probability), else "irp". With ``norm="max"``, the mean label of equal forecasts
          in place of "ties", where rare ones share a bin, and "quantile" in place of "irp".
    n_bins : int, default=None
        Number of bins of "quantile", 15 by default. An error with any other `bins`.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row. With "ties" and "irp", copies of a row add no evidence, so weight 2 is
        not the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.

    Returns
    -------
    float

    Notes
    -----
    Chance makes binned estimates too large, more so with more bins, and differences within bins
    make them too small. "irp" uses the identities ``E|g - p| = E[sign(g - p) (Y - p)]`` and ``E(g -
    p)**2 = E[(g - p) (Y - p)]`` with ``g = E[Y | p]``, summed over the classes, and learns the
    first factor from other rows than the second (see the page on metrics). Whatever is
    learned, the mean product is 0 if forecasts are calibrated. Negative estimates are returned as
    0. The square of "l2" is nearly unbiased. "l1" is too small on average if signs are hard to
    learn from few rows. The interval of `isoroc.evaluate` allows for that.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import calibration_error
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> calibrated, distorted = rng.random(10_000) < p, rng.random(10_000) < p**2
    >>> round(calibration_error(calibrated, p), 3), round(calibration_error(distorted, p), 3)
    (0.004, 0.162)
    >>> round(calibration_error(calibrated, p, bins=100), 3)  # chance
    0.033
    """
    check_option("norm", norm, ("l1", "l2", "max"))
    check_option("kind", kind, ("canonical", "classwise", "top"))
    check_number("bins", bins, int, minimum=1, others=("quantile", "exact", "ties", "irp", None))
    check_number("n_bins", n_bins, int, minimum=1, others=(None,))
    if norm == "max" and bins is None and n_bins is not None:
        bins = "quantile"
    if n_bins is not None and bins != "quantile":
        fix = 'pass bins="quantile", or the number of bins of equal width as bins'
        raise InputError("n_bins", None, f"is {n_bins}, but bins is {bins!r}", fix)
    if bins in ("irp", "ties") and norm == "max":
        problem = f"{norm!r} is not defined for bins={bins!r}"
        raise InputError("norm", None, problem, 'pass bins="quantile" or a number')
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, keep_zeros=True)
    parts = Parts.of(sample, kind, bins)
    if norm != "max" and bins in (None, "irp", "ties"):
        if norm == "l2":
            return float(np.sqrt(parts.square()))
        return max(mean(parts.signed_rows()[1], parts.whole.weights), 0.0)
    return _binned_error(parts.samples, bins, n_bins or 15, norm)


def _binned_error(samples: list[Sample], bins: Bins | None, n_bins: int, norm: Norm) -> float:
    """Error in bins: the maximum over the samples for the norm "max", otherwise the mean."""
    errors = []
    for sample in samples:
        if bins is None and is_discrete(sample.forecasts):
            group = group_frequent(sample.forecasts)
        else:
            group = group_rows(sample.forecasts, sample.weights, bins or "quantile", n_bins)
        weight, residual = group_means(group, sample.weights, sample.residuals())
        distance = over_classes(residual**2 if norm == "l2" else np.abs(residual))
        errors.append(distance.max() if norm == "max" else mean(distance, weight))
    if norm == "max":
        return float(max(errors))
    return float(np.mean(errors) if norm == "l1" else np.sqrt(np.mean(errors)))


def expected_calibration_error(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    kind: Literal["auto", "top", "classwise"] = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Expected calibration error (ECE) in bins, as torchmetrics and netcal compute it.

    `calibration_error` needs no bins.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    n_bins : int, default=15
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], or of equal weight.
    kind : {"auto", "top", "classwise"}, default="auto"
        "top": the largest probability. "classwise": the probability of each class, mean over the
        classes. "auto": "classwise" for two classes, and "top" for more.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row. Weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.

    Returns
    -------
    float
        Weighted mean over the bins of ``|frequency - mean forecast|``.

    Examples
    --------
    >>> from isoroc.metrics import expected_calibration_error
    >>> round(expected_calibration_error([0, 1, 1, 1], [0.1, 0.15, 0.8, 0.9], n_bins=2), 4)
    0.2625
    """
    check_number("n_bins", n_bins, int, minimum=1)
    check_option("strategy", strategy, ("uniform", "quantile"))
    check_option("kind", kind, ("auto", "top", "classwise"))
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    if kind == "auto":
        kind = "classwise" if sample.n_classes == 2 else "top"
    bins: Bins = n_bins if strategy == "uniform" else "quantile"
    return _binned_error(split_by_kind(sample, kind), bins, n_bins, "l1")


@dataclass(frozen=True, eq=False)
class CalibrationCurve:
    """Frequencies and mean forecasts in bins with rows. ``prob_true, prob_pred = curve`` works."""

    prob_true: Floats
    prob_pred: Floats
    low: Floats
    """Lower end of Wilson's interval of the frequency."""
    high: Floats
    """Upper end of Wilson's interval of the frequency."""
    weight: Floats
    """Weight of the rows in each bin."""

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.prob_true, self.prob_pred))

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """All attributes as a dataframe of the named library."""
        return Table(vars(self)).frame(backend)


def calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    pos_label: Any = None,
    n_bins: int = 5,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
) -> CalibrationCurve:
    """Frequencies of a class against its forecasts in bins, with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    pos_label : label, default=None
        The class, the second of two by default. Required for more than two classes.
    n_bins : int, default=5
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width on [0, 1], or of equal weight.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row, counted as a number of rows.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other.
    confidence : float, default=0.95
        Probability that an interval covers the true value.

    Returns
    -------
    CalibrationCurve

    Examples
    --------
    >>> from isoroc.metrics import calibration_curve
    >>> curve = calibration_curve([0, 0, 0, 1, 1, 1], [0.0, 0.1, 0.2, 0.8, 0.9, 1.0], n_bins=2)
    >>> prob_true, prob_pred = curve
    >>> prob_true, prob_pred.round(1), curve.low.round(2)
    (array([0., 1.]), array([0.1, 0.9]), array([0.  , 0.44]))
    """
    check_number("n_bins", n_bins, int, minimum=1)
    check_option("strategy", strategy, ("uniform", "quantile"))
    check_confidence(confidence)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, clusters)
    classes = sample.classes.tolist()
    if pos_label is None and len(classes) == 2:
        pos_label = classes[1]
    check_option("pos_label", pos_label, tuple(classes))
    event = event_of(sample, classes.index(pos_label))
    rates = observed_rates(event, n_bins=n_bins, strategy=strategy, confidence=confidence)
    return CalibrationCurve(*rates.select("rate", "forecast", "low", "high", "weight").values())


def event_of(sample: Sample, k: Event) -> Sample:
    """Sample of one event: class k, one of several, or the most probable class if k is None."""
    if k is None:
        return split_by_kind(sample, "top")[0]
    columns = k if isinstance(k, slice) else slice(k, k + 1)
    p = np.minimum(sample.forecasts[:, columns].sum(axis=1), 1.0)
    occurred = np.isin(sample.codes, np.arange(sample.n_classes)[columns]).view(np.uint8)
    return Sample(p, occurred, sample.weights, clusters=sample.clusters)


def observed_rates(
    event: Sample,
    *,
    n_bins: int | None = None,
    strategy: Strategy = "quantile",
    confidence: float = 0.95,
) -> Table:
    """Observed rates of an event in groups of rows, with Wilson's intervals.

    By default each of a few distinct forecasts is a group, and groups that most events are expected
    in are divided. Weights count as numbers of rows.
    """
    p = event.forecasts
    if n_bins is None and strategy == "quantile" and has_few_values(p):
        group = group_equal(p)
    else:
        bins = n_bins or int(np.clip(np.rint(np.cbrt(len(p))), 2, 15))
        group = group_rows(p, event.weights, bins if strategy == "uniform" else strategy, bins)
        if n_bins is None and strategy == "quantile":
            group = _divide_tails(group, event, bins)
    weight, forecast, rate = group_means(group, event.weights, p, event.codes)
    rate = rate.clip(0, 1)
    effect = design_effect(event.row_weights() * event.residuals(), event.clusters)
    low, high = wilson(rate, weight / effect, confidence)
    return Table(forecast=forecast, rate=rate, low=low, high=high, weight=weight)


def _divide_tails(group: Ints, event: Sample, n_bins: int, least: float = 10.0) -> Ints:
    """Divide groups with more than twice their share of the variance that forecasts expect.

    The last of 15 groups of equal weight may hold most events of a rare kind and forecasts from 0.3
    to 1. Its parts have equal sums of p (1 - p), and at least `least` expected events. Outcomes do
    not decide where a group is divided: rates would be biased.
    """
    p = event.forecasts
    variance = event.row_weights() * p * (1 - p)
    parts = np.zeros(len(p), dtype=np.intp)
    in_group = np.bincount(group, variance)
    shares = in_group / max(in_group.sum(), least)
    for number, (share, expected) in enumerate(zip(shares, in_group, strict=True)):
        n_parts = min(int(n_bins * share), int(expected / least))
        if n_parts >= 2:
            rows = group == number
            parts[rows] = group_quantile(p[rows], variance[rows], n_parts)
    return np.asarray(np.unique(group * n_bins + parts, return_inverse=True)[1])


def has_few_values(p: Floats) -> bool:
    """Whether there are at most 30 distinct forecasts, with about five rows each or more."""
    most = min(30, len(p) // 5)
    return len(np.unique(p[: 50 * most])) <= most and len(np.unique(p)) <= most
