"""Arrays from anything array-like, and the class of each column by its name."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._backends import NUMPY, ops_for
from isoroc._core.types import Floats
from isoroc._input.error import InputError

#: Default number of rows that are processed at a time.
SLICE = 2**16


def slices(n_rows: int, size: int = SLICE) -> Iterator[slice]:
    """Consecutive slices of rows, so that temporary arrays stay short."""
    return (slice(start, start + size) for start in range(0, n_rows, size))


def take_rows(values: Any, rows: NDArray[Any] | slice) -> Any:
    """Some rows of an array or table: ``values[rows]``, which takes longer for matrices."""
    if isinstance(rows, slice) or not isinstance(values, np.ndarray):
        return values[rows]
    numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
    return np.take(values, numbers, axis=0)


def to_array(values: Any, *, name: str) -> NDArray[Any]:
    """NumPy array of anything array-like, including tensors, dataframes and series."""
    if type(values) is np.ndarray:  # checks by narwhals and SciPy take longer than some maps
        return values
    if type(values) is not list:
        values = _from_library(values, name)
    try:
        return np.asarray(values)
    except RuntimeError as error:  # a list of tensors with gradients
        fix = "for a list of tensors pass torch.stack(...)"
        raise InputError(name, None, f"cannot be converted to an array ({error})", fix) from error
    except ValueError as error:  # a list of lists of different lengths
        problem = "its rows have different numbers of entries"
        raise InputError(name, None, problem, "expected rows of equal length") from error


def _from_library(values: Any, name: str) -> Any:
    """NumPy array of a tensor, dataframe or series. Other values are returned unchanged."""
    sparse = sys.modules.get("scipy.sparse")  # whoever passes a sparse matrix has imported it
    if sparse is not None and sparse.issparse(values):
        fix = f"forecasts are dense, pass {name}.toarray()"
        raise InputError(name, None, "sparse input is not supported", fix)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        values = values.detach().cpu()  # NumPy knows neither gradients nor bfloat16
        return np.asarray(values.double() if values.is_floating_point() else values)
    if ops_for(values) is not NUMPY:
        return np.asarray(values.get() if hasattr(values, "get") else np.from_dlpack(values))
    native = to_native(values, name=name)
    return native.to_numpy() if is_frame(native) or is_series(native) else native


def check_numbers(values: Any, name: str, fix: str = "") -> Floats:
    """Array of doubles."""
    array = to_array(values, name=name)
    try:
        return np.asarray(array, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(name, None, f"expected numbers ({error})", fix) from error


def to_native(values: Any, *, name: str) -> Any:
    """Narwhals dataframe or series. Other values are returned unchanged."""
    if isinstance(values, np.ndarray | list | tuple | dict | range):
        return values  # a check by narwhals takes longer
    import narwhals.stable.v2 as nw  # noqa: PLC0415  # not needed for arrays
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415

    try:
        native = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError as error:
        fix = "rename the columns"
        raise InputError(name, None, "several columns have the same name", fix) from error
    if native is values and isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame):
        fix = "collect it first, with the rows in the order of the other arguments"
        raise InputError(name, None, "is a lazy table", fix)
    return native


def is_frame(native: Any) -> bool:
    """Whether a result of `to_native` is a dataframe."""
    nw = sys.modules.get("narwhals.stable.v2")
    return nw is not None and isinstance(native, nw.DataFrame)


def is_series(native: Any) -> bool:
    """Whether a result of `to_native` is a series."""
    nw = sys.modules.get("narwhals.stable.v2")
    return nw is not None and isinstance(native, nw.Series)


def check_length(values: NDArray[Any], n_rows: int, *, name: str, of: str = "P") -> None:
    """Raise an error unless there is one entry for each row of the argument `of`."""
    if (length := len(values) if np.ndim(values) else 0) != n_rows:
        raise InputError(name, None, f"{length} rows, but {of} has {n_rows}", "they must agree")


@cache
def _before_narwhals() -> bool:
    """Whether scikit-learn, which is slow to import, does not use narwhals yet."""
    from importlib.metadata import version  # noqa: PLC0415  # slow to import

    return tuple(map(int, version("scikit-learn").split(".")[:2])) < (1, 9)


def column_names(P: Any) -> list[str] | None:
    """Names of the columns of a dataframe or series, or None unless all are strings."""
    if type(P) is np.ndarray:  # a check by narwhals takes longer than some metrics
        return None
    native = to_native(P, name="P")
    if not is_frame(native) and not is_series(native):
        return None
    names: list[Any] = native.columns if is_frame(native) else [native.name]
    named = all(isinstance(name, str) and name for name in names)
    return [str(name) for name in names] if named else None


@dataclass
class _NamedShape:
    """Stand-in with the dataframe protocol of scikit-learn before 1.9, which polars has dropped."""

    names: list[str]
    shape: tuple[int, int]

    def __dataframe__(self) -> Self:
        return self

    def column_names(self) -> list[str]:
        return self.names


def with_readable_names(P: Any) -> Any:
    """A dataframe, or a stand-in, with column names that every supported scikit-learn recognises.

    scikit-learn ignores names that are NumPy strings, which pandas 2 keeps, for example in
    ``DataFrame(dict(zip(clf.classes_, P.T)))``.
    """
    names = column_names(P)
    if names is None:
        return P
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    frame = nw.from_native(P, eager_only=True)
    if _before_narwhals():
        return _NamedShape(names, frame.shape)
    if all(type(name) is str for name in frame.columns):
        return P
    return frame.rename(dict(zip(frame.columns, names, strict=True))).to_native()


def in_order(P: Any, known: Sequence[str]) -> Any:
    """A dataframe with its columns in the order of `known`, if these are its names."""
    names = column_names(P)
    if names is None or names == list(known) or sorted(names) != sorted(known):
        return P
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    return nw.from_native(P, eager_only=True).select(known).to_native()


def match_columns(
    names: list[str] | None, classes: NDArray[Any], *, given: bool, name: str = "P"
) -> NDArray[Any]:
    """The class of each column. Scores have two classes, and larger scores mean the last.

    If the user has given the order of the classes, the names must agree with it.
    """
    labels = [str(label) for label in classes.tolist()]
    if names is None or not set(names) & set(labels) or len(set(labels)) < len(labels):
        return classes
    if len(names) == 1:
        by_name = classes[np.argsort([label == names[0] for label in labels], kind="stable")]
    elif sorted(names) == sorted(labels):
        by_name = classes[[labels.index(column) for column in names]]
    else:
        both = f"columns {', '.join(names)}, labels {', '.join(labels)}"
        problem = f"some columns are named like labels and some are not: {both}"
        fix = "rename the columns, or pass an array and labels= in the order of its columns"
        raise InputError(name, None, problem, fix)
    if given and by_name.tolist() != classes.tolist():
        problem = f"{', '.join(labels)} contradicts the names of the columns, {', '.join(names)}"
        raise InputError("labels", None, problem, "leave labels= out, or pass an array")
    return np.asarray(by_name)
