"""Forecasts, thresholds and regions.

A *forecast array* is a C-contiguous float64 matrix of shape (n, K) whose rows lie on the simplex
or, for K = 2, a vector of n scores that order the rows.
"""

import math
from typing import Any, Literal

import numpy as np

from isoroc._core import smooth
from isoroc._core.types import Codes, Floats, Ints

#: Where the first of two probabilities is below this, the second has lost its digits: see
#: `binary_scores`.
PRECISE = 2.0**-20
LEAST = 1e-300  # first probabilities below this count as this
#: Decrease of the score when the first probability grows by a factor e.
STEP = PRECISE / (math.log(PRECISE) - math.log(LEAST))


def regions(forecasts: Floats, gamma: Floats) -> Ints:
    """Region of each forecast under the threshold gamma: the k with the largest p_k - gamma_k.

    The lowest k wins a tie. For K = 2 the rule reads ``p_1 > gamma_1``, which involves no
    arithmetic.
    """
    if len(gamma) == 2:
        scores = forecasts if forecasts.ndim == 1 else forecasts[:, 1]
        return np.asarray(scores > gamma[1], dtype=np.intp)
    return np.asarray(np.argmax(forecasts - gamma, axis=1))


def lattice(n_classes: int, steps: int) -> Floats:
    """All points of the simplex whose coordinates are multiples of 1/steps, in ascending order."""
    # Compositions of `steps` into K parts, built one coordinate at a time: each row so far is
    # repeated once for every value that its remainder still allows.
    parts = np.zeros((1, 0), dtype=np.intp)
    remainder = np.array([steps])
    for _ in range(n_classes - 1):
        repeats = remainder + 1
        first = np.repeat(np.cumsum(repeats) - repeats, repeats)
        value = np.arange(repeats.sum()) - first
        parts = np.column_stack([np.repeat(parts, repeats, axis=0), value])
        remainder = np.repeat(remainder, repeats) - value
    return np.column_stack([parts, remainder]) / steps


def residuals(P: Floats, codes: Codes) -> Floats:
    """Outcomes less forecasts, for all classes."""
    is_own = np.empty_like(P, dtype=bool)  # in the order of P
    np.equal(codes[:, None], np.arange(P.shape[1], dtype=codes.dtype), out=is_own)
    return np.asarray(is_own - P)


def sum_to_one(gamma: Floats) -> Floats:
    """Thresholds in A_K with the same regions: only differences of their coordinates matter."""
    return np.asarray(gamma + (1 - gamma.sum(axis=-1, keepdims=True)) / gamma.shape[-1])


def midpoint(low: Floats, high: Floats) -> Floats:
    """Middle of each gap, rounded so that ``low <= middle < high`` wherever ``low < high``."""
    middle = low + (high / 2 - low / 2)  # high - low may overflow
    return np.where(middle < high, middle, low)


def count_classes(forecasts: Floats) -> int:
    """K, the number of classes of a forecast array."""
    return 2 if forecasts.ndim == 1 else forecasts.shape[1]


def binary_scores(forecasts: Floats) -> Floats:
    """Scores of a forecast array with K = 2: an increasing function of the second probability.

    It is the second probability itself, except next to 1, where only the first probability has
    digits left. Below `PRECISE` the score falls with its logarithm, from 1 to ``1 - PRECISE``.
    """
    if forecasts.ndim == 1:
        return forecasts
    scores = np.ascontiguousarray(forecasts[:, 1])
    if (rows := np.flatnonzero(forecasts[:, 0] < PRECISE)).size:
        scores[rows] = score_next_to_one(np, forecasts[rows, 0])
    return scores


def unscored(scores: Floats) -> Floats:
    """The second probabilities that `binary_scores` turned into scores."""
    first = np.exp((1 - np.maximum(scores, 1 - PRECISE)) / STEP + math.log(LEAST))
    return np.where(scores > 1 - PRECISE, 1 - first, scores)


def score_next_to_one(ops: Any, first: Any) -> Any:
    """Score where the first probability is below `PRECISE`, by NumPy or a backend (`ops`)."""
    return 1.0 - STEP * (ops.log(ops.maximum(first, LEAST)) - math.log(LEAST))


def second_probabilities(scores: Floats, unit: Literal["probability", "logit"]) -> Floats:
    """Probabilities of the second of two classes from scores of a unit."""
    return smooth.expit(scores) if unit == "logit" else np.clip(scores, 0.0, 1.0)


def two_columns(forecasts: Floats) -> Floats:
    """Scores of two classes as points of A_2, forecasts of more classes unchanged."""
    if forecasts.ndim == 2 and forecasts.shape[1] > 2:
        return forecasts
    return as_matrix(binary_scores(forecasts))


def as_matrix(P: Floats) -> Floats:
    """Two columns from probabilities of the second of two classes. Matrices stay unchanged."""
    return P if P.ndim == 2 else np.column_stack([1 - P, P])
