"""All measures of a pair of forecasts: means over all rows, and what is estimated from some."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np

from isoroc._core.intervals import Difference, Estimate
from isoroc._core.losses import are_impossible, brier_losses, log_losses
from isoroc._core.types import Floats
from isoroc._evaluation.before_after import Pair, join_pairs
from isoroc._evaluation.evaluation import MANY_CLASSES, Estimates
from isoroc._evaluation.order import measure_order, measure_volumes
from isoroc._input import Aspect
from isoroc.metrics._estimation.calibration_terms import Parts, Term
from isoroc.metrics._estimation.direction import Residuals

#: Calibration errors and ranking are based on at most this many probabilities, but at least this
#: many rows,
MOST_VALUES, LEAST_ROWS = 600_000, 20_000
#: and whole forecasts of three classes or more on at most this many rows,
CANONICAL_ROWS = 20_000
#: or on this many with more classes than MANY_CLASSES.
MANY_CLASSES_ROWS = 2000
#: Ranking is based on at most this many probabilities, but at least MANY_CLASSES_ROWS rows.
ORDER_VALUES = 2_000_000


class Mean:
    """A weighted mean and its standard error, NaN where it is unknown."""

    def __init__(self) -> None:
        self.n_rows = 0
        self._shift = 0.0  # near the mean, so that differences of sums are precise
        self._sums = np.zeros(2)  # of weights, and of weighted values less the shift
        self._squares = np.zeros(3)  # of squared weights, with powers 0, 1, 2 of the same values

    def add(self, values: Floats, weights: Floats, squares: Floats, n_rows: int) -> None:
        """Add rows: their values, weights, and the squares of the weights."""
        total = float(weights.sum())
        if is_first := not self.n_rows:
            self._shift = float(weights @ values) / total
        x = values - self._shift
        self.n_rows += n_rows
        self._sums += [total, 0.0 if is_first else float(weights @ x)]
        self._squares += [float(squares.sum()), float(squares @ x), float(squares @ x**2)]

    @property
    def value(self) -> float:
        """The mean."""
        return self._shift + float(self._sums[1] / self._sums[0])

    def error(self) -> float:
        """Standard error of the mean."""
        if self.n_rows < 2:
            return nan
        total, first = self._sums
        m = first / total
        variance = float(self._squares @ np.array([m**2, -2 * m, 1.0]))
        return sqrt(max(variance, 0.0) * self.n_rows / (self.n_rows - 1)) / float(total)


class Totals:
    """Losses, accuracy and changed decisions of all rows, added up batch by batch."""

    def __init__(self) -> None:
        self.n_rows = 0
        self.means: dict[tuple[str, str], Mean] = {}
        self.impossible: dict[str, int] = {}
        """Number of rows whose outcome was given probability 0, before and after."""
        self.residuals: dict[str, Residuals] = {}

    def add(self, pair: Pair) -> None:
        """Add rows."""
        if not len(pair.before):
            return
        weights, squares = pair.before.row_weights(), pair.squared_weights()
        self.n_rows += pair.n_rows
        for key, values in _terms(pair).items():
            self.means.setdefault(key, Mean()).add(values, weights, squares, pair.n_rows)
        for of, sample in pair.series.items():
            rows = are_impossible(sample.forecasts, sample.codes)
            n = rows.sum() if pair.counted is None else weights[rows].sum()
            self.impossible[of] = self.impossible.get(of, 0) + round(float(n))
            residuals = self.residuals.setdefault(of, Residuals())
            residuals.add(sample.forecasts, sample.codes, weights, squares, pair.n_rows)


def _terms(pair: Pair) -> dict[tuple[str, str], Floats]:
    """Values of the rows whose means are measures."""
    terms: dict[tuple[str, str], Floats] = {}
    for of, sample in pair.series.items():
        terms["log_loss", of] = log_losses(sample.forecasts, sample.codes)
        terms["brier_score_loss", of] = brier_losses(sample.forecasts, sample.codes)
    decisions = {of: sample.decisions() for of, sample in pair.samples.items()}
    for of, decided in decisions.items():
        terms["accuracy", of] = (decided == pair.before.codes).astype(np.float64)
    if pair.after is not None:
        changed = decisions["after"] != decisions["before"]
        terms["decisions_changed", "change"] = changed.astype(np.float64)
    for measure in ("log_loss", "brier_score_loss", "accuracy"):
        if (measure, "before") in terms and (measure, "after") in terms:
            terms[measure, "change"] = terms[measure, "after"] - terms[measure, "before"]
    return terms


class Collector:
    """Adds up losses and decisions of batches, keeps some rows of many, and measures them."""

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
        most = 2 * most_rows(pair.n_classes)
        while len(self._kept) > 1 and sum(len(kept.before) for kept in self._kept) > most:
            self._share /= 2
            self._kept = [self._thin(kept, 0.5) for kept in self._kept]

    def _thin(self, pair: Pair, share: float) -> Pair:
        return pair.take(np.flatnonzero(self._rng.random(len(pair.before)) < share))

    @property
    def kept(self) -> Pair:
        """The rows that were kept."""
        self._kept = [join_pairs(self._kept)]
        return self._kept[0]

    def measure(self, n_resamples: int, seed: int) -> tuple[Estimates, list[str]]:
        """All measures of the rows that were added, and how they were computed."""
        kept = self.kept
        judged = kept.draw(most_rows(kept.n_classes))
        means = self.totals.means
        found: Estimates = {key: Estimate(m.value, m.error() ** 2) for key, m in means.items()}
        notes = []
        if judged.n_rows < self.totals.n_rows:
            some = f"{judged.n_rows:,} of {self.totals.n_rows:,} rows, drawn at random"
            what = f"Calibration errors and ranking are based on {some}"
            notes.append(f"{what}; losses and decisions on all rows.")
        if kept.counted is not None:
            notes.append("The rows were counted: each has the mean forecast of its cell.")
        notes += _calibration(judged, found) + _order(judged, found, n_resamples, seed)
        return found, notes


def most_rows(n_classes: int) -> int:
    """Largest number of rows that are sorted, learned from or resampled."""
    return max(LEAST_ROWS, MOST_VALUES // n_classes)


def _calibration(pair: Pair, found: Estimates) -> list[str]:
    """Add calibration errors and the parts of the log loss, and return notes."""
    notes: list[str] = []
    K = pair.n_classes
    if pair.n_rows < 2:  # what is learned about a row comes from other rows
        return notes
    most = CANONICAL_ROWS if K <= MANY_CLASSES else MANY_CLASSES_ROWS
    whole = pair if K == 2 else pair.draw(most)
    if whole.n_rows < pair.n_rows and pair.series:
        notes.append(f"Calibration of whole forecasts is estimated from {whole.n_rows:,} rows.")
    parts = {of: Parts.of(sample, "canonical") for of, sample in whole.series.items()}
    losses = {of: part.split_loss() for of, part in parts.items()}
    for of, terms in losses.items():  # the two parts add up to the loss of all rows
        rest, rows = terms["refinement"]
        value = found["log_loss", of].value - terms["calibration"][0].value
        terms["refinement"] = rest._replace(value=value), rows
    for name in ("calibration", "refinement"):
        _put(found, whole, f"{name}_loss", {of: terms[name] for of, terms in losses.items()})
    _put(found, whole, "calibration_error", {of: part.absolute() for of, part in parts.items()})
    kinds: dict[str, Aspect] = {"top_calibration_error": "top"}
    if K > MANY_CLASSES:
        many = f"With more than {MANY_CLASSES} classes"
        notes.append(f"{many}, there is no calibration error of single classes.")
    elif K > 2:
        kinds["classwise_calibration_error"] = "classwise"
    for name, kind in kinds.items():
        errors = {of: Parts.of(sample, kind).absolute() for of, sample in pair.series.items()}
        _put(found, pair, name, errors)
    return notes


def _put(found: Estimates, pair: Pair, measure: str, terms: dict[str, Term]) -> None:
    """Add estimates of a measure before and after, and of its change."""
    for of, (estimate, _) in terms.items():
        found[measure, of] = estimate
    if len(terms) == 2:
        (first, a), (second, b) = terms["before"], terms["after"]
        shares = pair.before.row_weights() / pair.before.row_weights().sum()
        a, b = (shares * (rows - shares @ rows) for rows in (a, b))
        # Estimates correlate less than rows if rows do not explain all variation.
        size = max(float(a @ a), first.error**2) * max(float(b @ b), second.error**2)
        correlation = float(a @ b) / sqrt(size) if size else 0.0
        found[measure, "change"] = Difference(first, second, correlation)


def _order(pair: Pair, found: Estimates, n_resamples: int, seed: int) -> list[str]:
    """Add areas, reversed and tied pairs, and volumes of three classes, and return notes."""
    n, K = pair.n_rows, pair.n_classes
    pair = pair.draw(max(MANY_CLASSES_ROWS, ORDER_VALUES // K))
    after = pair.before if pair.after is None else pair.after
    found |= measure_order(pair.before, after)
    notes = []
    if pair.n_rows < n:
        notes.append(f"Ranking is based on {pair.n_rows:,} of {n:,} rows.")
    if K == 3:
        volumes, judged = measure_volumes(pair.before, after, n_resamples, seed)
        found |= volumes
        if judged < n:
            notes.append(f"Volumes are based on {judged:,} of {n:,} rows.")
    return notes
