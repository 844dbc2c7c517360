"""Segments: columns of numbers or categories that describe rows besides their forecasts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Floats
from isoroc._input.arrays import (
    check_length,
    is_frame,
    is_series,
    slices,
    to_array,
    to_native,
)
from isoroc._input.error import InputError
from isoroc._input.rows import Names, is_number, text_of


class SegmentColumn(NamedTuple):
    """Numbers (NaN if missing), or indices of categories among `levels` (-1 if missing)."""

    values: NDArray[Any]
    levels: Names | None = None

    @property
    def is_numeric(self) -> bool:
        """Whether the column holds numbers."""
        return self.levels is None


@dataclass(frozen=True, eq=False)
class Segments:
    """Columns of equal length by name."""

    columns: dict[str, SegmentColumn]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())).values)

    def __getitem__(self, rows: Any) -> Self:
        return type(self)(
            {name: SegmentColumn(v[rows], at) for name, (v, at) in self.columns.items()}
        )

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)


def join_segments(parts: Sequence[Segments]) -> Segments:
    """Rows of several, one after the other."""
    columns = {}
    for name in parts[0].columns:
        values, known = zip(*(part.columns[name] for part in parts), strict=True)
        if known[0] is None:
            columns[name] = SegmentColumn(np.concatenate(values))
            continue
        levels = np.unique(np.concatenate(known))
        # An index of -1 stays -1, because it points to the last entry.
        moved = [np.append(np.searchsorted(levels, each), -1) for each in known]
        places = [new[old] for new, old in zip(moved, values, strict=True)]
        columns[name] = SegmentColumn(np.concatenate(places).astype(_type_of(len(levels))), levels)
    return Segments(columns)


def check_segments(
    segments: Any,
    n_rows: int,
    *,
    known: Mapping[str, bool] | None = None,
    categorical: Collection[str] = (),
    of: str = "P",
) -> Segments:
    """Segments of any dataframe, mapping of names to columns, or single column.

    `known` holds the columns to take, and whether each is numeric. By default all are taken,
    numbers as numbers unless the column is named in `categorical`.
    """
    given = _columns_of(segments, known)
    wanted: dict[str, bool | None] = dict.fromkeys(given) if known is None else dict(known)
    for name in categorical:
        if name not in given:
            problem = f"names {name!r}, which is not a column of segments"
            raise InputError("categorical", None, problem, f"there are {', '.join(given)}")
        wanted[name] = False
    columns = {}
    for name, numeric in wanted.items():
        if name not in given:
            fix = f"fit had {', '.join(wanted)}; there are {', '.join(given)}"
            raise InputError("segments", None, f"lacks the column {name!r}", fix)
        argument = f"segments[{name!r}]"
        columns[name] = read_column(given[name], argument, numeric=numeric)
        check_length(columns[name].values, n_rows, name=argument, of=of)
    if not columns:
        raise InputError("segments", None, "has no columns", "expected one or more")
    return Segments(columns)


def _columns_of(segments: Any, known: Mapping[str, bool] | None) -> dict[str, Any]:
    """Columns by name."""
    if isinstance(segments, Segments):
        return dict(segments.columns)
    if isinstance(segments, Mapping):
        return {str(name): column for name, column in segments.items()}
    native = to_native(segments, name="segments")
    if is_frame(native):
        return {str(name): native[name] for name in native.columns}
    only = next(iter(known)) if known is not None and len(known) == 1 else "segment"
    if is_series(native):
        name = str(native.name or only)
        return {only if known is not None and name not in known else name: native}
    values = to_array(segments, name="segments")
    if values.ndim == 1:
        return {only: values}
    if values.ndim != 2:
        fix = "expected a dataframe, a mapping of names to columns, or one column"
        raise InputError("segments", None, f"has shape {values.shape}", fix)
    return {str(j): column for j, column in enumerate(values.T)}


def read_column(values: Any, argument: str, *, numeric: bool | None = None) -> SegmentColumn:
    """A column of numbers or categories. By default numbers are not categories."""
    if isinstance(values, SegmentColumn):
        if numeric in (None, values.is_numeric):
            return values
        values, levels = values
        if levels is not None:
            values = np.array([*levels.tolist(), None], dtype=object)[values]
    series = to_native(values, name=argument)
    if is_series(series):
        if series.dtype.is_numeric() and numeric is not False:
            import narwhals.stable.v2 as nw  # noqa: PLC0415

            return SegmentColumn(_numbers(series.cast(nw.Float64()).to_numpy()))
        return _entries(series, argument, numeric=numeric)
    array = to_array(values, name=argument)
    if array.ndim != 1:
        raise InputError(argument, None, f"has shape {array.shape}", "expected one column")
    if array.dtype.kind in "iuf" and numeric is not False:
        return SegmentColumn(_numbers(array))
    return _entries(array, argument, numeric=numeric)


@cache
def _type_of(n_levels: int) -> np.dtype[Any]:
    """The smallest type that holds indices of levels, and -1."""
    return np.min_scalar_type(-n_levels - 1)


def _entries(values: Any, argument: str, *, numeric: bool | None) -> SegmentColumn:
    """A series or array of categories, of numbers of any type, or of their texts, in parts."""
    fix = "segments are numbers, strings or booleans; of dates, pass the month or the age in days"
    number: dict[Any, int] = {}
    codes = np.empty(len(values), np.int32)
    for rows in slices(len(values)):
        part = values[rows]
        entries = part.to_list() if is_series(part) else part.tolist()
        try:
            for value in dict.fromkeys(entries):
                number.setdefault(value, len(number))
        except TypeError as error:  # lists and the like
            raise InputError(argument, None, f"cannot be compared ({error})", fix) from None
        codes[rows] = np.fromiter(map(number.__getitem__, entries), np.int32, len(entries))
    if numeric is None:
        known = [value for value in number if text_of(value) is not None]
        numeric = bool(known) and all(map(is_number, known))
    if numeric:
        return SegmentColumn(_parsed(list(number), codes, argument))
    texts = [text_of(value) for value in number]
    for i, (value, text) in enumerate(zip(number, texts, strict=True)):
        if text == "" != value:
            raise InputError(argument, int(np.argmax(codes == i)), f"is {value!r}", fix)
    names = sorted({text for text in texts if text is not None})
    place = {text: i for i, text in enumerate(names)} | {None: -1}
    places = np.array([place[text] for text in texts], dtype=_type_of(len(names)))
    return SegmentColumn(places[codes], np.array(names, dtype=np.str_))


def _numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Doubles. Infinities count as missing."""
    x = np.asarray(values, dtype=np.float64)
    return x if np.isfinite(x).all() else np.where(np.isfinite(x), x, np.nan)


