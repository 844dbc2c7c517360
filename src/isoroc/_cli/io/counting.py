"""Forecasts and outcomes in files of many rows, batch by batch, and counts of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from glob import glob
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io.batches import LabelEncoder, read_forecasts, read_weights
from isoroc._cli.io.columns import check_column
from isoroc._cli.io.reading import (
    Columns,
    Selection,
    find_columns,
    match_classes,
    read_batches,
)
from isoroc._cli.io.source import ROW, Source
from isoroc._counts import Counts
from isoroc._counts.builders import Builder
from isoroc._counts.grid import Resolution
from isoroc._input import Sample, check_forecasts, resolve_scores

#: Rows above which ``fit`` and ``evaluate`` do not keep them all.
MANY = 2_000_000
#: No row of a text file is shorter, so smaller files need not be counted.
_LEAST_BYTES = 4


class Stream(NamedTuple):
    """Forecasts and outcomes of a table, batch by batch."""

    columns: Columns
    classes: NDArray[Any]
    scores: Any
    """What the forecasts are, "probability" or "logit"."""
    batches: Iterator[tuple[Sample, pl.DataFrame]]
    """Samples, each with the rows that it was made of."""


def stream_samples(
    source: Source,
    selection: Selection,
    *,
    columns: Sequence[str] | None = None,
    classes: NDArray[Any] | None = None,
    others: Sequence[str] = (),
) -> Stream:
    """Samples of a table, as of `read_sample`, and other columns of numbers.

    The labels are read first, as the order of the columns depends on them.
    """
    found = find_columns(source, selection, columns)
    encoder = LabelEncoder(source, found.label, max_classes=max(len(found.forecasts), 2))
    for batch in read_batches(source, selection, found._replace(forecasts=[], weight=None)):
        encoder.encode(batch)
    if not encoder.labels():
        raise CommandError(f"{source.name}: no rows; at least one is needed.")
    ordered, known, place = match_classes(encoder, selection, found.forecasts, columns, classes)
    found = found._replace(forecasts=ordered)
    kind = find_scores(source, selection, ordered)

    def samples() -> Iterator[tuple[Sample, pl.DataFrame]]:
        check = partial(check_forecasts, scores=kind, advice="pass")
        for batch in read_batches(source, selection, found, others):
            P = read_forecasts(batch, ordered, source, check)
            weights = read_weights(batch, found.weight, source) if found.weight else None
            yield Sample(P, place[encoder.encode(batch)], weights, known, kind), batch

    return Stream(found, known, kind, samples())


def read_counts(
    source: Source,
    selection: Selection,
    *,
    resolution: Resolution = "auto",
    folds: int = 5,
    fold_by: str | None = None,
    columns: Sequence[str] | None = None,
    classes: NDArray[Any] | None = None,
) -> tuple[Counts, Columns]:
    """Counts of a table, and the columns that they are made of.

    `columns` and `classes` are those of a model, as in `read_sample`.
    """
    if selection.scores == "auto":
        selection = replace(selection, scores="probability")
    extra = [] if fold_by is None else [check_column("--fold-by", fold_by, list(source.schema()))]
    stream = stream_samples(source, selection, columns=columns, classes=classes, others=extra)
    builder = Builder(stream.classes, stream.scores, resolution, folds)
    for sample, batch in stream.batches:
        if sample.weights is None or sample.weights.any():
            key = None if fold_by is None else batch[fold_by].cast(pl.Int64).to_numpy()
            y = sample.classes[sample.codes]
            builder.add(sample.as_given(), y, sample.weights, fold_by=key)
    return Counts(*builder.result(), tuple(stream.columns.forecasts)), stream.columns


def count_rows(source: Source, selection: Selection) -> int:
    """Number of rows that are selected, before ``--sample``; 0 for small files of text."""
    if source.untyped or source.format.kind == "ndjson":
        if sum(path.stat().st_size for path in source.paths) < _LEAST_BYTES * MANY:
            return 0
    elif selection.where is None and (total := source.count()) is not None:
        return total
    rows = source.rows([], selection.where).select(pl.len())
    return int(rows.collect(engine="streaming").item())


def are_many(source: Source, selection: Selection) -> bool:
    """Whether a table has more than `MANY` rows, which are not kept."""
    share = 1.0 if selection.sample is None else selection.sample
    return count_rows(source, selection) * share > MANY


def are_countable(
    source: Source, selection: Selection, columns: Sequence[str] | None = None
) -> bool:
    """Whether a table has more than `MANY` rows and holds probabilities, so that it is counted.

    `columns` are those of a model, as in `read_sample`.
    """
    if not are_many(source, selection):
        return False
    found = find_columns(source, selection, columns)
    return bool(find_scores(source, selection, found.forecasts) == "probability")


def find_scores(source: Source, selection: Selection, columns: Sequence[str]) -> Any:
    """What the forecasts in some columns are, "probability" or "logit"."""
    if selection.scores != "auto" or len(columns) > 1:
        return "probability" if selection.scores == "auto" else selection.scores
    column = pl.col(columns[0]).cast(pl.Float64, strict=False)
    rows = source.rows(columns, selection.where).drop(ROW)
    ends = rows.select(low=column.min(), high=column.max()).collect(engine="streaming").row(0)
    known = np.array([end for end in ends if end is not None], dtype=float)
    return resolve_scores(known, "auto") if len(known) else "probability"


def load_counts(files: list[str]) -> Counts:
    """Counts of files and globs, merged."""
    paths = [path for item in files for path in (sorted(glob(item)) or [item])]  # noqa: PTH207
    return Counts.from_parquet(*paths)
