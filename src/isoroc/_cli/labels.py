"""Several labels that do not exclude each other: columns of forecasts, and of 0 and 1."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.batches import check_types, no_rows, read_numbers, read_weights, stream_rows
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import (
    check_column,
    find_classes,
    find_forecasts,
    find_shares,
    find_weight,
)
from isoroc._cli.io.source import Source
from isoroc._cli.models import Model
from isoroc._cli.options import Description, Selection
from isoroc._core.types import Floats
from isoroc._input import UnitOption, check_groups


@dataclass(frozen=True)
class LabelledTable:
    """Forecasts and outcomes of all rows."""

    names: list[str]  # of the labels
    columns: list[str]  # of the forecasts, in the order of the labels
    outcomes: list[str]  # columns of the outcomes, in the same order
    weight: str | None  # column of the weights
    unit: UnitOption
    P: Floats  # shape (n, L)
    Y: Floats  # 0, 1 or NaN if unknown, shape (n, L)
    weights: Floats | None
    clusters: NDArray[Any] | None

    def options(self) -> dict[str, Any]:
        """Arguments of `evaluate`, of a report and of `check_labels` besides the two arrays."""
        described = {"labels": self.names, "clusters": self.clusters, "unit": self.unit}
        return {"sample_weight": self.weights} | described


def are_several(selection: Selection, model: Model | None) -> bool:
    """Whether rows have several labels: the user names their columns, or the model has them."""
    several = model is not None and not model.calibrator.map_.kind.exclusive
    if selection.labels and (selection.label or selection.label_shares):
        raise CommandError("--labels and --label exclude each other; leave one out.")
    if model is not None and selection.labels and not several:
        problem = "the classes of the model exclude each other"
        raise CommandError(f"--labels: {problem}; name the column of the class with --label.")
    if several and (selection.label or selection.label_shares):
        problem = f"{model.path if model else ''}: its labels do not exclude each other"
        raise CommandError(f"{problem}; name one column of 0 and 1 for each with --labels.")
    return several or bool(selection.labels)


def read_labelled_table(
    source: Source, selection: Selection, model: Model | None, description: Description
) -> LabelledTable:
    """All rows of a table with several labels, in the order of the model if there is one."""
    if description.segments or description.categorical:
        raise CommandError("--segments: with --labels the labels are the segments; leave it out.")
    schema = source.schema
    selection = selection if model is None else model.complete(selection, schema)
    if not selection.labels:
        problem = f"{model.path if model else ''}: its labels do not exclude each other"
        raise CommandError(f"{problem}; name one column of 0 and 1 for each with --labels.")
    outcomes = find_shares(selection.labels, schema, "--labels")
    if len(outcomes) < 2:
        raise CommandError("--labels: one column; for a single outcome use --label.")
    weight = find_weight(selection.weight, schema)
    others = [*outcomes.values(), *([] if weight is None else [weight])]
    columns = find_forecasts(selection.probs, schema, others, of_model=model and model.columns)
    names = list(outcomes) if model is None else [str(c) for c in model.calibrator.classes_]
    if sorted(names) != sorted(outcomes):
        problem = f"the columns have the labels {', '.join(outcomes)}"
        raise CommandError(f"--labels: {problem}, but the model has {', '.join(names)}.")
    if len(columns) != len(names):
        problem = f"{len(columns)} columns of forecasts ({', '.join(columns)})"
        raise CommandError(f"{problem}, but {len(names)} labels; name one for each with --probs.")
    if model is None:
        owners = find_classes(columns, names, selection)
        columns = [columns[owners.index(name)] for name in names]
    else:
        columns = model.order_columns(columns, selection)
    used = [*columns, *others]
    if clusters := description.clusters:
        used.append(check_column("--clusters", clusters, schema))
    if len(set(used)) < len(used):
        fix = "check --labels, --probs, --weight and --clusters"
        raise CommandError(f"a column is used twice: {', '.join(used)}; {fix}.")
    check_types(source, used)
    truth = [outcomes[name] for name in names]
    batches = [
        (
            np.column_stack([read_numbers(batch, name, source) for name in columns]),
            np.column_stack([_read_outcomes(batch, name, source) for name in truth]),
            read_weights(batch, weight, source) if weight else None,
            check_groups(batch[clusters], len(batch), name="clusters") if clusters else None,
        )
        for batch in stream_rows(source, selection.where, used)
    ]
    if not batches:
        raise no_rows(source, selection.where)
    arrays: Any = [
        None if part[0] is None else np.concatenate(part) for part in zip(*batches, strict=True)
    ]
    return LabelledTable(names, columns, truth, weight, selection.unit, *arrays)


def _read_outcomes(batch: pl.DataFrame, name: str, source: Source) -> Floats:
    """0, 1, or NaN where the outcome is not known. Raises an error for other values."""
    texts = batch[name].cast(pl.String).str.strip_chars().str.to_lowercase()
    texts = texts.replace(["", "nan", "null", "na", "n/a"], None)
    known = {"0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "false": 0.0, "true": 1.0}
    values = texts.replace_strict(known, default=None, return_dtype=pl.Float64)
    wrong = texts.is_not_null() & values.is_null()
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        fix = "expected 0, 1, or nothing if it is not known"
        raise source.error(batch, at, name, f"is {batch[name][at]!r}; {fix}.")
    return values.fill_null(np.nan).to_numpy()
