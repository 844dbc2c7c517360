"""Soft labels: the shares of the classes in each row, such as the votes of annotators."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.simplex import count_classes
from isoroc._core.types import Floats
from isoroc._input.arrays import match_columns, to_array
from isoroc._input.error import InputError
from isoroc._input.rows import SWAPPED, check_classes, may_be_labels, read_labels, shown


def read_outcomes(y: ArrayLike, forecasts: Floats, *, name: str = "y") -> NDArray[Any]:
    """Labels, shape (n,), or soft labels that sum to 1 in each row, shape (n, K)."""
    values = read_labels(y, name=name)
    if values.ndim == 1:
        return values
    if may_be_labels(forecasts) or values.dtype.kind not in "biuf":
        problem = f"y should be a 1d array, got shape {values.shape}"
        raise InputError(name, None, problem, f"labels are one column{SWAPPED}")
    shares = check_label_shares(values.astype(np.float64), name=name)
    if (K := count_classes(forecasts)) != shares.shape[1]:
        problem = f"soft labels of {shares.shape[1]} classes, but the forecasts have {K}"
        raise InputError(name, None, problem, "pass one column of shares for each class")
    return shares


def check_label_shares(shares: Floats, *, name: str = "y") -> Floats:
    """Soft labels that sum to exactly 1 in each row."""
    if (bad := ~(np.isfinite(shares) & (shares >= 0)).all(axis=1)).any():
        row = int(np.argmax(bad))
        problem = f"is {shares[row].tolist()}"
        raise InputError(name, row, problem, "the shares of soft labels are numbers from 0 to 1")
    sums = shares.sum(axis=1)
    if (bad := np.abs(sums - 1) > 1e-3).any():
        row, whole = int(np.argmax(bad)), np.array_equal(shares, np.rint(shares))
        fix = "the shares of soft labels sum to 1 in each row"
        if shares.max() <= 1 and whole:
            fix = "0 and 1 with any row sums are labels that do not exclude each other: use"
            fix += " MultiLabelCalibrator, and the option multilabel of evaluate"
        elif whole and sums.all():
            fix = f"{fix}. For counts pass {name} / {name}.sum(axis=1, keepdims=True), with"
            fix += f" sample_weight={name}.sum(axis=1) if rows with more votes weigh more"
        raise InputError(name, row, f"sums to {sums[row]:.6g}", fix)
    shares = np.where(shares < 1e-12, 0.0, shares)  # such a part would not be a valid weight
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def shares_by_class(
    shares: Floats,
    share_names: list[str] | None,
    labels: ArrayLike | None,
    names: list[str] | None,
    *,
    forecasts: str,
    name: str,
) -> tuple[NDArray[Any], Floats]:
    """Classes in the order of the forecasts' columns, and their shares in this order.

    The classes are `labels`, or else the names of the columns of shares or of forecasts, or else
    numbers. Columns of shares that are named like the classes are matched by name.
    """
    K = shares.shape[1]
    if labels is not None:
        classes = check_classes(to_array(labels, name="labels"), K)
    elif share_names is not None or (names is not None and len(names) == K):
        classes = np.array(share_names or names)
    else:
        classes = np.arange(K)
    if share_names is not None:
        of_shares = match_columns(share_names, classes, given=False, name=name).tolist()
        shares = shares[:, [of_shares.index(label) for label in classes.tolist()]]
    by_column = match_columns(names, classes, given=labels is not None, name=forecasts)
    order = [classes.tolist().index(label) for label in by_column.tolist()]
    if not shares.any(axis=0).sum() > 1:
        only = shown(classes[shares.any(axis=0)][0])
        raise InputError(name, None, f"one class only, {only}", "two or more are needed")
    return by_column, np.ascontiguousarray(shares[:, order])
