"""Labels as users pass them, and the columns that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from isoroc._input.arrays import to_array
from isoroc._input.error import InputError
from isoroc._input.forecasts import name_of
from isoroc._simplex import Codes, Floats


def encode_labels(
    y: Any, n_classes: int, *, labels: Any = None, name: str = "y"
) -> tuple[NDArray[Any], Codes]:
    """Classes in the order of the forecasts' columns, and the column of each label.

    Parameters
    ----------
    y : array-like or series
        Labels of any type that scikit-learn accepts.
    n_classes : int
        Number of columns of the forecasts.
    labels : array-like, default=None
        The class of each column. By default the sorted distinct labels; where `y` misses some
        class and holds integers below `n_classes`, those integers are the columns.
    name : str
        What error messages call it.

    Examples
    --------
    >>> encode_labels(["no", "yes", "no"], 2)
    (array(['no', 'yes'], dtype='<U3'), array([0, 1, 0], dtype=uint8))
    >>> encode_labels([0, 2, 2], 3)
    (array([0, 1, 2]), array([0, 2, 2], dtype=uint8))
    """
    values = column_or_1d(to_array(y, name=name), warn=True)
    _check_labels_are_classes(values, name)
    if labels is not None:
        return _encode_given(values, to_array(labels, name="labels"), n_classes, name)
    found, codes = _distinct(values)
    if len(found) == n_classes:
        return found, codes
    if len(found) > n_classes:
        raise InputError(
            name,
            None,
            f"{len(found)} classes, but the forecasts have {n_classes}",
            "pass one column of probabilities for each class",
        )
    if values.dtype.kind in "iu" and found[0] >= 0 and found[-1] < n_classes:
        return np.arange(n_classes), values.astype(codes.dtype)
    if len(found) == 1:
        raise InputError(name, None, f"one class only, {found[0]!r}", "two or more are needed")
    raise InputError(
        name,
        None,
        f"{len(found)} of the {n_classes} classes of the forecasts, so which column is which class "
        "cannot be told",
        f"pass integer labels 0 to {n_classes - 1}",
    )


def _check_labels_are_classes(values: NDArray[Any], name: str) -> None:
    if len(values) == 0:
        raise InputError(name, None, "no rows", "at least one label is needed")
    if values.dtype.kind == "f" and (bad := ~np.isfinite(values)).any():
        row = int(np.argmax(bad))
        raise InputError(name, row, f"is {name_of(values[row])}", "labels must be known")
    if values.dtype.kind == "O":
        missing = [row for row, label in enumerate(values) if label is None or label != label]  # noqa: PLR0124
        if missing:
            row = missing[0]
            raise InputError(name, row, f"is {values[row]}", "labels must be known")
    if values.dtype.kind not in "biuUS":
        check_classification_targets(values)


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
    """Sorted distinct labels and the place of each label among them."""
    if values.dtype.kind in "biuf":
        # Two classes are the case that comes with many millions of rows: no sort.
        low, high = values.min(), values.max()
        is_high = values == high
        adjacent = values.dtype.kind in "biu" and int(high) - int(low) == 1
        if adjacent or (low < high and (is_high | (values == low)).all()):
            return np.array([low, high]), is_high.view(np.uint8)
    found, codes = np.unique(values, return_inverse=True)
    return found, codes.astype(np.min_scalar_type(len(found) - 1))


def _encode_given(
    values: NDArray[Any], classes: NDArray[Any], n_classes: int, name: str
) -> tuple[NDArray[Any], Codes]:
    if len(classes) != n_classes or len(np.unique(classes)) != n_classes:
        raise InputError(
            "labels",
            None,
            f"{len(classes)} entries",
            f"expected {n_classes} distinct classes, one for each column",
        )
    order = np.argsort(classes)
    place = np.searchsorted(classes, values, sorter=order).clip(max=n_classes - 1)
    codes = order[place]
    if (unseen := classes[codes] != values).any():
        row = int(np.argmax(unseen))
        raise InputError(name, row, f"is {values[row]!r}, which is not among the labels")
    return classes, codes.astype(np.min_scalar_type(n_classes - 1))


def check_two_classes(class_weights: Floats, classes: NDArray[Any], *, name: str = "y") -> None:
    """Refuse data in which fewer than two classes have weight."""
    if np.count_nonzero(class_weights) < 2:
        raise InputError(
            name,
            None,
            f"one class only, {classes[class_weights.argmax()]!r} (rows of weight 0 do not count)",
            "two or more are needed",
        )
