"""Means over all rows with their standard errors, from sums that batches of rows add to."""

from __future__ import annotations

import math

import numpy as np

from isoroc._estimation.residuals import Residuals
from isoroc._evaluation.pair import Pair
from isoroc._losses import are_impossible, brier_losses, log_losses
from isoroc._simplex import Floats


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
            return math.nan
        total, first = self._sums
        m = first / total
        variance = float(self._squares @ np.array([m**2, -2 * m, 1.0]))
        return math.sqrt(max(variance, 0.0) * self.n_rows / (self.n_rows - 1)) / float(total)


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
            change = terms[measure, "after"] - terms[measure, "before"]
            terms[measure, "change"] = change
    return terms
