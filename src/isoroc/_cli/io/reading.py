"""Forecasts and outcomes of files: in batches, all at once or counted; errors name the row."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError, in_options
from isoroc._cli.io.columns import (
    arrange,
    check_column,
    find_forecasts,
    find_label,
    find_shares,
    listed,
    order_columns,
)
from isoroc._cli.io.files import expand
from isoroc._cli.io.source import BATCH, ROW, Source, file_errors
from isoroc._cli.models import Model, calibrate
from isoroc._cli.options import ALL_ROWS, Selection
from isoroc._cli.terminal import print_note, print_warning, progress_bar
from isoroc._core.types import Floats
from isoroc._counts import Builder, Counts, Resolution, hash_keys
from isoroc._input import (
    InputError,
    Names,
    Sample,
    Segments,
    check_forecasts,
    check_groups,
    check_label_shares,
    check_segments,
    check_units,
    check_weights,
    divide_rows,
    find_reversal,
    join_samples,
    resolve_unit,
)

#: Rows above which ``fit`` and ``evaluate`` do not keep them all.
MANY = 2_000_000
_NOT_CLASSES = "labels must be classes, not measurements; check --label."
#: Samples of the same rows: "before", and "after" if there is a model.
Compared = dict[str, Sample]


class Labels:
    """Distinct labels of a column, at most `max_classes`, in the order of their occurrence."""

    def __init__(self, source: Source, column: str, *, max_classes: int) -> None:
        self._source, self._column, self._max_classes = source, column, max_classes
        self.columns = [column]
        self._found: dict[Any, None] = {}  # a set in order

    def add(self, batch: pl.DataFrame) -> None:
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
                raise self._error(batch, values == label, f"is {label}; {_NOT_CLASSES}")
            if len(self._found) == self._max_classes:
                n = self._max_classes
                problem = f"is {label!r}, but the forecasts have only {n} classes"
                fix = "name one column for each class with --probs, or another column of labels"
                raise self._error(batch, values == label, f"{problem}; {fix} with --label.")
            self._found[label] = None

    def encode(self, batch: pl.DataFrame, codes: NDArray[Any]) -> NDArray[Any]:
        """Code of each row's label, where `codes` are those of the distinct labels."""
        options: Any = {"return_dtype": pl.UInt16, "default": None}
        labels = list(self._found)
        numbers = self._values(batch).replace_strict(labels, range(len(labels)), **options)
        return np.asarray(codes[numbers.to_numpy()])

    def _values(self, batch: pl.DataFrame) -> pl.Series:
        values = batch[self._column]
        return values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values

    def _error(self, batch: pl.DataFrame, where: pl.Series, problem: str) -> CommandError:
        return self._source.error(batch, int(where.arg_max() or 0), self._column, problem)

    def known(self) -> list[Any]:
        """The labels; in text files, integers, floats or booleans if all of them look like it."""
        labels = list(self._found)
        if not self._source.untyped or not all(isinstance(label, str) for label in labels):
            return labels
        looks: dict[str, Callable[[str], Any]] = {
            r"0|-?[1-9]\d*": int,  # 01 is a name
            r"(?:0|-?[1-9]\d*)(?:\.0*)?": float,
            r"(?i:true|false)": lambda text: text.lower() == "true",
        }
        for look, parse in looks.items():
            if all(re.fullmatch(look, label) for label in labels):
                return [parse(label) for label in labels]
        if all(re.fullmatch(r"-?\d*\.\d+", label) for label in labels):
            what = f"column {self._column!r} holds {labels[0]}"
            raise CommandError(f"{self._source.name}: {what}; {_NOT_CLASSES}")
        return labels

    def among(self, classes: Sequence[Any]) -> list[Any]:
        """The class that each known label stands for, where 1 is equal to 1.0 and to "1"."""
        same = {str(label): label for label in classes} | {label: label for label in classes}
        keys = [label if label in same else str(label) for label in self.known()]
        if unknown := [key for key in keys if key not in same]:
            what = f"column {self._column!r} holds {unknown[0]!r}, which is not a class"
            fitted = ", ".join(map(str, classes))
            raise CommandError(f"{self._source.name}: {what} of the model: {fitted}.")
        return [same[key] for key in keys]


