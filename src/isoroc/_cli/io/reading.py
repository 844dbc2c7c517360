"""Forecasts, outcomes and weights read from files into a `Sample`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from cyclopts import Group, Parameter
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io.batches import LabelEncoder, read_forecasts, read_weights
from isoroc._cli.io.classes import arrange, arrange_for_model
from isoroc._cli.io.columns import check_column, find_label, find_model_forecasts, split_words
from isoroc._cli.io.source import BATCH, ROW, Source, file_errors
from isoroc._cli.terminal import print_warning, progress_bar
from isoroc._input import (
    Sample,
    Scores,
    check_forecasts,
    check_units,
    find_reversal,
    resolve_scores,
)
from isoroc._simplex import Floats

#: Factor by which a full array grows; it can be small, because growing rarely copies.
_GROWTH = 1.25


@Parameter(name="*", group=Group.create_ordered("Rows and columns"))
@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which rows and columns are read."""

    label: Annotated[str | None, Parameter(alias="-l")] = None
    """Column of the outcomes. Default: the column named y, label, target, outcome or y_true."""
    probs: Annotated[list[str] | None, Parameter(alias="-p")] = None
    """Columns of the forecasts, separated by commas: names, globs `p_*`, regular expressions
    between slashes. Default: columns named `p_*`, `proba_*`, `p0`, `p1`, ... or `score`. For two
    classes one column is enough: any score that increases with the probability of the second
    class."""
    classes: list[str] | None = None
    """Class of each column of `--probs`, separated by commas, if it does not follow from the names
    of the columns."""
    positive: str | None = None
    """Class that a single column of `--probs` belongs to: the scores increase with its
    probability."""
    scores: Scores = "auto"
    """What the forecasts are. `auto` takes several columns for probabilities, and a single one for
    log odds if a value lies outside [0, 1]."""
    weight: Annotated[str | None, Parameter(alias="-w")] = None
    """Column of the weights of the rows, or none. Default: that of the model, if there is one."""
    where: str | None = None
    """Use only rows that satisfy this SQL condition: "day >= '2025-01-01' AND y IS NOT NULL"."""
    sample: float | None = None
    """Use only this fraction of the rows, such as 0.1, chosen at random but always the same."""
    format: str | None = None
    """Format of the input, if it follows from neither name nor content: csv, tsv, ndjson, parquet,
    arrow."""
    separator: str | None = None
    """Separator of the fields of CSV files, or tab. Default: the one of comma, semicolon, tab and |
    that splits the header."""


class Columns(NamedTuple):
    """Names of the columns that a sample was read from."""

    forecasts: list[str]
    """In the order of the classes."""
    label: str
    weight: str | None


def read_sample(
    source: Source,
    selection: Selection,
    *,
    columns: Sequence[str] | None = None,
    classes: NDArray[Any] | None = None,
) -> tuple[Sample, Columns]:
    """Sample in a table, and its columns.

    Parameters
    ----------
    source : Source
        The table.
    selection : Selection
        What the user wants to be read.
    columns : sequence of str, default=None
        Columns that a model was fitted on; used if the user names none.
    classes : ndarray of shape (K,), default=None
        The model's classes; by default the classes are the labels that occur.
    """
    found = find_columns(source, selection, columns)
    encoder = LabelEncoder(source, found.label, max_classes=max(len(found.forecasts), 2))
    P, codes, weights = _read_arrays(source, selection, found, encoder)
    ordered, known, place = match_classes(encoder, selection, found.forecasts, columns, classes)
    _reorder_columns(P, [found.forecasts.index(name) for name in ordered])
    unit = resolve_scores(P, selection.scores)
    sample = Sample(P, place[codes], weights if found.weight else None, known, unit)
    check_units(sample, selection.scores, name=", ".join(ordered))
    warn_of_reversal(sample)
    return sample, found._replace(forecasts=ordered)


def match_classes(
    encoder: LabelEncoder,
    selection: Selection,
    forecasts: Sequence[str],
    columns: Sequence[str] | None = None,
    classes: NDArray[Any] | None = None,
) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
    """Columns in the order of the classes, these classes, and the class of each label's number.

    Parameters
    ----------
    encoder : LabelEncoder
        Has seen all labels.
    selection : Selection
        What the user wants to be read.
    forecasts : sequence of str
        Columns of the forecasts.
    columns, classes
        As in `read_sample`.
    """
    given = given_classes(selection, forecasts)
    if classes is None:
        labels = encoder.labels()
        ordered, known = arrange(forecasts, set(labels), classes=given)
    else:
        known = classes.tolist()
        labels = encoder.labels_among(known)
        ordered = arrange_for_model(forecasts, classes, columns, given)
    place = [known.index(label) for label in labels]
    return ordered, np.array(known), np.array(place, np.min_scalar_type(len(known) - 1))


def warn_of_reversal(sample: Sample) -> None:
    """Warn of forecasts that rank a class worse than chance."""
    if (reversal := find_reversal(sample)) is not None:
        option = "--classes" if reversal.other is None else "--positive"
        print_warning(f"{reversal}. {option} settles it.")


def given_classes(selection: Selection, columns: Sequence[str]) -> list[str] | None:
    """The class of each column as the user gave it."""
    if selection.positive is None:
        return split_words(selection.classes)
    if len(columns) > 1 or selection.classes is not None:
        raise CommandError(
            f"--positive names the class of a single column of forecasts; for {', '.join(columns)} "
            "name the class of each with --classes."
        )
    return [selection.positive]


def find_columns(source: Source, selection: Selection, of_model: Sequence[str] | None) -> Columns:
    """Columns that the user named, or that have usual names."""
    names = list(source.schema())
    label = find_label(selection.label, names)
    weight = selection.weight
    if weight == "none" and weight not in names:
        weight = None
    elif weight is not None:
        check_column("--weight", weight, names)
    forecasts = find_model_forecasts(selection.probs, names, of_model, [label, weight])
    found = Columns(forecasts, label, weight)
    if len(set(_all(found))) < len(_all(found)):
        raise CommandError(
            f"a column is used twice: {', '.join(_all(found))}; check --label, --probs and "
            "--weight."
        )
    return found


def _all(columns: Columns) -> list[str]:
    return [*columns.forecasts, columns.label, *([columns.weight] if columns.weight else [])]


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


def read_batches(
    source: Source, selection: Selection, columns: Columns, others: Sequence[str] = ()
) -> Iterator[pl.DataFrame]:
    """Selected rows and columns, and other columns of whole numbers, batch by batch."""
    share = selection.sample
    if share is not None and not 0 < share <= 1:
        raise CommandError(f"--sample {share:g}: expected a fraction between 0 and 1.")
    numbers = [name for name in _all(columns) if name != columns.label]
    wanted = [*_all(columns), *(name for name in others if name not in _all(columns))]
    rows = source.rows([*numbers, *others], selection.where).select(ROW, *wanted)
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