def _parsed(values: list[Any], codes: NDArray[np.int32], argument: str) -> Any:
    """Numbers, some of them parsed from texts."""
    numbers = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if (text := text_of(value)) is None:
            continue
        try:
            numbers[i] = float(value if is_number(value) else text)
        except ValueError:
            row = int(np.argmax(codes == i))
            fix = "fit had numbers in this column"
            raise InputError(argument, row, f"is {value!r}", fix) from None
    return _numbers(numbers[codes])


def bin_edges(values: Floats, n_bins: int) -> Floats:
    """Ends of bins with about equal numbers of rows. Frequent values have bins of their own.

    The ends lie in the middle between two values, and the last bin has none.
    """
    finite = values[:: max(1, len(values) // 200_000)]  # a sample is enough for many rows
    finite = finite[np.isfinite(finite)]
    distinct, counts = np.unique(finite, return_counts=True)
    middle = distinct[:-1] + np.diff(distinct) / 2
    if len(distinct) <= n_bins:
        return middle
    frequent = counts >= len(finite) / n_bins
    rest = np.where(frequent, 0, counts)
    n_left = max(n_bins - int(frequent.sum()), 1)
    part = np.floor(n_left * (np.cumsum(rest) - rest / 2) / max(rest.sum(), 1))
    label = np.column_stack([2 * np.cumsum(frequent) - frequent, np.where(frequent, -1, part)])
    return np.asarray(middle[(np.diff(label, axis=0) != 0).any(axis=1)], dtype=np.float64)


def segment_names(levels: Names, cuts: Floats) -> list[str]:
    """Names of the segments of a column."""
    if len(levels):
        return [str(level) for level in levels]
    ends = [f"{cut:.4g}" for cut in cuts]
    if not ends:
        return ["any"]
    inner = [f"{a} to {b}" for a, b in pairwise(ends)]
    return [f"up to {ends[0]}", *inner, f"above {ends[-1]}"]
