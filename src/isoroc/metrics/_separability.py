"""How often a threshold separates one row of each class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from isoroc._input import Sample
from isoroc._simplex import Floats
from isoroc.metrics._inputs import check_outcomes
from isoroc.metrics._roc import auc

#: Ties are broken at random, by noise of this size.
NOISE = 1e-12
#: Entries of the matrices that are worked on at a time.
BLOCK = 2**21


@dataclass(frozen=True, repr=False)
class Separability:
    """A share of tuples, estimated from some. ``float(separability)`` is its value.

    Attributes
    ----------
    value : float
    standard_error : float
        Of drawing the tuples, given the rows; 0 where the value is exact. What other rows would
        have given is a question for `isoroc.metrics.bootstrap`.
    n_samples : int
        How many tuples were drawn, 0 where the value is exact.
    """

    value: float
    standard_error: float
    n_samples: int

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        how = f"{self.n_samples} tuples" if self.n_samples else "exact"
        return f"Separability({self.value:.6g} +- {self.standard_error:.2g}, {how})"


def pairwise_separability(
    y_true: Any,
    y_prob: Any,
    *,
    n_samples: int = 100_000,
    random_state: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
) -> Separability:
    """Share of K-tuples of rows, one of each class, that some threshold separates.

    A threshold puts each row of the tuple into the region of its own class iff giving each row its
    own class is the best of all assignments, in the sum of forecasts: the differences of gamma
    then have bounds without a negative cycle. Ties are broken at random. Perfect forecasts have
    separability 1, and forecasts that know nothing 1 / K!, constant ones included. For two classes
    it is the area under the ROC curve, exactly.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or real scores that increase with the probability of the second of two classes.
    n_samples : int
        How many tuples to draw. Two classes need none.
    random_state : int, RandomState or None
        Draws them.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row: how often it is drawn.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Examples
    --------
    >>> from isoroc.metrics import pairwise_separability
    >>> P = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]
    >>> pairwise_separability([0, 1, 1, 2], P)
    Separability(1 +- 0, 100000 tuples)
    >>> pairwise_separability([0, 1, 1], [0.5, 0.7, 0.3])
    Separability(0.5 +- 0, exact)
    """
    sample = check_outcomes(y_true, y_prob, sample_weight, labels)
    K = sample.n_classes
    if K == 2:
        value = auc(y_true, y_prob, sample_weight=sample_weight, labels=labels)
        return Separability(value, standard_error=0.0, n_samples=0)
    if n_samples < 1:
        raise ValueError(f"n_samples: expected a positive number, got {n_samples!r}.")
    rng = check_random_state(random_state)
    size = max(1, BLOCK // K**2)
    separated = sum(
        int(_separated(_tuples(sample, min(size, n_samples - start), rng), rng).sum())
        for start in range(0, n_samples, size)
    )
    value = separated / n_samples
    return Separability(value, (value * (1 - value) / n_samples) ** 0.5, n_samples)


def _tuples(sample: Sample, size: int, rng: np.random.RandomState) -> Floats:
    """Forecasts of drawn tuples: [t, i] is that of a row of class i, shape (size, K, K)."""
    drawn = []
    for k, name in enumerate(sample.classes):
        rows = np.flatnonzero(sample.codes == k)
        weights = np.ones(len(rows)) if sample.weights is None else sample.weights[rows]
        reached = np.cumsum(weights)
        if not len(rows) or reached[-1] == 0:
            raise ValueError(f"y_true: no row of class {name!r}; a tuple needs all classes.")
        place = np.searchsorted(reached, rng.random_sample(size) * reached[-1], side="right")
        drawn.append(rows[place])
    return np.asarray(sample.forecasts[np.column_stack(drawn)])


def _separated(tuples: Floats, rng: np.random.RandomState) -> Floats:
    """Whether each row's own class is the best assignment of a tuple."""
    tuples = tuples + NOISE * rng.random_sample(tuples.shape)
    K = tuples.shape[1]
    # W[t, i, j] bounds gamma_i - gamma_j: what row i loses by going to region j.
    W = np.einsum("tii->ti", tuples)[:, :, None] - tuples
    # Most that fail do so for a pair of classes: spare them the longer cycles.
    left = np.flatnonzero((W + W.transpose(0, 2, 1) >= 0).all(axis=(1, 2)))
    W = W[left]
    for m in range(K):
        np.minimum(W, W[:, :, m, None] + W[:, None, m, :], out=W)
    separated = np.zeros(len(tuples), dtype=bool)
    separated[left] = np.einsum("tii->ti", W).min(axis=1, initial=np.inf) >= 0
    return separated
