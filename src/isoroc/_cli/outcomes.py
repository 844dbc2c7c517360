"""Outcomes: which columns hold what, and which class each label stands for.

The order of the columns of forecasts depends on the labels that occur: `p_cat` belongs to "cat",
and columns without such names are in the order of the sorted labels. So the column of the labels is
read to its end before any forecast. Only its distinct values are kept. In text files a label is
text, and "0" and "1" become integers only if all labels look like integers.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl

from isoroc._cli.batches import check_types, no_rows, stream_rows
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import find_forecasts, find_label, find_shares, find_weight
from isoroc._cli.io.source import Source
from isoroc._cli.models import Model
from isoroc._cli.options import Selection

_NOT_CLASSES = "labels must be classes, not measurements; check --label"


class Chosen(NamedTuple):
    """Columns of a table, by what they hold."""

    forecasts: list[str]
    label: str | None  # None for soft labels
    shares: dict[str, str]  # columns of soft labels by class, empty for labels
    weight: str | None

    @property
    def outcomes(self) -> list[str]:
        """Columns that say what came true."""
        return [*self.shares.values()] if self.label is None else [self.label]

    @property
    def used(self) -> list[str]:
        """All columns that are used."""
        weights = [] if self.weight is None else [self.weight]
        return [*self.forecasts, *self.outcomes, *weights]


def choose_columns(source: Source, selection: Selection, model: Model | None) -> Chosen:
    """Columns that the user or the model names, or that have usual names. Reads no row."""
    schema = source.schema
    if selection.labels:
        raise CommandError("--labels: this command takes one outcome per row; use --label.")
    if selection.label_shares and selection.label:
        raise CommandError("--label and --label-shares exclude each other; leave one out.")
    shares = find_shares(selection.label_shares or (), schema)
    label = None if selection.label_shares else find_label(selection.label, schema)
    weight = find_weight(selection.weight, schema)
    others = [name for name in (label, weight, *shares.values()) if name is not None]
    forecasts = find_forecasts(selection.probs, schema, others, of_model=model and model.columns)
    used = [*forecasts, *others]
    if len(set(used)) < len(used):
        fix = "check --label, --probs and --weight"
        raise CommandError(f"a column is used twice: {', '.join(used)}; {fix}.")
    check_types(source, used)
    return Chosen(forecasts, label, shares, weight)


def scan_labels(source: Source, where: str | None, chosen: Chosen) -> tuple[int, list[Any]]:
    """Number of rows and their distinct labels, as the file has them, in one pass over the rows."""
    n_classes = max(len(chosen.forecasts), 2)
    n_rows = 0
    labels: list[Any] = [*chosen.shares]
    for batch in stream_rows(source, where, [] if chosen.label is None else [chosen.label]):
        n_rows += len(batch)
        if chosen.label is not None:
            _add_labels(labels, batch, chosen.label, source, n_classes)
    if not n_rows:
        raise no_rows(source, where)
    if chosen.label is None and len(labels) != n_classes:
        problem = f"{len(labels)} columns, but the forecasts have {n_classes} classes"
        raise CommandError(f"--label-shares: {problem}; name one column for each class.")
    return n_rows, labels


def _add_labels(
    labels: list[Any], batch: pl.DataFrame, column: str, source: Source, n_classes: int
) -> None:
    """Add the new labels of a batch. Raises an error if one cannot be a class."""
    values = label_values(batch[column])
    known = set(labels)
    for at in values.arg_unique().sort():
        label = values[at]
        if label in known:
            continue
        if label is None:
            problem = "is empty"
            fix = f'leave out rows without a label with --where "{column} IS NOT NULL"'
        elif isinstance(label, float) and not label.is_integer():
            problem = f"is {label}"
            fix = _NOT_CLASSES
        elif len(labels) == n_classes:
            problem = f"is {label!r}, but the forecasts have only {n_classes} classes"
            fix = "name one column for each class with --probs, or other labels with --label"
        else:
            labels.append(label)
            continue
        raise source.error(batch, at, column, f"{problem}; {fix}.")


def label_values(values: pl.Series) -> pl.Series:
    """Labels of a batch, null where they are missing."""
    if values.dtype.is_float():
        return values.fill_nan(None)
    return values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values


def parse_labels(labels: list[Any], chosen: Chosen, source: Source) -> list[Any]:
    """The labels. In text files, they become integers, floats or booleans if all look like it."""
    looks: dict[str, Callable[[str], Any]] = {r"0|-?[1-9]\d*": int}  # 01 is a name
    if chosen.label is not None:
        looks[r"(?:0|-?[1-9]\d*)(?:\.0*)?"] = float
        looks[r"(?i:true|false)"] = lambda text: text.lower() == "true"
        if not source.untyped:
            return labels
    for look, parse in looks.items():
        if all(re.fullmatch(look, label) for label in labels):
            return [parse(label) for label in labels]
    if chosen.label and all(re.fullmatch(r"-?\d*\.\d+", label) for label in labels):
        what = f"column {chosen.label!r} holds {labels[0]}"
        raise CommandError(f"{source.name}: {what}; {_NOT_CLASSES}.")
    return labels


def match_classes(
    labels: list[Any], classes: list[Any], chosen: Chosen, source: Source
) -> list[Any]:
    """The class of a model that each label stands for, where 1 is equal to 1.0 and to "1"."""
    same = {str(label): label for label in classes} | {label: label for label in classes}
    keys = [label if label in same else str(label) for label in labels]
    if unknown := [key for key in keys if key not in same]:
        where = f"{source.name}: column {chosen.label!r} holds {unknown[0]!r}, which"
        where = where if chosen.label else f"--label-shares: {unknown[0]}"
        fitted = ", ".join(map(str, classes))
        raise CommandError(f"{where} is not a class of the model: {fitted}.")
    return [same[key] for key in keys]
