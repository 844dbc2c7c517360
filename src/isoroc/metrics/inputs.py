"""What every metric takes: labels, forecasts and weights, validated in one place."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoroc.simplex import (
    Floats,
    check_forecasts,
    check_length,
    check_weights,
    count_classes,
    encode_labels,
)


class Judged(NamedTuple):
    """Forecasts and what came true."""

    forecasts: Floats
    """A forecast array, see `isoroc.simplex`."""
    codes: NDArray[np.unsignedinteger[Any]]
    """Column of each row's label."""
    weights: Floats | None
    classes: NDArray[Any]
    """The label of each column."""

    @property
    def n_classes(self) -> int:
        """K."""
        return count_classes(self.forecasts)

    def take(self, rows: NDArray[Any]) -> Judged:
        """The same of some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Judged(self.forecasts[rows], self.codes[rows], weights, self.classes)

    def positive(self) -> Judged:
        """The same without the rows of weight 0."""
        if self.weights is None or self.weights.all():
            return self
        return self.take(np.flatnonzero(self.weights))


def check_judged(y_true: Any, y_prob: Any, sample_weight: Any = None, labels: Any = None) -> Judged:
    """Labels and forecasts, which for two classes may be any real scores.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_prob : array-like of shape (n, K) or (n,)
        Forecasts, or real scores that increase with the probability of the second of two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.

    Examples
    --------
    >>> check_judged(["b", "a"], [0.2, 3.0]).codes
    array([1, 0], dtype=uint8)
    """
    forecasts = check_forecasts(y_prob, name="y_prob")
    classes, codes = encode_labels(y_true, count_classes(forecasts), labels=labels, name="y_true")
    check_length(codes, len(forecasts), name="y_true", of="y_prob")
    return Judged(forecasts, codes, check_weights(sample_weight, len(forecasts)), classes)


def check_probable(
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    labels: Any = None,
    *,
    keep_zeros: bool = False,
) -> Judged:
    """The same for metrics of probabilities: a 1-D `y_prob` is that of the second class.

    Forecasts come out as a matrix, and rows of weight 0 only with `keep_zeros`.

    Examples
    --------
    >>> check_probable([0, 1], [0.25, 0.5]).forecasts
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    >>> check_probable([0, 1], [0.25, 1.5])
    Traceback (most recent call last):
    ...
    ValueError: y_prob: row 1 is 1.5; probabilities lie between 0 and 1. Calibrate scores first.
    """
    judged = check_judged(y_true, y_prob, sample_weight, labels)
    if not keep_zeros:
        judged = judged.positive()
    scores = judged.forecasts
    if scores.ndim == 2:
        return judged
    if (outside := (scores < 0) | (scores > 1)).any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"y_prob: row {row} is {scores[row]:.6g}; probabilities lie between 0 and 1. "
            "Calibrate scores first."
        )
    return judged._replace(forecasts=np.column_stack([1 - scores, scores]))
