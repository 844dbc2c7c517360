"""All measures of a pair of forecasts, with their standard errors.

Losses, accuracy and changed decisions are those of all rows. Whatever has to be sorted, learned or
resampled is based on rows drawn at random if there are many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isoroc._estimation.parts import Parts
from isoroc._evaluation.evaluation import MANY_CLASSES
from isoroc._evaluation.order import Values, measure_order
from isoroc._evaluation.pair import Pair, join_pairs
from isoroc._evaluation.totals import Mean, Totals
from isoroc._input import Kind
from isoroc._losses import mean
from isoroc._simplex import Floats

#: Calibration errors and ranking are based on at most this many probabilities, but at least this
#: many rows,
MOST_VALUES, LEAST_ROWS = 600_000, 20_000
#: and whole forecasts of three classes or more on at most this many rows,
CANONICAL_ROWS = 20_000
#: or on this many with more classes than MANY_CLASSES.
MANY_CLASSES_ROWS = 2000
_MANY = (
    f"With more than {MANY_CLASSES} classes, there is no calibration error of single classes, and "
    "order is measured by decisions."
)


class Measured(NamedTuple):
    """Values and standard errors by measure and what they are of, and how they were computed."""

    values: Values
    errors: Values
    notes: list[str]


class Collector:
    """Collects rows, batch by batch, and measures them.

    Losses and decisions are added up. Of many rows, some are kept, each with the same probability.
    """

    def __init__(self) -> None:
        self.totals = Totals()
        self._kept: list[Pair] = []
        self._share = 1.0
        self._rng = np.random.default_rng(0)

    def add(self, pair: Pair) -> None:
        """Add a batch of rows."""
        self.totals.add(pair)
        if self._share < 1:
            pair = self._thin(pair, self._share)
        self._kept.append(pair)
        while len(self._kept) > 1 and sum(map(_n_kept, self._kept)) > 2 * most_rows(pair.n_classes):
            self._share /= 2
            self._kept = [self._thin(kept, 0.5) for kept in self._kept]

    def _thin(self, pair: Pair, share: float) -> Pair:
        return pair.take(np.flatnonzero(self._rng.random(len(pair.before)) < share))

    @property
    def kept(self) -> Pair:
        """The rows that were kept."""
        self._kept = [join_pairs(self._kept)]
        return self._kept[0]

    def measure(self, n_resamples: int, seed: int) -> Measured:
        """All measures of the rows that were added."""
        kept = self.kept
        judged = kept.draw(most_rows(kept.n_classes))
        values = {key: total.value for key, total in self.totals.means.items()}
        errors = {key: total.error() for key, total in self.totals.means.items()}
        notes = []
        if judged.n_rows < self.totals.n_rows:
            some = f"{judged.n_rows:,} of {self.totals.n_rows:,} rows, drawn at random"
            notes.append(
                f"Calibration errors and ranking are based on {some}; losses and decisions on all "
                "rows."
            )
        if kept.counted is not None:
            notes.append("The rows were counted: each has the mean forecast of its cell.")
        for found in (_calibration(judged), _order(judged, n_resamples, seed)):
            values |= found.values
            errors |= found.errors
            notes += found.notes
        for of in ("before", "after", "change"):  # the two parts add up to the loss of all rows
            if ("calibration_loss", of) in values:
                rest = values["log_loss", of] - values["calibration_loss", of]
                values["refinement_loss", of] = rest
        return Measured(values, errors, notes)


def most_rows(n_classes: int) -> int:
    """Largest number of rows that are sorted, learned from or resampled."""
    return max(LEAST_ROWS, MOST_VALUES // n_classes)


def _n_kept(pair: Pair) -> int:
    return len(pair.before)


def _calibration(pair: Pair) -> Measured:
    """Calibration errors, and the parts of the log loss; terms of rows give standard errors."""
    found = Measured({}, {}, [])
    K = pair.n_classes
    if pair.n_rows < 2:  # what is learned about a row comes from other rows
        return found
    whole = (
        pair if K == 2 else pair.draw(CANONICAL_ROWS if K <= MANY_CLASSES else MANY_CLASSES_ROWS)
    )
    if whole.n_rows < pair.n_rows and pair.series:
        found.notes.append(
            f"Calibration of whole forecasts is estimated from {whole.n_rows:,} rows."
        )
    parts = {of: Parts.of(sample, "canonical") for of, sample in whole.series.items()}
    losses = {of: part.loss_terms() for of, part in parts.items()}
    weights = whole.before.weights
    saved = {of: mean(own, weights) - rest for of, (own, _, _, rest) in losses.items()}
    _put(found, whole, "calibration_loss", saved, {of: t.own - t.best for of, t in losses.items()})
    remaining = {of: terms.refinement for of, terms in losses.items()}
    _put(found, whole, "refinement_loss", remaining, {of: t.best for of, t in losses.items()})
    errors = {of: part.error_terms() for of, part in parts.items()}
    _put_errors(found, whole, "calibration_error", errors)
    kinds: dict[str, Kind] = {"top_calibration_error": "top"}
    if 2 < K <= MANY_CLASSES:
        kinds["classwise_calibration_error"] = "classwise"
    for name, kind in kinds.items():
        terms = {of: Parts.of(sample, kind).error_terms() for of, sample in pair.series.items()}
        _put_errors(found, pair, name, terms)
    return found


def _put_errors(found: Measured, pair: Pair, measure: str, terms: dict[str, Floats]) -> None:
    values = {of: max(mean(rows, pair.before.weights), 0.0) for of, rows in terms.items()}
    _put(found, pair, measure, values, terms)


def _put(
    found: Measured, pair: Pair, measure: str, values: dict[str, float], terms: dict[str, Floats]
) -> None:
    """Add values of a measure, and the standard errors of the means of the terms of the rows."""
    if len(values) == 2:
        values = values | {"change": values["after"] - values["before"]}
        terms = terms | {"change": terms["after"] - terms["before"]}
    for of, value in values.items():
        total = Mean()
        total.add(terms[of], pair.before.row_weights(), pair.squared_weights(), pair.n_rows)
        found.values[measure, of], found.errors[measure, of] = value, total.error()


def _order(pair: Pair, n_resamples: int, seed: int) -> Measured:
    if pair.n_classes > MANY_CLASSES:
        return Measured({}, {}, [_MANY])
    after = pair.before if pair.after is None else pair.after
    values, errors, notes = measure_order(pair.before, after, n_resamples, seed)
    if pair.after is None:
        values = {key: value for key, value in values.items() if key[1] == "before"}
    return Measured(values, errors, notes)
