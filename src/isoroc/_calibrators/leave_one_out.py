"""Forecasts of each row by the fit without it, from the curvature at the fit to all rows.

A penalised fit minimises a sum over the rows and a penalty. Without some rows, one Newton step
moves its parameters by ``(H - H_c)^-1 g_c``, where H is the curvature of the sum, g_c the gradient
of these rows and H_c their part of H. No row needs a fit of its own, and nothing is drawn at
random. Rows leave one by one, or if they form clusters, all rows of a cluster together.

For scores ``s = offset + J theta`` whose softmax q is the forecast, the gradient of a row is
``J' (q - e)`` with the outcome e, and its part of H is ``J' W J`` with ``W = diag(q) - q q'``. The
scores of m rows that leave together are stacked. By Woodbury's identity they change by
``(I - A W)^-1 A (q - e)``, where ``A = J H^-1 J'``, of shape (m K, m K), is the leverage of the
rows, and W has a block for each of them. Gradients, parts of H and leverages are multiplied by the
weights of the rows.

Without clusters, a row may stand for many rows with the same forecast and outcome (a cell). Then
one of them is left out.
"""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from isoroc._backends import NUMPY
from isoroc._core.smooth import softmax
from isoroc._core.types import Codes, Floats, Ints
from isoroc._input import Sample, slices

#: Largest leverage of rows on their own forecasts. Steps grow as 1 / (1 - leverage). Near 1 they
#: would go far beyond where the curvature holds.
MOST_LEVERAGE = 0.9
#: Changes of log odds by more than this are shortened. docs/evidence.md has the effect on losses.
LONG_CHANGE = 3.0
#: Largest share of the weight that one step takes away. Beyond it, forecasts are too optimistic and
#: harm is more frequent than with folds: see docs/evidence.md.
MOST_SHARE = 0.05