class Shares:
    """Columns of soft labels, in place of `Labels`."""

    def __init__(self, source: Source, selection: Selection, *, n_classes: int) -> None:
        found = find_shares(selection.label_shares or (), source.schema)
        self._source, self._labels, self.columns = source, list(found), list(found.values())
        if len(found) != n_classes:
            problem = f"{len(found)} columns, but the forecasts have {n_classes} classes"
            raise CommandError(f"--label-shares: {problem}; name one column for each class.")

    def encode(self, batch: pl.DataFrame, codes: NDArray[Any]) -> Floats:
        """Share of each class, where `codes` are those of the columns."""
        shares = read_forecasts(batch, self.columns, self._source, check_label_shares)
        return np.asarray(shares[:, np.argsort(codes)])

    def known(self) -> list[Any]:
        """The classes that the names end in; integers if all of them look like it."""
        are_integers = all(re.fullmatch(r"0|[1-9]\d*", label) for label in self._labels)
        return [int(label) for label in self._labels] if are_integers else self._labels

    def among(self, classes: Sequence[Any]) -> list[Any]:
        """The class that each column stands for."""
        same = {str(label): label for label in classes}
        if unknown := [label for label in self._labels if label not in same]:
            problem = f"{unknown[0]} is not a class of the model ({listed(classes)})"
            raise CommandError(f"--label-shares: {problem}; rename the columns.")
        return [same[label] for label in self._labels]


