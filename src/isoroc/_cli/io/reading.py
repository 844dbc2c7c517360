"""Forecasts and outcomes out of files, batch by batch, into compact arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from cyclopts import Group, Parameter
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import arrange, check_column, find_forecasts, find_label, split_words
from isoroc._cli.io.files import BATCH, ROW, Source, naming
from isoroc._cli.io.labels import TEXT_TYPES, Labels
from isoroc._cli.terminal import progress_bar
from isoroc._input import check_forecasts, check_weights
from isoroc._simplex import Floats

#: By how much arrays grow when they are full: little, since growing seldom copies.
_GROWTH = 1.25


@Parameter(name="*", group=Group.create_ordered("Rows and columns"))
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Which rows and columns are read."""

    label: Annotated[str | None, Parameter(alias="-l")] = None
    """Column of the outcomes; found by itself if it is called y, label, target or outcome."""
    probs: Annotated[list[str] | None, Parameter(alias="-p", negative=())] = None
    """Columns of the forecasts, joined by commas: names, globs `p_*`, regular expressions between
    slashes. Found by themselves if they are called `p_*`, `proba_*`, `p0`, `p1`, ... or `score`.
    One column is enough for two classes: any score that increases with the second one's chance."""
    classes: Annotated[list[str] | None, Parameter(negative=())] = None
    """Class of each of these columns, joined by commas, where their names do not say it."""
    weight: Annotated[str | None, Parameter(alias="-w")] = None
    """Column of the rows' weights."""
    where: str | None = None
    """Only rows for which this holds, as in SQL: "day >= '2025-01-01' AND y IS NOT NULL"."""
    sample: float | None = None
    """Only this share of the rows, drawn at random, such as 0.1; always the same ones."""
    format: str | None = None
    """Format of the input, if neither name nor content tells: csv, tsv, ndjson, parquet, arrow."""


class Outcomes(NamedTuple):
    """Forecasts and what came true, as the calibrators and metrics take them."""

    forecasts: Floats
    """Shape (n, K) in the order of the classes, or (n,) for one column."""
    codes: NDArray[np.uint16]
    """Which of the classes came true."""
    weights: Floats | None
    classes: NDArray[Any]
    columns: list[str]
    """The column of each class."""
    label: str
    """The column of the outcomes."""


class _Growing:
    """An array that grows at its end."""

    def __init__(self, *shape: int, dtype: type[Any]) -> None:
        self._array = np.empty((0, *shape), dtype)
        self._length = 0

    def extend(self, values: NDArray[Any]) -> None:
        end = self._length + len(values)
        if end > len(self._array):
            capacity = max(end, int(_GROWTH * len(self._array)))
            # in place, which for large arrays only moves pages
            self._array.resize((capacity, *self._array.shape[1:]), refcheck=False)
        self._array[self._length : end] = values
        self._length = end

    def take(self) -> NDArray[Any]:
        """The array, cut to its length."""
        self._array.resize((self._length, *self._array.shape[1:]), refcheck=False)
        return self._array


def read_outcomes(
    source: Source,
    reading: Reading,
    *,
    columns: Sequence[str] | None = None,
    classes: NDArray[Any] | None = None,
) -> Outcomes:
    """Read forecasts, outcomes and weights.

    Parameters
    ----------
    source : Source
    reading : Reading
        What the user said of the columns.
    columns : sequence of str, default=None
        Columns of a model that are taken where the user names none.
    classes : ndarray of shape (K,), default=None
        The model's classes; otherwise they are those of the labels.
    """
    names = list(source.schema())
    label_column = find_label(reading.label, names)
    weight = reading.weight and check_column("--weight", reading.weight, names)
    found = model_columns(reading.probs, names, columns, [label_column, weight])
    wanted = [*found, label_column, *([weight] if weight else [])]
    if len(set(wanted)) < len(wanted):
        raise CommandError(f"a column has two roles: {', '.join(wanted)}; check --label, --probs.")
    labels = Labels(source, label_column, most=max(len(found), 2))
    forecasts = _Growing(*([len(found)] if len(found) > 1 else []), dtype=np.float64)
    codes, weights = _Growing(dtype=np.uint16), _Growing(dtype=np.float64)
    if reading.sample is not None and not 0 < reading.sample <= 1:
        raise CommandError(f"--sample {reading.sample:g}: expected a share between 0 and 1.")
    rows = source.rows([*found, *([weight] if weight else [])], reading.where).select(ROW, *wanted)
    total = source.count() if reading.where is None else None
    with naming(source.name), progress_bar("reading", total) as advance:
        for whole in rows.collect_batches(chunk_size=BATCH):
            advance(len(whole))
            batch = whole if reading.sample is None else whole.filter(_drawn(whole, reading.sample))
            if batch.is_empty():
                continue
            forecasts.extend(check_batch(batch, found, source, check_forecasts))
            codes.extend(labels.encode(batch))
            if weight:
                weights.extend(_weights(batch, weight, source))
    if not labels.found:
        why = "" if reading.where is None else f" for which {reading.where}"
        raise CommandError(f"{source.name}: no rows{why}; at least one is needed.")
    P, met = forecasts.take(), labels.met()
    if classes is None:
        ordered, known = arrange(found, set(met), classes=split_words(reading.classes))
    else:
        ordered, known = arrange_for(found, classes, columns, reading.classes), classes.tolist()
        met = [_known_label(label, known, source, label_column) for label in met]
    _permute(P, [found.index(name) for name in ordered])
    place = np.array([known.index(label) for label in met], np.min_scalar_type(len(known) - 1))
    return Outcomes(
        P,
        place[codes.take()],
        weights.take() if weight else None,
        np.array(known),
        ordered,
        label_column,
    )


