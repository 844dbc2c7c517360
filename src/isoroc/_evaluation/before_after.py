"""Rows with their outcomes and the forecasts before and after calibration.

Cells of counts are weighted rows. Whatever needs single rows draws them from the cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from isoroc._core.simplex import two_columns
from isoroc._core.types import Ints
from isoroc._counts import Counts
from isoroc._input import InputError, Sample, join_samples
from isoroc._input.seen import Fingerprint, recall_output


@dataclass(frozen=True)
class Pair:
    """The same rows with two forecasts, made by `make_pair` and `pair_of_counts`."""

    before: Sample  # one column per class, or scores of two classes that are not probabilities
    after: Sample | None = None
    counted: int | None = None  # if the samples hold cells of counts, the number of rows in them
    multilabel: bool = False  # whether rows are entries of a matrix, with the segment "label"
    fitted: Fingerprint | None = None  # of the rows that the calibrator was fitted to, if known

    @property
    def n_rows(self) -> int:
        """Number of rows, of which a cell may hold several."""
        return self.before.n_rows if self.counted is None else self.counted

    @property
    def n_classes(self) -> int:
        """K."""
        return self.before.n_classes

    @property
    def samples(self) -> dict[str, Sample]:
        """The samples by name: "before", and "after" if there is one."""
        first = {"before": self.before}
        return first if self.after is None else first | {"after": self.after}

    @property
    def both(self) -> tuple[Sample, Sample]:
        """The samples before and after, the first twice if there is only one."""
        return self.before, self.before if self.after is None else self.after

    @cached_property
    def series(self) -> dict[str, Sample]:
        """The `samples` that hold probabilities."""
        return {stage: sample for stage, sample in self.samples.items() if not sample.kind.single}

    def row_counts(self) -> Ints:
        """Number of rows that each row stands for, or the effective number in weighted cells."""
        if (parts_of := self.before.parts_of) is not None:  # the first part counts
            return (np.diff(parts_of, prepend=-1) > 0).astype(np.int64)
        if self.counted is None:
            return np.ones(len(self.before), dtype=np.int64)
        rows = self.before.row_weights() ** 2 / self.before.squared_weights()
        return np.maximum(np.rint(rows), 1).astype(np.int64)

    @cached_property
    def _draws(self) -> dict[int, Self]:
        """Rows that were drawn, by their largest number."""
        return {}

    def draw(self, most: int) -> Self:
        """The same with at most `most` rows, drawn at random, each time the same.

        Cells are replaced by rows.
        """
        if most not in self._draws:
            self._draws[most] = self._draw(most)
        return self._draws[most]

    def _draw(self, most: int) -> Self:
        n = len(self.before)
        rng = np.random.default_rng(0)
        if self.counted is None:
            return self if n <= most else self.take(np.sort(rng.permutation(n)[:most]))
        times = self.row_counts()
        each = self.before.row_weights() / times
        total = times.sum()
        if total >= 10**9:  # hardly a row is drawn twice
            times = rng.multinomial(most, times / total)
        elif total > most:  # a copy of a row would look like evidence
            times = rng.multivariate_hypergeometric(times, most, method="marginals")
        rows = np.repeat(np.arange(len(times)), times)
        weights = None if (each == each[0]).all() else each[rows]

        def drawn(sample: Sample) -> Sample:
            return Sample(sample.forecasts[rows], sample.codes[rows], weights, sample.classes)

        after = None if self.after is None else drawn(self.after)
        return replace(self, before=drawn(self.before), after=after, counted=None)

    def take(self, rows: Any) -> Self:
        """The same with some of the rows."""
        after = None if self.after is None else self.after.take(rows)
        return replace(self, before=self.before.take(rows), after=after)


def make_pair(
    before: Sample, after: Sample | None = None, *, fitted: Fingerprint | None = None
) -> Pair:
    """Pair of samples of the same rows with weight > 0. Probabilities become matrices."""
    second = None if after is None else _in_columns(after)
    return Pair(_in_columns(before), second, fitted=fitted)


def rows_of_fit(after: Any) -> Fingerprint | None:
    """Fingerprint of the rows that a calibrator, or the maker of forecasts, was fitted to."""
    if after is None:
        return None
    if hasattr(after, "predict_proba"):
        return Fingerprint.read(getattr(after, "summary_", None))
    return recall_output(after)


def _in_columns(sample: Sample) -> Sample:
    sample = sample.positive().on_simplex()
    if not sample.kind.single or sample.kind.scores == "logit":
        return sample
    return replace(sample, forecasts=two_columns(sample.forecasts), unit="probability")


def pair_of_counts(counts: Counts, calibrator: Any = None) -> Pair:
    """Pair of the cells of counts, with the forecasts of a calibrator for each cell."""
    cells = counts.sample(per_fold=False)
    before = replace(cells, forecasts=two_columns(cells.forecasts))
    if calibrator is None:
        return Pair(before, None, counts.n_rows)
    if not hasattr(calibrator, "predict_proba"):
        problem = f"is {type(calibrator).__name__}"
        raise InputError("calibrator", None, problem, "pass a fitted calibrator")
    if calibrator.classes_.tolist() != counts.classes.tolist():
        problem = f"its classes {calibrator.classes_.tolist()} are not the classes of the counts"
        raise InputError("calibrator", None, problem, f"expected {counts.classes.tolist()}")
    if calibrator.unit_ != "probability":
        problem = f"takes {calibrator.unit_} forecasts, but counts hold probabilities"
        raise InputError("calibrator", None, problem, "pass rows, or fit it to counts")
    single = calibrator.n_features_in_ == 1
    Q = calibrator.predict_proba(before.forecasts[:, 1] if single else before.forecasts)
    after = replace(before, forecasts=Q)
    return Pair(before, after, counts.n_rows, fitted=rows_of_fit(calibrator))


def join_pairs(pairs: Sequence[Pair]) -> Pair:
    """Concatenate the rows of several pairs."""
    if len(pairs) == 1:
        return pairs[0]
    seconds = [pair.after for pair in pairs if pair.after is not None]
    before = join_samples([pair.before for pair in pairs])
    after = join_samples(seconds) if seconds else None
    return Pair(before, after, fitted=pairs[0].fitted)


def calibrated(calibrator: Any, P: Any, segments: Any = None) -> Any:
    """Forecasts of a calibrator, with `segments` if it was fitted with segments."""
    fitted = getattr(calibrator, "map_", None)
    if fitted is not None and fitted.segments:
        return calibrator.predict_proba(P, segments=segments)
    return calibrator.predict_proba(P)
