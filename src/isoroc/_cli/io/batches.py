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

#: Types that labels may have besides numbers.
TEXT_TYPES = (pl.Boolean, pl.String, pl.Categorical, pl.Enum)
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
    values = [
        _check_numeric(batch[name], source).cast(pl.Float64, strict=False).fill_null(np.nan)
        for name in columns
    ]
    return np.column_stack([column.to_numpy() for column in values])


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
        row, problem = int(values.is_null().arg_max() or 0), "is empty"
        fix = "name a group for such rows"
    else:
        try:
            return check_groups(values, len(values))
        except InputError as error:
            row, problem, fix = error.row or 0, error.problem, str(error.fix)
    place = source.place(batch[ROW][row])
    fix = f"{fix}, or leave them out with --where"
    raise CommandError(f"{place}, column {column!r} {problem}; {fix}.")


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
    raw = _check_numeric(batch[name], source)
    values = raw.cast(pl.Float64, strict=False)
    finite = values.is_finite().fill_null(value=False)
    if not finite.all():
        at = int(finite.arg_min() or 0)
        if raw[at] is None:
            problem = "is empty"
        elif values[at] is None:
            problem = f"is {raw[at]!r}, not a number"
        else:
            problem = f"is {values[at]}, not a finite number"
        raise CommandError(
            f"{source.place(batch[ROW][at])}, column {name!r} {problem}; correct such rows, or "
            "leave them out with --where."
        )
    return values.to_numpy()


def _check_numeric(column: pl.Series, source: Source) -> pl.Series:
    if not (column.dtype.is_numeric() or column.dtype in TEXT_TYPES):
        problem = f"has the type {column.dtype}, which is not numeric"
        raise CommandError(f"{source.name}: column {column.name!r} {problem}.")
    return column


class LabelEncoder:
    """Numbers at most `max_classes` labels of a column in the order in which they occur."""

    def __init__(self, source: Source, column: str, *, max_classes: int) -> None:
        self._source, self._column, self._max_classes = source, column, max_classes
        self._codes: dict[Any, int] = {}

    def encode(self, batch: pl.DataFrame) -> NDArray[np.uint16]:
        """Number of each row's label."""
        values = batch[self._column]
        if not (values.dtype.is_numeric() or values.dtype in TEXT_TYPES):
            raise CommandError(
                f"{self._source.name}: column {self._column!r} has the type {values.dtype}; labels "
                "must be text, integers or booleans."
            )
        if values.dtype in (pl.Categorical, pl.Enum):
            values = values.cast(pl.String)
        missing = values.is_null()
        if values.dtype.is_float():
            missing = missing | values.is_nan().fill_null(value=True)
        if missing.any():
            row = batch[ROW][int(missing.arg_max() or 0)]
            raise CommandError(
                f"{self._source.place(row)}, column {self._column!r} is empty; leave out rows "
                f'without a label with --where "{self._column} IS NOT NULL".'
            )
        for label in values.unique(maintain_order=True).to_list():
            if label not in self._codes:
                self._add(label, batch, values)
        numbers = values.replace_strict(
            list(self._codes), list(self._codes.values()), return_dtype=pl.UInt16, default=None
        )
        return numbers.to_numpy()

    def _add(self, label: Any, batch: pl.DataFrame, values: pl.Series) -> None:
        if isinstance(label, float) and not label.is_integer():
            problem = f"; {_NOT_CLASSES}"
        elif len(self._codes) >= self._max_classes:
            problem = (
                f", but the forecasts have only {self._max_classes} classes; name one column for "
                "each class with --probs, or another column of labels with --label."
            )
        else:
            self._codes[label] = len(self._codes)
            return
        place = self._source.place(batch[ROW][int((values == label).arg_max() or 0)])
        raise CommandError(f"{place}, column {self._column!r} is {label!r}{problem}")

    def labels(self) -> list[Any]:
        """Labels in the order of their numbers.

        In CSV and TSV files, where every value is text, labels become integers, floats or booleans
        if all of them look like it.
        """
        found = list(self._codes)
        if self._source.untyped and all(isinstance(label, str) for label in found):
            for parse in (_integer, _whole, _boolean):
                with suppress(ValueError):
                    return [parse(label) for label in found]
            if all(re.fullmatch(r"-?\d*\.\d+", label) for label in found):
                what = f"column {self._column!r} holds {found[0]}"
                raise CommandError(f"{self._source.name}: {what}; {_NOT_CLASSES}")
        return found

    def labels_among(self, classes: Sequence[Any]) -> list[Any]:
        """Like `labels`, but the equal elements of `classes`.

        The same label may have another type in another file, so labels are also equal if their
        texts are: 1 is equal to 1.0 and to "1".
        """
        known = {str(label): label for label in classes} | {label: label for label in classes}
        found = []
        for label in self.labels():
            key = label if label in known else str(label)
            if key not in known:
                raise CommandError(
                    f"{self._source.name}: column {self._column!r} holds {label!r}, which is not a "
                    f"class of the model; it was fitted on {', '.join(map(str, classes))}."
                )
            found.append(known[key])
        return found


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
