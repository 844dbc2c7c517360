"""Net benefit of acting on forecasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoroc._core.intervals import half_width
from isoroc._core.types import Floats
from isoroc._evaluation.before_after import Pair
from isoroc._evaluation.curves import event_of, observed_rates
from isoroc._input import InputError, Sample, to_array
from isoroc._support.table import Table

#: From a threshold and the classes to what actions are worth, (K, A), compared with the first one,
#: and to their names.
Benefits = Callable[[float, NDArray[Any]], tuple[Floats, list[str]]]


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve:
    """Net benefit of strategies against the threshold, with intervals.

    `isoroc.decisions.net_benefit` and `Evaluation.net_benefit` make one.
    """

    thresholds: Floats
    """The thresholds, or the values of the cost that varies."""
    strategies: tuple[str, ...]
    """The forecasts ("forecasts", or "before" and "after"), constant actions ("none" and "all", or
    those of the cost matrix), of which the first has net benefit 0, and "oracle", which takes the
    best action for each label."""
    values: Floats
    """Net benefit of each strategy (row) at each threshold."""
    covariance: Floats
    """Covariances of the strategies at each threshold, (T, S, S); all have the same rows."""
    confidence: float

    def benefit(self, strategy: str, *, minus: str | None = None, scaled: bool = False) -> Table:
        """Net benefit of a strategy, or the difference of two, with its interval.

        Parameters
        ----------
        strategy : str
            One of `strategies`.
        minus : str, default=None
            Another one, which is subtracted; the interval is that of paired differences.
        scaled : bool, default=False
            Standardise: divide by the net benefit of the oracle, which for two classes is the share
            of the second one. The largest value is then 1.

        Returns
        -------
        Table
            Columns ``threshold``, ``value``, ``low`` and ``high``.
        """
        weights = np.zeros((len(self.thresholds), len(self.strategies)))
        for name, factor in ((strategy, 1.0), (minus, -1.0)):
            if name not in (*self.strategies, None):
                fix = f"expected one of {', '.join(self.strategies)}"
                raise InputError("strategy", None, f"is {name!r}", fix)
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
        """Ends of an axis of net benefits on which those of the forecasts can be read.

        At high thresholds intervals are wide, and acting on all rows loses without bound: both are
        cut off.
        """
        names = [name for name in self.strategies if name in ("forecasts", "before", "after")]
        parts = [self.benefit(name, scaled=scaled) for name in names]
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
        columns = {"strategy": np.repeat(list(parts), len(self.thresholds))}
        names = ("threshold", "value", "low", "high")
        return Table(columns | {n: np.concatenate([p[n] for p in parts.values()]) for n in names})

    def __repr__(self) -> str:
        named = zip(self.strategies[:-1], self.values.round(4), strict=False)
        columns = {"threshold": self.thresholds, **dict(named)}
        paired = "after" in self.strategies
        found = self.benefit("after", minus="before") if paired else self.benefit("forecasts")
        title = f"{100 * self.confidence:g} % {'change' if paired else 'interval'}"
        ends = zip(found["low"], found["high"], strict=True)
        columns[title] = np.array([f"{low:.4f} to {high:.4f}" for low, high in ends])
        return repr(Table(columns))


def decision_curve(
    pair: Pair, thresholds: Any, confidence: float, benefits: Benefits | None = None
) -> DecisionCurve:
    """Decision curve of the forecasts of some rows."""
    ts = _check_thresholds(thresholds, bounded=benefits is None)
    forecasts = [sample.forecasts for sample in pair.samples.values()]
    if len(pair.series) < len(forecasts):
        fix = "a threshold is a probability. Calibrate scores first"
        raise InputError("y_prob", None, "has scores that are not probabilities", fix)
    before, K = pair.before, pair.n_classes
    weights, squares, clusters = before.row_weights(), pair.squared_weights(), before.clusters
    each = [(benefits or _benefits_of_two)(t, before.classes) for t in ts.tolist()]
    B, actions = np.array([values for values, _ in each]), each[0][1]  # worth of actions, (T, K, A)
    shape = K, *[len(actions)] * len(forecasts)
    m = math.prod(shape)
    sums, products = np.zeros((len(ts), m)), np.zeros((len(ts), m, m))
    for t, threshold in enumerate(ts.tolist()):
        # A forecast at the threshold of two classes is acted on.
        chosen = [
            (P[:, 1] >= threshold) * 1 if benefits is None else (P @ B[t]).argmax(axis=1)
            for P in forecasts
        ]
        cell = np.ravel_multi_index((before.codes, *chosen), shape)
        sums[t] = np.bincount(cell, weights, m)
        if clusters is None:
            products[t] = np.diag(np.bincount(cell, squares, m))
        else:
            size = m * (int(clusters.max()) + 1)
            in_cluster = np.bincount(clusters * m + cell, weights, size).reshape(-1, m)
            products[t] = in_cluster.T @ in_cluster
    n_units = pair.n_rows if clusters is None else before.n_units
    values, covariance = _moments(sums, products, B, shape, n_units)
    names = list(pair.samples) if len(forecasts) == 2 else ["forecasts"]
    return DecisionCurve(ts, (*names, *actions, "oracle"), values, covariance, confidence)


def thresholds_of(samples: Iterable[Sample], n_thresholds: int = 99) -> Floats:
    """Thresholds in the range of the observed rates of twentieths of the rows.

    Beyond it, nearly all rows or nearly none are acted on.
    """
    tables = [observed_rates(event_of(sample, 1), n_bins=20) for sample in samples]
    rates = np.concatenate([table["rate"] for table in tables])
    margin = 0.1 * np.ptp(rates) + 0.001
    low, high = np.clip([rates.min() - margin, rates.max() + margin], 0.0, 0.99)
    return np.linspace(low, high, n_thresholds)


def _check_thresholds(thresholds: Any, *, bounded: bool) -> Floats:
    if thresholds is None:
        return np.arange(1, 100) / 100
    values = np.atleast_1d(np.asarray(to_array(thresholds, name="thresholds"), dtype=np.float64))
    wrong = ~np.isfinite(values) | (bounded & ((values < 0) | (values >= 1)))
    if values.ndim != 1 or not len(values) or wrong.any():
        fix = "expected numbers of at least 0 and below 1" if bounded else "expected numbers"
        raise InputError("thresholds", None, f"is {thresholds!r}", fix)
    return values


def _benefits_of_two(threshold: float, classes: NDArray[Any]) -> tuple[Floats, list[str]]:
    """Acting on a row is worth 1 if the second class occurs, and costs the odds otherwise."""
    if len(classes) != 2:
        problem = f"is missing, but there are {len(classes)} classes"
        fix = "pass a function from a threshold to costs to isoroc.decisions.net_benefit"
        raise InputError("costs", None, problem, fix)
    return np.array([[0.0, -threshold / (1 - threshold)], [0.0, 1.0]]), ["none", "all"]


def _moments(
    weights: Floats, products: Floats, B: Floats, shape: tuple[int, ...], n_rows: int
) -> tuple[Floats, Floats]:
    """Mean benefit of each strategy, (S, T), and covariances, from sums by class and actions.

    `weights`, (T, m), are those of the m combinations of a class and actions, `products` sums of
    products of the weights that two combinations have in a row or cluster. `n_rows` is the number
    of rows or clusters.
    """
    code, *chosen = np.indices(shape).reshape(len(shape), -1)
    each = [B[:, code, action] for action in (*chosen, *range(B.shape[2]))]
    V = np.stack([*each, B.max(axis=2)[:, code]], axis=2)  # one row per place, (T, m, S)
    total = weights[0].sum()
    mean = np.einsum("tm,tms->ts", weights, V) / total
    D = V - mean[:, None]
    covariance = D.swapaxes(1, 2) @ products @ D * (n_rows / max(n_rows - 1, 1))
    # Where few rows are acted on, benefits vary too little in the sample. So variances are those of
    # the sample and of four further rows of any label and action (as in Agresti and Coull 1998).
    extra = 4 * products[0].sum() / n_rows / V.shape[1]
    covariance += extra * np.einsum("tms,tmu->tsu", V, V)
    return mean.T, covariance / total**2