def _drawn(batch: pl.DataFrame, share: float) -> pl.Series:
    """Which rows of a batch are in a sample: a matter of their numbers, mixed well (SplitMix64)."""
    mixed = batch[ROW].to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return pl.Series((mixed >> np.uint64(11)) * 2.0**-53 < share)


def model_columns(
    given: Sequence[str] | None,
    names: Sequence[str],
    of_model: Sequence[str] | None,
    others: Sequence[str | None] = (),
) -> list[str]:
    """Columns of the forecasts: those given, those of a model if they are there, or by name."""
    if not given and of_model and set(of_model) <= set(names):
        return list(of_model)
    return find_forecasts(given, names, others)


def arrange_for(
    found: Sequence[str],
    classes: NDArray[Any],
    of_model: Sequence[str] | None,
    given: Sequence[str] | None,
) -> list[str]:
    """Columns in the order of a model's classes."""
    if of_model is not None and list(found) == list(of_model) and not given:
        return list(found)
    ordered, known = arrange(found, classes.tolist(), classes=split_words(given))
    if len(found) == 1:
        if known[1] != classes[1]:
            raise CommandError(
                f"the model takes scores of the class {classes[1]!s}, but {found[0]} is named like "
                f"those of {known[1]!s}; name the column with --probs, or its class with --classes."
            )
        return ordered
    return [ordered[known.index(label)] for label in classes.tolist()]


def _known_label(label: Any, known: Sequence[Any], source: Source, column: str) -> Any:
    """The model's class that a label stands for; 1 and "1" are the same to a file."""
    for same in known:
        if same == label or str(same) == str(label):
            return same
    raise CommandError(
        f"{source.name}: column {column!r} holds {label!r}, which the model does not know; it was "
        f"fitted on {', '.join(map(str, known))}."
    )


def _permute(P: Floats, order: Sequence[int]) -> None:
    """Reorder the columns of a matrix in place, a part at a time."""
    if list(order) != sorted(order):
        for start in range(0, len(P), BATCH):
            P[start : start + BATCH] = P[start : start + BATCH, order]


def check_batch(
    batch: pl.DataFrame,
    columns: Sequence[str],
    source: Source,
    check: Callable[[Floats], Floats],
) -> Floats:
    """What a function that refuses bad forecasts makes of a batch; errors name file and row."""
    values = np.empty((len(batch), len(columns)))
    for k, name in enumerate(columns):
        values[:, k] = _numbers(batch, name, source)
    try:
        return check(values[:, 0] if len(columns) == 1 else values)
    except ValueError as error:
        match = re.match(r"\w+: row (\d+) (.*)", str(error))
        if match is None:
            raise
        what = match[2].replace("pass one 1-D array", "name one column with --probs")
        row = batch[ROW][int(match[1])]
        raise CommandError(f"{source.place(row)} ({', '.join(columns)}) {what}") from error


def _numbers(batch: pl.DataFrame, name: str, source: Source) -> NDArray[np.float64]:
    """A column as real numbers, none missing."""
    raw = batch[name]
    if not (raw.dtype.is_numeric() or raw.dtype in TEXT_TYPES):
        raise CommandError(f"{source.name}: column {name!r} holds {raw.dtype}, not numbers.")
    values = raw.cast(pl.Float64, strict=False)
    if values.null_count():
        at = int(values.is_null().arg_max() or 0)
        what = "is empty" if raw[at] is None else f"is {raw[at]!r}, not a number"
        raise CommandError(
            f"{source.place(batch[ROW][at])}, column {name!r} {what}; mend it or leave such rows "
            "out with --where."
        )
    return values.to_numpy()


def _weights(batch: pl.DataFrame, name: str, source: Source) -> Floats:
    def check(weights: Floats) -> Floats:
        if weights.any():  # a batch may weigh nothing; all of them together may not
            check_weights(weights, len(weights))
        return weights

    return check_batch(batch, [name], source, check)
