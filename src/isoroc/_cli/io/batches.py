"""Forecasts, labels, weights and groups of batches of rows; errors name file, row and column."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError, in_options
from isoroc._cli.io.source import ROW, Source
from isoroc._input import InputError, Names, check_forecasts, check_groups, check_weights
from isoroc._simplex import Floats

#: Types that labels and forecasts may have besides numbers.
_TEXT_TYPES = (pl.Boolean, pl.String, pl.Categorical, pl.Enum)
_NOT_CLASSES = "labels must be classes, not measurements; check --label."


def read_forecasts(
    batch: pl.DataFrame,
    columns: Sequence[str],
    source: Source,
    check: Callable[[Floats], Floats] = check_forecasts,
) -> Floats:
    """Validated forecasts of a batch, or what a calibrator makes of them.

    `check` takes an array of shape (n, K), or (n,) for one column, and raises `InputError` if a row
    is invalid: `check_forecasts` or a calibrator's `predict_proba`.
    """
    values = np.column_stack([_numbers(batch, name, source) for name in columns])
    try:
        return check(values[:, 0] if len(columns) == 1 else values)
    except InputError as error:
        fix = in_options(error.fix)
        if len(columns) > 1 and "divide" not in fix:
            fix = (
                "name one column of probabilities for each class with --probs, or one column of "
                "scores for two classes"
            )
        raise _locate(error, fix, batch, columns, source) from error


def read_leniently(batch: pl.DataFrame, columns: Sequence[str], source: Source) -> Floats:
    """Forecasts of a batch as numbers that are not validated; NaN where there is none."""
    check_numeric(batch.schema, columns, source)
    numbers = batch.select(pl.col(columns).cast(pl.Float64, strict=False).fill_null(np.nan))
    return numbers.to_numpy()


def read_weights(batch: pl.DataFrame, column: str, source: Source) -> Floats:
    """Validated weights of a batch."""
    weights = _numbers(batch, column, source)
    if weights.any():  # a batch without weight is valid, a table without weight is not
        try:
            check_weights(weights, len(weights))
        except InputError as error:
            raise _locate(error, error.fix, batch, [column], source) from error
    return weights


def groups_of(batch: pl.DataFrame, column: str, source: Source) -> Names:
    """Group of each row of a batch."""
    values = batch[column]
    if values.null_count():
        row, problem = int(values.is_null().arg_max() or 0), "is empty; name a group for such rows"
    else:
        try:
            return check_groups(values, len(values))
        except InputError as error:
            row, problem = error.row or 0, f"{error.problem}; {error.fix}"
    raise source.error(batch, row, column, f"{problem}, or leave them out with --where.")


def is_sampled(batch: pl.DataFrame, share: float) -> pl.Series:
    """Which rows belong to a random sample: those whose hashed row number (SplitMix64) is small."""
    mixed = batch[ROW].to_numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return pl.Series((mixed >> np.uint64(11)) * 2.0**-53 < share)


def check_numeric(schema: Any, columns: Sequence[str], source: Source) -> None:
    """Raise an error if a column holds neither numbers nor text."""
    for name in columns:
        if not _is_plain(schema[name]):
            problem = f"has the type {schema[name]}, which is not numeric"
            raise CommandError(f"{source.name}: column {name!r} {problem}.")


def _is_plain(kind: pl.DataType) -> bool:
    return kind.is_numeric() or kind in _TEXT_TYPES


def _locate(
    error: InputError, fix: str, batch: pl.DataFrame, columns: Sequence[str], source: Source
) -> Exception:
    """The error with the file and row that it is about; the error itself if it names no row."""
    if error.row is None:
        return error
    place = source.place(batch[ROW][error.row])
    return CommandError(f"{place} ({', '.join(columns)}) {error.problem}; {fix}.")


def _numbers(batch: pl.DataFrame, name: str, source: Source) -> Floats:
    """Column as finite numbers."""
    check_numeric(batch.schema, [name], source)
    values = batch[name].cast(pl.Float64, strict=False)
    finite = values.is_finite().fill_null(value=False)
    if not finite.all():
        at = int(finite.arg_min() or 0)
        raw, value = batch[name][at], values[at]
        shown = f"is {raw!r}, not a number" if value is None else f"is {value}, not a finite number"
        problem = "is empty" if raw is None else shown
        fix = "correct such rows, or leave them out with --where."
        raise source.error(batch, at, name, f"{problem}; {fix}")
    return values.to_numpy()


class Labels:
    """At most `max_classes` labels of a column in the order in which they occur."""

    def __init__(self, source: Source, column: str, *, max_classes: int) -> None:
        self._source, self._column, self._max_classes = source, column, max_classes
        self._found: list[Any] = []

    def add(self, batch: pl.DataFrame) -> None:
        """Add those of a batch."""
        values = self._values(batch)
        missing = values.is_null()
        if values.dtype.is_float():
            missing = missing | values.is_nan().fill_null(value=True)
        if missing.any():
            fix = f'leave out rows without a label with --where "{self._column} IS NOT NULL".'
            raise self._error(batch, missing, f"is empty; {fix}")
        for label in values.unique(maintain_order=True):
            if label in self._found:
                continue
            if isinstance(label, float) and not label.is_integer():
                raise self._error(batch, values == label, f"is {label!r}; {_NOT_CLASSES}")
            if len(self._found) == self._max_classes:
                problem = f"but the forecasts have only {self._max_classes} classes"
                fix = "name one column for each class with --probs, or another column of labels"
                text = f"is {label!r}, {problem}; {fix} with --label."
                raise self._error(batch, values == label, text)
            self._found.append(label)

    def encode(self, batch: pl.DataFrame, codes: NDArray[Any]) -> NDArray[Any]:
        """Code of each row's label, if those of all labels are `codes`."""
        kind: Any = {"return_dtype": pl.UInt16, "default": None}
        numbers = self._values(batch).replace_strict(self._found, range(len(codes)), **kind)
        return np.asarray(codes[numbers.to_numpy()])

    def _values(self, batch: pl.DataFrame) -> pl.Series:
        values = batch[self._column]
        if not _is_plain(values.dtype):
            what = f"column {self._column!r} has the type {values.dtype}"
            fix = "labels must be text, integers or booleans."
            raise CommandError(f"{self._source.name}: {what}; {fix}")
        is_category = values.dtype in (pl.Categorical, pl.Enum)
        return values.cast(pl.String) if is_category else values

    def _error(self, batch: pl.DataFrame, where: pl.Series, problem: str) -> CommandError:
        return self._source.error(batch, int(where.arg_max() or 0), self._column, problem)

    def known(self) -> list[Any]:
        """The labels; those of text files are integers, floats or booleans if all look like it."""
        found = self._found
        if self._source.untyped and all(isinstance(label, str) for label in found):
            for parse in (_integer, _whole, _boolean):
                with suppress(ValueError):
                    return [parse(label) for label in found]
            if all(re.fullmatch(r"-?\d*\.\d+", label) for label in found):
                what = f"column {self._column!r} holds {found[0]}"
                raise CommandError(f"{self._source.name}: {what}; {_NOT_CLASSES}")
        return found

    def among(self, classes: Sequence[Any]) -> list[Any]:
        """Like `known`, but the equal elements of `classes`.

        The same label may have another type in another file, so labels are also equal if their
        texts are: 1 is equal to 1.0 and to "1".
        """
        same = {str(label): label for label in classes} | {label: label for label in classes}
        found = [(label, label if label in same else str(label)) for label in self.known()]
        for label, key in found:
            if key not in same:
                what = f"column {self._column!r} holds {label!r}, which is not a class of the model"
                fitted = ", ".join(map(str, classes))
                raise CommandError(f"{self._source.name}: {what}; it was fitted on {fitted}.")
        return [same[key] for _, key in found]


def _integer(text: str) -> int:
    if not re.fullmatch(r"0|-?[1-9]\d*", text):  # 01 is a name
        raise ValueError(text)
    return int(text)


def _whole(text: str) -> float:
    return float(_integer(text.rstrip("0").removesuffix(".") if "." in text else text))


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"
