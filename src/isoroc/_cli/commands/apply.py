"""``isoroc apply``: a file in, the same with calibrated forecasts out, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
from cyclopts import Parameter

from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import SUFFIX, split_words
from isoroc._cli.io.files import (
    ROW,
    Source,
    check_target,
    open_source,
    write_frame,
)
from isoroc._cli.io.formats import target_format
from isoroc._cli.io.reading import arrange_for, check_batch, model_columns
from isoroc._cli.models import Model
from isoroc._cli.terminal import Advance, progress_bar


def apply(
    model: str,
    forecasts: Annotated[list[str], Parameter(negative=())],
    /,
    *,
    output: Annotated[str, Parameter(alias="-o")],
    probs: Annotated[list[str] | None, Parameter(alias="-p", negative=())] = None,
    classes: Annotated[list[str] | None, Parameter(negative=())] = None,
    suffix: str = SUFFIX,
    names: Annotated[list[str] | None, Parameter(negative=())] = None,
    replace: Annotated[bool, Parameter(negative=())] = False,
    format: str | None = None,  # noqa: A002
    output_format: str | None = None,
) -> None:
    """Add calibrated forecasts to a file, row by row and in the same order.

    Parameters
    ----------
    model
        Model file of isoroc fit.
    forecasts
        Files, globs, folders, or - for standard input.
    output
        File to write, or - for standard output.
    probs
        Columns of the forecasts; by default those that the model was fitted on, or by name.
    classes
        Class of each of these columns, where their names do not say it.
    suffix
        What names of calibrated columns end in.
    names
        Names of the calibrated columns in the order of the model's classes, instead of a suffix.
    replace
        Write calibrated forecasts in place of the forecasts.
    format
        Format of the input, if neither name nor content tells.
    output_format
        Format of the output, if its name does not tell; by default that of the input.
    """
    check_target(output)
    if replace and names:
        raise CommandError("--replace keeps the names; leave out --names.")
    loaded = Model.load(model)
    calibrator = loaded.calibrator
    with open_source(forecasts, format) as source:
        form = target_format(output, output_format, source.format)
        given = list(source.schema())
        columns = columns_for(loaded, probs, classes, given)
        added = _added(columns, calibrator, given, suffix, split_words(names), replace=replace)
        with progress_bar("calibrating", source.count()) as advance:
            step = Calibrate(calibrator, source, columns, added, advance)
            write_frame(step.lazily(typed=form.kind not in ("csv", "tsv")), output, form)


def columns_for(
    model: Model, probs: Sequence[str] | None, classes: Sequence[str] | None, given: list[str]
) -> list[str]:
    """Columns that a model is applied to, in the order in which it takes them."""
    found = model_columns(probs, given, model.columns)
    check_number_of(found, model)
    return arrange_for(found, model.calibrator.classes_, model.columns, classes)


def check_number_of(columns: Sequence[str], model: Model) -> None:
    """Refuse more or fewer columns than a model takes."""
    n_columns = model.calibrator.n_features_in_
    if len(columns) != n_columns:
        raise CommandError(
            f"the model takes {n_columns} column(s) of forecasts, found {len(columns)} "
            f"({', '.join(columns)}); name them with --probs."
        )


def _added(
    columns: list[str],
    calibrator: Any,
    given: list[str],
    suffix: str,
    names: list[str] | None,
    *,
    replace: bool,
) -> dict[str, int]:
    """Names of the calibrated columns and which class's probability each holds."""
    K = len(calibrator.classes_)
    last = range(K) if len(columns) > 1 else [K - 1]  # one score in, one probability out
    if replace:
        return dict(zip(columns, last, strict=True))
    if names is None:
        names = [f"{column}{suffix}" for column in columns]
    elif len(names) == K:
        last = range(K)
    elif len(names) != len(columns):
        raise CommandError(f"--names: expected {K} names, one for each class, got {len(names)}.")
    taken = [name for name in names if name in given]
    if taken:
        raise CommandError(
            f"column {taken[0]!r} is in the file already; choose another --suffix, --names, or "
            "--replace."
        )
    if len(set(names)) < len(names):
        raise CommandError(f"--names: {', '.join(names)} are not all different.")
    return dict(zip(names, last, strict=True))


class Calibrate:
    """One batch in, the same with calibrated columns out."""

    def __init__(
        self,
        calibrator: Any,
        source: Source,
        columns: list[str],
        added: dict[str, int],
        advance: Advance,
    ) -> None:
        self._calibrator, self._source, self._columns = calibrator, source, columns
        self._added, self._advance = added, advance

    def lazily(self, *, typed: bool) -> pl.LazyFrame:
        """All rows with the columns added, to be written as they come.

        Text without types is passed on as it is, unless the output has types.
        """
        types = None if typed else ()
        rows = self._source.scan(types, self._columns).with_row_index(ROW)
        schema = dict(rows.collect_schema()) | dict.fromkeys(self._added, pl.Float64())
        del schema[ROW]
        return rows.map_batches(self, schema=schema, streamable=True)

    def __call__(self, batch: pl.DataFrame) -> pl.DataFrame:
        """The batch without its row numbers, with the calibrated columns."""
        if not len(batch):
            empty = [pl.lit(None, pl.Float64).alias(name) for name in self._added]
            return batch.drop(ROW).with_columns(empty)
        Q = check_batch(batch, self._columns, self._source, self._calibrator.predict_proba)
        self._advance(len(batch))
        new = [pl.Series(name, Q[:, k]) for name, k in self._added.items()]
        return batch.drop(ROW).with_columns(new)
