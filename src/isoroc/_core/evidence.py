"""Evidence against calibration: score tests of the scale of forecasts and of class frequencies."""

from typing import Protocol

import numpy as np

from isoroc._core.intervals import effective_rows
from isoroc._core.special import chi2_tail, f_tail
from isoroc._core.types import Codes, Floats, Ints


class Outcomes(Protocol):
    """Outcome and weight of each row: a `Sample`."""

    @property
    def codes(self) -> Codes: ...
    @property
    def clusters(self) -> Ints | None: ...
    def row_weights(self) -> Floats: ...
    def squared_weights(self) -> Floats: ...


def score_test(P: Floats, rows: Outcomes) -> float:
    """P-value of calibrated forecasts P, shape (n, K), against scaled and shifted ones.

    Scaled forecasts are too confident or too timid. Shifted ones are too high for some class. For
    two classes both are one test. For more, the smaller of two p-values counts twice. The test has
    far more power than the gain of a calibrator. `Sample.effective` gives the weights.
    """
    total = rows.row_weights().sum()
    K = P.shape[1]
    P = (total * P + 1 / K) / (total + 1)  # no outcome is impossible
    scale = np.log(P)
    if K == 2:
        return _test(P, rows.codes, [scale, np.broadcast_to([0.0, 1.0], P.shape)], rows)
    p_values = [_test(P, rows.codes, [scale], rows)]
    group = _frequent_classes(rows.row_weights() @ P)
    if n_shifts := int(group.max()):
        G = np.column_stack([P[:, group == g].sum(axis=1) for g in range(n_shifts + 1)])
        one_each = np.eye(n_shifts + 1)[1:]
        shifts = [np.broadcast_to(row, G.shape) for row in one_each]
        p_values.append(_test(G, group[rows.codes], shifts, rows))
    return min(1.0, len(p_values) * min(p_values))


def count_units(rows: Outcomes) -> float:
    """Effective number of independent rows or clusters."""
    weights = rows.row_weights()
    if rows.clusters is None:
        return float(effective_rows(weights.sum(), rows.squared_weights().sum()))
    total = np.bincount(rows.clusters, weights)
    return float(effective_rows(total.sum(), total @ total))


def _frequent_classes(expected: Floats, least: float = 5.0, most: int = 9) -> Ints:
    """Group of each class: its own, or 0 for classes that are rare or beyond the `most` largest.

    A chi-squared distribution describes counts of which at least five are expected (Cochran 1954).
    """
    order = np.argsort(-expected, kind="stable")
    frequent = order[: min(most, np.count_nonzero(expected >= least))]
    if expected.sum() - expected[frequent].sum() < least:  # the others need as many
        frequent = frequent[:-1]
    group = np.zeros(len(expected), np.intp)
    group[np.sort(frequent)] = np.arange(1, len(frequent) + 1)
    return group


def _test(P: Floats, codes: Codes | Ints, directions: list[Floats], rows: Outcomes) -> float:
    """P-value of a score test that log P does not depart in some directions, shape (n, K)."""
    n = len(P)
    centred = np.array([d - (P * d).sum(axis=1, keepdims=True) for d in directions])
    terms = rows.row_weights() * centred[:, np.arange(n), codes]
    root = centred * np.sqrt(P)  # root @ root.T is the covariance of a row
    score = terms.sum(axis=1)
    if rows.clusters is None:
        statistic, d = _quadratic_form(score, _covariance(root, rows.squared_weights()))
        return float(chi2_tail(d, statistic))
    variance, df = _clustered(terms, root, rows)
    statistic, d = _quadratic_form(score, variance)
    left = max(df - d + 1, 1.0)
    return float(f_tail(d, left, left / (d * df) * statistic))  # Hotelling (1931)


def _covariance(root: Floats, squares: Floats) -> Floats:
    flat = root.reshape(len(root), -1)
    return np.asarray((flat * np.repeat(squares, root.shape[2])) @ flat.T)


def _clustered(
    terms: Floats, root: Floats, rows: Outcomes, prior: float = 10.0
) -> tuple[Floats, float]:
    """Covariance of sums of clusters, and its degrees of freedom.

    The estimate is useless if few clusters are informative, for example because events are rare. So
    `prior` clusters are added, whose rows depend on each other as much as they can.
    """
    _, cluster = np.unique(np.asarray(rows.clusters), return_inverse=True)
    squares = rows.squared_weights()
    # A row of frequency k is k rows, and the parts of a row are one.
    n_rows = np.zeros(len(cluster))
    np.divide(rows.row_weights() ** 2, squares, out=n_rows, where=squares > 0)
    sizes = np.bincount(cluster, n_rows)
    most = squares * sizes[cluster]
    largest = _covariance(root, most)
    sums = np.array([np.bincount(cluster, row) for row in terms])
    values, vectors = np.linalg.eigh(np.linalg.pinv(largest))
    spread = np.einsum("ij,jnk->ink", (vectors * np.sqrt(values.clip(min=0))).T, root)
    share = np.bincount(cluster, most * (spread**2).sum(axis=(0, 2)))
    n_telling = float(effective_rows(share.sum(), share @ share)) if share.any() else 0.0
    df = n_telling + prior
    return (n_telling * sums @ sums.T + prior * largest) / df, df


def _quadratic_form(score: Floats, variance: Floats) -> tuple[float, int]:
    """Squared length of a score in standard deviations, and the number of its dimensions."""
    scale = np.sqrt(np.diag(variance))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(variance / np.outer(scale, scale))
    kept = values > 1e-9 * max(values[-1], 1e-300)  # directions may be the same
    along = (score / scale) @ vectors[:, kept]
    return float((along**2 / values[kept]).sum()), max(int(kept.sum()), 1)
