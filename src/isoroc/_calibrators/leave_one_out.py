"""Forecasts of each row by the fit without it, from the curvature at the fit to all rows.

A penalised fit minimises a sum over the rows and a penalty. Without row i, one Newton step moves
its parameters by ``(H - H_i)^-1 g_i``, where H is the curvature of the sum, g_i the gradient of row
i and H_i its part of H. No row needs a fit of its own, and nothing is drawn at random.

For scores ``s = offset + J theta`` whose softmax q is the forecast, the gradient is ``J' (q - e)``
with the outcome e, and H_i is ``J' W J`` with ``W = diag(q) - q q'``. By Woodbury's identity the
scores of row i change by ``(I - A W)^-1 A (q - e)``, where ``A = J H^-1 J'``, of shape (K, K), is
the leverage of the row. Gradient, H_i and leverage are multiplied by the weight of the row.

A row may stand for many rows with the same forecast and outcome (a cell). Then one of them is left
out.
"""

import numpy as np

from isoroc._backends import NUMPY
from isoroc._core.smooth import softmax
from isoroc._core.types import Codes, Floats
from isoroc._input import Sample

#: Largest leverage of a row on its own forecast. Steps grow as 1 / (1 - leverage). Near 1 they
#: would go far beyond where the curvature holds.
MOST_LEVERAGE = 0.9
#: Changes of log odds by more than this are shortened. docs/evidence.md has the effect on losses.
LONG_CHANGE = 3.0


def left_out_weights(sample: Sample) -> Floats | None:
    """Weight of the row that is left out of each row's cell, or None if rows are dependent."""
    clusters = sample.clusters
    if clusters is not None and len(np.unique(clusters)) < len(clusters):
        return None
    return np.asarray(sample.squared_weights() / sample.row_weights())


def score_gradients(q: Floats, codes: Codes) -> Floats:
    """Gradient of each row's log loss in its scores, shape (K, n): forecasts less outcomes."""
    r = q.copy()
    r[codes, np.arange(len(codes))] -= 1
    return r


def score_changes(q: Floats, codes: Codes, removed: Floats, leverage: Floats) -> Floats:
    """Changes of scores, shape (K, n), from forecasts (K, n) and leverages (n, K, K)."""
    K = len(q)
    A = leverage * removed[:, None, None]
    by_row = np.ascontiguousarray(q.T)
    W = -by_row[:, :, None] * by_row[:, None, :]
    W[:, np.arange(K), np.arange(K)] += by_row
    pulled = A @ score_gradients(q, codes).T[..., None]
    return np.asarray(np.linalg.solve(np.eye(K) - A @ W, pulled)[..., 0].T)


def separate_changes(q: Floats, codes: Codes, removed: Floats, leverage: Floats) -> Floats:
    """The same for leverages (K, n) of each class on itself alone.

    ``I - A W`` is then a diagonal matrix plus ``(A q) q'``: the Sherman-Morrison formula inverts
    it.
    """
    A = leverage * removed
    kept = 1 - np.minimum(A * q, MOST_LEVERAGE)
    pulled = A * score_gradients(q, codes) / kept
    across = A * q / kept
    share = (q * pulled).sum(axis=0) / (1 + (q * across).sum(axis=0))
    return np.asarray(pulled - across * share)


def with_changes(Q: Floats, changes: Floats, smoothing: float = 0.0) -> Floats:
    """Forecasts of shape (n, K) after changes of their scores, shape (K, n).

    `smoothing` is the share of the uniform forecast in Q, which scores do not change. The curvature
    holds nearby only. With separable outcomes it vanishes, and a Newton step goes much too far. So
    changes of log odds by more than `LONG_CHANGE` are shortened: beyond it, they grow with the
    logarithm of the step.
    """
    too_long = np.maximum(np.ptp(changes, axis=0) / LONG_CHANGE, 1.0)
    changes = changes * ((1 + np.log(too_long)) / too_long)
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(Q - smoothing / Q.shape[1], 0.0)).T
    q = softmax(np.ascontiguousarray(logs + changes))
    return np.ascontiguousarray(NUMPY.mix_uniform(q.T, smoothing))


def with_lower_outcomes(Q: Floats, codes: Codes, leverage: Floats) -> Floats:
    """Forecasts of shape (n, K) that give each outcome ``h / (1 - h)`` less of log probability.

    If the curvature is the sum of ``g_i g_i'``, leaving row i out lowers the log likelihood of its
    outcome by that much, where ``h = g_i' H^-1 g_i`` is its leverage. Other classes keep their
    ratios.
    """
    h = np.minimum(leverage, MOST_LEVERAGE)
    rows = np.arange(len(codes))
    likelihood = Q[rows, codes]
    lower = likelihood * np.exp(-h / (1 - h))
    others = np.maximum(1 - likelihood, 1e-300)
    unseen = Q * ((1 - lower) / others)[:, None]
    unseen[rows, codes] = lower
    certain = others < 1e-12  # others have no ratios to keep
    unseen[certain] = Q[certain]
    return np.asarray(unseen)
