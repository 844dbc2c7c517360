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


def check_weights(sample_weight: Any, n_rows: int, *, name: str = "sample_weight") -> Floats | None:
    """Weights as a float64 vector, or None where every row weighs the same."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        return check_weights(np.full(n_rows, sample_weight), n_rows, name=name)
    weights = np.ascontiguousarray(to_array(sample_weight, name=name), dtype=np.float64)
    if weights.ndim != 1:
        fix = "Sample weights must be 1D array or scalar"
        raise InputError(name, None, f"shape {weights.shape}", fix)
    check_length(weights, n_rows, name=name)
    smallest, largest = WEIGHT_RANGE
    good = (weights == 0) | ((weights >= smallest) & (weights <= largest))
    if not good.all():
        row = int(np.argmin(good))
        fix = f"weights must be 0 or between {smallest:g} and {largest:g}"
        raise InputError(name, row, f"is {weights[row]:.6g}", fix)
    if not weights.any():
        raise _no_weight(name)
    return weights


def check_counts(weights: Floats | None, *, name: str = "sample_weight") -> None:
    """Refuse weights that are far below one per row, such as shares that sum to one.

    To a calibrator weights count rows, so that their size matters.
    """
    if weights is None:
        return
    heavy = weights[weights > 0]
    if not len(heavy):
        raise _no_weight(name)
    total = float(heavy.sum())
    if total < LEAST_MEAN * len(heavy):
        fix = (
            "weights count rows, and weight 2 is the same as the row twice. If yours are relative, "
            f"multiply them by {len(heavy)} / {total:.6g}"
        )
        problem = f"{len(heavy)} rows have a total weight of {total:.6g}"
        raise InputError(name, None, problem, fix)


def _no_weight(name: str) -> InputError:
    return InputError(name, None, "all weights are zero", "there is nothing to learn from")
