"""Calibrated forecasts of the rows of a table, batch by batch, and what happens to bad rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io import ndjson
from isoroc._cli.io.batches import groups_of, read_forecasts, read_leniently
from isoroc._cli.io.columns import split_words
from isoroc._cli.io.formats import Format
from isoroc._cli.io.source import ROW, Source, file_errors
from isoroc._cli.io.types import ColumnType, read_typed
from isoroc._cli.models import calibrate
from isoroc._cli.terminal import Advance, print_note
from isoroc._input import InputError, Names, valid_rows
from isoroc._simplex import Floats

#: What happens to rows without a valid forecast.
OnBad = Literal["fail", "null", "skip"]
#: Calibrated forecasts of an array of forecasts, and of groups or None.
Predict = Callable[[Floats, Names | None], Floats]
#: Class shares are estimated from about this many rows, drawn at random.
ESTIMATED_ROWS = 100_000


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
        return self.source.rows(self.where)

    def can_copy_to(self, form: Format) -> bool:
        """Whether lines can be copied from NDJSON to NDJSON."""
        is_json = self.source.format.kind == form.kind == "ndjson"
        return is_json and not self.types and not self.source.folders

    def calibrate(self, batch: pl.DataFrame, predict: Predict) -> tuple[Floats, NDArray[np.bool_]]:
        """Calibrated forecasts of a batch, NaN in bad rows, and which rows are valid."""
        if self.on_bad == "fail":
            return self._predict(batch, predict), np.ones(len(batch), dtype=np.bool_)
        values = read_leniently(batch, self.columns, self.source)
        valid = valid_rows(values, self.calibrator.map_.kind)
        if self.group is not None:
            valid &= batch[self.group].is_not_null().to_numpy()
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


@dataclass
class BadRows:
    """Rows without a valid forecast, and one of them."""

    found: list[tuple[int, int, str]] = field(default_factory=list)
    """For each batch: number of its first bad row, how many it has, what is wrong with the first.

    Batches may be processed by several threads, and appending to a list is atomic.
    """
    n_all: list[int] = field(default_factory=list)

    def describe(self, on_bad: OnBad) -> str:
        """One line about them."""
        done = "were left out" if on_bad == "skip" else "got null"
        n_bad = sum(count for _, count, _ in self.found)
        _, _, example = min(self.found)
        return f"{n_bad:,} of {sum(self.n_all):,} rows have no valid forecast and {done}; {example}"


class CalibrationStep:
    """Adds columns of calibrated forecasts to batches of rows.

    `added` has the names of these columns and the class whose probability each of them holds;
    `advance` is called with the number of rows of each batch.
    """

    def __init__(
        self, rows: ModelRows, predict: Predict, added: dict[str, int], advance: Advance
    ) -> None:
        self._rows, self._predict, self._added, self._advance = rows, predict, added, advance
        self._typed = False  # whether the output stores types
        self._copied = False  # whether the lines of NDJSON files are copied
        self._numbers: list[str] = []  # columns of text that become numbers
        self.bad = BadRows()

    def run(self, form: Format) -> pl.LazyFrame:
        """All rows with the calibrated columns, lazily, to be written to a format.

        Other columns of CSV and TSV files stay text. If the output is typed, the forecasts become
        numbers, and columns get the types that the user asks for; otherwise their values are
        checked, and their text stays. From NDJSON to NDJSON, the text of each row is copied.
        """
        source, self._typed = self._rows.source, form.separator is None
        if self._rows.can_copy_to(form):
            self._copied = True
            options = {"copied": self._rows.columns, "group": self._rows.group}
            lines = source.rows(self._rows.where, **options)  # type: ignore[arg-type]
            return lines.map_batches(self, schema={ndjson.LINE: pl.String()}, streamable=True)
        if source.format.kind == "ndjson":
            source.check_values(source.schema())
        if self._typed and source.untyped:
            self._numbers = self._rows.columns
        rows = self._rows.scan()
        new = dict.fromkeys([*self._numbers, *self._added], pl.Float64())
        schema = dict(rows.collect_schema()) | new
        if self._typed:
            schema |= {name: kind.dtype for name, kind in self._rows.types.items()}
        del schema[ROW]
        return rows.map_batches(self, schema=schema, streamable=True)

    def __call__(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The batch with the calibrated columns and without its row numbers."""
        if not len(batch):
            names = [*self._numbers, *self._added]
            empty = [pl.lit(None, pl.Float64).alias(name) for name in names]
            return self._convert(batch.with_columns(empty))
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
        if self._copied:
            names = list(self._added)
            is_new = names[0] not in self._rows.columns
            return (ndjson.append if is_new else ndjson.replace)(batch, names).to_frame()
        types = self._rows.types.items()
        found = [read_typed(batch, name, kind, self._rows.source) for name, kind in types]
        return batch.drop(ROW).with_columns(found if self._typed else [])


