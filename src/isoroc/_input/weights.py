"""Weights of rows as users pass them."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from isoroc._input.arrays import check_length, to_array
from isoroc._input.error import InputError
from isoroc._simplex import Floats

#: Weights in this range can be summed and multiplied without over- or underflow.
WEIGHT_RANGE = (1e-100, 1e100)
#: Weights that count rows weigh at least this on average.
LEAST_MEAN = 0.1


def check_weights(
    sample_weight: Any, n_rows: int, *, counts: bool = False, name: str = "sample_weight"
) -> Floats | None:
    """Weights as a float64 vector, or None where every row weighs the same.

    Parameters
    ----------
    sample_weight : array-like of shape (n,), number or None
    n_rows : int
        Number of rows.
    counts : bool, default=False
        Whether weights count rows, as in calibrators, so that their size matters. Then weights are
        refused that are far below one per row, such as shares that sum to one.
    name : str
        What error messages call them.

    Examples
    --------
    >>> check_weights([1, 2, 0], 3)
    array([1., 2., 0.])
    >>> check_weights([1, -2, 0], 3)
    Traceback (most recent call last):
    ...
    isoroc._input.error.InputError: sample_weight: row 1 is -2; weights must be 0 or between 1e-100
    and 1e+100.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        full = np.full(n_rows, sample_weight)
        return check_weights(full, n_rows, counts=counts, name=name)
    weights = np.ascontiguousarray(to_array(sample_weight, name=name), dtype=np.float64)
    if weights.ndim != 1:
        raise InputError(
            name, None, f"shape {weights.shape}", "Sample weights must be 1D array or scalar"
        )
    check_length(weights, n_rows, name=name)
    smallest, largest = WEIGHT_RANGE
    good = (weights == 0) | ((weights >= smallest) & (weights <= largest))
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(
            name,
            row,
            f"is {weights[row]:.6g}",
            f"weights must be 0 or between {smallest:g} and {largest:g}",
        )
    if not weights.any():
        raise InputError(name, None, "all weights are zero", "there is nothing to learn from")
    if counts:
        _check_counts(weights, name)
    return weights


def _check_counts(weights: Floats, name: str) -> None:
    heavy = weights[weights > 0]
    total = float(heavy.sum())
    if total < LEAST_MEAN * len(heavy):
        raise InputError(
            name,
            None,
            f"{len(heavy)} rows have a total weight of {total:.6g}",
            "weights count rows, and weight 2 is the same as the row twice. If yours are relative, "
            f"multiply them by {len(heavy)} / {total:.6g}",
        )
