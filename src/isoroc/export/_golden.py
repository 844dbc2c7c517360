"""Golden rows: a few rows with their calibrated forecasts, to check an export where it runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isoroc._backends.categories import whole_number
from isoroc._core.types import Floats
from isoroc._input import InputError, Names, check_names, check_number
from isoroc._maps.segments import SegmentMap
from isoroc._support.table import Table
from isoroc.export._exportable import check_exportable

ColumnType = Literal["double", "text", "bigint", "boolean"]


@dataclass(frozen=True, eq=False)
class GoldenRows:
    """Rows with calibrated forecasts, as `golden_rows` makes them.

    Attributes
    ----------
    calibrator : calibrator or map
        What calibrated the rows.
    types : dict of str to str
        Declared type of each column, forecasts first, then segments: "double", "text", "bigint" or
        "boolean".
    rows : list of list
        Entries in the order of the columns, None where missing.
    expected : ndarray of shape (n, K)
        What `predict_proba` returns, with NaN in rows that it refuses.
    """

    calibrator: Any
    types: dict[str, ColumnType]
    rows: list[list[Any]]
    expected: Floats

    @property
    def forecasts(self) -> Floats:
        """Forecasts, one column per class or one column of scores, with NaN where missing."""
        n_columns = self.calibrator.n_features_in_
        return np.array([row[:n_columns] for row in self.rows], dtype=np.float64)

    @property
    def segments(self) -> dict[str, list[Any]]:
        """Columns of segments, None where missing."""
        entries = zip(self.types, zip(*self.rows, strict=True), strict=True)
        return {name: list(v) for name, v in list(entries)[self.calibrator.n_features_in_ :]}

    def error(self, forecasts: ArrayLike) -> float:
        """Largest difference to the expected forecasts, infinite where only one is missing."""
        Q = np.array(forecasts, dtype=np.float64).reshape(self.expected.shape)
        both = np.isnan(Q) & np.isnan(self.expected)
        difference = np.abs(np.where(both, 0.0, Q - self.expected))
        return float(np.where(np.isnan(difference), np.inf, difference).max())

    def frame(self) -> Table:
        """Rows and expected forecasts in one table."""
        columns = zip(*self.rows, strict=True)
        table = {name: np.array(v, object) for name, v in zip(self.types, columns, strict=True)}
        labels = self.calibrator.classes_
        expected = zip(labels, self.expected.T, strict=True)
        return Table(table | {f"calibrated_{label}": column for label, column in expected})

    def to_json(self) -> str:
        """Types, rows and expected forecasts as JSON, with null where missing."""
        document = {
            "format": "isoroc-golden-rows",
            "version": 1,
            "calibrator": check_exportable(self.calibrator),
            "model": self.calibrator.checksum,
            "columns": [{"name": name, "type": kind} for name, kind in self.types.items()],
            "classes": self.calibrator.classes_.tolist(),
            "rows": self.rows,
            "expected": [[None if q != q else q for q in row] for row in self.expected.tolist()],  # noqa: PLR0124
        }
        return json.dumps(document, default=str, allow_nan=False)

    def to_sql(self, dialect: Any, *, tolerance: float = 1e-9) -> str:
        """SQL query that calibrates the rows, which it contains, and compares the results.

        It returns one row: the number of ``rows``, how many are ``wrong`` by more than the
        tolerance, and the ``largest_error``.

        Parameters
        ----------
        dialect : str
            SQL dialect, as in `to_sql`.
        tolerance : float, default=1e-9
            Largest accepted difference.
        """
        from isoroc.export._sql import golden_query  # noqa: PLC0415  # sqlglot is optional

        check_number("tolerance", tolerance, float, minimum=0.0)
        columns = list(self.types)
        n_columns = self.calibrator.n_features_in_
        return golden_query(
            self.calibrator,
            columns[:n_columns],
            columns[n_columns:],
            self.rows,
            self.expected.tolist(),
            dialect=dialect,
            tolerance=tolerance,
        )


def golden_rows(
    calibrator: Any,
    columns: str | Sequence[str] | None = None,
    *,
    segments: str | Sequence[str] | None = None,
    n_rows: int = 12,
) -> GoldenRows:
    """Rows with calibrated forecasts, to check an exported calibrator where it runs.

    The rows hold ordinary and certain forecasts, known, unknown and missing segments, and a row
    with a missing forecast. They do not depend on the calibration data.

    Parameters
    ----------
    calibrator : calibrator
        Fitted.
    columns : str or sequence of str, default=None
        Names of the columns of forecasts, as in `to_sql`. By default ``p_`` and the class, or
        ``score``.
    segments : str or sequence of str, default=None
        Names of the columns of segments. By default the calibrator knows them.
    n_rows : int, default=12
        Number of rows, at least 3.

    Returns
    -------
    GoldenRows

    Examples
    --------
    >>> import duckdb, isoroc
    >>> p, y = [0.1, 0.3, 0.7, 0.9], ["no", "no", "yes", "yes"]
    >>> golden = golden_rows(isoroc.IsotonicCalibrator().fit(p, y), n_rows=4)
    >>> golden.types
    {'score': 'double'}
    >>> golden.frame()
      score  calibrated_no  calibrated_yes
        0.5        0.83333         0.16667
          1        0.16667         0.83333
       0.04        0.83333         0.16667
       None            nan             nan
    >>> query = golden.to_sql("duckdb")
    >>> duckdb.sql(query).fetchall()
    [(4, 0, 0.0)]
    """
    check_exportable(calibrator)
    check_number("n_rows", n_rows, int, minimum=3)
    fitted = calibrator.map_
    if columns is None:
        single = calibrator.n_features_in_ == 1
        columns = ["score"] if single else [f"p_{label}" for label in calibrator.classes_]
    names = check_names("columns", columns)
    if len(names) != calibrator.n_features_in_:
        fix = f"the calibrator has {calibrator.n_features_in_}"
        raise InputError("columns", None, f"{len(names)} given", fix)
    known = fitted.segments
    others = list(known) if segments is None else check_names("segments", segments)
    if len(others) != len(known):
        fix = f"the calibrator uses {len(known)}"
        raise InputError("segments", None, f"{len(others)} given", fix)
    rng = np.random.default_rng(0)
    P = _forecasts(fitted.kind, len(names), n_rows, rng)
    types: dict[str, ColumnType] = dict.fromkeys(names, "double")
    parts = []
    for j, name in enumerate(others):
        types[name], entries = _entries(fitted, j)
        further = rng.integers(len(entries), size=n_rows - 1).tolist()
        parts.append([entries[i] for i in (0, *further)])  # the first row has no missing entry
    given = dict(zip(known, parts, strict=True))
    expected = calibrator.predict_proba(P[:-1], *([_head(given, n_rows - 1)] if known else []))
    expected = np.vstack([expected, np.full(expected.shape[1], np.nan)])
    numbers: list[list[Any]] = P.reshape(n_rows, -1).tolist()
    numbers[-1][0] = None
    rows = [[*row, *entries] for row, *entries in zip(numbers, *parts, strict=True)]
    return GoldenRows(calibrator, types, rows, expected)


def _head(columns: dict[str, list[Any]], n_rows: int) -> dict[str, list[Any]]:
    return {name: entries[:n_rows] for name, entries in columns.items()}


def _forecasts(kind: Any, n_columns: int, n_rows: int, rng: np.random.Generator) -> Floats:
    """Forecasts as a user passes them: a timid one, a certain one, and others of few digits."""
    if kind.single or not kind.exclusive:
        P = rng.random((n_rows, n_columns)).round(2)
        P[0] = 0.5
        P[1] = 1.0
    else:
        votes = 1 + rng.multinomial(100, rng.dirichlet(np.ones(n_columns)), n_rows)
        P = votes / votes.sum(axis=1, keepdims=True)
        P[0] = 1 / n_columns
        P[1] = np.arange(n_columns) == 0
    X = np.asarray(kind.restore(kind.from_simplex(P[:, 0] if kind.single else P)))
    if not np.isfinite(X[1]).all():  # JSON and some databases have no infinite logarithms
        X[1] = X[2]
    return X


def _entries(fitted: SegmentMap, j: int) -> tuple[ColumnType, list[Any]]:
    """Type of a column of segments, and some entries: known ones, an unknown one, a missing one."""
    levels: Names = fitted.levels[j]
    cuts = fitted.cuts[j]
    if not len(levels):
        ends = [cuts[0] - 1, *(cuts[1:] + cuts[:-1]) / 2, cuts[-1] + 1] if len(cuts) else [0.0]
        return "double", [*(float(f"{end:.6g}") for end in ends), None]
    texts = levels.tolist()
    numbers = [whole_number(text) for text in texts]
    if set(texts) <= {"true", "false"}:
        return "boolean", [*(text == "true" for text in texts), None]
    whole = [number for number in numbers if number is not None]
    if [str(number) for number in numbers] == texts:
        return "bigint", [*whole, max(whole) + 1, None]
    return "text", [*texts, "never seen", None]
