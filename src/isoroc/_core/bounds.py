"""Tests and bounds of a mean loss that hold for every number of rows.

They are exact for errors of independent rows, and by betting otherwise (Waudby-Smith and Ramdas
2024). A test asks whether a mean loss lies below a limit. A bound is the lowest limit that passes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, inf, log
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isoroc._core.intervals import Estimate, Mean, by_cluster
from isoroc._core.special import beta_quantile, binomial_cdf, find_root
from isoroc._core.types import Floats, Ints

#: Rows of some kind, such as those that a rule accepts.
RowMask = NDArray[np.bool_]


def betting_p_value(losses: Floats, weights: Floats, limit: float, n_bets: int = 10) -> float:
    """P-value of the hypothesis that the mean loss is at least `limit`.

    Each unit has a total weight and a total loss between 0 and this weight. The units are
    independent, in an order that does not depend on their losses. A gambler bets a share of the
    capital on small losses: if the hypothesis is true, the chance of ever multiplying the capital
    by c is at most 1/c (Ville). The capital is divided equally among several shares.
    """
    if not weights.any():
        return 1.0
    worst = (1 - limit) * weights.max()
    shares = (np.arange(n_bets) + 0.5) / n_bets
    gains = (limit * weights - losses) / worst
    capital = np.zeros((n_bets, 1))  # logarithms
    most = 0.0
    size = 2**13  # units at a time, which the cache holds
    for begin in range(0, len(gains), size):
        steps = np.log1p(np.outer(shares, gains[begin : begin + size]))
        capital = capital[:, -1:] + steps.cumsum(axis=1)
        peak = capital.max(axis=0)
        mean = peak + np.log(np.exp(capital - peak).mean(axis=0))
        most = max(most, float(mean.max()))
    return exp(-most)


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses of rows between 0 and 1, and how rows depend on each other."""

    values: Floats
    weights: Floats | None = None  # None if every row has weight 1
    clusters: Ints | None = None  # number of each row's cluster, None for independent rows

    @cached_property
    def are_errors(self) -> bool:
        """Whether the binomial test is exact: losses of 0 or 1 in independent, unweighted rows."""
        plain = self.weights is None and self.clusters is None
        return plain and bool(((self.values == 0) | (self.values == 1)).all())

    @cached_property
    def _units(self) -> Ints:
        """Place of each row's cluster, or of the row, in an order that is drawn at random."""
        units = np.arange(len(self.values)) if self.clusters is None else self.clusters
        return np.random.default_rng(0).permutation(int(units.max(initial=-1)) + 1)[units]

    def take(self, rows: Ints) -> Self:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        clusters = None if self.clusters is None else self.clusters[rows]
        return type(self)(self.values[rows], weights, clusters)

    @property
    def weight(self) -> float:
        """Total weight of the rows."""
        return float(len(self.values) if self.weights is None else self.weights.sum())

    def weight_of(self, rows: RowMask) -> float:
        """Total weight of some of the rows."""
        return float(rows.sum() if self.weights is None else self.weights[rows].sum())

    def mean(self, rows: RowMask) -> float:
        """Mean loss of some rows, NaN if there are none."""
        if not rows.any():
            return float("nan")
        weights = None if self.weights is None else self.weights[rows]
        return float(np.average(self.values[rows], weights=weights))

    def _totals(self, rows: RowMask) -> tuple[Floats, Floats]:
        """Loss and weight of each unit, counting some of the rows."""
        weights = np.ones(int(rows.sum())) if self.weights is None else self.weights[rows]
        units = self._units[rows]
        columns = weights * self.values[rows], weights
        losses, totals = (np.bincount(units, each).astype(np.float64) for each in columns)
        return losses, totals

    def p_value(self, rows: RowMask, limit: float) -> float:
        """P-value of the hypothesis that the mean loss of such rows is at least `limit`."""
        if not self.are_errors:
            return betting_p_value(*self._totals(rows), limit)
        return float(binomial_cdf(self.values[rows].sum(), int(rows.sum()), limit))

    def least_p_value(self, rows: RowMask, limit: float, *, n_wrong: int = 0) -> float:
        """As `p_value`, if the first `n_wrong` units had the full loss and the others none."""
        n = int(rows.sum())
        if n <= n_wrong:
            return 1.0
        if self.are_errors:
            return float(binomial_cdf(n_wrong, n, limit))
        _, weights = self._totals(rows)
        weights = weights[weights > 0]
        return betting_p_value(weights * (np.arange(len(weights)) < n_wrong), weights, limit)

    def interval(self, rows: RowMask, confidence: float) -> Estimate:
        """Mean loss of some rows. Each end is a bound that holds with probability `confidence`."""
        if not rows.any():
            return Estimate(np.nan, 0.0, 1.0)
        others = Losses(1 - self.values, self.weights, self.clusters)
        high = self._upper(rows, confidence)
        low = 1 - others._upper(rows, confidence)
        return Estimate(self.mean(rows), low, high)

    def _upper(self, rows: RowMask, confidence: float) -> float:
        """The lowest limit that the mean loss stays below, with probability `confidence`."""
        risk = 1 - confidence
        if self.are_errors:
            n = int(rows.sum())
            wrong = float(self.values[rows].sum())
            return 1.0 if wrong == n else float(beta_quantile(wrong + 1, n - wrong, confidence))
        totals = self._totals(rows)

        def excess(limit: float) -> float:
            return betting_p_value(*totals, limit) - risk

        most = 1 - 1e-9
        return 1.0 if excess(most) > 0 else find_root(excess, 1e-12, most, xtol=1e-9)

    def share(self, rows: RowMask, confidence: float) -> Estimate:
        """Share of these rows among all, with a two-sided interval."""
        weights = np.ones(len(rows)) if self.weights is None else self.weights
        mean = Mean()
        if not rows.any():
            return Estimate(0.0, 0.0, 0.0)
        total, inside = by_cluster(self.clusters, weights, rows.astype(np.float64))
        mean.add(inside, total)
        value = self.weight_of(rows) / self.weight
        return Estimate(value, *mean.share().interval(confidence))


