"""Class shares, numbers per class, and forecasts that come without labels."""

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoroc._core.simplex import as_matrix
from isoroc._core.types import Floats
from isoroc._input.arrays import column_names, match_columns, to_array
from isoroc._input.error import InputError
from isoroc._input.sample import check_forecasts


def check_unlabelled(
    P: ArrayLike, labels: ArrayLike | None, *, name: str = "P"
) -> tuple[Floats, NDArray[Any]]:
    """Forecasts of shape (n, K) without outcomes, and the class of each column."""
    names = column_names(P)
    P = as_matrix(check_forecasts(P, name=name, unit="probability"))
    if labels is None:
        named = names is not None and len(names) == P.shape[1]
        return P, np.array(names) if named else np.arange(P.shape[1])
    classes = to_array(labels, name="labels")
    if classes.ndim != 1 or len(set(classes.tolist())) != P.shape[1]:
        problem = f"{len(set(classes.ravel().tolist()))} different labels"
        fix = f"expected {P.shape[1]}, one for each column of {name}"
        raise InputError("labels", None, problem, fix)
    return P, match_columns(names, classes, given=True, name=name)


def numbers_by_class(values: Any, classes: NDArray[Any], *, name: str) -> Floats:
    """One number per class, from a list in the order of the classes or a mapping of labels."""
    if isinstance(values, Mapping):
        by_name = {str(label): value for label, value in values.items()}
        names = [str(label) for label in classes.tolist()]
        if sorted(by_name) != sorted(names):
            problem = f"names {', '.join(by_name)}, but the classes are {', '.join(names)}"
            raise InputError(name, None, problem, "name each class once; labels= sets the classes")
        values = [by_name[label] for label in names]
    given = check_numbers(values, name)
    if given.shape != classes.shape:
        problem = f"has shape {given.shape}, but there are {len(classes)} classes"
        raise InputError(name, None, problem, "expected one number for each class")
    return given


def check_shares(
    values: Any, classes: NDArray[Any], *, name: str, positive: bool, tolerance: float = 1e-6
) -> Floats:
    """Class shares that sum to one; for two classes a number is the share of the second."""
    if isinstance(values, numbers.Real) and len(classes) == 2:
        values = [1 - values, values]
    shares = numbers_by_class(values, classes, name=name)
    least = shares.min()
    if not np.isfinite(shares).all() or least < 0 or (positive and least == 0):
        problem = f"is {', '.join(map(str, shares))}"
        fix = "class shares are positive" if positive else "class shares are not negative"
        raise InputError(name, None, problem, fix)
    total = shares.sum()
    if abs(total - 1) > tolerance:
        raise InputError(name, None, f"sums to {total:.6g}, not to 1", "divide it by its sum")
    return np.asarray(shares / total)


def check_numbers(values: ArrayLike, name: str) -> Floats:
    array = to_array(values, name=name)
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, None, f"expected numbers ({error})") from error
