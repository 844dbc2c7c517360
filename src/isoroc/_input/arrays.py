"""Arrays of anything array-like."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
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
    native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return np.asarray(native.to_numpy())
    return np.asarray(values)


def check_length(values: NDArray[Any], n_rows: int, *, name: str, of: str = "P") -> None:
    """Refuse values that do not have one entry for each of the n_rows rows of `of`."""
    if len(values) != n_rows:
        problem = f"{len(values)} rows, but {of} has {n_rows}"
        raise InputError(name, None, problem, "they must agree")
