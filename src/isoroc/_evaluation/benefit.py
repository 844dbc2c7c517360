"""Net benefit of decisions: the only place where rows become decision curves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from isoroc._evaluation.pair import Pair
from isoroc._input import InputError, Sample, to_array
from isoroc._intervals import half_width
from isoroc._simplex import Floats, Ints
from isoroc._table import Table

#: Where few rows are acted on, or change their action, their benefits vary less in the sample than
#: they do; so variances are those of the sample and of this many further rows, of any label and
#: action (as Agresti and Coull 1998 add four rows to a rate).
PSEUDO_ROWS = 4


class Benefits(NamedTuple):
    """What actions are worth at one threshold, compared with the first action."""

    values: Floats
    """Benefit of each action (column) if a class (row) occurs; the first column is 0."""
    threshold: float | None = None
    """The second action is taken if the second probability is at least this, if it is given.
    Otherwise the action of largest expected benefit is taken."""

    @classmethod
    def of(cls, threshold: float) -> Benefits:
        """Treating a row is worth 1 if the second class occurs, and costs the odds otherwise."""
        odds = threshold / (1 - threshold)
        return cls(np.array([[0.0, -odds], [0.0, 1.0]]), threshold)

    def choose(self, P: Floats) -> Ints:
        """Column of the action that each forecast leads to."""
        if self.threshold is not None:
            return np.asarray(P[:, 1] >= self.threshold, dtype=np.intp)
        return np.asarray((P @ self.values).argmax(axis=1))


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve:
    """Net benefit of strategies against the threshold, with intervals.

    `isoroc.decisions.net_benefit` and `Evaluation.net_benefit` make one.

    Attributes
    ----------
    thresholds : ndarray of shape (T,)
        The thresholds, or the values of the cost that varies.
    strategies : tuple of str
        "forecasts", or "before" and "after", and the constant actions: "none" and "all", or those
        of the cost matrix. The first action is the one with which others are compared, so its net
        benefit is 0. The last strategy, "oracle", takes the best action for each label.
    values : ndarray of shape (S, T)
        Net benefit of each strategy.
    covariance : ndarray of shape (T, S, S)
        Covariances of the estimates at each threshold; all strategies have the same rows.
    confidence : float
        Probability that an interval covers the true value.
    """

    thresholds: Floats
    strategies: tuple[str, ...]
    values: Floats
    covariance: Floats
    confidence: float

    def benefit(self, strategy: str, *, minus: str | None = None, scaled: bool = False) -> Table:
        """Net benefit of a strategy, or the difference of two, with its interval.

        Parameters
        ----------
        strategy : str
            One of `strategies`.
        minus : str, default=None
            Another one, whose net benefit is subtracted. The interval is that of paired
            differences.
        scaled : bool, default=False
            Standardise: divide by the net benefit of the oracle, which for two classes is the share
            of the second one. The largest value is then 1.

        Returns
        -------
        Table
            Columns ``threshold``, ``value``, ``low`` and ``high``.
        """
        weights = self._contrast(strategy, minus)
        value = np.einsum("ts,st->t", weights, self.values)
        if scaled:
            oracle = self.values[-1]
            value = value / oracle
            weights[:, -1] -= value
            weights /= oracle[:, None]
        variance = np.einsum("ts,tsu,tu->t", weights, self.covariance, weights)
        half = half_width(self.confidence) * np.sqrt(variance.clip(min=0))
        ends = {"low": value - half, "high": value + half}
        return Table({"threshold": self.thresholds, "value": value, **ends})

    def _contrast(self, strategy: str, minus: str | None) -> Floats:
        weights = np.zeros((len(self.thresholds), len(self.strategies)))
        for name, factor in ((strategy, 1.0), (minus, -1.0)):
            if name is None:
                continue
            if name not in self.strategies:
                fix = f"expected one of {', '.join(self.strategies)}"
                raise InputError("strategy", None, f"is {name!r}", fix)
            weights[:, self.strategies.index(name)] += factor
        return weights

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
        named = zip(self.strategies[:-1], self.values, strict=False)
        columns = {"threshold": self.thresholds} | {name: row.round(4) for name, row in named}
        last = "after" if "after" in columns else "forecasts"
        minus, name = ("before", "change") if last == "after" else (None, "interval")
        found = self.benefit(last, minus=minus)
        ends = zip(found["low"], found["high"], strict=True)
        columns[f"{100 * self.confidence:g} % {name}"] = np.array(
            [f"{low:.4f} to {high:.4f}" for low, high in ends]
        )
        return repr(Table(columns))


def binary_curve(pairs: Iterable[Pair], thresholds: Any, confidence: float) -> DecisionCurve:
    """Decision curve of two classes and thresholds as users pass them."""
    values = check_thresholds(thresholds, bounded=True)
    benefits = [Benefits.of(t) for t in values.tolist()]
    return decision_curve(pairs, values, benefits, ("none", "all"), confidence)


def check_thresholds(thresholds: Any, *, bounded: bool) -> Floats:
    """Thresholds as an array; bounded ones are probabilities below 1."""
    if thresholds is None:
        return np.arange(1, 100) / 100
    values = np.atleast_1d(np.asarray(to_array(thresholds, name="thresholds"), dtype=np.float64))
    wrong = ~np.isfinite(values) | (bounded & ((values < 0) | (values >= 1)))
    if values.ndim != 1 or not len(values) or wrong.any():
        fix = "expected numbers of at least 0 and below 1" if bounded else "expected numbers"
        raise InputError("thresholds", None, f"is {thresholds!r}", fix)
    return values


def decision_curve(
    pairs: Iterable[Pair],
    thresholds: Floats,
    benefits: Sequence[Benefits],
    actions: Sequence[str],
    confidence: float,
) -> DecisionCurve:
    """Decision curve of rows in batches, of which only sums are kept."""
    names: list[str] = []
    sums = np.zeros(0)
    n_rows = 0
    for pair in pairs:
        samples = [_probabilities(sample) for sample in pair.samples.values()]
        K, A, squared = pair.n_classes, len(actions), pair.squared_weights()
        if len(benefits[0].values) != K:
            problem = f"is missing, but there are {K} classes"
            fix = "pass a function from a threshold to costs to isoroc.decisions.net_benefit"
            raise InputError("costs", None, problem, fix)
        if not names:
            names = list(pair.samples) if len(samples) == 2 else ["forecasts"]
            sums = np.zeros((2, len(benefits), K, *[A] * len(samples)))
        n_rows += pair.n_rows
        weights = pair.before.row_weights()
        for t, benefit in enumerate(benefits):
            chosen = [benefit.choose(P) for P in samples]
            index = np.ravel_multi_index((pair.before.codes, *chosen), sums.shape[2:])
            for i, values in enumerate((weights, squared)):
                sums[i, t] += np.bincount(index, values, sums[i, t].size).reshape(sums.shape[2:])
    if not n_rows:
        raise InputError("y_true", None, "no rows", "at least one is needed")
    moments = [_moments(sums[0, t], sums[1, t], b.values, n_rows) for t, b in enumerate(benefits)]
    values, covariance = (np.array(part) for part in zip(*moments, strict=True))
    return DecisionCurve(thresholds, (*names, *actions, "oracle"), values.T, covariance, confidence)


def _probabilities(sample: Sample) -> Floats:
    if sample.forecasts.ndim == 1:
        fix = "a threshold is a probability. Calibrate scores first"
        raise InputError("y_prob", None, "has scores that are not probabilities", fix)
    return sample.forecasts


def _moments(
    weights: Floats, squared: Floats, benefits: Floats, n_rows: int
) -> tuple[Floats, Floats]:
    """Mean benefit of each strategy, and its covariances, from sums by class and actions taken."""
    code, *chosen = np.indices(weights.shape).reshape(weights.ndim, -1)
    rows = [benefits[code, a] for a in (*chosen, *range(benefits.shape[1]))]
    V = np.column_stack([*rows, benefits.max(axis=1)[code]])  # one row per place, shape (m, S)
    total = weights.sum()
    mean = weights.ravel() @ V / total
    D = V - mean
    covariance = (D.T * squared.ravel()) @ D / total**2 * n_rows / max(n_rows - 1, 1)
    # The rows that are added have any of the labels and actions.
    extra = PSEUDO_ROWS * squared.sum() / n_rows * (V.T @ V) / (len(V) * total**2)
    return mean, covariance + extra
