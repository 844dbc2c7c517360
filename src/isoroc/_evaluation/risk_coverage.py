"""Risk and coverage: how often the surest rows are wrong, for every share of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from isoroc._core.intervals import (
    Difference,
    Estimate,
    Statistic,
    covariance_of_means,
    design_effect,
    effective_rows,
    mean_of,
    wilson,
)
from isoroc._core.types import Floats
from isoroc._evaluation.curves import thin
from isoroc._input import Sample
from isoroc._support.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage:
    """Error of the surest rows against their share, and areas below these curves."""

    table: Table
    """The curves: the forecasts (``of``), the ``threshold`` at or above which rows are accepted,
    their share (``coverage``), their ``error``, and its interval ``low`` to ``high``."""
    area: Mapping[str, Estimate]
    """Area below each curve, the error on average over all shares. With two forecasts also the
    "change"."""
    excess: Mapping[str, Estimate]
    """Area above the ideal order of the rows, in which all wrong rows come last."""
    confidence: float

    def error_at(self, coverage: float, of: str | None = None) -> float:
        """Error if a share of the rows is accepted, by default in the order of the last forecasts.

        It is linear between the points of the curve.
        """
        name = self.table["of"][-1] if of is None else of
        rows = self.table["of"] == name
        points = (self.table[column][rows] for column in ("coverage", "error"))
        return float(np.interp(coverage, *points))

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`table` as a dataframe of the named library."""
        return self.table.frame(backend)

    def __repr__(self) -> str:
        columns = {"": [*self.area, *(f"{name}, excess" for name in self.excess)]}
        estimates = [*self.area.values(), *self.excess.values()]
        for i, name in enumerate(("area", "low", "high")):
            columns[name] = [f"{estimate[i]:.5f}" for estimate in estimates]
        return repr(Table({name: np.array(column) for name, column in columns.items()}))


class Ranked(NamedTuple):
    """Rows in the order of their largest probability. Ties are groups in random order."""

    group: Any  # of each row, the surest first
    start: Floats  # share of rows before each group
    end: Floats  # share of rows up to the end of each group
    scores: Floats  # of each group
    rate: Floats  # error of each group
    wrong: Floats  # of each row
    weights: Floats  # of each row, with sum 1

    @classmethod
    def of(cls, sample: Sample) -> Ranked:
        """Rows with one column of probabilities for each class."""
        top = sample.forecasts.max(axis=1)
        wrong = (sample.decisions() != sample.codes) * 1.0
        weights = sample.row_weights() / sample.row_weights().sum()
        scores, group = np.unique(-top, return_inverse=True)
        mass = np.bincount(group, weights)
        end = np.minimum(mass.cumsum(), 1.0)
        end[-1] = 1.0
        rate = np.bincount(group, weights * wrong) / mass
        return cls(group, np.append(0.0, end[:-1]), end, -scores, rate, wrong, weights)

    def areas(self) -> tuple[Floats, Floats]:
        """For each row, values whose means are the area and its excess over the ideal order.

        The area is the mean of ``-wrong * log(u)``, where u is the share of rows up to this one.
        Each value also counts how a row moves the rows after it, so that the variance of the mean
        is the variance of the area.
        """
        width = self.end - self.start
        log_end = np.log(self.end)
        # -log(u) on average over a group.
        surprise = (_integral(self.end) - _integral(self.start)) / width
        with np.errstate(divide="ignore"):
            ratio = np.where(self.start > 0, log_end - np.log(self.start), 0.0)
        after = (self.rate * ratio)[::-1].cumsum()[::-1] - self.rate * ratio
        moved = after + self.rate * (log_end + surprise)
        total = float(self.weights @ self.wrong)
        area = self.wrong * surprise[self.group] - moved[self.group] + total
        rest = 1 - total
        ideal = total + (rest * np.log(rest) if rest > 0 else 0.0)
        slope = -np.log(rest) if rest > 0 else 0.0
        return area, area - ideal - slope * (self.wrong - total)


def _integral(u: Floats) -> Floats:
    """Integral of ``-log`` from 0."""
    return np.asarray(u - u * np.log(np.where(u > 0, u, 1.0)))


def risk_coverage_curve(
    samples: Mapping[str, Sample], confidence: float, most: int = 200
) -> RiskCoverage:
    """Curves and areas of forecasts of the same rows, with columns of probabilities."""
    tables = []
    areas: dict[str, list[Any]] = {"area": [], "excess": []}
    for name, sample in samples.items():
        ranked = Ranked.of(sample)
        tables.append((name, _curve(ranked, sample, confidence, most)))
        for kind, rows in zip(areas, ranked.areas(), strict=True):
            areas[kind].append((mean_of(rows, sample.weights, sample.clusters), rows))
    table = Table(of=np.repeat([name for name, _ in tables], [part.n_rows for _, part in tables]))
    for column in tables[0][1]:
        table[column] = np.concatenate([part[column] for _, part in tables])
    estimates = {}
    for kind, terms in areas.items():
        found: dict[str, Statistic | Difference] = {
            name: statistic for name, (statistic, _) in zip(samples, terms, strict=True)
        }
        if len(terms) == 2:
            sample = next(iter(samples.values()))
            found["change"] = _difference(sample, *terms)
        estimates[kind] = {
            name: Estimate(each.value, *each.interval(confidence)) for name, each in found.items()
        }
    return RiskCoverage(table, estimates["area"], estimates["excess"], confidence)


def _difference(sample: Sample, first: Any, second: Any) -> Difference:
    """Paired difference of two means over the same rows."""
    weights = sample.row_weights() / sample.row_weights().sum()
    covariance = covariance_of_means(first[1], second[1], weights, sample.clusters)
    size = np.sqrt(covariance[0, 0] * covariance[1, 1])
    correlation = float(covariance[0, 1]) / size if size else 0.0
    return Difference(first[0], second[0], correlation)


def _curve(ranked: Ranked, sample: Sample, confidence: float, most: int) -> Table:
    """Points of a curve with intervals at each of them."""
    errors = np.cumsum(ranked.rate * (ranked.end - ranked.start))
    kept = thin(ranked.end, ranked.end, most)
    coverage = ranked.end[kept]
    rate = np.minimum(errors[kept] / coverage, 1.0)
    squares = np.bincount(ranked.group, sample.squared_weights()).cumsum()[kept]
    total = sample.row_weights().sum()
    size = effective_rows(coverage * total, squares)
    if sample.clusters is not None:
        for i, group in enumerate(kept):
            terms = ranked.weights * (ranked.group <= group) * (ranked.wrong - rate[i])
            size[i] /= design_effect(terms, sample.clusters)
    low, high = wilson(rate, size, confidence)
    return Table(
        threshold=ranked.scores[kept],
        coverage=coverage,
        error=rate,
        low=np.minimum(low, rate),
        high=np.maximum(high, rate),
    )
