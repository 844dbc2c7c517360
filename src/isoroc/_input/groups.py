"""Groups of rows as users pass them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._input.arrays import check_length, to_array
from isoroc._input.error import InputError
from isoroc._simplex import Ints

#: Groups by name; whole numbers and booleans are written as databases write them.
Names = NDArray[np.str_]


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
    if _is_missing(value):
        fix = 'give such rows a group of their own, such as "unknown", or leave them out'
        raise InputError(argument, row, "is missing", fix)
    fix = "groups are strings, whole numbers or booleans"
    raise InputError(argument, row, f"is {value!r}", fix)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
