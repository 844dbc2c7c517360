"""Counts as a table with one row per fold, cell and label, and as a Parquet file of the table."""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.types import Codes
from isoroc._counts.cells import MOST_ENTRIES, Cells, CellTable
from isoroc._counts.grid import Grid
from isoroc._input import InputError, check_sample, slices
from isoroc._support.files import replacing
from isoroc._support.versions import migrate

#: Classes, grid, number of folds and cells: what counts are made of.
StoredCounts = tuple[NDArray[Any], Grid, int, Cells]
#: Version of the table.
COUNTS_VERSION = 1
#: Larger files are refused before they are read.
MOST_ROWS_OF_COUNTS = 4 * MOST_ENTRIES
_FIX = "expected a file of Counts.to_parquet or of counts_sql"


def describe(grid: Grid, n_folds: int, columns: Any, classes: Any = None, **further: Any) -> str:
    """The constant column ``isoroc``: the meaning of the numbers, as JSON."""
    from importlib.metadata import version  # noqa: PLC0415  # slow to import

    known = None if classes is None else classes.tolist()
    about = {"format": COUNTS_VERSION, "library": version("isoroc"), "folds": n_folds}
    about |= {"columns": columns, "classes": known}
    return json.dumps(about | vars(grid) | further)


def write_counts(
    path: str | os.PathLike[str], parts: StoredCounts, columns: Sequence[str] | None
) -> None:
    """Write counts to a file. Rows and sums of an entry are in the row of its first label."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    classes, grid, n_folds, cells = parts
    entry, code = np.nonzero(cells.class_weights)
    first = np.r_[True, entry[1:] != entry[:-1]]
    rows, *sums = (np.where(first, total[entry], 0) for total in (cells.rows, *cells.sums.T))
    of_class = cells.class_weights[entry, code], cells.squares[entry, code]
    library = _library()
    # One text for each class, not for each row.
    labels = nw.new_series("label", classes.tolist(), backend=library)[code]
    about = nw.lit(describe(grid, n_folds, columns, classes))
    table = [cells.fold[entry], *cells.keys[entry].T, labels, rows, *of_class, *sums]
    names = ["fold", *grid.names, "label", *grid.added]
    frame = nw.from_dict(dict(zip(names, table, strict=True)), backend=library)
    frame = frame.with_columns(isoroc=about)
    # pyarrow removes the file if writing fails, even a device, so it is not given the path.
    data = BytesIO()
    frame.write_parquet(data)
    with replacing(path) as new:
        new.write_bytes(data.getbuffer())


def read_counts(
    paths: Sequence[str | os.PathLike[str]], labels: Any = None
) -> list[tuple[Any, ...]]:
    """Counts of files, each as classes, grid, number of folds, cells and column names.

    Files of a warehouse do not list the classes, and a part of its result may lack some labels, so
    such files are read as one table.
    """
    counts = []
    parts: dict[str, tuple[str, dict[str, Any], list[Any]]] = {}
    for path in paths:
        name = os.fspath(path)
        frame = _read(name)
        about = _about(frame, name)
        frame = frame.drop("isoroc")
        if about["classes"] is None:
            parts.setdefault(str(about), (name, about, []))[2].append(frame)
        else:
            counts.append(_parse(labels, name, about, [frame]))
        del frame  # before the next table needs memory
    return counts + [_parse(labels, *table) for table in parts.values()]


def _read(name: str) -> Any:
    if not os.path.isfile(name):  # noqa: PTH113
        raise FileNotFoundError(f"path: there is no file {name!r}.")
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    library = _library()
    try:
        if library == "polars":
            frame = nw.scan_parquet(name, backend=library, glob=False)
            n_rows = int(frame.select(nw.len()).collect().item())
            if n_rows <= MOST_ROWS_OF_COUNTS:
                return nw.read_parquet(name, backend=library, glob=False)
        else:
            n_rows = import_module("pyarrow.parquet").read_metadata(name).num_rows
            if n_rows <= MOST_ROWS_OF_COUNTS:
                # The text of all rows is the same, so it is kept once.
                return nw.read_parquet(name, backend=library, read_dictionary=["isoroc"])
    except Exception as error:  # the libraries share no error class
        raise InputError("path", None, f"{name} is not a Parquet file ({error})", _FIX) from error
    problem = f"{name} has {n_rows:,} rows, but counts have at most {MOST_ROWS_OF_COUNTS:,}"
    raise InputError("path", None, problem, "count with a lower resolution")


def _parse(labels: Any, name: str, about: dict[str, Any], frames: list[Any]) -> tuple[Any, ...]:
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    frame = nw.concat(frames)
    grid = Grid(about["n_columns"], about["resolution"], about["top"])
    wanted = ["fold", *grid.names, "label", *grid.added]
    if missing := [column for column in wanted if column not in frame.columns]:
        raise InputError("path", None, f"{name} has no column {missing[0]!r}", "count again")
    labels = about["classes"] if labels is None else labels
    columns = None if about["columns"] is None else tuple(about["columns"])
    if about.get("on_bad") == "skip":
        if bad := _bad_rows(frame):
            warnings.warn(f"{name}: {bad} and are left out.", UserWarning, stacklevel=4)
        frame = frame.filter(~frame["label"].is_null())
    return *from_long(frame, grid, about["folds"], labels, columns, name=name), columns


def _bad_rows(frame: Any) -> str:
    """Number of rows without a label, in words, or an empty text if there are none."""
    bad = frame.filter(frame["label"].is_null())
    n_bad, n_rows = (int(part["rows"].sum()) for part in (bad, frame))
    return f"{n_bad} of {n_rows} rows are bad" if n_bad else ""


def _about(frame: Any, name: str) -> dict[str, Any]:
    if "isoroc" not in frame.columns:
        raise InputError("path", None, f"{name} holds no counts", _FIX)
    texts = frame["isoroc"].unique().to_list()
    if len(texts) != 1:
        problem = f"{name} holds {len(texts)} kinds of counts" if texts else f"{name} has no rows"
        raise InputError("path", None, problem, "write each to its own file")
    try:
        about = migrate(json.loads(texts[0]), COUNTS_VERSION, key="format")
    except ValueError as error:
        problem, fix = (*error.args, _FIX)[:2]
        raise InputError("path", None, f"{name}: {problem}", fix) from error
    return {key: value for key, value in about.items() if key != "library"}


def from_long(
    frame: Any, grid: Grid, n_folds: int, labels: Any, columns: Any, *, name: str = "df"
) -> StoredCounts:
    """Counts of a collected table with one row per fold, cell and label."""
    if not len(frame):
        raise InputError(name, None, "no rows", "at least one is needed")
    if bad := _bad_rows(frame):
        fix = "expected probabilities that sum to one, and known labels"
        raise InputError(name, None, bad, fix)
    classes, codes = _classes(frame, grid.n_columns, labels, columns)
    table = CellTable(len(classes), len(grid.added) - 3)
    for some in slices(len(frame)):
        part = frame[some]
        keys = np.column_stack([_numbers(part, column) for column in grid.names])
        rows, weights, squares, fold, *sums = (
            _numbers(part, column) for column in (*grid.added[:3], "fold", *grid.added[3:])
        )
        table.add(
            keys if grid.exact else keys.astype(np.int32),
            fold.astype(np.int64),
            codes[some],
            sums=np.array(sums).T,
            weights=weights,
            squares=squares,
            rows=rows,
        )
    cells = table.cells()
    heavy = np.flatnonzero(cells.class_weights.sum(axis=1))
    return classes, grid, n_folds, cells.take(heavy).in_order()


def _classes(frame: Any, n_columns: int, labels: Any, columns: Any) -> tuple[NDArray[Any], Codes]:
    """Classes in the order of the columns, and the column of each row's label."""
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    distinct = frame["label"].unique(maintain_order=True).to_list()
    y = np.array(distinct)
    # `check_sample` matches labels with names of columns. The forecasts do not matter.
    P: Any = np.full((len(y), n_columns), 1 / max(n_columns, 2))
    if columns is not None and (n_columns > 1 or labels is None):
        P = nw.from_dict(dict(zip(columns, P.T, strict=True)), backend=_library()).to_native()
    given = None if labels is None else np.array(labels)
    sample = check_sample(P, y, labels=given, label_name="label")
    codes = frame["label"].replace_strict(distinct, sample.codes.tolist(), return_dtype=nw.Int64)
    return np.asarray(sample.classes), codes.to_numpy().astype(sample.codes.dtype)


def _numbers(frame: Any, column: str) -> NDArray[np.float64]:
    return np.asarray(frame[column].to_numpy(), dtype=np.float64)


def _library() -> Any:
    """Library for Parquet, preferably one that is imported already. polars needs less memory."""
    for name in sorted(("polars", "pyarrow"), key=lambda name: name not in sys.modules):
        if find_spec(name) is not None:
            return name
    raise ImportError("counts in Parquet files need pyarrow or polars: pip install pyarrow")
