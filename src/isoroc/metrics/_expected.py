"""Performance before labels arrive: what calibrated forecasts say about themselves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isoroc._core.losses import EPSILON, brier_losses, calibration_covariance, log_losses
from isoroc._core.types import Floats
from isoroc._input import (
    InputError,
    check_calibration,
    check_confidence,
    check_number,
    check_option,
    check_unlabelled,
    check_weights,
)
from isoroc._support.seeds import check_random_state
from isoroc.metrics._estimation import cell_errors
from isoroc.metrics._estimation.grouping import group_equal, weight_below
from isoroc.metrics._resampling import BootstrapResult, bootstrap_result

LOSSES = {"log_loss": log_losses, "brier_score_loss": brier_losses}
METRICS = ("accuracy", "f1", "auc", *LOSSES, "confusion_matrix", "class_shares")
#: Variance of what a calibrator learns, relative to an unbiased fit: calibrators that shrink or
#: overfit have a bias of up to 1.4 standard errors (benchmarks/simulations.py weeks).
MISFIT = 3.0


def expected(
    y_prob: ArrayLike,
    metric: str,
    *,
    sample_weight: ArrayLike | None = None,
    calibration: Any = None,
    confidence: float = 0.95,
    n_draws: int = 300,
    random_state: Any = 0,
) -> BootstrapResult:
    """Expected value of a metric on rows without labels, from their calibrated forecasts.

    Parameters
    ----------
    y_prob : array-like of shape (n, K) or (n,)
        Calibrated forecasts, or the probability of the second of two classes.
    metric : {"accuracy", "f1", "auc", "log_loss", "brier_score_loss", "confusion_matrix", \
            "class_shares"}
        F1 is measured for the second of two classes. With more classes, F1 is the mean over
        classes, and the AUC the mean over each class against the rest. Entry (i, j) of a confusion
        matrix counts rows of class i with the most probable class j.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    calibration : int, array-like of shape (m, K) or (m,), or calibrator, default=None
        What `y_prob` was calibrated with: the number of rows, their calibrated forecasts, or the
        fitted calibrator. The interval then allows for the uncertainty of the calibration.
    confidence : float, default=0.95
        Probability that the interval covers what the metric turns out to be.
    n_draws : int, default=300
        How often labels and calibrations are drawn.
    random_state : int, RandomState or None, default=0
        Seed of the draws.

    Returns
    -------
    BootstrapResult
        `value` is the expected value.

    Warns
    -----
    UserWarning
        If more than 1 % of the rows have forecasts that hardly any row of `calibration` had.

    Notes
    -----
    Each row has each label with its probability as a weight, so ratios such as F1 are ratios of
    expected numbers. The interval comes from draws of labels. It covers if forecasts are calibrated
    on the new rows, even if their distribution has changed. A change of the labels given a forecast
    cannot be seen without labels. With `calibration`, each draw also changes slope and shifts of
    the log odds by as much as n / 3 calibration rows leave uncertain.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import expected
    >>> rng = np.random.default_rng(0)
    >>> q = rng.beta(1, 3, 1000)
    >>> expected(q, "accuracy")
    0.782, 95 % interval 0.76 to 0.804
    >>> expected(q, "accuracy", calibration=500)
    0.782, 95 % interval 0.721 to 0.829
    """
    check_confidence(confidence)
    check_number("n_draws", n_draws, int, minimum=2)
    check_option("metric", metric, METRICS)
    q, _ = check_unlabelled(y_prob, None, name="y_prob")
    n, K = q.shape
    weights = check_weights(sample_weight, n)
    measure = _measure(metric, q, np.ones(n) if weights is None else weights)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    logs = np.log(np.maximum(q, EPSILON))
    theta = _draw_calibrations(q, logs, calibration, n_draws, rng)[..., None]
    draws = []
    at_once = max(2**16 // q.size, 1)  # bounds memory
    for start in range(0, n_draws, at_once):
        some = theta[start : start + at_once]
        odds = q.T[None] if calibration is None else np.exp(some[:, :1] * logs.T + some[:, 1:])
        *ends, total = np.cumsum(odds, axis=1).swapaxes(0, 1)
        point = total * rng.random((len(some), n))
        codes = sum(point > end for end in ends) + np.zeros((len(some), n))
        values = measure((codes[:, None] == np.arange(K)[:, None]).astype(np.float64))
        draws += [value for value in values if np.isfinite(value).all()]
    if len(draws) < 2:
        problem = "is hardly ever defined for these forecasts"
        raise InputError("metric", None, problem, "pass more rows")
    return bootstrap_result(measure(q.T[None])[0], np.array(draws), confidence)


def _draw_calibrations(
    q: Floats, logs: Floats, calibration: Any, n_draws: int, rng: np.random.Generator
) -> Floats:
    """A slope and K shifts of log odds: 1 and 0, with the errors that calibration leaves."""
    right = np.eye(1, q.shape[1] + 1)[0]
    if calibration is None:
        return np.tile(right, (n_draws, 1))
    given, weights = check_calibration(calibration, q)
    if given is not q:
        outside = cell_errors.share_outside(np.exp(logs), cell_errors.count_forecasts(given))
        if outside > cell_errors.TOLERATED:
            warnings.warn(cell_errors.OUTSIDE.format(outside), UserWarning, stacklevel=3)
    covariance = MISFIT * calibration_covariance(given, weights)
    drawn = rng.normal(size=(n_draws, len(right)))
    return np.asarray(right + drawn @ np.linalg.cholesky(covariance).T)


def _measure(metric: str, P: Floats, w: Floats) -> Callable[[Floats], Floats]:
    """The metric as a function of m sets of labels, (m, K, n): 0 and 1, or shares of each row."""
    n, K = P.shape
    if metric in LOSSES:
        losses = [w * LOSSES[metric](P, np.full(n, k, np.uintp)) / w.sum() for k in range(K)]
        return lambda labels: np.asarray(np.tensordot(labels, losses, 2))
    if metric == "auc":
        classes = range(1, 2) if K == 2 else range(K)
        below = [weight_below(group_equal(P[:, k]), w) for k in classes]
        return lambda labels: _aucs(labels[:, classes], np.array(below), w)
    if metric == "class_shares":
        return lambda labels: np.asarray(labels @ w / w.sum())
    decided = np.eye(K)[P.argmax(axis=1)] * w[:, None]
    if metric == "confusion_matrix":
        return lambda labels: np.asarray(labels @ decided)
    if metric == "f1":
        return lambda labels: _f1(labels @ decided)
    return lambda labels: np.trace(labels @ decided, axis1=1, axis2=2) / w.sum()


def _aucs(labels: Floats, below: Floats, w: Floats) -> Floats:
    """Mean AUC over classes. NaN if one of them has no rows or all."""
    weight = labels @ w
    itself = (labels * (1 - labels)) @ w**2  # a row whose label is not known is in both classes
    pairs = np.einsum("mkn,kn,n->mk", labels, below, w) - weight**2 / 2 - itself / 2
    with np.errstate(invalid="ignore"):
        return np.asarray((pairs / (weight * (w.sum() - weight) - itself)).mean(axis=1))


def _f1(matrices: Floats) -> Floats:
    """F1 of confusion matrices: of the second of two classes, or the mean over classes."""
    both = matrices.sum(axis=1) + matrices.sum(axis=2)
    right = 2 * np.diagonal(matrices, axis1=1, axis2=2)
    scores = np.divide(right, both, out=np.zeros_like(both), where=both > 0)
    return np.asarray(scores[:, 1] if scores.shape[1] == 2 else scores.mean(axis=1))
