"""Forecasts, thresholds and regions.

Inside the package a *forecast array* is either a C-contiguous float64 matrix of shape (n, K) whose
rows lie on the simplex or, for K = 2, a float64 vector of n scores: the second column of such a
matrix or any other real score that orders the rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Codes = NDArray[np.unsignedinteger]
"""Columns of labels."""

#: Second probabilities closer to 1 than this are told apart by the first probability.
PRECISE = 2.0**-20
#: Score of a forecast whose first probability is 0.
CERTAIN = 1e300


def regions(forecasts: Floats, gamma: Floats) -> Ints:
    """Region of each forecast under the threshold gamma: the k with the largest p_k - gamma_k.

    The lowest k wins a tie. For K = 2 the rule reads ``p_1 > gamma_1``, the same thing in exact
    arithmetic, and no rounding of ``1 - p_1`` can blur it however small the scores are.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.2, 0.2, 0.6]])
    >>> regions(P, np.array([0.5, 0.25, 0.25]))
    array([0, 1, 2])
    >>> regions(np.array([0.2, 0.7, 0.71]), np.array([0.3, 0.7]))
    array([0, 0, 1])
    """
    if len(gamma) == 2:
        return np.asarray(binary_scores(forecasts) > gamma[1], dtype=np.intp)
    return np.asarray(np.argmax(forecasts - gamma, axis=1))


def lattice(n_classes: int, steps: int) -> Floats:
    """All points of the simplex whose coordinates are multiples of 1/steps, in ascending order.

    Examples
    --------
    >>> lattice(2, 4)[:, 1]
    array([1.  , 0.75, 0.5 , 0.25, 0.  ])
    >>> lattice(3, 100).shape
    (5151, 3)
    """
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


def midpoint(low: Floats, high: Floats) -> Floats:
    """Middle of each gap, rounded so that ``low <= middle < high`` wherever ``low < high``.

    Examples
    --------
    >>> import numpy as np
    >>> midpoint(np.array([0.25, 1.0]), np.array([0.75, np.nextafter(1.0, 2.0)]))
    array([0.5, 1. ])
    """
    with np.errstate(over="ignore"):
        middle = low + (high - low) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    return np.where(middle < high, middle, low)


def count_classes(forecasts: Floats) -> int:
    """K, the number of classes that a forecast array speaks of."""
    return 2 if forecasts.ndim == 1 else forecasts.shape[1]


def binary_scores(forecasts: Floats) -> Floats:
    """Scores of a forecast array with K = 2: an increasing function of the second probability.

    It is that probability itself, except next to 1. There it has no digits left to tell forecasts
    apart, while the first probability has all of them; so below ``PRECISE`` the score goes on as
    ``PRECISE / p_0``, from 1 to `CERTAIN`.

    Examples
    --------
    >>> import numpy as np
    >>> binary_scores(np.array([[0.75, 0.25], [1e-30, 1.0], [0.0, 1.0]]))
    array([2.50000000e-001, 9.53674316e+023, 1.00000000e+300])
    """
    if forecasts.ndim == 1:
        return forecasts
    scores = np.ascontiguousarray(forecasts[:, 1])
    if (next_to_one := np.flatnonzero(forecasts[:, 0] < PRECISE)).size:
        scores[next_to_one] = PRECISE / np.maximum(forecasts[next_to_one, 0], PRECISE / CERTAIN)
    return scores


def probability_of_score(scores: Floats) -> Floats:
    """The second probability from what `binary_scores` returns for a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> probability_of_score(np.array([-np.inf, 0.25, 1e6, np.inf]))
    array([      -inf, 0.25      , 1.        ,        inf])
    """
    with np.errstate(divide="ignore"):
        high = 1 - PRECISE / np.maximum(scores, 1.0)
    return np.where((scores <= 1) | np.isinf(scores), scores, high)


def second_probabilities(scores: Floats, kind: Literal["probability", "logit"]) -> Floats:
    """Probabilities of the second of two classes from scores of a kind.

    Examples
    --------
    >>> import numpy as np
    >>> second_probabilities(np.array([0.0, 100.0]), "logit")
    array([0.5, 1. ])
    >>> second_probabilities(binary_scores(np.array([[0.75, 0.25], [0.0, 1.0]])), "probability")
    array([0.25, 1.  ])
    """
    if kind == "logit":
        return np.asarray(expit(scores))
    if len(scores) and (scores.max() > 1 or scores.min() < 0):
        return probability_of_score(scores).clip(min=0.0)
    return scores


def two_columns(forecasts: Floats) -> Floats:
    """Scores of two classes as points of A_2, forecasts of more classes as they are."""
    if forecasts.ndim == 2 and forecasts.shape[1] > 2:
        return forecasts
    scores = binary_scores(forecasts)
    return np.column_stack([1 - scores, scores])
