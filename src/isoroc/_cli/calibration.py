"""Calibrated forecasts of the rows of a table, batch by batch."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

import isoroc
from isoroc._cli.batches import (
    check_types,
    forecasts_of_batch,
    is_sampled,
    no_rows,
    read_segments,
)
from isoroc._cli.conditions import Condition
from isoroc._cli.errors import CommandError
from isoroc._cli.io import ndjson
from isoroc._cli.io.columns import find_forecasts, split_words
from isoroc._cli.io.formats import Format, file_errors
from isoroc._cli.io.source import ROW, Source
from isoroc._cli.models import ACCEPTED, Model, calibrate
from isoroc._cli.options import InputOptions
from isoroc._cli.reading import check_model_segments, count_unknown
from isoroc._cli.terminal import Advance, print_note, print_warning
from isoroc._core.types import Floats
from isoroc._input import InputError, valid_rows
from isoroc._maps.acceptance import AcceptanceRule

OnBad = Literal["fail", "null", "skip"]


def find_columns(model: Model, selection: InputOptions, source: Source) -> list[str]:
    """Columns of the forecasts in the order that a model expects."""
    columns = find_forecasts(selection.probs, source.schema, of_model=model.columns)
    check_types(source, columns)
    check_model_segments(model, source)
    return model.order_columns(columns, selection)


@dataclass
class Calibration:
    """Adds calibrated columns to batches of rows, possibly in several threads."""

    source: Source
    model: Model
    columns: list[str]  # of the forecasts, in the order that the model expects
    added: dict[str, int]  # calibrated columns, each with its class
    where: str | None = None
    on_bad: OnBad = "fail"
    rule: AcceptanceRule | None = None  # adds the column `ACCEPTED`
    advance: Advance = lambda _: None  # called with the number of rows of each batch
    n_rows: list[int] = field(default_factory=list)  # per batch
    #: For each batch with bad rows: number of the first, how many, what is wrong with the first.
    bad: list[tuple[int, int, str]] = field(default_factory=list)
    #: For each batch, the number of rows whose segment is unknown, by column.
    unknown: list[dict[str, int]] = field(default_factory=list)
    _adjusted: Callable[[Floats], Floats] = lambda Q: Q  # adjusts forecasts to class shares
    _copied: bool = False  # True if the lines of NDJSON files are copied
    _numbers: list[str] = field(default_factory=list)  # columns of text that become numbers

    def run(self, form: Format) -> pl.LazyFrame:
        """All rows with the calibrated columns, lazily.

        Other columns of CSV and TSV files stay text. Their forecasts become numbers if the output
        format stores types. From NDJSON to NDJSON, the text of each row is copied.
        """
        source = self.source
        is_json = source.format.kind == "ndjson"
        in_folders = any(map(source.folders, source.paths))
        self._copied = is_json and form.kind == "ndjson" and not in_folders
        if self._copied:
            rows = source.rows(self.where, copied=self.columns, used=self.model.segments)
            schema: dict[str, pl.DataType] = {ndjson.LINE: pl.String()}
        else:
            if is_json:
                source.check_values(source.schema)
            self._numbers = self.columns if source.untyped and form.separator is None else []
            rows = source.rows(self.where)
            new: dict[str, Any] = dict.fromkeys([*self._numbers, *self.added], pl.Float64())
            if self.rule is not None:
                new[ACCEPTED] = pl.Boolean()
            schema = dict(rows.drop(ROW).collect_schema()) | new
        return rows.map_batches(self, schema=schema, streamable=True)

    def figures(self) -> dict[str, Any]:
        """Figures for conditions: rows, bad rows, and shares of unknown segments by column."""
        n_rows = sum(self.n_rows)
        totals = sum(map(Counter, self.unknown), Counter[str]())
        shares = {name: totals[name] / max(n_rows, 1) for name in self.model.segments}
        unknown = {"value": max(shares.values(), default=0.0)} | shares
        return {"rows": n_rows, "bad": sum(n for _, n, _ in self.bad), "unknown": unknown}

    def failures(self, conditions: Sequence[Condition]) -> list[str]:
        """Conditions that hold, after all rows were read."""
        figures = self.figures()
        return [text for condition in conditions if (text := condition.failure(figures))]

    def describe(self) -> None:
        """Print how many rows have no valid forecast or an unknown segment."""
        figures = self.figures()
        n_rows = figures["rows"]
        if self.bad:
            done = "were left out" if self.on_bad == "skip" else "got null"
            _, _, example = min(self.bad)
            what = f"{figures['bad']:,} of {n_rows:,} rows have no valid forecast and {done}"
            print_warning(f"{what}; {example}")
        for name in self.model.segments:
            if share := figures["unknown"][name]:
                text = f"{name}: {round(share * n_rows):,} of {n_rows:,} rows are missing or "
                (print_warning if share == 1 else print_note)(f"{text}unknown to fit")

    def __call__(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The batch with the calibrated columns, without its row numbers or as the text of rows."""
        Q, valid = self._calibrate(batch)
        self.advance(len(batch))
        self.n_rows.append(len(batch))
        if (segments := read_segments(batch, self.model.segments)) is not None:
            self.unknown.append(count_unknown(self.model, segments))
        if not valid.all():
            first = batch[int(np.argmin(valid))]
            self.bad.append((first[ROW][0], int((~valid).sum()), self._problem(first)))
        new = (pl.Series(name, Q[:, k], nan_to_null=True) for name, k in self.added.items())
        numbers = (pl.col(name).cast(pl.Float64, strict=False) for name in self._numbers)
        done = batch.with_columns(numbers).with_columns(new)
        names = list(self.added)
        if self.rule is not None:
            accepted = np.zeros(len(batch), dtype=np.bool_)
            accepted[valid] = self.rule.accept(Q[valid])
            column = pl.when(pl.Series(valid)).then(pl.Series(accepted))
            done = done.with_columns(column.alias(ACCEPTED))
            names.append(ACCEPTED)
        if self.on_bad == "skip":
            done = done.filter(pl.Series(valid))
        if not self._copied:
            return done.drop(ROW)
        return (ndjson.replace if names[0] in self.columns else ndjson.append)(done, names)

    def _calibrate(self, batch: pl.DataFrame) -> tuple[Floats, NDArray[np.bool_]]:
        """Calibrated forecasts of a batch, NaN in bad rows, and which rows are valid."""
        calibrator = self.model.calibrator
        valid = np.ones(len(batch), dtype=np.bool_)
        if self.on_bad != "fail":
            numbers = pl.col(self.columns).cast(pl.Float64, strict=False).fill_null(np.nan)
            valid = valid_rows(batch.select(numbers).to_numpy(), calibrator.map_.kind)
        if valid.all() and len(batch):
            return self._predict(batch), valid
        Q = np.full((len(batch), len(calibrator.classes_)), np.nan)
        if valid.any():
            Q[valid] = self._predict(batch.filter(pl.Series(valid)))
        return Q, valid

    def _predict(self, batch: pl.DataFrame) -> Floats:
        model = self.model.calibrator
        segments = read_segments(batch, self.model.segments)

        def predict(P: Floats) -> Floats:
            return self._adjusted(calibrate(model, P, segments))

        return forecasts_of_batch(batch, self.columns, self.source, predict)

    def _problem(self, row: pl.DataFrame) -> str:
        """What is wrong with a bad row."""
        try:
            self._predict(row)
        except CommandError as error:
            return str(error).partition(";")[0]
        return f"{self.source.place(row[ROW][0])} is not a forecast"

    def adjust(
        self, prior: Sequence[str] | None, *, adapt: bool, n_estimated: int = 100_000
    ) -> None:
        """Adjust the calibrated forecasts to class shares, given or estimated from these rows."""
        labels = self.model.calibrator.classes_
        old = _old_shares(self.model.calibrator)
        if adapt:  # the rows are read once more
            _, Q = self.draw(n_estimated)
            estimated = isoroc.estimate_prior(Q, old, labels=labels)
            print_note(f"class shares of these rows:\n{estimated!r}")
            new: Any = estimated.prior
        else:
            words = [word.rpartition("=") for word in split_words(prior) or ()]
            try:
                new = {name: float(share) for name, _, share in words}
                isoroc.adjust_prior(old[None, :], old, new, labels=labels)
            except ValueError as error:
                given = f"{','.join(prior or ())} has a share that is not a number"
                problem = error.problem if isinstance(error, InputError) else given
                fix = "give the share of each class, such as cat=0.3,dog=0.7; they sum to one"
                raise CommandError(f"--prior {problem}; {fix}.") from error
        self._adjusted = lambda Q: isoroc.adjust_prior(Q, old, new, labels=labels)

    def draw(self, most: int) -> tuple[int, Floats]:
        """Number of rows, and calibrated forecasts of about `most` of them, drawn at random."""
        name = self.source.name
        used = dict.fromkeys([ROW, *self.columns, *self.model.segments])
        frame = self.source.rows(self.where).select(*used)
        with file_errors(name):
            n = int(frame.select(pl.len()).collect(engine="streaming").item())
            if not n:
                raise no_rows(self.source, self.where)
            parts = [part.filter(is_sampled(part, most / n)) for part in frame.collect_batches()]
        Q, valid = self._calibrate(pl.concat(parts))
        return n, Q[valid]


def _old_shares(calibrator: Any) -> Floats:
    """Class shares of the calibration rows."""
    if not calibrator.map_.kind.exclusive:
        problem = "the labels of the model do not exclude each other"
        raise CommandError(f"--prior, --adapt-prior: {problem}, so their shares do not sum to one.")
    weights = np.asarray(calibrator.summary_.get("class_weights", []), dtype=np.float64)
    if weights.shape != calibrator.classes_.shape:
        problem = "the model file does not contain the class weights of its calibration rows"
        fix = "which --prior and --adapt-prior need; fit the model again with this version"
        raise CommandError(f"{problem}, {fix}.")
    if not weights.all():
        absent = calibrator.classes_[int(np.argmin(weights))]
        problem = f"class {absent!s} did not occur in the calibration rows"
        fix = "fit the model to rows of all classes"
        raise CommandError(f"{problem}, so its share cannot be adjusted; {fix}.")
    return np.asarray(weights / weights.sum())