def rows_needed(error: float, limit: float, confidence: float) -> float:
    """Number of independent rows with which an error rate below `limit` passes the exact test."""
    if error >= limit:
        return inf
    n = log(1 - confidence) / log(1 - limit)
    while binomial_cdf(ceil(error * n - 1e-9), ceil(n), limit) > 1 - confidence:
        n *= 1.05
    return float(ceil(n))


class Walk(NamedTuple):
    """Tests of candidates from the strictest to the loosest."""

    first: int  # the first candidate of the sequence, the number of candidates if none can pass
    p_values: Floats  # of each candidate, NaN if it was not tested
    certified: RowMask  # candidates that passed

    @property
    def last(self) -> int:
        """The loosest candidate that is certified, -1 if none is."""
        return int(np.flatnonzero(self.certified).max(initial=-1))


def certify_in_order(
    case: Callable[[int], tuple[Losses, RowMask]],
    n_cases: int,
    limit: float,
    confidence: float,
    *,
    reserve: float = 0.1,
) -> Walk:
    """Certify candidates, given by their losses and rows, in an order chosen without labels.

    A fixed sequence needs no correction for the number of tests: each is made only if the one
    before was passed, so the first wrong certificate has probability ``1 - confidence`` at most.

    The share `reserve` of this risk is kept for the last candidate, which is tested even if the
    sequence ends before it (Wiens 2003). Where the order of the rows tells little, the sequence
    often ends at its first test, although all rows together would pass.
    """
    risk = 1 - confidence
    p_values = np.full(n_cases, np.nan)
    certified = np.zeros(n_cases, dtype=np.bool_)
    first = _first_case(case, n_cases, limit, (1 - reserve) * risk)
    if first == n_cases > 0:
        losses, rows = case(n_cases - 1)
        first -= losses.least_p_value(rows, limit) <= risk
    unbroken = True
    for i in range(first, n_cases):
        share = 1 - reserve if unbroken else 0.0
        if i == n_cases - 1:
            share += reserve
        if share == 0:
            continue
        losses, rows = case(i)
        p_values[i] = losses.p_value(rows, limit)
        unbroken = p_values[i] <= share * risk
        certified[i] = unbroken
    return Walk(first, p_values, certified)


def _first_case(
    case: Callable[[int], tuple[Losses, RowMask]], n_cases: int, limit: float, risk: float
) -> int:
    """First candidate of a sequence, the number of candidates if none can pass.

    It has a tenth of the rows, and can be passed with one error, or with three where losses are
    tested by betting. If that would take more than a quarter of the rows, it is the first that can
    be passed without errors. With room for errors far fewer sequences end at their first test.
    """
    start = n_cases
    for i in range(n_cases):
        losses, rows = case(i)
        share = np.count_nonzero(rows) / len(rows)
        if start == n_cases and losses.least_p_value(rows, limit) <= risk:
            start = i
        if start < n_cases and share > 1 / 4:
            break
        room = 1 if losses.are_errors else 3
        if share >= 1 / 10 and losses.least_p_value(rows, limit, n_wrong=room) <= risk:
            return i
    return start
