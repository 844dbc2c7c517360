"""What calibration did to decisions and to the order of rows."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from isoroc._input import (
    InputError,
    Sample,
    check_after,
    check_confidence,
    check_number,
    check_sample,
)
from isoroc._intervals import half_width
from isoroc._random import check_random_state
from isoroc._simplex import Floats
from isoroc._table import Table
from isoroc.metrics._pairs import PairChanges
from isoroc.metrics._ranking import Ranking, ranked_columns
from isoroc.metrics._resampling import bootstrap
from isoroc.metrics._surface.surface import volume_under_surface

#: Intervals are computed from at most this many rows, fewer for more classes than three, and scaled
#: to the number of rows;
RESAMPLED_ROWS, LEAST_RESAMPLED = 5000, 1000
#: volumes from at most this many, and their intervals from fewer rows and fewer resamples.
VOLUME_ROWS, RESAMPLED_VOLUME_ROWS = 2000, 500

#: Shares have one value, all other measures have one before and one after calibration.
SHARES = ("decisions_changed", "pairs_reversed", "pairs_tied")


@dataclass(frozen=True, eq=False, repr=False)
class OrderReport:
    """What calibration did to decisions and to the order of rows; `frame` has all figures.

    ``report["accuracy", "change"]`` is the value of one of them.

    Attributes
    ----------
    table : Table
        Columns ``measure``, ``of`` ("before", "after" or "change"), ``value``, ``low``, ``high``.
        Shares, such as that of decisions changed, only have a row for "change".
    confidence : float
        Probability that an interval covers the true value.
    n_rows : int
        Number of rows with positive weight.
    notes : tuple of str
        Figures that are based on some of the rows only.
    """

    table: Table
    confidence: float
    n_rows: int
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> float:
        measure, of = key
        found = np.flatnonzero((self.table["measure"] == measure) & (self.table["of"] == of))
        if not len(found):
            raise KeyError(key)
        return float(self.table["value"][found[0]])

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """`table` as a dataframe of the named library."""
        return self.table.frame(backend)

    def __repr__(self) -> str:
        cells: dict[str, dict[str, str]] = {}
        for measure, of, *figures in zip(*self.table.values(), strict=True):
            value, low, high = map(_text, figures)
            row = cells.setdefault(str(measure), dict.fromkeys(("before", "after"), ""))
            row[str(of)] = value
            if of == "change":
                row["interval"] = f"{low} to {high}"
        rows = [
            (name, row["before"], row["after"], row["change"], row["interval"])
            for name, row in cells.items()
        ]
        interval = f"{100 * self.confidence:g} % interval of the change"
        shown = Table.from_rows(rows, "measure", "before", "after", "change", interval)
        return "\n".join([repr(shown), *(f"  {note}" for note in self.notes)])


def _text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def order_report(
    y_true: Any,
    before: Any,
    after: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 200,
    random_state: Any = None,
) -> OrderReport:
    """Compare decisions and ranking before and after calibration.

    The measures are:

    accuracy
        Share of rows whose label is the decision, the class with the largest probability (the first
        on ties). Scores of two classes decide for the second one above 0.5, or above 0 if some
        score lies outside [0, 1].
    auc
        Area under the ROC curve (two classes).
    auc_one_vs_rest, auc_one_vs_one
        Areas of each class against all others, and of each pair of classes by the scores of either
        (Hand and Till 2001); plain means over classes and pairs (three classes or more).
    vus
        Volume under the ROC surface, that of the hull (three classes).
    decisions_changed
        Share of rows whose decision changed.
    pairs_reversed, pairs_tied
        Shares of pairs of rows, among those that the score of a class ordered before, that the
        score of this class orders the other way round after, or no longer tells apart. The pairs
        of all classes are pooled; two classes have one score. All pairs are counted.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    before, after : array-like of shape (n, K) or (n,)
        Forecasts of the same rows, or real scores that increase with the probability of the second
        of two classes.
    sample_weight : array-like of shape (n,), default=None
        Weight of each row; weight 2 is the same as the row twice, except in the intervals, as rows
        are resampled.
    labels : array-like of shape (K,), default=None
        The classes in the order of the columns; sorted by default.
    confidence : float, default=0.95
        Probability that an interval covers the true value.
    n_resamples : int, default=200
        How often rows are resampled; an eighth of it, but at least 16, for the volume. 0 for no
        intervals: their ends are NaN.
    random_state : int, RandomState or None, default=None
        Seed of the resamples.

    Returns
    -------
    OrderReport

    Notes
    -----
    Intervals are the estimate plus or minus a multiple of its bootstrap standard error, cut off at
    the smallest and largest possible values. Before and after are resampled together, so those of
    changes are paired. A share that is 0 in the sample has an interval of width 0; by the rule of
    three, a share of decisions up to about 3 / n is compatible with it. At most 5,000 rows are
    resampled (15,000 / K, but at least 1,000, for K > 3 classes), and the standard errors are
    scaled to n rows. Volumes are computed from at most 2,000 rows and their standard errors from at
    most 500. `OrderReport.notes` says where rows were left out.

    Examples
    --------
    >>> import numpy as np
    >>> from isoroc.metrics import order_report
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> y = rng.random(1000) < p**2
    >>> report = order_report(y, p, (p**2).round(1), random_state=0)  # a step function
    >>> report
                measure  before   after   change  95 % interval of the change
               accuracy  0.7400  0.7830   0.0430             0.0122 to 0.0738
                    auc  0.8642  0.8587  -0.0055           -0.0086 to -0.0024
      decisions_changed                   0.2510             0.2257 to 0.2763
         pairs_reversed                   0.0000             0.0000 to 0.0000
             pairs_tied                   0.1157             0.1091 to 0.1224
    >>> report["decisions_changed", "change"]
    0.251
    """
    check_number("n_resamples", n_resamples, numbers.Integral, minimum=0)
    if n_resamples == 1:
        raise InputError("n_resamples", None, "is 1", "expected 0, or at least 2")
    check_confidence(confidence)
    first, second = _check_both(y_true, before, after, sample_weight, labels)
    seeds = check_random_state(random_state).randint(2**31 - 1, size=3)
    rng = np.random.default_rng(seeds[0])
    both = first, second
    most = max(LEAST_RESAMPLED, 3 * RESAMPLED_ROWS // max(3, first.n_classes))
    resampled = _draw(both, most, rng)
    values, errors = _estimate(_measure, both, resampled, n_resamples, seeds[1])
    notes = []
    if n_resamples and len(resampled[0]) < len(first):
        notes.append(f"Intervals are based on {len(resampled[0]):,} of {len(first):,} rows.")
    if first.n_classes == 3:
        few = max(n_resamples // 8, min(n_resamples, 16))
        judged = _draw(both, VOLUME_ROWS, rng)
        resampled = _draw(judged, RESAMPLED_VOLUME_ROWS, rng)
        volumes, of_volumes = _estimate(_volumes, judged, resampled, few, seeds[2])
        values, errors = values | volumes, errors | of_volumes
        if len(judged[0]) < len(first):
            notes.append(f"Volumes are based on {len(judged[0]):,} of {len(first):,} rows.")
    table = _tabulate(values, errors, confidence)
    return OrderReport(table, confidence, len(first), tuple(notes))


def _check_both(
    y_true: Any, before: Any, after: Any, sample_weight: Any, labels: Any
) -> tuple[Sample, Sample]:
    """Samples of both forecasts with the same rows and classes, without rows of weight 0."""
    first = check_sample(before, y_true, sample_weight, labels, name="before", label_name="y_true")
    return first.positive(), check_after(after, first).positive()


def _draw(
    both: tuple[Sample, Sample], most: int, rng: np.random.Generator
) -> tuple[Sample, Sample]:
    """At most so many rows, the same of both samples."""
    n = len(both[0])
    if n <= most:
        return both
    rows = np.sort(rng.choice(n, most, replace=False))
    return both[0].take(rows), both[1].take(rows)


#: Figures by measure and what they are of: "before", "after" or "change".
Figures = dict[tuple[str, str], float]
#: Figures of the rows of two samples, given the weights of the rows.
Measure = Callable[[Floats], Figures]


def _measure(first: Sample, second: Sample) -> Measure:
    """Measures that are quick to compute for other weights: everything is sorted once."""
    decisions = [sample.decisions() for sample in (first, second)]
    hits = [decision == first.codes for decision in decisions]
    changed = decisions[0] != decisions[1]
    rankings = [Ranking(sample.forecasts, first.codes) for sample in (first, second)]
    columns = zip(ranked_columns(first.forecasts), ranked_columns(second.forecasts), strict=True)
    changes = [PairChanges(a, b) for (_, a), (_, b) in columns]
    names = ["auc"] if first.n_classes == 2 else ["auc_one_vs_rest", "auc_one_vs_one"]

    def measured(weights: Floats) -> Figures:
        total = weights.sum()
        figures = _with_change("accuracy", *(float(weights @ hit / total) for hit in hits))
        areas = zip(*(ranking.areas(weights) for ranking in rankings), strict=True)
        for name, (earlier, later) in zip(names, areas, strict=False):
            figures |= _with_change(name, earlier, later)
        figures["decisions_changed", "change"] = float(weights @ changed / total)
        ordered, out_of_order, tied = np.sum([pairs(weights) for pairs in changes], axis=0)
        figures["pairs_reversed", "change"] = float(out_of_order / ordered) if ordered else 0.0
        figures["pairs_tied", "change"] = float(tied / ordered) if ordered else 0.0
        return figures

    return measured


def _volumes(first: Sample, second: Sample) -> Measure:
    """Volume under the ROC surface of three classes, which takes long."""

    def measured(weights: Floats) -> Figures:
        if not np.bincount(first.codes, weights, 3).all():
            return _with_change("vus", math.nan, math.nan)
        volumes = [
            volume_under_surface(
                first.codes, sample.forecasts, sample_weight=weights, labels=range(3)
            )
            for sample in (first, second)
        ]
        return _with_change("vus", *map(float, volumes))

    return measured


def _with_change(measure: str, before: float, after: float) -> Figures:
    return {
        (measure, "before"): before,
        (measure, "after"): after,
        (measure, "change"): after - before,
    }


def _estimate(
    measure: Callable[[Sample, Sample], Measure],
    judged: tuple[Sample, Sample],
    resampled: tuple[Sample, Sample],
    n_resamples: int,
    seed: int,
) -> tuple[Figures, Figures]:
    """Figures of some rows, and their standard errors from some of these."""
    values = measure(*judged)(judged[0].row_weights())
    if not n_resamples:
        return values, dict.fromkeys(values, math.nan)
    measured = measure(*resampled)
    places = np.arange(len(resampled[0]))
    one = resampled[0].row_weights()

    def metric(_: Any, __: Any, sample_weight: Floats | None = None) -> list[float]:
        return list(measured(one if sample_weight is None else sample_weight).values())

    draws = bootstrap(
        metric,
        places,
        places,
        sample_weight=resampled[0].weights,
        n_resamples=n_resamples,
        random_state=seed,
    ).distribution
    scale = math.sqrt(len(resampled[0]) / len(judged[0]))
    errors = [scale * _deviation(column) for column in draws.T]
    return values, dict(zip(values, errors, strict=True))


def _deviation(draws: Floats) -> float:
    """Standard deviation over the resamples in which the measure is defined."""
    known = draws[~np.isnan(draws)]
    return float(known.std(ddof=1)) if len(known) > 1 else math.nan


def _tabulate(values: Figures, errors: Figures, confidence: float) -> Table:
    """Figures with normal intervals, cut off at what is possible."""
    z = half_width(confidence)
    rows = []
    for (measure, of), value in sorted(values.items(), key=lambda item: item[0][0] in SHARES):
        least = -1.0 if of == "change" and measure not in SHARES else 0.0
        half = z * errors[measure, of]
        # np.maximum and np.minimum keep NaN, which stands for an unknown value or error.
        low, high = np.maximum(value - half, least), np.minimum(value + half, 1.0)
        rows.append((measure, of, value, float(low), float(high)))
    return Table.from_rows(rows, "measure", "of", "value", "low", "high")
