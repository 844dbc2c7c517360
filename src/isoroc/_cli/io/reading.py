"""Forecasts and outcomes of files: batch by batch, all of them in a `Sample`, or counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isoroc._cli.errors import CommandError
from isoroc._cli.io.batches import (
    Labels,
    check_numeric,
    groups_of,
    is_sampled,
    read_forecasts,
    read_weights,
)
from isoroc._cli.io.columns import (
    arrange,
    arrange_for_model,
    check_column,
    find_forecasts,
    find_label,
    split_words,
)
from isoroc._cli.io.source import BATCH, ROW, Source, file_errors
from isoroc._cli.models import Model, calibrate
from isoroc._cli.options import Selection
from isoroc._cli.terminal import print_warning, progress_bar
from isoroc._counts import Counts
from isoroc._counts.builders import Builder
from isoroc._counts.grid import Resolution
from isoroc._input import Sample, check_forecasts, check_units, find_reversal, resolve_scores
from isoroc._simplex import Floats

#: Rows above which ``fit`` and ``evaluate`` do not keep them all.
MANY = 2_000_000
#: No row of a text file is shorter, so smaller files need not be counted.
_LEAST_BYTES = 4
#: Samples of the same rows by the name of their forecasts: "before", "after" if there is a model,
#: and "other" for what they are compared with.
Compared = dict[str, Sample]


class Reader:
    """Forecasts and outcomes of the selected rows of a table.

    A model settles what the user left open. The labels are read first, as the order of the columns
    depends on them.
    """

    def __init__(self, source: Source, selection: Selection, model: Model | None = None) -> None:
        schema = source.schema()
        selection = selection if model is None else model.complete(selection, schema)
        self.source, self.selection, self._model = source, selection, model
        names, self.weight = list(schema), selection.weight
        self.label = find_label(selection.label, names)
        if self.weight == "none" and self.weight not in names:
            self.weight = None
        elif self.weight is not None:
            check_column("--weight", self.weight, names)
        of_model = None if model is None else model.columns
        others = [self.label, self.weight]
        self.found = find_forecasts(selection.probs, names, others, of_model=of_model)
        used = [*self.found, self.label, *([self.weight] if self.weight else [])]
        if len(set(used)) < len(used):
            fix = "check --label, --probs and --weight"
            raise CommandError(f"a column is used twice: {', '.join(used)}; {fix}.")
        check_numeric(schema, self.found, source)

    @cached_property
    def scores(self) -> Any:
        """What the forecasts are, "probability", "logit" or another unit."""
        selection, columns = self.selection, self.found
        if selection.scores != "auto" or len(columns) > 1:
            return "probability" if selection.scores == "auto" else selection.scores
        column = pl.col(columns[0]).cast(pl.Float64, strict=False)
        rows = self.source.rows(selection.where).drop(ROW)
        ends = rows.select(low=column.min(), high=column.max()).collect(engine="streaming").row(0)
        known = np.array([end for end in ends if end is not None], dtype=float)
        return resolve_scores(known, "auto") if len(known) else "probability"

    @cached_property
    def _labels(self) -> Labels:
        labels = Labels(self.source, self.label, max_classes=max(len(self.found), 2))
        for batch in self._batches([self.label]):
            labels.add(batch)
        if not labels.known():
            which = "" if self.selection.where is None else f" with {self.selection.where}"
            raise CommandError(f"{self.source.name}: no rows{which}; at least one is needed.")
        return labels

    @cached_property
    def _matched(self) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
        """Columns in the order of the classes, these classes, and the class of each label."""
        selection, given = self.selection, split_words(self.selection.classes)
        if selection.positive is not None:
            if len(self.found) > 1 or given is not None:
                names = ", ".join(self.found)
                raise CommandError(
                    f"--positive names the class of a single column of forecasts; for {names} name "
                    "the class of each with --classes."
                )
            given = [selection.positive]
        if self._model is None:
            labels, by_position = self._labels.known(), selection.by_position
            columns, known = arrange(self.found, set(labels), given, by_position=by_position)
        else:
            known = self._model.calibrator.classes_.tolist()
            labels, of_model = self._labels.among(known), self._model.columns
            columns = arrange_for_model(self.found, known, of_model, given, selection)
        codes = [known.index(label) for label in labels]
        return columns, np.array(known), np.array(codes, np.min_scalar_type(len(known) - 1))

    @property
    def columns(self) -> list[str]:
        """Columns of the forecasts, in the order of the classes."""
        return self._matched[0]

    @property
    def classes(self) -> NDArray[Any]:
        """The classes."""
        return self._matched[1]

    def stream(self, others: Sequence[str] = ()) -> Iterator[tuple[Sample, pl.DataFrame]]:
        """Samples, each with the rows that it was made of, which have other columns too."""
        columns, classes, codes = self._matched
        weighted = [] if self.weight is None else [self.weight]
        for batch in self._batches([*columns, self.label, *weighted, *others]):
            P = self.forecasts(batch, columns)
            weights = read_weights(batch, self.weight, self.source) if self.weight else None
            yield Sample(P, self._labels.encode(batch, codes), weights, classes, self.scores), batch

    def forecasts(self, batch: pl.DataFrame, columns: Sequence[str]) -> Floats:
        """Validated forecasts of a batch."""
        check = partial(check_forecasts, scores=self.selection.scores, advice="pass")
        return read_forecasts(batch, columns, self.source, check)

    def read(self, group: str | None = None) -> Sample:
        """Sample of all rows, with the groups in a column."""
        stream = self.stream([] if group is None else [group])
        if group is None:
            return self.check(_join([sample for sample, _ in stream]))
        parts = (replace(part, groups=groups_of(rows, group, self.source)) for part, rows in stream)
        return self.check(_join(list(parts)))

    def check(self, sample: Sample) -> Sample:
        """The sample of all rows, unless it is in another unit; warns of reversed forecasts."""
        check_units(sample, self.selection.scores, name=", ".join(self.found))
        warn_of_reversal(sample)
        return sample

    def count(
        self, resolution: Resolution = "auto", folds: int = 5, fold_by: str | None = None
    ) -> Counts:
        """Counts of the rows."""
        if fold_by is not None:
            check_column("--fold-by", fold_by, list(self.source.schema()))
        builder = Builder(self.classes, self.scores, resolution, folds)
        for sample, batch in self.stream([] if fold_by is None else [fold_by]):
            if sample.weights is None or sample.weights.any():
                key = None if fold_by is None else batch[fold_by].cast(pl.Int64).to_numpy()
                y = sample.classes[sample.codes]
                builder.add(sample.as_given(), y, sample.weights, fold_by=key)
        return Counts(*builder.result(), tuple(self.columns))

    def are_many(self) -> bool:
        """Whether more than `MANY` rows are selected, which are not kept."""
        source, where, share = self.source, self.selection.where, self.selection.sample or 1.0
        if source.untyped or source.format.kind == "ndjson":
            if sum(path.stat().st_size for path in source.paths) < _LEAST_BYTES * MANY:
                return False
        elif where is None and (total := source.count()) is not None:
            return total * share > MANY
        rows = source.rows(where).select(pl.len())
        return bool(rows.collect(engine="streaming").item() * share > MANY)

    def are_countable(self) -> bool:
        """Whether there are many rows of probabilities, so that they are counted."""
        return self.are_many() and self.scores == "probability"

    def _batches(self, names: Sequence[str]) -> Iterator[pl.DataFrame]:
        """Selected rows of some columns, batch by batch."""
        source, where, share = self.source, self.selection.where, self.selection.sample
        if share is not None and not 0 < share <= 1:
            raise CommandError(f"--sample {share:g}: expected a fraction between 0 and 1.")
        rows = source.rows(where).select(ROW, *dict.fromkeys(names))
        total = source.count() if where is None else None
        with file_errors(source.name), progress_bar("reading", total) as advance:
            for whole in rows.collect_batches(chunk_size=BATCH):
                advance(len(whole))
                batch = whole if share is None else whole.filter(is_sampled(whole, share))
                if not batch.is_empty():
                    yield batch


class Comparison:
    """Forecasts of the same rows: before calibration, after it, and what they are compared with.

    `compare` is another model file, or other columns; `by` a column of groups of the rows.
    """

    def __init__(
        self,
        source: Source,
        selection: Selection,
        model: Model | None,
        compare: str | None = None,
        by: str | None = None,
    ) -> None:
        self.models = {} if model is None else {"after": model}
        if compare is not None and Path(compare).is_file():
            self.models["other"] = Model.load(compare)
        self.reader = Reader(source, selection, next(iter(self.models.values()), None))
        self._other: Reader | None = None
        if compare is not None and "other" not in self.models:
            other: Any = {"probs": [compare], "classes": None, "by_position": False}
            self._other = Reader(source, replace(self.reader.selection, **other))
        groups = {f"{each.path}: its groups": each.group for each in self.models.values()}
        for option, column in (groups | {"--by": by}).items():
            if column is not None:
                check_column(option, column, list(source.schema()))
        self._source, self._by = source, by

    def stream(self) -> Iterator[Compared]:
        """Batches of rows with the forecasts that are compared."""
        reader, other, columns = self.reader, self._other, list[str]()
        for model in self.models.values():
            model.check(reader.columns, reader.classes, reader.selection)
        if other is not None:
            classes = reader.classes.tolist()
            columns = arrange_for_model(other.found, classes, None, None, other.selection)
        groups = [self._by, *(model.group for model in self.models.values())]
        for sample, batch in reader.stream([*columns, *(name for name in groups if name)]):
            by = None if self._by is None else groups_of(batch, self._by, self._source)
            compared = {"before": replace(sample, groups=by)}
            for name, model in self.models.items():
                of = None if model.group is None else groups_of(batch, model.group, self._source)
                Q = calibrate(model.calibrator, sample.as_given(), of)
                compared[name] = replace(sample, forecasts=Q, scores="probability")
            if other is not None:
                P = other.forecasts(batch, columns)
                compared["other"] = replace(sample, forecasts=P, scores=other.scores)
            yield compared

    def read(self) -> Compared:
        """All rows with the forecasts that are compared."""
        batches = list(self.stream())
        compared = {name: _join([batch[name] for batch in batches]) for name in batches[0]}
        self.reader.check(compared["before"])
        if self._other is not None:
            self._other.check(compared["other"])
        return compared


def load_counts(files: list[str]) -> Counts:
    """Counts of files and globs, merged."""
    paths = [path for item in files for path in (sorted(glob(item)) or [item])]  # noqa: PTH207
    return Counts.from_parquet(*paths)


def warn_of_reversal(sample: Sample) -> None:
    """Warn of forecasts that rank a class worse than chance."""
    if (reversal := find_reversal(sample)) is not None:
        option = "--classes" if reversal.other is None else "--positive"
        print_warning(f"{reversal}. {option} settles it.")


def _join(parts: Sequence[Sample]) -> Sample:
    """One sample of the rows of several."""
    names = [name for name in ("weights", "groups") if getattr(parts[0], name) is not None]
    arrays: Any = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("forecasts", "codes", *names)
    }
    return replace(parts[0], **arrays)