class LeftOut(NamedTuple):
    """What leaves the fit at a time: a row, or all rows of a cluster."""

    weights: Floats  # that leave with each row, shape (n,)
    clusters: Ints | None = None  # number of each row's cluster, None if rows leave one by one

    def take(self, rows: Ints, scale: Floats) -> Self:
        """The same for some rows, whose weights are multiplied."""
        clusters = None if self.clusters is None else self.clusters[rows]
        return self._replace(weights=self.weights[rows] * scale, clusters=clusters)

    def total(self, values: Floats) -> Floats:
        """Weighted sum of values over the rows that leave with each row."""
        weighted = self.weights * values
        if self.clusters is None:
            return weighted
        return np.asarray(np.bincount(self.clusters, weighted)[self.clusters], dtype=np.float64)

    @property
    def largest(self) -> int:
        """Largest number of rows that leave at a time."""
        return 1 if self.clusters is None else int(np.bincount(self.clusters).max())

    def parts(self, n_rows: int) -> Iterator[tuple[slice | Ints, int]]:
        """About `n_rows` rows, of one cluster after the other, and the size of these clusters."""
        if self.clusters is None:
            yield from ((rows, 1) for rows in slices(len(self.weights), n_rows))
            return
        order = np.argsort(self.clusters, kind="stable")
        sizes = np.bincount(self.clusters)[self.clusters[order]]
        for size in np.unique(sizes).tolist():
            alike = order[sizes == size]
            for rows in slices(len(alike), max(n_rows // size, 1) * size):
                yield alike[rows], size


def left_out(sample: Sample) -> LeftOut | None:
    """What leaves the fit at a time, or None if a cluster is too large for one step."""
    weights = sample.row_weights()
    if sample.clusters is None:
        return LeftOut(np.asarray(sample.squared_weights() / weights))
    distinct, clusters = np.unique(sample.clusters, return_inverse=True)
    if len(distinct) == len(clusters):
        return LeftOut(weights)
    if np.bincount(clusters, weights).max() > MOST_SHARE * weights.sum():
        return None
    return LeftOut(weights, clusters)


def score_gradients(q: Floats, codes: Codes) -> Floats:
    """Gradient of each row's log loss in its scores, shape (K, n): forecasts less outcomes."""
    r = q.copy()
    r[codes, np.arange(len(codes))] -= 1
    return r


def step_changes(J: Floats, WJ: Floats, r: Floats, most: float = np.inf) -> Floats:
    """Changes ``J (1 - J' W J)^-1 J' r`` of scores if rows are left out, shape (..., s).

    J and W J, shape (..., s, P), and r, shape (..., s), hold the s scores of all rows that leave
    at a time. The P parameters have coordinates in which H is the identity.
    """
    few = J.shape[-2] <= J.shape[-1]
    Jt = np.swapaxes(J, -1, -2)
    pulled = Jt @ r[..., None]
    leaving = J @ np.swapaxes(WJ, -1, -2) if few else Jt @ WJ
    kept = np.eye(leaving.shape[-1]) - limited(leaving, most)
    changes = solved(kept, J @ pulled) if few else J @ solved(kept, pulled)
    return np.asarray(changes[..., 0])


def limited(leaving: Floats, most: float) -> Floats:
    """Curvatures that leave, as shares of H: matrices scaled to eigenvalues of at most `most`.

    The root of the sum of the squared eigenvalues bounds the largest one.
    """
    squares = (leaving * np.swapaxes(leaving, -1, -2)).sum(axis=(-1, -2), keepdims=True)
    return np.asarray(leaving * np.minimum(1.0, most / np.sqrt(np.maximum(squares, 1e-300))))


def solved(M: Floats, b: Floats) -> Floats:
    """Solution of linear equations, quickly for one unknown."""
    return np.asarray(b / M if M.shape[-1] == 1 else np.linalg.solve(M, b))


def score_changes(q: Floats, codes: Codes, removed: Floats, leverage: Floats) -> Floats:
    """Changes of scores, shape (K, n), if each m consecutive rows are left out together.

    They follow from forecasts q (K, n) and leverages of shape (n / m, m K, m K).
    """
    K, n = q.shape
    s = leverage.shape[-1]
    A = leverage * np.repeat(removed, K).reshape(-1, 1, s)
    by_row = np.ascontiguousarray(q.T).reshape(-1, 1, s // K, K)
    AW = A.reshape(-1, s, s // K, K) * by_row
    AW -= AW.sum(axis=-1, keepdims=True) * by_row
    pulled = A @ score_gradients(q, codes).T.reshape(-1, s, 1)
    changes = np.linalg.solve(np.eye(s) - AW.reshape(A.shape), pulled)
    return np.ascontiguousarray(changes.reshape(n, K).T)


def joint_changes(q: Floats, codes: Codes, removed: Floats, J: Floats, size: int) -> Floats:
    """The same from derivatives J of scores as in `step_changes`, shape (K, P, n)."""
    K, P, n = J.shape
    if size == 1:
        leverage = np.einsum("kpn,jpn->nkj", J, J, optimize=True)
        return score_changes(q, codes, removed, leverage)
    rows = np.ascontiguousarray(J.transpose(2, 0, 1))
    together = rows.reshape(-1, size * K, P)
    if size * K <= P:
        return score_changes(q, codes, removed, together @ np.swapaxes(together, -1, -2))
    by_row = q.T[..., None]
    WJ = removed[:, None, None] * by_row * (rows - (by_row * rows).sum(axis=1, keepdims=True))
    r = (removed * score_gradients(q, codes)).T.reshape(together.shape[:-1])
    changes = step_changes(together, WJ.reshape(together.shape), r)
    return np.ascontiguousarray(changes.reshape(n, K).T)


def odds_changes(p: Floats, y: Floats | Codes, removed: Floats, J: Floats, size: int) -> Floats:
    """The same for log odds of forecasts p of outcomes y, shape (..., n), and J (..., P, n)."""
    curvature = removed * p * (1 - p)
    r = removed * (p - y)
    if size == 1:
        leverage = (J**2).sum(axis=-2)
        return np.asarray(leverage * r / (1 - np.minimum(leverage * curvature, MOST_LEVERAGE)))
    shape = (*p.shape[:-1], -1, size)
    rows = np.swapaxes(J, -1, -2).reshape(*shape, J.shape[-2])
    WJ = rows * curvature.reshape(*shape, 1)
    return step_changes(rows, WJ, r.reshape(shape), MOST_LEVERAGE).reshape(p.shape)


def likelihood_changes(removed: Floats, J: Floats, size: int) -> Floats:
    """Changes of the log losses of rows, shape (n,), if `size` rows are left out together.

    The curvature is the sum of the outer products of the gradients of the rows. J, shape (P, n),
    has these gradients in coordinates as in `step_changes`.
    """
    if size == 1:
        h = np.minimum(removed * (J**2).sum(axis=0), MOST_LEVERAGE)
        return np.asarray(h / (1 - h))
    rows = J.T.reshape(-1, size, len(J))
    weights = removed.reshape(-1, size)
    return step_changes(rows, weights[..., None] * rows, weights, MOST_LEVERAGE).ravel()


def separate_changes(
    q: Floats, codes: Codes, removed: Floats, leverage: Floats, size: int
) -> Floats:
    """The same from leverages of each class on itself alone, shape (K, n / size, size, size).

    With ``D = diag(q)``, each row of W is D minus ``q q'``. ``I - A D`` falls apart into classes.
    The rest of ``I - A W`` has as many dimensions as rows are left out, and Woodbury's identity
    inverts it.
    """
    shape = len(q), -1, size
    D = q.reshape(shape)
    r = score_gradients(q, codes).reshape(*shape, 1)
    A = leverage * removed.reshape(-1, 1, size)
    AD = A * D[..., None, :]
    both = solved(np.eye(size) - limited(AD, MOST_LEVERAGE), np.concatenate([A @ r, AD], axis=-1))
    pulled = both[..., 0]
    across = both[..., 1:]
    rest = np.eye(size) + (D[..., None] * across).sum(axis=0)
    share = solved(rest, (D * pulled).sum(axis=0)[..., None])
    return np.asarray(pulled - (across @ share)[..., 0]).reshape(q.shape)


def separate_leverages(J: Floats, size: int) -> Floats:
    """Leverages as in `separate_changes` from derivatives of scores of a class, shape (P, n)."""
    if size == 1:
        return np.asarray((J**2).sum(axis=0)[:, None, None])
    rows = J.T.reshape(-1, size, len(J))
    return np.asarray(rows @ np.swapaxes(rows, -1, -2))


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


def with_losses(Q: Floats, codes: Codes, changes: Floats) -> Floats:
    """Forecasts of shape (n, K) after changes of their log losses. Other classes keep their ratios.

    Gains count as losses of the other classes, so that no outcome gets more than certain.
    """
    rows = np.arange(len(codes))
    likelihood = Q[rows, codes]
    others = np.maximum(1 - likelihood, 1e-300)
    rises = 1 - others * np.exp(np.minimum(changes, 0.0) * likelihood / others)
    lower = np.where(changes < 0, rises, likelihood * np.exp(-np.maximum(changes, 0.0)))
    unseen = Q * ((1 - lower) / others)[:, None]
    unseen[rows, codes] = lower
    certain = others < 1e-12  # others have no ratios to keep
    unseen[certain] = Q[certain]
    return np.asarray(unseen)
