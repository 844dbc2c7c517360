"""Weights and groups of rows as users pass them."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY, Ops, Truth, V
from isoroc._input.arrays import check_length, to_array
from isoroc._input.error import InputError
from isoroc._simplex import Floats, Ints

#: Weights in this range can be summed and multiplied without over- or underflow.
WEIGHT_RANGE = (1e-100, 1e100)
WEIGHT_FIX = f"weights must be 0 or between {WEIGHT_RANGE[0]:g} and {WEIGHT_RANGE[1]:g}"
#: Weights that count rows weigh at least this on average.
LEAST_MEAN = 0.1
#: Groups by name; whole numbers and booleans are written as databases write them.
Names = NDArray[np.str_]


def check_weights(sample_weight: Any, n_rows: int, *, name: str = "sample_weight") -> Floats | None:
    """Weights as a float64 vector, or None where every row weighs the same."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_rows, sample_weight)
    weights = np.ascontiguousarray(to_array(sample_weight, name=name), dtype=np.float64)
    if weights.ndim != 1:
        fix = "Sample weights must be 1D array or scalar"
        raise InputError(name, None, f"shape {weights.shape}", fix)
    check_length(weights, n_rows, name=name)
    good = valid_weights(NUMPY, weights)
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(name, row, f"is {weights[row]:.6g}", WEIGHT_FIX)
    if not weights.any():
        raise _no_weight(name)
    return weights


def valid_weights(ops: Ops[V], weights: V) -> Truth:
    """Which weights are valid: the only rule, as that of forecasts is `Kind.clean`."""
    smallest, largest = WEIGHT_RANGE
    positive = ops.where(weights <= 0.0, smallest, weights)
    return (weights >= 0.0) & (positive >= smallest) & (weights <= largest)


def check_counts(weights: Floats | None, *, name: str = "sample_weight") -> None:
    """Refuse weights that are far below one per row, such as shares that sum to one.

    To a calibrator weights count rows, so that their size matters.
    """
    if weights is None:
        return
    heavy = weights[weights > 0]
    if not len(heavy):
        raise _no_weight(name)
    if (total := float(heavy.sum())) < LEAST_MEAN * len(heavy):
        problem = f"{len(heavy)} rows have a total weight of {total:.6g}"
        fix = "weights count rows, and weight 2 is the same as the row twice. If yours are relative"
        raise InputError(name, None, problem, f"{fix}, multiply them by {len(heavy)} / {total:.6g}")


def _no_weight(name: str) -> InputError:
    return InputError(name, None, "all weights are zero", "there is nothing to learn from")


def check_groups(groups: Any, n_rows: int, *, name: str = "groups", of: str = "P") -> Names:
    """Name of each row's group, of one entry per row of `of`."""
    values = to_array(groups, name=name)
    if values.ndim != 1:
        raise InputError(name, None, f"has shape {values.shape}", "expected one entry per row")
    check_length(values, n_rows, name=name, of=of)
    if values.dtype.kind in "Uiu":
        return values.astype(np.str_)
    if values.dtype.kind == "b":
        return np.where(values, "true", "false")
    return np.array([_name(value, row, name) for row, value in enumerate(values)], dtype=np.str_)


def rows_by_group(groups: Names) -> Iterator[tuple[str, Ints]]:
    """Each group, in the order of their names, and its rows."""
    names, code = np.unique(groups, return_inverse=True)
    order = np.argsort(code, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(code))[:-1])
    return zip(names.tolist(), parts, strict=True)


def _name(value: Any, row: int, argument: str) -> str:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer | float | np.floating) and float(value).is_integer():
        return str(int(value))
    # pandas has a value that cannot be compared; NaN and its like differ from themselves.
    if value is None or type(value).__name__ == "NAType" or value != value:  # noqa: PLR0124
        fix = 'give such rows a group of their own, such as "unknown", or leave them out'
        raise InputError(argument, row, "is missing", fix)
    fix = "groups are strings, whole numbers or booleans"
    raise InputError(argument, row, f"is {value!r}", fix)
