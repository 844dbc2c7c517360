"""Proper scores, log loss and Brier score, their parts, and metrics as scikit-learn scorers.

Loss = calibration + refinement: what calibration can save, and what needs a better model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.intervals import Statistic, mean
from isoroc._core.losses import EPSILON, brier_losses, log_losses
from isoroc._core.types import Floats
from isoroc._input import (
    categories_of,
    check_number,
    check_option,
    check_order,
    check_probabilities,
)
from isoroc._support.table import Table
from isoroc.metrics._calibration import calibration_error
from isoroc.metrics._estimation.calibration_terms import Loss, Parts

TERMS = ("loss", "calibration", "refinement", "uncertainty", "resolution")


def log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    eps: float = EPSILON,
    excess: bool = False,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Mean of ``-log`` of the probability forecast for the observed class.

    For soft labels it is the cross entropy. `isoroc.evaluate` reports the number of rows whose
    observed class had probability 0. Each costs 36.04 nats, as in scikit-learn.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    eps : float, default=2.2e-16
        Probabilities below `eps` are replaced by `eps`. With 0 the loss may be infinite.
    excess : bool, default=False
        Whether to subtract the mean entropy of soft labels, the least possible loss.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row. Weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.

    Returns
    -------
    float
        In nats: 0 for certain forecasts that are right, log K for uniform forecasts.

    Examples
    --------
    >>> from isoroc.metrics import log_loss
    >>> round(log_loss([0, 1], [0.25, 0.5]), 4)
    0.4904
    >>> round(log_loss([0, 1], [0.25, 0.0]), 4)
    18.1657
    >>> round(log_loss([[0.8, 0.2], [0.4, 0.6]], [0.25, 0.5], excess=True), 4)
    0.0136
    """
    check_number("eps", eps, minimum=0)
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    losses = log_losses(sample.forecasts, sample.codes, float(eps))
    if excess and sample.weights is not None and sample.squares is not None:
        losses = losses + np.log(sample.weights**2 / sample.squares)  # of the share of each part
    return mean(losses, sample.weights)


def brier_score_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    scale_by_half: bool | Literal["auto"] = "auto",
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Mean squared distance of forecasts and outcomes (Brier 1950), as in scikit-learn.

    For two classes it is the mean of ``(y - p)**2``, and for more the sum over the classes.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    scale_by_half : bool or "auto", default="auto"
        Whether to return half of the sum over the classes. "auto" does so for two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row. Weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.

    Returns
    -------
    float
        Between 0 and 1 for half of the sum, otherwise between 0 and 2.

    Examples
    --------
    >>> from isoroc.metrics import brier_score_loss
    >>> brier_score_loss([0, 1], [0.25, 0.5])
    0.15625
    >>> brier_score_loss([0, 1], [0.25, 0.5], scale_by_half=False)
    0.3125
    """
    check_option("scale_by_half", scale_by_half, (True, False, "auto"))
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    score = mean(brier_losses(sample.forecasts, sample.codes), sample.weights)
    if scale_by_half in ("auto", sample.n_classes == 2):
        return score
    return score / 2 if scale_by_half else 2 * score


def ranked_probability_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
) -> float:
    """Mean squared error of the cumulative probabilities P(Y <= k) of ordered classes.

    The mean Brier score of the K - 1 thresholds k, not their sum (Epstein 1969): a proper score
    that charges more for probability far from the outcome.

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row. Weight 2 is the same as the row twice.
    labels : array-like of shape (K,), default=None
        The classes in ascending order, in which the columns are. Required if three or more
        classes have names, unless `y_true` is an ordered categorical.

    Returns
    -------
    float
        Between 0 and 1, for two classes the Brier score.

    Examples
    --------
    >>> from isoroc.metrics import ranked_probability_score
    >>> ranked_probability_score(["low"], [[0.5, 0.5, 0]], labels=["low", "mid", "high"])
    0.125
    """
    labels = categories_of(y_true) if labels is None else labels
    sample = check_probabilities(y_true, y_prob, sample_weight, labels)
    if labels is None:
        check_order(sample.classes)
    below = sample.codes[:, None] <= np.arange(sample.n_classes - 1)
    errors = np.cumsum(sample.forecasts[:, :-1], axis=1) - below
    return mean((errors**2).mean(axis=1), sample.weights)


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition:
    """A loss and its parts, in this order as an array: ``loss = calibration + refinement``."""

    loss: float
    """Mean loss of the forecasts."""
    calibration: float
    """What calibration would save: the mean divergence of ``E[Y | p]`` from ``p``."""
    refinement: float
    """What would remain, ``uncertainty - resolution``: the mean entropy of ``E[Y | p]``."""
    uncertainty: float
    """Entropy of the class frequencies: the loss of the best constant forecast."""
    resolution: float
    """Reduction of the loss below `uncertainty`, after calibration."""
    standard_errors: Floats
    """Standard errors of the five values."""
    of: Loss
    """The loss, "log" or "brier"."""
    bins: Literal["ties", "irp"]
    """How ``E[Y | p]`` was estimated."""
    _estimates: tuple[Statistic, ...]

    def table(self, confidence: float = 0.95) -> Table:
        """One row per term: value, standard error and interval."""
        low, high = np.array([e.interval(confidence) for e in self._estimates]).T
        value = np.asarray(self)
        error = self.standard_errors
        return Table(term=np.array(TERMS), value=value, standard_error=error, low=low, high=high)

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`table` as a dataframe of the named library."""
        return self.table().frame(backend)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:  # noqa: FBT001
        return np.array([getattr(self, term) for term in TERMS], dtype=dtype)

    def __repr__(self) -> str:
        text = f"{self.of} loss {self.loss:.4f} = calibration {self.calibration:.4f} + refinement "
        text += f"{self.refinement:.4f} (uncertainty {self.uncertainty:.4f} - resolution "
        return f"{text}{self.resolution:.4f}), {self.bins}"


