"""Performance before labels arrive: what calibrated forecasts say about themselves."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import softmax

from isoroc._cell_errors import OUTSIDE, TOLERATED, count_forecasts, share_outside
from isoroc._counts import BinaryCounts
from isoroc._input import (
    InputError,
    check_confidence,
    check_forecasts,
    check_length,
    check_number,
    check_option,
)
from isoroc._losses import EPSILON, brier_losses, log_losses, mean
from isoroc._random import check_random_state
from isoroc._simplex import Floats, as_matrix
from isoroc.metrics._resampling import BootstrapResult, summarize


def expected(
    metric: str | Callable[..., Any],
    Q: Any,
    *,
    P: Any = None,
    calibration: Any = None,
    confidence: float = 0.95,
    n_draws: int = 300,
    random_state: Any = 0,
) -> BootstrapResult:
    """Expected value of a metric on rows without labels, from their calibrated forecasts.

    Parameters
    ----------
    metric : str or callable
        "accuracy", "f1" (of the second of two classes, or the mean over classes), "auc" (for more
        classes the mean over each against the rest), "log_loss", "brier_score_loss",
        "confusion_matrix" (numbers of rows, one row per class), or any function
        ``metric(y_true, y_prob, sample_weight=...)`` of labels 0 to K - 1.
    Q : array-like of shape (n, K) or (n,)
        Calibrated forecasts, or the probability of the second of two classes.
    P : array-like of shape (n, K) or (n,), default=None
        The forecasts that are measured, such as those before calibration; by default `Q`.
    calibration : int, array-like of shape (m, K) or (m,), or calibrator, default=None
        What `Q` was calibrated with: the number of rows, their calibrated forecasts, or the fitted
        calibrator. The interval then includes that calibration is uncertain.
    confidence : float, default=0.95
        Probability that the interval covers what the metric turns out to be.
    n_draws, random_state : int, default=300; int, RandomState or None, default=0
        How often labels and calibrations are drawn, and the seed.

    Returns
    -------
    BootstrapResult
        With the expected value as the estimate.

    Warns
    -----
    UserWarning
        If `calibration` has forecasts and more than 1 % of the rows have others than those.

    Notes
    -----
    The expected value is that of rows which have each label with its probability as a weight; so
    ratios such as F1 are those of expected numbers. The interval is that of draws of labels. It
    covers if the forecasts are calibrated on the new rows, whatever has happened to their
    distribution; a change of the labels of rows with the same forecast cannot be seen without
    labels. Forecasts that were calibrated on n rows are uncertain: so in each draw their log odds
    have another slope and other shifts, drawn from the distribution of what can be learned about
    these from n calibrated rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import expected
    >>> rng = np.random.default_rng(0)
    >>> q = rng.beta(1, 3, 1000)
    >>> expected("accuracy", q)
    0.782, 95 % interval 0.76 to 0.804
    >>> expected("accuracy", q, calibration=500)
    0.782, 95 % interval 0.741 to 0.811
    """
    check_confidence(confidence)
    check_number("n_draws", n_draws, numbers.Integral, minimum=2)
    if isinstance(metric, str):
        check_option("metric", metric, tuple(_NAMED))
        measure = _NAMED[metric]
    else:
        measure = lambda y, P, weights: metric(y, P, sample_weight=weights)  # noqa: E731
    q = as_matrix(check_forecasts(Q, name="Q", scores="probability"))
    measured = q if P is None else as_matrix(check_forecasts(P, name="P"))
    check_length(measured, len(q), name="P", of="Q")
    n, K = q.shape
    if measured.shape[1] != K:
        problem = f"{measured.shape[1]} classes, but Q has {K}"
        raise InputError("P", None, problem, "they must agree")
    rows, codes = np.nonzero(q)
    value = measure(codes, measured[rows], q[rows, codes])
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    logs = np.log(np.maximum(q, EPSILON))
    theta = _draw_calibrations(q, logs, calibration, n_draws, rng)
    draws = []
    for slope, *shifts in theta:
        truth = softmax(slope * logs + [*shifts, 0.0], axis=1) if calibration is not None else q
        codes = (rng.random((n, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        try:
            draws.append(np.asarray(measure(codes, measured, np.ones(n)), float))
        except InputError:  # such as the AUC of rows of one class
            continue
    if len(draws) < 2:
        problem = "is hardly ever defined for these forecasts"
        raise InputError("metric", None, problem, "pass more rows")
    return summarize(np.asarray(value, float), np.array(draws), confidence, "percentile")


def _draw_calibrations(
    q: Floats, logs: Floats, calibration: Any, n_draws: int, rng: np.random.Generator
) -> Floats:
    """Slopes and shifts of log odds: 1 and 0, with the errors that calibration leaves."""
    K = q.shape[1]
    right = np.eye(1, K)[0]
    if calibration is None:
        return np.tile(right, (n_draws, 1))
    if hasattr(calibration, "summary_"):
        calibration = calibration.summary_["weight"]
    share = 1.0
    if np.ndim(calibration) == 0:
        check_number("calibration", calibration, numbers.Real, minimum=1)
        share = float(calibration) / len(q)
    else:
        q = as_matrix(check_forecasts(calibration, name="calibration", scores="probability"))
        outside = share_outside(np.exp(logs), count_forecasts(q))
        if outside > TOLERATED:
            warnings.warn(OUTSIDE.format(outside), UserWarning, stacklevel=3)
        logs = np.log(np.maximum(q, EPSILON))
    # Fisher information about slope and shifts; a weak prior keeps it regular.
    centred = logs - (q * logs).sum(axis=1, keepdims=True)
    information = np.eye(K)
    information[0, 0] += share * float((q * centred**2).sum())
    cross = share * (q * centred).sum(axis=0)[:-1]
    information[0, 1:] += cross
    information[1:, 0] += cross
    information[1:, 1:] += share * (np.diag(q.sum(axis=0)) - q.T @ q)[:-1, :-1]
    root = np.linalg.cholesky(np.linalg.inv(information))
    return np.asarray(right + rng.normal(size=(n_draws, K)) @ root.T)


def _confusion(y: Any, P: Floats, weights: Floats) -> Floats:
    """Weight of the rows of each class (row) that are decided for each class (column)."""
    K = P.shape[1]
    found = np.bincount(y * K + P.argmax(axis=1), weights, K * K)
    return np.asarray(found.reshape(K, K), dtype=np.float64)


def _f1(y: Any, P: Floats, weights: Floats) -> float:
    matrix = _confusion(y, P, weights)
    both = matrix.sum(axis=0) + matrix.sum(axis=1)
    scores = np.divide(2 * np.diag(matrix), both, out=np.zeros_like(both), where=both > 0)
    return float(scores[1] if len(scores) == 2 else scores.mean())


def _auc(y: Any, P: Floats, weights: Floats) -> float:
    areas = []
    for k in [1] if P.shape[1] == 2 else range(P.shape[1]):
        scores = np.ascontiguousarray(P[:, k])
        counts = BinaryCounts.from_arrays(scores, (y == k).astype(np.uint8), weights)
        if not counts.class_weights.all():
            raise InputError("metric", None, "is the AUC of one class", "pass more rows")
        areas.append(counts.area())
    return float(np.mean(areas))


_NAMED: dict[str, Callable[[Any, Floats, Floats], Any]] = {
    "accuracy": lambda y, P, weights: mean(y == P.argmax(axis=1), weights),
    "f1": _f1,
    "auc": _auc,
    "log_loss": lambda y, P, weights: mean(log_losses(P, y), weights),
    "brier_score_loss": lambda y, P, weights: mean(brier_losses(P, y), weights),
    "confusion_matrix": _confusion,
}
