"""Forecasts and outcomes of files: all of them in a `Sample`, batch by batch, or counted."""

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
from isoroc._cli.io.batches import LabelEncoder, groups_of, read_forecasts, read_weights
from isoroc._cli.io.columns import (
    arrange,
    arrange_for_model,
    check_column,
    find_forecasts,
    find_label,
    split_words,
)
from isoroc._cli.io.source import BATCH, ROW, Source, file_errors
from isoroc._cli.options import Selection
from isoroc._cli.terminal import print_warning, progress_bar
from isoroc._counts import Builder, Counts, Resolution
from isoroc._input import (
    Names,
    Sample,
    check_forecasts,
    check_units,
    find_reversal,
    resolve_scores,
)
from isoroc._simplex import Floats

#: Factor by which a full array grows; it can be small, because growing rarely copies.
_GROWTH = 1.25
#: Rows above which ``fit`` and ``evaluate`` do not keep them all.
MANY = 2_000_000
#: No row of a text file is shorter, so smaller files need not be counted.
_LEAST_BYTES = 4


class Columns(NamedTuple):
    """Names of the columns that a sample was read from."""

    forecasts: list[str]
    """In the order of the classes."""
    label: str
    weight: str | None

    def all(self) -> list[str]:
        """All of them."""
        return [*self.forecasts, self.label, *([self.weight] if self.weight else [])]


class Stream(NamedTuple):
    """Forecasts and outcomes of a table, batch by batch."""

    columns: Columns
    classes: NDArray[Any]
    scores: Any
    """What the forecasts are, "probability" or "logit"."""
    batches: Iterator[tuple[Sample, pl.DataFrame]]
    """Samples, each with the rows that it was made of."""


def read_sample(
    source: Source,
    selection: Selection,
    *,
    columns: Sequence[str] | None = None,
    classes: NDArray[Any] | None = None,
) -> tuple[Sample, Columns]:
    """Sample in a table, and its columns; `columns` and `classes` are those of a model."""
    found = find_columns(source, selection, columns)
    encoder = LabelEncoder(source, found.label, max_classes=max(len(found.forecasts), 2))
    P, codes, weights = _read_arrays(source, selection, found, encoder)
    ordered, known, place = _match_classes(encoder, selection, found.forecasts, columns, classes)
    _reorder_columns(P, [found.forecasts.index(name) for name in ordered])
    unit = resolve_scores(P, selection.scores)
    sample = Sample(P, place[codes], weights if found.weight else None, known, unit)
    check_units(sample, selection.scores, name=", ".join(ordered))
    warn_of_reversal(sample)
    return sample, found._replace(forecasts=ordered)


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
    ordered, known, place = _match_classes(encoder, selection, found.forecasts, columns, classes)
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
    """Counts of a table, and the columns that they are made of; otherwise as `read_sample`."""
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


def load_counts(files: list[str]) -> Counts:
    """Counts of files and globs, merged."""
    paths = [path for item in files for path in (sorted(glob(item)) or [item])]  # noqa: PTH207
    return Counts.from_parquet(*paths)


def read_groups(source: Source, selection: Selection, column: str, option: str) -> Names:
    """Group of each row of `read_sample`; `option` is what named the column."""
    check_column(option, column, list(source.schema()))
    batches = read_batches(source, selection, Columns([], column, None))
    return np.concatenate([groups_of(batch, column, source) for batch in batches])


def are_many(source: Source, selection: Selection) -> bool:
    """Whether more than `MANY` rows of a table are selected, which are not kept."""
    share = 1.0 if selection.sample is None else selection.sample
    if source.untyped or source.format.kind == "ndjson":
        if sum(path.stat().st_size for path in source.paths) < _LEAST_BYTES * MANY:
            return False
    elif selection.where is None and (total := source.count()) is not None:
        return total * share > MANY
    rows = source.rows(selection.where).select(pl.len())
    return bool(rows.collect(engine="streaming").item() * share > MANY)


def are_countable(
    source: Source, selection: Selection, columns: Sequence[str] | None = None
) -> bool:
    """Whether a table has many rows and holds probabilities, so that it is counted."""
    if not are_many(source, selection):
        return False
    found = find_columns(source, selection, columns)
    return bool(find_scores(source, selection, found.forecasts) == "probability")


def find_scores(source: Source, selection: Selection, columns: Sequence[str]) -> Any:
    """What the forecasts in some columns are, "probability" or "logit"."""
    if selection.scores != "auto" or len(columns) > 1:
        return "probability" if selection.scores == "auto" else selection.scores
    column = pl.col(columns[0]).cast(pl.Float64, strict=False)
    rows = source.rows(selection.where).drop(ROW)
    ends = rows.select(low=column.min(), high=column.max()).collect(engine="streaming").row(0)
    known = np.array([end for end in ends if end is not None], dtype=float)
    return resolve_scores(known, "auto") if len(known) else "probability"