def decompose(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    loss: Loss = "log",
    bins: Literal["ties", "irp"] | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
) -> Decomposition:
    """Split log loss or Brier score into calibration and refinement (equation 1 of the paper).

    ``E[loss(Y, p)] = E[D(g, p)] + E[H(g)]`` with ``g = E[Y | p]``. D and H are the divergence and
    entropy of the loss (Bröcker 2009): Kullback-Leibler divergence of g from p and Shannon entropy
    for "log", squared distance and ``1 - sum g**2`` for "brier", half of both for two classes. (The
    arguments of D in equation 1 are the other way round.)

    Parameters
    ----------
    y_true : array-like of shape (n,) or (n, K)
        Labels, or the shares of the classes in each row (soft labels).
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or the probability of the second of two classes.
    loss : {"log", "brier"}, default="log"
        Log loss or Brier score.
    bins : {"ties", "irp"} or None, default=None
        How ``E[Y | p]`` is estimated, as in `calibration_error`.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns, sorted by default.
    clusters : array-like of shape (n,), default=None
        Cluster of each row, such as the patient of a visit, if rows of a cluster depend on each
        other. ``E[Y | p]`` is learned from other clusters.

    Returns
    -------
    Decomposition
        Calibration and refinement add up to the loss.

    Notes
    -----
    With "ties" the divergence of mean labels from forecasts is reduced by what chance adds to it.
    With "irp" it is the mean of ``sum_k (y_k - p_k) d(g_k, p_k) / (g_k - p_k)``, where d is the
    contribution of class k to D and g is learned from other rows. Its expectation is right with the
    true g, and 0 with any g if the forecasts are calibrated. The loss saved by recalibration with g
    is used if it is larger. Both terms may be negative.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import decompose
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(10_000)
    >>> decompose(rng.random(10_000) < p**2, p, loss="brier")
    brier loss 0.1721 = calibration 0.0359 + refinement 0.1362
    (uncertainty 0.2186 - resolution 0.0824), irp
    """
    check_option("loss", loss, ("log", "brier"))
    check_option("bins", bins, ("ties", "irp", None))
    sample = check_probabilities(y_true, y_prob, sample_weight, labels, clusters, keep_zeros=True)
    parts = Parts.of(sample, "canonical", bins)
    terms = parts.split_loss(loss)
    estimates = tuple(terms[name][0] for name in TERMS)
    return Decomposition(
        **{name: terms[name][0].value for name in TERMS},
        standard_errors=np.array([estimate.error for estimate in estimates]),
        of=loss,
        bins="ties" if parts.bins == ["ties"] else "irp",
        _estimates=estimates,
    )


class ProbabilityScorer:
    """A metric of forecasts as ``scorer(classifier, X, y)``, for ``scoring=`` in scikit-learn.

    It passes the classes of the classifier to the metric, so a fold may lack a class.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_prob, *, sample_weight, labels)`` returning a number.
    greater_is_better : bool, default=False
        Whether larger values are better. If not, the sign is changed.
    **options
        Further arguments of the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from isoroc.metrics import ProbabilityScorer, calibration_error
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = np.where(rng.random(600) < 1 / (1 + np.exp(-X[:, 0])), "yes", "no")
    >>> scorer = ProbabilityScorer(calibration_error, norm="l2", bins=10)
    >>> cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3).round(2)
    array([-0.1 , -0.09, -0.04])
    """

    def __init__(
        self, metric: Callable[..., Any], *, greater_is_better: bool = False, **options: Any
    ) -> None:
        self.metric = partial(metric, **options)
        self.sign = 1 if greater_is_better else -1

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted classifier on some rows."""
        y_prob = estimator.predict_proba(X)
        labels = estimator.classes_
        return self.sign * float(self.metric(y, y_prob, sample_weight=sample_weight, labels=labels))


def _refinement(y_true: Any, y_prob: Any, **options: Any) -> float:
    return decompose(y_true, y_prob, **options).refinement


class _Scorers(dict[str, ProbabilityScorer]):
    def __missing__(self, name: Any) -> ProbabilityScorer:
        known = f"neg_{name}" if f"neg_{name}" in self else ", ".join(self)
        raise KeyError(f"{name!r}; there is {known}")


#: Scorers by name, for ``scoring=scorers["neg_calibration_error"]``. "neg_refinement" is the log
#: loss that the model would have after calibration.
scorers = _Scorers(
    {
        "neg_log_loss": ProbabilityScorer(log_loss),
        "neg_brier_score_loss": ProbabilityScorer(brier_score_loss),
        "neg_calibration_error": ProbabilityScorer(calibration_error),
        "neg_calibration_error_l2": ProbabilityScorer(calibration_error, norm="l2"),
        "neg_classwise_calibration_error": ProbabilityScorer(calibration_error, kind="classwise"),
        "neg_top_calibration_error": ProbabilityScorer(calibration_error, kind="top"),
        "neg_refinement": ProbabilityScorer(_refinement),
    }
)
