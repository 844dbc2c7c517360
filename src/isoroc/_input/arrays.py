"""Arrays of anything array-like."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from isoroc._input.error import InputError

#: Rows that are worked on at a time.
SLICE = 2**16


def slices(n_rows: int) -> Iterator[slice]:
    """Rows 0 to n_rows, some at a time, so that temporary arrays stay short."""
    return (slice(start, start + SLICE) for start in range(0, n_rows, SLICE))


def to_array(values: Any, *, name: str) -> NDArray[Any]:
    """NumPy array of anything array-like, or of any dataframe or series that narwhals reads."""
    if type(values) is np.ndarray:  # asking narwhals and SciPy takes longer than some maps
        return values
    sparse = sys.modules.get("scipy.sparse")  # whoever passes a sparse matrix has imported it
    if sparse is not None and sparse.issparse(values):
        fix = f"forecasts are dense, pass {name}.toarray()"
        raise InputError(name, None, "sparse input is not supported", fix)
    native = to_native(values, name=name)
    if isinstance(native, nw.DataFrame | nw.Series):
        return np.asarray(native.to_numpy())
    try:
        return np.asarray(values)
    except ValueError as error:  # a list of lists of different lengths
        problem = "its rows have different numbers of entries"
        raise InputError(name, None, problem, "expected rows of equal length") from error


def to_native(values: Any, *, name: str) -> Any:
    """A dataframe or series of narwhals, or the values themselves if they are neither."""
    try:
        return nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError as error:
        fix = "rename the columns"
        raise InputError(name, None, "several columns have the same name", fix) from error


def check_length(values: NDArray[Any], n_rows: int, *, name: str, of: str = "P") -> None:
    """Refuse values that do not have one entry for each of the n_rows rows of `of`."""
    if len(values) != n_rows:
        problem = f"{len(values)} rows, but {of} has {n_rows}"
        raise InputError(name, None, problem, "they must agree")