class Reader:
    """Forecasts and outcomes of selected rows; a model supplies what the user did not give."""

    def __init__(self, source: Source, selection: Selection, model: Model | None = None) -> None:
        schema = source.schema
        selection = selection if model is None else model.complete(selection, schema)
        self.source, self.selection = source, selection
        if selection.label_shares and selection.label:
            raise CommandError("--label and --label-shares exclude each other; leave one out.")
        self.label = None if selection.label_shares else find_label(selection.label, schema)
        self.weight = selection.weight
        if self.weight == "none" and self.weight not in schema:
            self.weight = None
        elif self.weight is not None:
            check_column("--weight", self.weight, schema)
        shares = find_shares(selection.label_shares or (), schema).values()
        others, of_model = [self.label, self.weight, *shares], model and model.columns
        columns = find_forecasts(selection.probs, schema, others, of_model=of_model)
        used = [*columns, *(name for name in others if name is not None)]
        if len(set(used)) < len(used):
            fix = "check --label, --probs and --weight"
            raise CommandError(f"a column is used twice: {', '.join(used)}; {fix}.")
        check_types(schema, [name for name in used if name != self.label], source)
        if self.label is not None:
            check_types(schema, [self.label], source, "; labels must be text, integers or booleans")
        # The labels are read first, because the order of the columns depends on them.
        self.labels, self.n_rows = self._read_labels(len(columns))
        if model is None:
            labels = self.labels.known()
            self.columns, classes = arrange(columns, set(labels), selection)
        else:
            classes = model.calibrator.classes_.tolist()
            labels = self.labels.among(classes)
            self.columns = order_columns(columns, classes, of_model, selection)
        self.classes: NDArray[Any] = np.array(classes)
        code_of = {label: k for k, label in enumerate(classes)}
        codes = [code_of[label] for label in labels]
        self._codes = np.array(codes, np.min_scalar_type(len(classes) - 1))

    def _read_labels(self, n_columns: int) -> tuple[Labels | Shares, int]:
        n_classes, n_rows = max(n_columns, 2), 0
        if self.label is None:
            labels: Any = Shares(self.source, self.selection, n_classes=n_classes)
        else:
            labels = Labels(self.source, self.label, max_classes=n_classes)
        for batch in self._batches(labels.columns):
            if self.label is not None:
                labels.add(batch)
            n_rows += len(batch)
        if not n_rows:
            which = "" if self.selection.where is None else f" with {self.selection.where}"
            raise CommandError(f"{self.source.name}: no rows{which}; at least one is needed.")
        return labels, n_rows

    @cached_property
    def unit(self) -> Any:
        selection, columns = self.selection, self.columns
        if selection.unit != "auto" or len(columns) > 1:
            return "probability" if selection.unit == "auto" else selection.unit
        column = pl.col(columns[0]).cast(pl.Float64, strict=False)
        rows = self.source.rows(selection.where).drop(ROW)
        ends = rows.select(low=column.min(), high=column.max()).collect(engine="streaming").row(0)
        known = np.array([end for end in ends if end is not None], dtype=float)
        return resolve_unit(known, "auto") if len(known) else "probability"

    def stream(
        self, others: Sequence[str] = (), share: float = 1.0
    ) -> Iterator[tuple[Sample, pl.DataFrame]]:
        """Samples of a share of the rows, each with its batch, which has the `others` too."""
        weighted, start = [] if self.weight is None else [self.weight], 0
        for rows in self._batches([*self.columns, *self.labels.columns, *weighted, *others]):
            batch = rows if share == 1 else rows.filter(is_sampled(rows, share))
            if batch.is_empty():
                continue
            outcomes: Any = self.labels.encode(batch, self._codes)
            codes = outcomes if outcomes.ndim == 1 else np.zeros(len(batch), self._codes.dtype)
            weights = read_weights(batch, self.weight, self.source) if self.weight else None
            sample = Sample(self.forecasts(batch), codes, weights, self.classes, self.unit)
            if outcomes.ndim == 1:
                yield sample, batch
                continue
            parts = divide_rows(sample, outcomes, start)
            yield parts, batch[np.asarray(parts.parts_of) - start]
            start += len(batch)

    def forecasts(self, batch: pl.DataFrame) -> Floats:
        check = partial(check_forecasts, unit=self.selection.unit, advice="pass")
        return read_forecasts(batch, self.columns, self.source, check)

    def count(
        self, resolution: Resolution = "auto", folds: int = 5, fold_by: str | None = None
    ) -> Counts:
        if fold_by is not None:
            check_column("--fold-by", fold_by, self.source.schema)
        builder = Builder(self.classes, self.unit, resolution, folds)
        for sample, batch in self.stream([] if fold_by is None else [fold_by]):
            if sample.weights is None or sample.weights.any():
                key = None if fold_by is None else batch[fold_by].cast(pl.Int64).to_numpy()
                builder.add_sample(sample, key)
        return Counts(*builder.result(), tuple(self.columns))

    @property
    def are_many(self) -> bool:
        return self.n_rows > MANY

    def are_countable(self) -> bool:
        """Whether there are many rows of probabilities, which are then counted."""
        return self.are_many and self.unit == "probability"

    def _batches(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        source, where = self.source, self.selection.where
        rows = source.rows(where).select(ROW, *dict.fromkeys(names))
        total = source.count() if where is None else None
        with file_errors(source.name), progress_bar("reading", total) as advance:
            for batch in rows.collect_batches(chunk_size=BATCH):
                advance(len(batch))
                if not batch.is_empty():
                    yield batch


class Comparison:
    """Forecasts of the same rows before and, if there is a model, after calibration."""

    def __init__(self, source: Source, selection: Selection, model: Model | None) -> None:
        self.reader = Reader(source, selection, model)
        self.model = model

    def stream(
        self, segments: Sequence[str] = (), clusters: str | None = None, share: float = 1.0
    ) -> Iterator[Compared]:
        """Batches of rows, or of a share of them, with forecasts, segments and clusters."""
        reader, model, source = self.reader, self.model, self.reader.source
        known, number = segment_types(source, segments), dict[str, int]()
        extra = [*known]
        if model is not None:
            model.check(reader.columns, reader.classes, reader.selection)
            extra += check_model_segments(model, source)
        if clusters is not None:
            extra.append(check_column("--clusters", clusters, source.schema))
        for sample, batch in reader.stream(extra, share):
            if (of_rows := clusters_of(batch, clusters, source)) is not None:
                found = [number.setdefault(name, len(number)) for name in of_rows.tolist()]
                sample = replace(sample, clusters=np.array(found, dtype=np.intp))  # noqa: PLW2901
            compared = {"before": replace(sample, segments=read_segments(batch, known))}
            if model is not None:
                of_model = read_segments(batch, model.segments)
                Q = calibrate(model.calibrator, sample.as_given(), of_model)
                compared["after"] = replace(sample, forecasts=Q, unit="probability")
            yield compared

    def read(self, segments: Sequence[str] = (), clusters: str | None = None) -> Compared:
        """All rows with forecasts, segments and clusters; with segments, `MANY` of them at most."""
        n_rows = self.reader.n_rows
        share = min(1.0, MANY / n_rows) if segments else 1.0
        batches = list(self.stream(segments, clusters, share))
        if share < 1:
            n_read = sum(len(batch["before"]) for batch in batches)
            print_note(f"segments: {n_read:,} of {n_rows:,} rows are used, drawn at random")
        compared = {name: join_samples([batch[name] for batch in batches]) for name in batches[0]}
        before = compared["before"]
        if clusters is not None and before.n_units < 2:
            problem = f"all rows have the same value in column {clusters!r}"
            raise CommandError(f"--clusters: {problem}; at least two clusters are needed.")
        check_units(before, self.reader.selection.unit, name=", ".join(self.reader.columns))
        warn_of_reversal(before)
        return compared


def load_counts(files: list[str], selection: Selection = ALL_ROWS) -> Counts:
    """Merged counts of files and globs; rows and columns cannot be selected."""
    if selection != ALL_ROWS:
        raise CommandError("--counts: rows and columns were chosen when they were counted.")
    return Counts.from_parquet(*expand(files))


def warn_of_reversal(sample: Sample) -> None:
    """Warn of forecasts that rank a class worse than chance."""
    if (reversal := find_reversal(sample)) is not None:
        print_warning(f"{reversal}. --classes settles it.")


def read_forecasts(
    batch: pl.DataFrame,
    columns: Sequence[str],
    source: Source,
    check: Callable[[Floats], Floats] = check_forecasts,
) -> Floats:
    """Forecasts of a batch, of shape (n, K) or (n,), as `check` or a calibrator returns them."""
    values = np.column_stack([read_numbers(batch, name, source) for name in columns])
    with _located(batch, columns, source):
        return check(values[:, 0] if len(columns) == 1 else values)


def read_weights(batch: pl.DataFrame, column: str, source: Source) -> Floats:
    weights = read_numbers(batch, column, source)
    if weights.any():  # a batch without weight is valid, a table without weight is not
        with _located(batch, [column], source):
            check_weights(weights, len(weights))
    return weights


def segment_types(source: Source, names: Sequence[str]) -> dict[str, bool]:
    """Columns of segments that a user names, and whether each is numeric."""
    schema = source.schema
    for name in names:
        check_column("--segments", name, schema)
    check_types(schema, names, source, "; segments must be numbers, text or booleans")
    inferred = source.infer(names) if source.untyped else schema
    return {name: name in inferred and inferred[name].is_numeric() for name in names}


def check_model_segments(model: Model, source: Source) -> list[str]:
    """Columns of a model's segments, all of which must be there."""
    what = f"{model.path}: its segments"
    return [check_column(what, name, source.schema) for name in model.segments]


def read_segments(batch: pl.DataFrame, known: Mapping[str, bool]) -> Segments | None:
    """Segments of a batch; what is not a number in a numeric column counts as missing."""
    columns = {
        name: batch[name].cast(pl.Float64 if numeric else pl.String, strict=False)
        for name, numeric in known.items()
    }
    return check_segments(columns, len(batch), known=known) if known else None


def clusters_of(batch: pl.DataFrame, column: str | None, source: Source) -> Names | None:
    """Cluster of each row of a batch, if there is a column of clusters."""
    if column is None:
        return None
    try:
        return check_groups(batch[column], len(batch), name="clusters")
    except InputError as error:
        problem = f"{error.problem}; {error.fix} (--where leaves rows out)."
        raise source.error(batch, error.row or 0, column, problem) from error


def is_sampled(batch: pl.DataFrame, share: float) -> pl.Series:
    """Which rows belong to a random sample: those whose hashed row number is small."""
    hashed = hash_keys(batch[ROW].to_numpy()[:, None], None)
    return pl.Series((hashed >> np.uint64(11)) * 2.0**-53 < share)


def check_types(
    schema: Any, columns: Sequence[str], source: Source, problem: str = ", which is not numeric"
) -> None:
    """Raise an error if a column holds neither numbers nor text."""
    for name in columns:
        kind = schema[name]
        if not kind.is_numeric() and kind not in (pl.Boolean, pl.String, pl.Categorical, pl.Enum):
            raise CommandError(f"{source.name}: column {name!r} has the type {kind}{problem}.")


@contextmanager
def _located(batch: pl.DataFrame, columns: Sequence[str], source: Source) -> Iterator[None]:
    """Context that adds file and columns to errors about a row of a batch."""
    try:
        yield
    except InputError as error:
        if error.row is None:
            raise
        fix = in_options(error.fix)
        if len(columns) > 1 and "divide" not in fix:
            fix = "name one column of probabilities for each class with --probs, or one column of "
            fix += "scores for two classes"
        where = f"{source.place(batch[ROW][error.row])} ({', '.join(columns)})"
        raise CommandError(f"{where} {error.problem}; {fix}.") from error


def read_numbers(batch: pl.DataFrame, name: str, source: Source) -> Floats:
    """Numbers of a column; raises an error unless all are finite."""
    values = batch[name].cast(pl.Float64, strict=False)
    finite = values.is_finite().fill_null(value=False)
    if not finite.all():
        at = int(finite.arg_min() or 0)
        raw, value = batch[name][at], values[at]
        shown = repr(raw) if value is None else str(value)
        what = "not a number" if value is None else "not a finite number"
        problem = "is empty" if raw is None else f"is {shown}, {what}"
        fix = "correct such rows, or leave them out with --where."
        raise source.error(batch, at, name, f"{problem}; {fix}")
    return values.to_numpy()
