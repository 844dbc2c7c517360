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
from isoroc._cli.io.columns import arrange, check_column, find_forecasts, find_label, find_shares
from isoroc._cli.io.files import expand
from isoroc._cli.io.source import BATCH, ROW, Source, file_errors
from isoroc._cli.models import Model, calibrate
from isoroc._cli.options import ALL_ROWS, Selection
from isoroc._cli.terminal import print_note, print_warning, progress_bar
from isoroc._core.types import Floats
from isoroc._counts import Builder, Counts, Resolution, hash_keys
from isoroc._input import (
    InputError,
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
_NOT_CLASSES = "labels must be classes, not measurements; check --label"
#: Samples of the same rows: "before", and "after" if there is a model.
Compared = dict[str, Sample]


class Reader:
    """Forecasts and outcomes of selected rows, before and, if there is a model, after calibration.

    A model supplies what the user did not give.
    """

    def __init__(self, source: Source, selection: Selection, model: Model | None = None) -> None:
        schema = source.schema
        selection = selection if model is None else model.complete(selection, schema)
        self.source = source
        self.selection = selection
        self.model = model
        if selection.label_shares and selection.label:
            raise CommandError("--label and --label-shares exclude each other; leave one out.")
        shares = find_shares(selection.label_shares or (), schema)
        self.label = None if selection.label_shares else find_label(selection.label, schema)
        self.weight = selection.weight
        if self.weight == "none" and self.weight not in schema:
            self.weight = None
        elif self.weight is not None:
            check_column("--weight", self.weight, schema)
        others = [name for name in (self.label, self.weight, *shares.values()) if name is not None]
        columns = find_forecasts(selection.probs, schema, others, of_model=model and model.columns)
        self._used = [*columns, *others]
        if len(set(self._used)) < len(self._used):
            fix = "check --label, --probs and --weight"
            raise CommandError(f"a column is used twice: {', '.join(self._used)}; {fix}.")
        check_types(source, self._used)
        self.label_shares = list(shares.values())
        self.n_rows = 0
        self._labels = list[Any](shares)
        self._read_labels(max(len(columns), 2))
        labels = self._parse_labels()
        if model is None:
            self.columns, classes = arrange(columns, set(labels), selection)
        else:
            classes = model.calibrator.classes_.tolist()
            labels = self._match(labels, classes)
            self.columns = model.order_columns(columns, selection)
        self.classes: NDArray[Any] = np.array(classes)
        code_of = {label: k for k, label in enumerate(classes)}
        codes = [code_of[label] for label in labels]
        self._codes = np.array(codes, np.min_scalar_type(len(classes) - 1))

    def _read_labels(self, n_classes: int) -> None:
        """Count the rows and collect their labels, which decide on the order of the columns."""
        for batch in self._batches([] if self.label is None else [self.label]):
            self.n_rows += len(batch)
            if self.label is not None:
                self._add_labels(batch, self.label, n_classes)
        self.are_many = self.n_rows > MANY
        if not self.n_rows:
            which = "" if self.selection.where is None else f" with {self.selection.where}"
            raise CommandError(f"{self.source.name}: no rows{which}; at least one is needed.")
        if self.label is None and len(self.label_shares) != n_classes:
            problem = (
                f"{len(self.label_shares)} columns, but the forecasts have {n_classes} classes"
            )
            raise CommandError(f"--label-shares: {problem}; name one column for each class.")

    def _add_labels(self, batch: pl.DataFrame, column: str, n_classes: int) -> None:
        values = _label_values(batch[column])
        known = set(self._labels)
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
            elif len(self._labels) == n_classes:
                problem = f"is {label!r}, but the forecasts have only {n_classes} classes"
                fix = "name one column for each class with --probs, or other labels with --label"
            else:
                self._labels.append(label)
                continue
            raise self.source.error(batch, at, column, f"{problem}; {fix}.")

    def _parse_labels(self) -> list[Any]:
        """The labels; in text files, integers, floats or booleans if all of them look like it."""
        looks: dict[str, Callable[[str], Any]] = {r"0|-?[1-9]\d*": int}  # 01 is a name
        if self.label is not None:
            looks[r"(?:0|-?[1-9]\d*)(?:\.0*)?"] = float
            looks[r"(?i:true|false)"] = lambda text: text.lower() == "true"
            if not self.source.untyped:
                return self._labels
        for look, parse in looks.items():
            if all(re.fullmatch(look, label) for label in self._labels):
                return [parse(label) for label in self._labels]
        if self.label and all(re.fullmatch(r"-?\d*\.\d+", label) for label in self._labels):
            what = f"column {self.label!r} holds {self._labels[0]}"
            raise CommandError(f"{self.source.name}: {what}; {_NOT_CLASSES}.")
        return self._labels

    def _match(self, labels: list[Any], classes: list[Any]) -> list[Any]:
        """The class that each label stands for, where 1 is equal to 1.0 and to "1"."""
        same = {str(label): label for label in classes} | {label: label for label in classes}
        keys = [label if label in same else str(label) for label in labels]
        if unknown := [key for key in keys if key not in same]:
            where = f"{self.source.name}: column {self.label!r} holds {unknown[0]!r}, which"
            where = where if self.label else f"--label-shares: {unknown[0]}"
            fitted = ", ".join(map(str, classes))
            raise CommandError(f"{where} is not a class of the model: {fitted}.")
        return [same[key] for key in keys]

    @cached_property
    def unit(self) -> Any:
        selection = self.selection
        columns = self.columns
        if selection.unit != "auto":
            return selection.unit
        if len(columns) > 1:
            return "probability"
        column = pl.col(columns[0]).cast(pl.Float64, strict=False)
        rows = self.source.rows(selection.where).drop(ROW)
        ends = rows.select(low=column.min(), high=column.max()).collect(engine="streaming").row(0)
        return resolve_unit(np.array([end for end in ends if end is not None]), "auto")

    def are_countable(self) -> bool:
        """Whether there are many rows of probabilities, which are then counted."""
        return self.are_many and self.unit == "probability"

    def _batches(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        source = self.source
        where = self.selection.where
        rows = source.rows(where).select(ROW, *dict.fromkeys(names))
        total = source.count() if where is None else None
        with file_errors(source.name), progress_bar("reading", total) as advance:
            for batch in rows.collect_batches(chunk_size=BATCH):
                advance(len(batch))
                if not batch.is_empty():
                    yield batch

    def _samples(
        self, others: Sequence[str], share: float = 1.0
    ) -> Iterator[tuple[Sample, pl.DataFrame]]:
        """Samples of a share of the rows, each with its batch, which has the `others` too."""
        check = partial(check_forecasts, unit=self.selection.unit, advice="pass")
        start = 0
        for rows in self._batches([*self._used, *others]):
            batch = rows if share == 1 else rows.filter(is_sampled(rows, share))
            if batch.is_empty():
                continue
            if self.label is None:
                shares = read_forecasts(batch, self.label_shares, self.source, check_label_shares)
                codes = np.zeros(len(batch), self._codes.dtype)
            else:
                labels = _label_values(batch[self.label])
                codes = labels.replace_strict(self._labels, self._codes).to_numpy()
            P = read_forecasts(batch, self.columns, self.source, check)
            weights = read_weights(batch, self.weight, self.source) if self.weight else None
            sample = Sample(P, codes, weights, self.classes, self.unit)
            if self.label is None:
                sample = divide_rows(sample, shares[:, np.argsort(self._codes)], start)
                n_read = len(batch)
                batch = batch[np.asarray(sample.parts_of) - start]
                start += n_read
            yield sample, batch

    def count(
        self, resolution: Resolution = "auto", folds: int = 5, fold_by: str | None = None
    ) -> Counts:
        if fold_by is not None:
            check_column("--fold-by", fold_by, self.source.schema)
        builder = Builder(self.classes, self.unit, resolution, folds)
        for sample, batch in self._samples([] if fold_by is None else [fold_by]):
            if sample.weights is None or sample.weights.any():
                key = None if fold_by is None else batch[fold_by].cast(pl.Int64).to_numpy()
                builder.add_sample(sample, key)
        return Counts(*builder.result(), tuple(self.columns))

    def stream(
        self, segments: Sequence[str] = (), clusters: str | None = None, share: float = 1.0
    ) -> Iterator[Compared]:
        """Batches of rows, or of a share of them, with forecasts, segments and clusters."""
        model = self.model
        source = self.source
        numbers = dict[str, int]()
        types = segment_types(source, segments)
        others = [*types] if model is None else [*types, *check_model_segments(model, source)]
        if clusters is not None:
            others.append(check_column("--clusters", clusters, source.schema))
        for sample, batch in self._samples(others, share):
            if clusters is not None:
                with _located(batch, [clusters], source):
                    names = check_groups(batch[clusters], len(batch), name="clusters")
                codes = [numbers.setdefault(name, len(numbers)) for name in names.tolist()]
                sample = replace(sample, clusters=np.array(codes, dtype=np.intp))  # noqa: PLW2901
            compared = {"before": replace(sample, segments=read_segments(batch, types))}
            if model is not None:
                given = read_segments(batch, model.segments)
                Q = calibrate(model.calibrator, sample.as_given(), given)
                compared["after"] = replace(sample, forecasts=Q, unit="probability")
            yield compared

    def read(self, segments: Sequence[str] = (), clusters: str | None = None) -> Compared:
        """All rows with forecasts, segments and clusters; with segments, `MANY` of them at most."""
        share = min(1.0, MANY / self.n_rows) if segments else 1.0
        batches = list(self.stream(segments, clusters, share))
        compared = {name: join_samples([batch[name] for batch in batches]) for name in batches[0]}
        before = compared["before"]
        if share < 1:
            n_read = sum(len(batch["before"]) for batch in batches)
            print_note(f"segments: {n_read:,} of {self.n_rows:,} rows are used, drawn at random")
        if clusters is not None and before.n_units < 2:
            problem = f"all rows have the same value in column {clusters!r}"
            raise CommandError(f"--clusters: {problem}; at least two clusters are needed.")
        check_units(before, self.selection.unit, name=", ".join(self.columns))
        warn_of_reversal(before)
        return compared


def _label_values(values: pl.Series) -> pl.Series:
    """Labels of a batch, null where they are missing."""
    if values.dtype.is_float():
        return values.fill_nan(None)
    return values.cast(pl.String) if values.dtype in (pl.Categorical, pl.Enum) else values


def load_counts(files: list[str], selection: Selection, others: Sequence[str | None]) -> Counts:
    """Merged counts of files and globs, without the `others`: columns of segments and clusters."""
    if selection != ALL_ROWS:
        raise CommandError("--counts: rows and columns were chosen when they were counted.")
    if any(others):
        raise CommandError("--segments and --clusters need rows: counts hold neither.")
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
    for name in names:
        check_column("--segments", name, source.schema)
    check_types(source, names)
    inferred = source.infer(names) if source.untyped else source.schema
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


def is_sampled(batch: pl.DataFrame, share: float) -> pl.Series:
    """Which rows belong to a random sample: those whose hashed row number is small."""
    hashed = hash_keys(batch[ROW].to_numpy()[:, None], None)
    return pl.Series((hashed >> np.uint64(11)) * 2.0**-53 < share)


def check_types(source: Source, columns: Sequence[str]) -> None:
    """Raise an error if a column holds neither numbers nor text."""
    for name in columns:
        kind = source.schema[name]
        if not kind.is_numeric() and kind not in (pl.Boolean, pl.String, pl.Categorical, pl.Enum):
            what = f"column {name!r} has the type {kind}"
            raise CommandError(f"{source.name}: {what}; expected numbers, text or booleans.")


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
        raw = batch[name][at]
        value = values[at]
        problem = "is empty" if raw is None else f"is {raw!r}, not a number"
        problem = problem if value is None else f"is {value}, not a finite number"
        fix = "correct such rows, or leave them out with --where"
        raise source.error(batch, at, name, f"{problem}; {fix}.")
    return values.to_numpy()
