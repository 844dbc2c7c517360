"""Counts of the forecasts and outcomes in files, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from glob import glob
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io.batches import read_forecasts, read_weights
from isoroc._cli.io.classes import arrange, arrange_for_model
from isoroc._cli.io.columns import check_column
from isoroc._cli.io.files import ROW, Source
from isoroc._cli.io.labels import LabelEncoder
from isoroc._cli.io.reading import (
    Columns,
    Selection,
    find_columns,
    given_classes,
    read_batches,
)
from isoroc._counts import Counts
from isoroc._counts.builders import Builder
from isoroc._counts.grid import Resolution
from isoroc._input import check_forecasts, first_improbable

#: Rows above which ``fit`` counts them instead of keeping them.
MANY = 2_000_000


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

    The labels are read first, as the order of the columns depends on them. `columns` and `classes`
    are those of a model, as in `read_sample`.
    """
    found = find_columns(source, selection, columns)
    encoder = LabelEncoder(source, found.label, max_classes=max(len(found.forecasts), 2))
    only_labels = found._replace(forecasts=[], weight=None)
    for batch in read_batches(source, selection, only_labels):
        encoder.encode(batch)
    known = None if classes is None else classes.tolist()
    labels = encoder.labels() if known is None else encoder.labels_among(known)
    if not labels:
        raise CommandError(f"{source.name}: no rows; at least one is needed.")
    given = given_classes(selection, found.forecasts)
    if known is None:
        ordered, known = arrange(found.forecasts, set(labels), classes=given)
    else:
        ordered = arrange_for_model(found.forecasts, np.array(known), columns, given)
    found = found._replace(forecasts=ordered)
    kind: Any = "probability" if selection.scores == "auto" else selection.scores
    builder = Builder(np.array(known), kind, resolution, folds)
    extra = [] if fold_by is None else [check_column("--fold-by", fold_by, list(source.schema()))]
    check = partial(check_forecasts, scores=kind)
    for batch in read_batches(source, selection, found, extra):
        P = read_forecasts(batch, ordered, source, check)
        y = np.array(labels)[encoder.encode(batch)]
        weights = read_weights(batch, found.weight, source) if found.weight else None
        if weights is None or weights.any():
            key = None if fold_by is None else batch[fold_by].cast(pl.Int64).to_numpy()
            builder.add(P, y, weights, fold_by=key)
    return Counts(*builder.result(), tuple(ordered)), found


def are_many(source: Source, selection: Selection, columns: Sequence[str] | None = None) -> bool:
    """Whether a table has so many rows that they are counted, and probabilities to count.

    `columns` are those of a model, as in `read_sample`.
    """
    if selection.sample is not None or selection.scores == "logit":
        return False
    total = source.count()
    if total is None or total <= MANY:
        return False
    found = find_columns(source, selection, columns)
    if len(found.forecasts) > 1 or selection.scores == "probability":
        return True
    column = pl.col(found.forecasts[0])
    rows = source.rows(found.forecasts, selection.where).drop(ROW)
    ends = rows.select(low=column.min(), high=column.max()).collect(engine="streaming")
    low, high = ends.row(0)
    return low is not None and first_improbable(np.array([low, high], dtype=float)) is None


def load_counts(files: list[str]) -> Counts:
    """Counts of files and globs, merged."""
    paths = [path for item in files for path in (sorted(glob(item)) or [item])]  # noqa: PTH207
    return Counts.from_parquet(*paths)