def find_columns(source: Source, selection: Selection, of_model: Sequence[str] | None) -> Columns:
    """Columns that the user named, or that have usual names."""
    names = list(source.schema())
    label = find_label(selection.label, names)
    weight = selection.weight
    if weight == "none" and weight not in names:
        weight = None
    elif weight is not None:
        check_column("--weight", weight, names)
    forecasts = find_forecasts(selection.probs, names, [label, weight], of_model=of_model)
    found = Columns(forecasts, label, weight)
    if len(set(found.all())) < len(found.all()):
        used = ", ".join(found.all())
        raise CommandError(f"a column is used twice: {used}; check --label, --probs and --weight.")
    return found


def read_batches(
    source: Source, selection: Selection, columns: Columns, others: Sequence[str] = ()
) -> Iterator[pl.DataFrame]:
    """Selected rows and columns, and other columns of whole numbers, batch by batch."""
    share = selection.sample
    if share is not None and not 0 < share <= 1:
        raise CommandError(f"--sample {share:g}: expected a fraction between 0 and 1.")
    names = columns.all()
    wanted = [*names, *(name for name in others if name not in names)]
    rows = source.rows(selection.where).select(ROW, *wanted)
    total = source.count() if selection.where is None else None
    with file_errors(source.name), progress_bar("reading", total) as advance:
        for whole in rows.collect_batches(chunk_size=BATCH):
            advance(len(whole))
            batch = whole if share is None else whole.filter(is_sampled(whole, share))
            if not batch.is_empty():
                yield batch


def is_sampled(batch: pl.DataFrame, share: float) -> pl.Series:
    """Which rows belong to a random sample: those whose hashed row number (SplitMix64) is small."""
    mixed = batch[ROW].to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return pl.Series((mixed >> np.uint64(11)) * 2.0**-53 < share)


def warn_of_reversal(sample: Sample) -> None:
    """Warn of forecasts that rank a class worse than chance."""
    if (reversal := find_reversal(sample)) is not None:
        option = "--classes" if reversal.other is None else "--positive"
        print_warning(f"{reversal}. {option} settles it.")


def _match_classes(
    encoder: LabelEncoder,
    selection: Selection,
    forecasts: Sequence[str],
    of_model: Sequence[str] | None,
    classes: NDArray[Any] | None,
) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
    """Columns in the order of the classes, these classes, and the class of each label's number."""
    given = _given_classes(selection, forecasts)
    if classes is None:
        labels = encoder.labels()
        ordered, known = arrange(
            forecasts, set(labels), classes=given, by_position=selection.by_position
        )
    else:
        known = classes.tolist()
        labels = encoder.labels_among(known)
        ordered = arrange_for_model(forecasts, known, of_model, given, selection)
    place = [known.index(label) for label in labels]
    return ordered, np.array(known), np.array(place, np.min_scalar_type(len(known) - 1))


def _given_classes(selection: Selection, columns: Sequence[str]) -> list[str] | None:
    """The class of each column as the user gave it."""
    if selection.positive is None:
        return split_words(selection.classes)
    if len(columns) > 1 or selection.classes is not None:
        raise CommandError(
            f"--positive names the class of a single column of forecasts; for {', '.join(columns)} "
            "name the class of each with --classes."
        )
    return [selection.positive]


def _read_arrays(
    source: Source, selection: Selection, columns: Columns, encoder: LabelEncoder
) -> tuple[Floats, NDArray[np.uint16], Floats]:
    """Forecasts in the order of their columns, codes and weights."""
    K = len(columns.forecasts)
    forecasts = _GrowingArray(*([K] if K > 1 else []), dtype=np.float64)
    codes, weights = _GrowingArray(dtype=np.uint16), _GrowingArray(dtype=np.float64)
    check = partial(check_forecasts, scores=selection.scores, advice="pass")
    for batch in read_batches(source, selection, columns):
        forecasts.extend(read_forecasts(batch, columns.forecasts, source, check))
        codes.extend(encoder.encode(batch))
        if columns.weight:
            weights.extend(read_weights(batch, columns.weight, source))
    P = forecasts.take()
    if not len(P):
        which = "" if selection.where is None else f" with {selection.where}"
        raise CommandError(f"{source.name}: no rows{which}; at least one is needed.")
    return P, codes.take(), weights.take()


class _GrowingArray:
    """An array that grows at its end."""

    def __init__(self, *shape: int, dtype: type[Any]) -> None:
        self._array = np.empty((0, *shape), dtype)
        self._length = 0

    def extend(self, values: NDArray[Any]) -> None:
        end = self._length + len(values)
        if end > len(self._array):
            capacity = max(end, int(_GROWTH * len(self._array)))
            # In place: for large arrays this moves pages and copies nothing.
            self._array.resize((capacity, *self._array.shape[1:]), refcheck=False)
        self._array[self._length : end] = values
        self._length = end

    def take(self) -> NDArray[Any]:
        """The array, cut to its length."""
        self._array.resize((self._length, *self._array.shape[1:]), refcheck=False)
        return self._array


def _reorder_columns(P: Floats, order: Sequence[int]) -> None:
    """Reorder the columns of a matrix in place, some rows at a time to save memory."""
    if list(order) != sorted(order):
        for start in range(0, len(P), BATCH):
            P[start : start + BATCH] = P[start : start + BATCH, order]
