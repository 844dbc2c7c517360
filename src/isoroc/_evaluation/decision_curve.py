"""Net benefit of acting on forecasts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isoroc._core.intervals import half_width
from isoroc._core.types import Floats
from isoroc._evaluation.before_after import Pair
from isoroc._input import InputError, Sample, check_numbers, check_option
from isoroc._support.table import Table
from isoroc.metrics._calibration import event_of, observed_rates


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve:
    """Net benefit of strategies against the threshold, with intervals."""

    thresholds: Floats
    strategies: tuple[str, ...]
    """The forecasts ("forecasts", or "before" and "after"), acting on no row ("none") and on all
    rows ("all"), and "oracle", which acts on the rows of the second class."""
    values: Floats
    """Net benefit of each strategy (row) at each threshold."""
    covariance: Floats
    """Covariances of the strategies at each threshold, (T, S, S)."""
    confidence: float

    def benefit(self, strategy: str, *, minus: str | None = None, scaled: bool = False) -> Table:
        """Net benefit of a strategy, or the difference of two, with its interval.

        Parameters
        ----------
        strategy : str
            One of `strategies`.
        minus : str, default=None
            Strategy to subtract. The interval is of paired differences.
        scaled : bool, default=False
            Divide by the net benefit of the oracle, the share of the second class.

        Returns
        -------
        Table
            Columns ``threshold``, ``value``, ``low`` and ``high``.
        """
        check_option("strategy", strategy, self.strategies)
        check_option("minus", minus, (None, *self.strategies))
        weights = np.zeros((len(self.thresholds), len(self.strategies)))
        for name, factor in ((strategy, 1.0), (minus, -1.0)):
            weights[:, [other == name for other in self.strategies]] += factor
        value = np.einsum("ts,st->t", weights, self.values)
        if scaled:
            value = value / self.values[-1]
            weights[:, -1] -= value
            weights /= self.values[-1][:, None]
        variance = np.einsum("ts,tsu,tu->t", weights, self.covariance, weights)
        half = half_width(self.confidence) * np.sqrt(variance.clip(min=0))
        return Table(threshold=self.thresholds, value=value, low=value - half, high=value + half)

    def limits(self, *, scaled: bool = False) -> tuple[float, float]:
        """Ends of an axis for the net benefits of the forecasts. Wide intervals are cut off."""
        parts = [self.benefit(name, scaled=scaled) for name in self.strategies[:-3]]
        top = 1.15 * max(part["value"].max() for part in parts)
        top = float(top if top > 0 else max(part["high"].max() for part in parts))
        lowest = min(0.0, *(float(part["value"].min()) for part in parts))
        return max(lowest, -0.4 * top) - 0.06 * top, top

    @property
    def table(self) -> Table:
        """One row per threshold and strategy, and "change" if there are two forecasts."""
        parts = {name: self.benefit(name) for name in self.strategies[:-1]}
        if "after" in self.strategies:
            parts["change"] = self.benefit("after", minus="before")
        table = Table(strategy=np.repeat(list(parts), len(self.thresholds)))
        for column in ("threshold", "value", "low", "high"):
            table[column] = np.concatenate([part[column] for part in parts.values()])
        return table

    def __repr__(self) -> str:
        paired = "after" in self.strategies
        shown = self.benefit("after", minus="before") if paired else self.benefit("forecasts")
        ends = zip(shown["low"], shown["high"], strict=True)
        table = Table(threshold=self.thresholds)
        table |= zip(self.strategies[:-1], self.values.round(4), strict=False)
        title = f"{100 * self.confidence:g} % {'change' if paired else 'interval'}"
        table[title] = np.array([f"{low:.4f} to {high:.4f}" for low, high in ends])
        return repr(table)


def decision_curve(pair: Pair, thresholds: Any, confidence: float) -> DecisionCurve:
    """Decision curve of the forecasts of some rows."""
    t = np.arange(1, 100) / 100
    before = pair.before
    if thresholds is not None:
        t = np.atleast_1d(check_numbers(thresholds, "thresholds"))
        if t.ndim != 1 or not len(t) or not ((t >= 0) & (t < 1)).all():
            fix = "expected numbers of at least 0 and below 1"
            raise InputError("thresholds", None, f"is {thresholds!r}", fix)
    if pair.n_classes != 2:
        problem = f"{pair.n_classes} classes, but net benefit is defined for two"
        fix = "pass the probability of one class, or use isoroc.decisions.expected_cost"
        raise InputError("y_prob", None, problem, fix)
    if len(pair.series) < len(pair.samples):
        fix = "a threshold is a probability. Calibrate scores first"
        raise InputError("y_prob", None, "has scores that are not probabilities", fix)
    weights = before.row_weights()
    squares = before.squared_weights()
    clusters = before.clusters
    # A cell is a class and whether each of the forecasts acts on the row. `sums` are the weights of
    # the cells. `products` are sums over rows or clusters of the products of two cells' weights.
    shape = (2,) * (1 + len(pair.samples))
    m = 2 ** len(shape)
    sums = np.zeros((len(t), m))
    products = np.zeros((len(t), m, m))
    for i, threshold in enumerate(t.tolist()):
        acted = [(sample.forecasts[:, 1] >= threshold) * 1 for sample in pair.samples.values()]
        cell = np.ravel_multi_index((before.codes, *acted), shape)
        sums[i] = np.bincount(cell, weights, m)
        if clusters is None:
            products[i] = np.diag(np.bincount(cell, squares, m))
        else:
            size = m * (int(clusters.max()) + 1)
            in_cluster = np.bincount(clusters * m + cell, weights, size).reshape(-1, m)
            products[i] = in_cluster.T @ in_cluster
    code, *acted = np.indices(shape).reshape(len(shape), -1)
    worth = np.where(code == 1, 1.0, -(t / (1 - t))[:, None])  # of acting on a row, (T, m)
    benefits = np.stack([worth * action for action in (*acted, 0, 1, code)], axis=2)  # (T, m, S)
    n = pair.n_rows if clusters is None else before.n_units
    total = sums[0].sum()
    mean = np.einsum("tm,tms->ts", sums, benefits) / total
    deviation = benefits - mean[:, None]
    covariance = deviation.swapaxes(1, 2) @ products @ deviation * (n / max(n - 1, 1))
    # Where few rows are acted on, benefits vary too little in the sample. So variances are computed
    # as if there were four more rows of any label and action (as in Agresti and Coull 1998).
    extra = 4 * products[0].sum() / n / m
    covariance += extra * np.einsum("tms,tmu->tsu", benefits, benefits)
    forecasts = list(pair.samples) if len(pair.samples) == 2 else ["forecasts"]
    strategies = (*forecasts, "none", "all", "oracle")
    return DecisionCurve(t, strategies, mean.T, covariance / total**2, confidence)


def thresholds_of(samples: Iterable[Sample], n_thresholds: int = 99) -> Floats:
    """Thresholds at which neither nearly all rows nor nearly none are acted on."""
    tables = [observed_rates(event_of(sample, 1), n_bins=20) for sample in samples]
    rates = np.concatenate([table["rate"] for table in tables])  # of twentieths of the rows
    margin = 0.1 * np.ptp(rates) + 0.001
    low, high = np.clip([rates.min() - margin, rates.max() + margin], 0.0, 0.99)
    return np.linspace(low, high, n_thresholds)