def predict_for_shares(rows: ModelRows, prior: Sequence[str] | None, *, adapt: bool) -> Predict:
    """Calibrated forecasts, adjusted to given class shares or to those estimated of the rows."""
    from isoroc.decisions import adjust_prior  # noqa: PLC0415  # slow to import

    if prior is not None and adapt:
        raise CommandError("--prior sets class shares and --adapt-prior estimates them; use one.")
    labels, old = rows.calibrator.classes_, _old_shares(rows.calibrator)
    new: Any = _parse_shares(split_words(prior) or []) if not adapt else _estimate(rows, old)

    def predict(P: Floats, groups: Names | None) -> Floats:
        return adjust_prior(calibrate(rows.calibrator, P, groups), old, new, labels=labels)

    try:
        adjust_prior(old[None, :], old, new, labels=labels)
    except InputError as error:
        fix = "give the share of each class, CLASS=SHARE; they sum to one"
        raise CommandError(f"--prior {error.problem}; {fix}.") from error
    return predict


def _parse_shares(words: Sequence[str]) -> dict[str, float]:
    """Shares by class from words such as ``cat=0.3``."""
    shares = {}
    for word in words:
        name, _, share = word.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            expected = "expected CLASS=SHARE for each class, such as cat=0.3,dog=0.7"
            raise CommandError(f"--prior {word}: {expected}.") from None
    return shares


def _old_shares(calibrator: Any) -> Floats:
    weights = np.asarray(calibrator.summary_.get("class_weights", []), dtype=np.float64)
    if weights.shape != calibrator.classes_.shape:
        raise CommandError(
            "the model file does not contain the class weights of its calibration rows, which "
            "--prior and --adapt-prior need; fit the model again with this version."
        )
    if not weights.all():
        absent = calibrator.classes_[int(np.argmin(weights))]
        raise CommandError(
            f"class {absent!s} did not occur in the calibration rows, so its share cannot be "
            "adjusted; fit the model to rows of all classes."
        )
    return np.asarray(weights / weights.sum())


def _estimate(rows: ModelRows, old: Floats) -> Floats:
    """Class shares of some of the rows, which are read once more."""
    from isoroc._cli.io.reading import is_sampled  # noqa: PLC0415
    from isoroc.decisions import estimate_prior  # noqa: PLC0415

    name = rows.source.name
    frame = rows.scan().select(ROW, *rows.columns, *([rows.group] if rows.group else []))
    with file_errors(name):
        n = int(frame.select(pl.len()).collect(engine="streaming").item())
        share = ESTIMATED_ROWS / max(n, 1)
        parts = [part.filter(is_sampled(part, share)) for part in frame.collect_batches()]
    if not n:
        raise CommandError(f"{name} has no rows, so there are no class shares to estimate.")
    Q, valid = rows.calibrate(pl.concat(parts), partial(calibrate, rows.calibrator))
    found = estimate_prior(Q[valid], old, labels=rows.calibrator.classes_, random_state=0)
    print_note("class shares of these rows:")
    print_note(repr(found))
    return found.prior
