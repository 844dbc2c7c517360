"""Calibrated forecasts of the rows of a table, batch by batch, and what happens to bad rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io.batches import read_forecasts, read_leniently
from isoroc._cli.io.groups import groups_of
from isoroc._cli.io.source import ROW, Source
from isoroc._cli.io.types import ColumnType, read_typed
from isoroc._cli.models import calibrate
from isoroc._cli.terminal import Advance
from isoroc._input import Names, valid_rows
from isoroc._simplex import Floats

#: What happens to rows without a valid forecast.
OnBad = Literal["fail", "null", "skip"]
#: Calibrated forecasts of an array of forecasts, and of groups or None.
Predict = Callable[[Floats, Names | None], Floats]


@dataclass(frozen=True)
class ModelRows:
    """Rows of a table that a model is applied to."""

    source: Source
    calibrator: Any
    columns: list[str]
    """Columns of the forecasts, in the order in which the calibrator takes them."""
    group: str | None = None
    """Column of the groups."""
    where: str | None = None
    on_bad: OnBad = "fail"
    types: dict[str, ColumnType] = field(default_factory=dict)
    """Types that the user asks for, of columns that are only copied."""

    def scan(self) -> pl.LazyFrame:
        """The rows, lazily, with their numbers in the column `ROW`."""
        return self.source.rows(self.columns, self.where)

    def calibrate(self, batch: pl.DataFrame, predict: Predict) -> tuple[Floats, NDArray[np.bool_]]:
        """Calibrated forecasts of a batch, NaN in bad rows, and which rows are valid."""
        if self.on_bad == "fail":
            return self._predict(batch, predict), np.ones(len(batch), dtype=np.bool_)
        valid = self._valid(batch)
        Q = np.full((len(batch), len(self.calibrator.classes_)), np.nan)
        if valid.any():
            Q[valid] = self._predict(batch.filter(pl.Series(valid)), predict)
        return Q, valid

    def problem(self, row: pl.DataFrame) -> str:
        """What is wrong with a bad row."""
        try:
            self._predict(row, partial(calibrate, self.calibrator))
        except CommandError as error:
            return str(error).partition(";")[0]
        return f"{self.source.place(row[ROW][0])} is not a forecast"

    def _predict(self, batch: pl.DataFrame, predict: Predict) -> Floats:
        groups = None if self.group is None else groups_of(batch, self.group, self.source)
        return read_forecasts(batch, self.columns, self.source, lambda P: predict(P, groups))

    def _valid(self, batch: pl.DataFrame) -> NDArray[np.bool_]:
        values = read_leniently(batch, self.columns, self.source)
        valid = valid_rows(values, self.calibrator.map_.kind)
        if self.group is not None:
            valid &= batch[self.group].is_not_null().to_numpy()
        return valid


@dataclass
class BadRows:
    """Rows without a valid forecast, and one of them."""

    found: list[tuple[int, int, str]] = field(default_factory=list)
    """For each batch: number of its first bad row, how many it has, what is wrong with the first.

    Batches may be processed by several threads, and appending to a list is atomic.
    """
    n_all: list[int] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return sum(count for _, count, _ in self.found)

    def describe(self, on_bad: OnBad) -> str:
        """One line about them.

        Examples
        --------
        >>> BadRows([(7, 2, "x.csv: row 7 is empty")], [1000]).describe("skip")
        '2 of 1,000 rows have no valid forecast and were left out; x.csv: row 7 is empty'
        """
        done = "were left out" if on_bad == "skip" else "got null"
        _, _, example = min(self.found)
        counts = f"{self.n_rows:,} of {sum(self.n_all):,} rows"
        return f"{counts} have no valid forecast and {done}; {example}"


class CalibrationStep:
    """Adds calibrated columns to batches of rows.

    Parameters
    ----------
    rows : ModelRows
        The rows.
    predict : callable
        Calibrated forecasts of an array of forecasts.
    added : dict
        Names of the calibrated columns, and the class whose probability each of them holds.
    advance : callable
        Called with the number of rows of each batch.
    """

    def __init__(
        self, rows: ModelRows, predict: Predict, added: dict[str, int], advance: Advance
    ) -> None:
        self._rows, self._predict, self._added, self._advance = rows, predict, added, advance
        self._typed = False  # whether the output stores types
        self._numbers: list[str] = []  # columns of text that become numbers
        self.bad = BadRows()

    def run(self, *, typed: bool) -> pl.LazyFrame:
        """All rows with the calibrated columns, lazily.

        Other columns of CSV and TSV files stay text. If the output is typed, the forecasts become
        numbers, and columns get the types that the user asks for; otherwise their values are
        checked, and their text stays.
        """
        self._typed = typed
        if typed and self._rows.source.untyped:
            self._numbers = self._rows.columns
        rows = self._rows.scan()
        new = dict.fromkeys([*self._numbers, *self._added], pl.Float64())
        schema = dict(rows.collect_schema()) | new
        if typed:
            schema |= {name: kind.dtype for name, kind in self._rows.types.items()}
        del schema[ROW]
        return rows.map_batches(self, schema=schema, streamable=True)

    def __call__(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The batch with the calibrated columns and without its row numbers."""
        if not len(batch):
            names = [*self._numbers, *self._added]
            empty = [pl.lit(None, pl.Float64).alias(name) for name in names]
            return self._convert(batch).with_columns(empty)
        Q, valid = self._rows.calibrate(batch, self._predict)
        self._advance(len(batch))
        self.bad.n_all.append(len(batch))
        if not valid.all():
            first = batch[int(np.argmin(valid))]
            problem = self._rows.problem(first)
            self.bad.found.append((first[ROW][0], int((~valid).sum()), problem))
        new = (pl.Series(name, Q[:, k], nan_to_null=True) for name, k in self._added.items())
        numbers = (pl.col(name).cast(pl.Float64, strict=False) for name in self._numbers)
        done = batch.with_columns(numbers).with_columns(new)
        return self._convert(done.filter(pl.Series(valid)) if self._rows.on_bad == "skip" else done)

    def _convert(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The batch with the types that the user asks for, and without its row numbers."""
        found = [
            read_typed(batch, name, kind, self._rows.source)
            for name, kind in self._rows.types.items()
        ]
        return batch.drop(ROW).with_columns(found if self._typed else [])
