"""Reading: forecasts and outcomes of the selected rows, all at once, in batches, or counted.

Rows are read in passes over the files, each of them lazy and in batches:

1. The labels (`scan_labels`), of which only the distinct ones are kept. They decide which column
   belongs to which class. The pass also counts the rows.
2. The smallest and largest score (`Reader.unit`), for a single column without ``--unit``: one value
   outside [0, 1] makes all of them log odds, so no batch can decide it alone.
3. The rows themselves, in one of three ways. `Reader.read` keeps them all. `Reader.stream` yields
   batches, for sums that can be merged. `Reader.count` adds them to the cells of `Counts`, which
   works for probabilities only, because cells are cells of the simplex.

Above `MANY` rows the commands stream or count, so that memory does not grow with the files. What
needs single rows, as segments do, then takes a random sample: a row belongs to it if the hash of
its number is small. This needs no state between batches and is the same in every run.

A batch becomes a `Sample`, as arrays do in Python. With a model there are two of the same rows,
before and after calibration.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.batches import (
    ahead,
    check_types,
    forecasts_of_batch,
    is_sampled,
    located,
    read_segments,
    read_weights,
    stream_rows,
)
from isoroc._cli.errors import CommandError
from isoroc._cli.io.columns import arrange, check_column, given_columns
from isoroc._cli.io.opening import expand
from isoroc._cli.io.source import ROW, Source
from isoroc._cli.models import Model, calibrate
from isoroc._cli.options import ALL_ROWS, UNDESCRIBED, Description, Selection
from isoroc._cli.outcomes import (
    Chosen,
    choose_columns,
    label_values,
    match_classes,
    parse_labels,
    scan_labels,
)
from isoroc._cli.terminal import print_note, print_warning
from isoroc._counts import Builder, Counts, Resolution
from isoroc._input import (
    Sample,
    Segments,
    check_forecasts,
    check_groups,
    check_label_shares,
    check_units,
    divide_rows,
    find_reversal,
    join_samples,
    resolve_unit,
)

#: Rows above which ``fit`` and ``evaluate`` do not keep them all.
MANY = 2_000_000
#: Samples of the same rows: "before", and "after" if there is a model.
Compared = dict[str, Sample]


@dataclass
class Reader:
    """Forecasts and outcomes of selected rows, before and, if there is a model, after calibration.

    `open_rows` makes one.
    """

    source: Source
    selection: Selection
    model: Model | None
    chosen: Chosen
    n_rows: int
    columns: list[str]  # of the forecasts, in the order of the classes
    classes: NDArray[Any]
    labels: list[Any]  # as the files have them
    codes: NDArray[Any]  # class of each label

    def __post_init__(self) -> None:
        self.are_many = self.n_rows > MANY
        #: Number of rows read so far whose segment the model does not know, by column.
        self.unknown = Counter(dict.fromkeys(self.model.segments if self.model else (), 0))

    @cached_property
    def unit(self) -> Any:
        """Unit of the forecasts. With a single column it may depend on all values."""
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

    def _samples(
        self, others: Sequence[str], share: float = 1.0
    ) -> Iterator[tuple[Sample, pl.DataFrame]]:
        """Samples of a share of the rows, each with its batch, which has the `others` too."""
        check = partial(check_forecasts, unit=self.selection.unit, advice="pass")
        start = 0
        for rows in stream_rows(self.source, self.selection.where, [*self.chosen.used, *others]):
            batch = rows if share == 1 else rows.filter(is_sampled(rows, share))
            if batch.is_empty():
                continue
            if self.chosen.label is None:
                outcomes = self.chosen.outcomes
                shares = forecasts_of_batch(batch, outcomes, self.source, check_label_shares)
                codes = np.zeros(len(batch), self.codes.dtype)
            else:
                labels = label_values(batch[self.chosen.label])
                codes = labels.replace_strict(self.labels, self.codes).to_numpy()
            P = forecasts_of_batch(batch, self.columns, self.source, check)
            weight = self.chosen.weight
            weights = None if weight is None else read_weights(batch, weight, self.source)
            sample = Sample(P, codes, weights, self.classes, self.unit)
            if self.chosen.label is None:
                # A row of soft labels becomes one weighted row for each class with a share.
                sample = divide_rows(sample, shares[:, np.argsort(self.codes)], start)
                n_read = len(batch)
                batch = batch[np.asarray(sample.parts_of) - start]
                start += n_read
            yield sample, batch

    def segment_types(self, description: Description) -> dict[str, bool]:
        """Columns of segments that a user names, and whether each is numeric."""
        source = self.source
        names = given_columns(description.segments or (), source.schema, "--segments")
        categories = given_columns(description.categorical or (), names, "--categorical")
        self._refuse_outcomes("--segments", names)
        check_types(source, names)
        inferred = source.infer(names) if source.untyped else source.schema
        numeric = [name for name in names if name in inferred and inferred[name].is_numeric()]
        return {name: name in numeric and name not in categories for name in names}

    def _refuse_outcomes(self, option: str, names: Sequence[str]) -> None:
        """Raise an error if a column that describes rows says what came true."""
        for name in names:
            if name in self.chosen.outcomes:
                problem = f"{name!r} holds the outcomes, which new rows do not have yet"
                raise CommandError(f"{option}: {problem}; name other columns.")

    def count(
        self, resolution: Resolution = "auto", folds: int = 5, fold_by: str | None = None
    ) -> Counts:
        if fold_by is not None:
            check_column("--fold-by", fold_by, self.source.schema)
        builder = Builder(self.classes, self.unit, resolution, folds)
        for sample, batch in ahead(self._samples([] if fold_by is None else [fold_by])):
            if sample.weights is None or sample.weights.any():
                key = None if fold_by is None else batch[fold_by].cast(pl.Int64).to_numpy()
                builder.add_sample(sample, key)
        return Counts(*builder.result(), tuple(self.columns))

    def stream(
        self,
        segments: Mapping[str, bool] = MappingProxyType({}),
        clusters: str | None = None,
        share: float = 1.0,
    ) -> Iterator[Compared]:
        """Batches of rows, or of a share of them, with forecasts, segments and clusters.

        `segments` holds columns, and whether each is numeric.
        """
        model = self.model
        source = self.source
        numbers = dict[str, int]()  # of the clusters, in the order in which they appear
        others = [*segments] if model is None else [*segments, *check_model_segments(model, source)]
        if clusters is not None:
            others.append(check_column("--clusters", clusters, source.schema))
            self._refuse_outcomes("--clusters", [clusters])
        for sample, batch in self._samples(others, share):
            if clusters is not None:
                with located(batch, [clusters], source):
                    names = check_groups(batch[clusters], len(batch), name="clusters")
                codes = [numbers.setdefault(name, len(numbers)) for name in names.tolist()]
                sample = replace(sample, clusters=np.array(codes, dtype=np.intp))  # noqa: PLW2901
            compared = {"before": replace(sample, segments=read_segments(batch, segments))}
            if model is not None:
                given = read_segments(batch, model.segments)
                if given is not None:
                    self.unknown.update(count_unknown(model, given))
                Q = calibrate(model.calibrator, sample.as_given(), given)
                compared["after"] = replace(sample, forecasts=Q, unit="probability")
            yield compared

    def read_with(self, column: str | None = None) -> tuple[Sample, pl.Series | None]:
        """All rows before calibration, and the values of another column."""
        parts = list(self._samples([] if column is None else [column]))
        sample = join_samples([part for part, _ in parts])
        check_units(sample, self.selection.unit, name=", ".join(self.columns))
        warn_of_reversal(sample)
        if column is None:
            return sample, None
        rows = pl.concat([batch for _, batch in parts]).unique(ROW, maintain_order=True)
        return sample, rows[column]

    def read(
        self, segments: Mapping[str, bool] = MappingProxyType({}), clusters: str | None = None
    ) -> Compared:
        """All rows with forecasts, segments and clusters. With segments, at most `MANY` rows."""
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


def open_rows(source: Source, selection: Selection, model: Model | None = None) -> Reader:
    """Reader of the selected rows. The labels of all rows are read here, once.

    A model supplies what the user did not give.
    """
    selection = selection if model is None else model.complete(selection, source.schema)
    chosen = choose_columns(source, selection, model)
    n_rows, found = scan_labels(source, selection.where, chosen)
    labels = parse_labels(found, chosen, source)
    if model is None:
        columns, classes = arrange(chosen.forecasts, set(labels), selection)
    else:
        classes = model.calibrator.classes_.tolist()
        labels = match_classes(labels, classes, chosen, source)
        columns = model.order_columns(chosen.forecasts, selection)
    code_of = {label: k for k, label in enumerate(classes)}
    codes = np.array([code_of[label] for label in labels], np.min_scalar_type(len(classes) - 1))
    return Reader(
        source=source,
        selection=selection,
        model=model,
        chosen=chosen,
        n_rows=n_rows,
        columns=columns,
        classes=np.array(classes),
        labels=found,
        codes=codes,
    )


def load_counts(files: list[str], selection: Selection, description: Description) -> Counts:
    """Merged counts of files and globs. Options that select or describe rows raise an error."""
    if selection != ALL_ROWS:
        raise CommandError("--counts: rows and columns were chosen when they were counted.")
    if description != UNDESCRIBED:
        raise CommandError("--segments and --clusters need rows: counts hold neither.")
    return Counts.from_parquet(*expand(files))


def warn_of_reversal(sample: Sample) -> None:
    """Warn of forecasts that rank a class worse than chance."""
    if (reversal := find_reversal(sample)) is not None:
        print_warning(f"{reversal}. --classes settles it.")


def check_model_segments(model: Model, source: Source) -> list[str]:
    """Columns of a model's segments, all of which must be there."""
    what = f"{model.path}: its segments"
    return [check_column(what, name, source.schema) for name in model.segments]


def count_unknown(model: Model, segments: Segments) -> dict[str, int]:
    """Number of rows whose segment is missing or unknown to the model, by column."""
    counts = np.isnan(model.calibrator.map_.codes(segments)).sum(axis=0)
    return dict(zip(model.segments, counts.tolist(), strict=True))
